"""plugrt-sdk without pytest, which the extra ``conform`` adds; running devices needs no pytest."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata

from support import children

BLOCKED = "import sys; sys.modules['pytest'] = sys.modules['_pytest'] = None\n"
USES = """
import plugrt_sdk
from plugrt_sdk.commands import plugrt_add_commands
from plugrt_sdk.export import export_capsule
from plugrt_numpy import plugin
for name in plugrt_sdk.__all__:
    getattr(plugrt_sdk, name)
print(type(export_capsule(lambda: plugin.create_client({}))).__name__)
"""
KIT = """
from plugrt.cli import main
main(["conform", "numpy", "--check", "buffers.put_get.dtypes.float32"])
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a child where pytest cannot be imported."""
    done = children.run([sys.executable, "-c", code], timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_only_the_extra_requires_pytest() -> None:
    required = metadata.requires("plugrt-sdk") or []
    of_pytest = [line for line in required if re.match(r"pytest\b", line)]
    assert [line.replace("'", '"').partition(";")[2].strip() for line in of_pytest] == [
        'extra == "conform"'
    ]


def test_backends_exports_and_commands_work_without_it() -> None:
    assert run(BLOCKED + USES).stdout == "PyCapsule\n"


def test_the_kit_runs_as_a_command_without_it() -> None:
    assert "1 PASS" in run(BLOCKED + KIT).stdout


def test_the_pytest_plugin_imports_nothing_without_its_option() -> None:
    """pytest loads it wherever plugrt-sdk is installed, also in the tests of other projects."""
    [point] = metadata.entry_points(group="pytest11", name="plugrt")
    code = f"""
import sys
before = set(sys.modules)
import {point.value} as plugin
class Config:
    def getoption(self, name): return None
plugin.pytest_configure(Config())
print(*sorted(name for name in set(sys.modules) - before if name.startswith(("plugrt", "numpy"))))
"""
    assert run(code).stdout.split() == [
        "plugrt_sdk", "plugrt_sdk.lazy_names", "plugrt_sdk.pytest_plugin",
    ]  # fmt: skip
