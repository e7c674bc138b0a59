"""A plugin wheel of 2026-11-22, for version 1.0 of plugrt.interface, works with today's plugrt.

tests/frozen/README.md says what it holds, and what to do when a change must break it.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from plugrt import interface
from plugrt.errors import PluginIncompatible
from plugrt.plugins import Backends
from plugrt.settings.declarations import Config
from support.absent_core import needs_sdk_core
from support.distributions import run_python
from support.requirements import needs_jax

[WHEEL] = (Path(__file__).parents[2] / "frozen").glob("*.whl")
UNDER_PLUGRT = """
import numpy as np, plugrt
ONE = np.float32([1, 2])
for name in plugrt.backends():
    device = plugrt.devices(name)[-1]
    x = plugrt.device_put(ONE, device)
    print(name, device.kind, len(plugrt.devices(name)), np.asarray(x).tolist())
    print(plugrt.jit(lambda x: x + x, backend=name)(ONE).tolist())
try:
    plugrt.jit(lambda x: -x, backend="frozen")(ONE)
except plugrt.errors.Unimplemented as error:
    print(error.message)
rows = [row for row in plugrt.plugins.table() if row.name.startswith("frozen") and row.client]
print([(row.name, str(row.state), row.version) for row in rows])
"""
UNDER_JAX = """
import jax, numpy as np
print(jax.devices()[0].device_kind, jax.jit(lambda x: x + x)(np.float32([1, 2])).tolist())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel unpacked in it, which is what pip makes of it."""
    folder = tmp_path_factory.mktemp("frozen")
    with zipfile.ZipFile(WHEEL) as wheel:
        wheel.extractall(folder)
    return folder


def test_its_backend_and_its_client_work(installed: Path) -> None:
    done = run_python(UNDER_PLUGRT, installed, JAX_PLATFORMS="icy,frozen-client")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "frozen frozen chip 1 [1.0, 2.0]",
        "[2.0, 4.0]",
        "frozen-client frozen chip 2 [1.0, 2.0]",
        "[2.0, 4.0]",
        "frozen has no stablehlo.negate",
        "[('frozen', 'initialised', '1.0'), ('frozen-client', 'initialised', '1.0')]",
    ]
    assert done.stderr == ""


@needs_jax
@needs_sdk_core
def test_it_works_under_stock_jax(installed: Path) -> None:
    done = run_python(UNDER_JAX, installed, JAX_PLATFORMS="frozen", XLA_FLAGS="")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "frozen chip [2.0, 4.0]\n"


def test_a_later_major_version_refuses_it_with_the_lines_to_type(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.setattr(interface, "VERSION", (2, 0))
    backends = Backends(Config({"JAX_PLATFORMS": "frozen-client"}), path=[str(installed)])
    try:
        with pytest.raises(PluginIncompatible) as error:
            backends.get()
    finally:
        for name in [name for name in sys.modules if name.startswith("plugrt_frozen")]:
            del sys.modules[name]
    for fact in (
        "plugrt-frozen 1.0", "version 1.0 of plugrt.interface", "has 2.0",
        "pip install --upgrade plugrt-frozen", 'pip install "plugrt-sdk<0.2,>=0.1.0"',
    ):  # fmt: skip
        assert fact in str(error.value)
