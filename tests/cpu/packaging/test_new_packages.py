"""The packages of `plugrt new`: built, installed beside plugrt's wheels, found by hosts, and run.

They need a minute, and packages that no other test needs, so `make test` skips them with a message.
CI runs them for each change by `nox -s packages`, with some chapters of the conformance kit
(``nox -s long``: all). tests/nothing/sdk/test_new_package.py tests without an installation,
test_ten_minutes.py tests the guide.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from support.apart import runs_apart
from support.clib import needs_cc
from support.effort import WHOLE
from support.installed import (
    SAMPLED_KIT,
    UNSET,
    UV,
    attempt,
    is_gradient,
    needs_uv,
    unreachable_is_skipped,
    uv_as_pip,
)
from support.markdown import ROOT, blocks
from support.xla_cpu import header_path, library_path, needs_library

slow = [needs_uv, runs_apart("packages"), pytest.mark.long, pytest.mark.timeout(900)]
GRADIENT = (
    "import jax, jax.numpy as jnp; "
    "print(jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x)**2)))(jnp.arange(4.)))"
)

HEADERS = Path(__file__).parent / "headers"
CALL_ALL = """
import json
from cpp_chip.for_plugrt import plugin
from plugrt.errors import Unimplemented
library, said = plugin.open(), {}
for name in library.slots:
    if library.has(name) and not name.startswith("Error_"):
        try:
            library.call(name)
        except Unimplemented as error:
            said["PJRT_" + name] = error.message
print(json.dumps(said))
"""


class Shell:
    """Runs commands in a folder with its own virtual environment, like a user's."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.folder = folder
        # One cache serves all packages: they have the same imports, mostly numpy and jax.
        cache = str(folder.parent / "mypy")
        own = {"COLUMNS": "160", "MYPY_CACHE_DIR": cache, **({} if WHOLE else SAMPLED_KIT)}
        self._environment = {**uv_as_pip(folder, wheels), **own}
        folder.mkdir()
        self.run("make-venv venv")

    def run(self, command: str, **environment: str) -> str:
        """Runs a shell line in the folder, which must succeed; returns its output."""
        lines = [
            'set -eo pipefail; PATH="$PWD/venv/bin:$PATH"',
            UNSET,
            *(f"export {name}={shlex.quote(value)}" for name, value in environment.items()),
            command,
        ]
        script = "\n".join(lines)
        done = attempt("bash", "-c", script, cwd=self.folder, env=self._environment)
        unreachable_is_skipped(done)
        assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def rows(self, **environment: str) -> dict[str, dict[str, str]]:
        """Returns the rows of ``plugrt doctor`` for plugrt's entry points, by name."""
        report = json.loads(self.run("plugrt doctor --json || true", **environment))
        return {r["name"]: r for r in report["candidates"] if r["source"] == "plugrt.plugins"}


class Checkout(Shell):
    """A new environment for a package of `shell`, without the files that git ignores, as in CI."""

    def __init__(self, shell: Shell, wheels: Path, name: str, *, whole: bool = False) -> None:
        """Clones the package; with ``whole`` copies it with ignored files, as its author has it."""
        super().__init__(shell.folder.parent / f"{name}-{'whole' if whole else 'ci'}", wheels)
        source, self.package = shell.folder / name, self.folder / name
        if whole:
            self.run(f"cp -r {source} {name}")
        else:
            identity = "-c user.name=tests -c user.email=tests@example.com"
            self.run(f"cd {source} && git init -q && git add -A && git {identity} commit -qm new")
            self.run(f"git clone -q {source} {name}")

    def run_workflow(self, **variables: str) -> str:
        """Runs the steps of the package's workflow in order, as GitHub does; returns their output.

        ``variables`` are the repository's.
        """
        text = (self.package / ".github/workflows/test.yml").read_text()
        [job] = yaml.safe_load(text)["jobs"].values()
        known = {f"vars.{name}": value for name, value in variables.items()}
        known["github.workspace"] = str(self.package)
        summary = self.folder / "summary.md"
        printed = ""
        for step in job["steps"]:
            if "run" not in step:
                assert step["uses"].startswith(("actions/checkout@", "actions/setup-python@"))
                continue
            given = {name: _fill(value, known) for name, value in step.get("env", {}).items()}
            command = _fill(step["run"], known)
            if not WHOLE:
                command = re.sub(r"^plugrt conform .*", r"\g<0> --level 0", command)
            line = f"cd {self.package} && bash -eo pipefail -c {shlex.quote(command)}"
            line += " || true" if step.get("continue-on-error") else ""
            printed += self.run(line, GITHUB_STEP_SUMMARY=str(summary), **given)
        assert "level" in summary.read_text()
        return printed

    def run_readme(self, *, expect: str = "") -> str:
        """Runs the commands of the package's README in one shell; returns their output.

        The command ``expect`` must fail.
        """
        [block] = blocks(self.package / "README.md", "sh")
        script = block.text
        if expect:
            assert f"\n{expect}\n" in script
            script = script.replace(f"\n{expect}\n", f"\nif {expect}; then false; fi\n")
        return self.run(f"cd {self.package}\n{script}")


def _fill(text: str, known: Mapping[str, str]) -> str:
    """Returns a text of a workflow with its expressions replaced by their values."""
    return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: known[found[1]], text)


@pytest.fixture(scope="session")
def shell(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Makes an environment with plugrt-sdk, JAX, and the requirements of the packages' tests."""
    made = Shell(tmp_path_factory.mktemp("shells") / "shell", wheels[0].parent)
    made.run("pip install --quiet plugrt-sdk jax mypy ruff pytest")
    return made


@pytest.fixture(scope="session")
def python_package(shell: Shell) -> None:
    shell.run("plugrt new my-chip && pip install --quiet './my-chip[test]'")


@pytest.mark.usefixtures("python_package")
class TestPython:
    """``plugrt new NAME``: a backend of four methods on NumPy."""

    pytestmark = slow

    def test_it_is_found_and_computes(self, shell: Shell) -> None:
        row = shell.rows(JAX_PLATFORMS="my-chip")["my-chip"]
        assert (row["state"], row["distribution"]) == ("initialised", "my-chip")
        code = "import plugrt; print(plugrt.devices('my-chip'), plugrt.jit(lambda x: x + x)(21))"
        assert shell.run(f'python -c "{code}"', JAX_PLATFORMS="my-chip") == "[my-chip:0] 42\n"

    def test_stock_jax_uses_it_where_it_is_named(self, shell: Shell) -> None:
        assert is_gradient(shell.run(f'python -c "{GRADIENT}"', JAX_PLATFORMS="my-chip"))
        code = "import jax, sys; print(jax.devices()[0].platform, 'my_chip.backend' in sys.modules)"
        assert shell.run(f'python -c "{code}"') == "cpu False\n"

    def test_nothing_of_jax_is_imported_by_it(self, shell: Shell) -> None:
        code = (
            "import sys, my_chip.for_jax, my_chip.for_plugrt; "
            "print([m for m in ('jax', 'jaxlib', 'my_chip.backend') if m in sys.modules])"
        )
        assert shell.run(f'python -c "{code}"') == "[]\n"

    def test_its_workflow_is_green(self, shell: Shell, wheels: list[Path]) -> None:
        printed = Checkout(shell, wheels[0].parent, "my-chip").run_workflow()
        assert "Success: no issues found" in printed
        assert int(re.search(r"\b(\d+) passed", printed)[1]) > (350 if WHOLE else 120)

    def test_the_commands_of_its_readme(self, shell: Shell, wheels: list[Path]) -> None:
        printed = Checkout(shell, wheels[0].parent, "my-chip", whole=True).run_readme()
        assert "chosen: my-chip" in printed
        assert printed.endswith("42\n")

    def test_its_scorecard_is_filled(self, shell: Shell) -> None:
        readme = shell.folder / "my-chip/README.md"
        [line] = re.findall(r"`(plugrt conform [^`]+)`", readme.read_text())
        shell.run(f"cd my-chip && {line} --level 0")
        text = readme.read_text()
        assert (
            "[![PJRT conformance: level 0 (Installs)](conformance.svg)](conformance.html)" in text
        )
        assert "Not measured yet" not in text

    def test_its_probe_is_asked_by_both_hosts(self, shell: Shell) -> None:
        """It is unavailable under both, with the reason; JAX's cpu still works."""
        shell.run(
            'plugrt new gone && sed -i \'s/return None/return "no gone0 here", "plug it in"/\' '
            "gone/src/gone/probe.py && sed -i 's/^PRIORITY = .*/PRIORITY = 400/' "
            "gone/src/gone/__init__.py && pip install --quiet ./gone"
        )
        try:
            assert shell.rows()["gone"]["reason"].endswith("no gone0 here")
            code = "import jax; print(jax.devices()[0].platform)"
            assert shell.run(f'python -c "{code}"') == "cpu\n"
            printed = shell.run(f'! python -c "{code}" 2>&1', JAX_PLATFORMS="gone")
            assert "no gone0 here; plug it in" in printed
        finally:
            shell.run("pip uninstall --quiet gone")


@pytest.fixture(scope="session")
def alone(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Makes an environment with the frozen package and its requirements."""
    made = Shell(tmp_path_factory.mktemp("shells") / "frozen", wheels[0].parent)
    made.run(f"tar -xf {ROOT}/tests/frozen/frozen-new.tar.gz && pip install -q ./frozen-new")
    return made


class TestFrozen:
    """The package that `plugrt new NAME` wrote while plugrt-sdk had the NumPy backend."""

    pytestmark = slow

    def test_it_runs_with_its_own_requirements_alone(self, alone: Shell) -> None:
        row = alone.rows(JAX_PLATFORMS="frozen-new")["frozen-new"]
        assert (row["state"], row["distribution"]) == ("initialised", "frozen-new")
        code = "import plugrt; print(plugrt.devices(), plugrt.jit(lambda x: x + x)(21))"
        printed = alone.run(f'python -c "{code}"', JAX_PLATFORMS="frozen-new")
        assert printed == "[frozen-new:0] 42\n"

    def test_its_workflow_is_green(self, alone: Shell, wheels: list[Path]) -> None:
        printed = Checkout(alone, wheels[0].parent, "frozen-new").run_workflow()
        assert "Success: no issues found" in printed


@pytest.fixture(scope="session")
def library_package(shell: Shell) -> None:
    shell.run(f"plugrt new lib-chip --kind library --library {library_path()}")
    shell.run("pip install --quiet './lib-chip[test]'")


WAIVERS = ROOT / "tools/conformance/xla_cpu.toml"
"""The known faults of the library xla-cpu-pjrt."""


@needs_library
@pytest.mark.usefixtures("library_package")
class TestLibrary:
    """``plugrt new NAME --kind library``: a package of an existing PJRT library."""

    pytestmark = slow

    def test_its_wheel_is_for_this_machine_and_every_python(self, shell: Shell) -> None:
        wheel = shell.run(f"{UV} build --quiet --wheel -o lib ./lib-chip && ls lib").split()
        machine = sysconfig.get_platform().replace("-", "_")
        assert wheel == [f"lib_chip-0.1.0-py3-none-{machine}.whl"]

    def test_it_is_found_and_computes(self, shell: Shell) -> None:
        row = shell.rows(JAX_PLATFORMS="lib-chip")["lib-chip"]
        assert (row["state"], row["distribution"]) == ("initialised", "lib-chip")
        assert is_gradient(shell.run(f'python -c "{GRADIENT}"', JAX_PLATFORMS="lib-chip"))

    def test_jax_opens_it_only_where_it_is_to_be_used(self, shell: Shell) -> None:
        maps = "open('/proc/self/maps').read()"
        code = f"import jax; jax.devices(); print('libpjrt_lib_chip' in {maps})"
        assert shell.run(f'python -c "{code}"', JAX_PLATFORMS="lib-chip") == "True\n"
        assert shell.run(f'python -c "{code}"', JAX_PLATFORMS="cpu") == "False\n"

    def test_the_module_for_jax_imports_no_plugrt(self, shell: Shell) -> None:
        code = "import sys, lib_chip.for_jax; print('plugrt' in sys.modules, 'jax' in sys.modules)"
        assert shell.run(f'python -c "{code}"') == "False False\n"

    def test_the_commands_of_its_readme(self, shell: Shell, wheels: list[Path]) -> None:
        printed = Checkout(shell, wheels[0].parent, "lib-chip", whole=True).run_readme()
        assert "chosen: lib-chip" in printed
        assert printed.endswith("42\n")

    def test_its_workflow_is_green(self, shell: Shell, wheels: list[Path]) -> None:
        """The workflow downloads the library, which is too large for git."""
        options = 'plugin = "lib-chip"\n    options = {"cpu_device_count": 2}'
        suite = shell.folder / "lib-chip/tests/test_conformance.py"
        suite.write_text(suite.read_text().replace('plugin = "lib-chip"', options))
        shutil.copy(WAIVERS, shell.folder / "lib-chip/conformance-waivers.toml")
        place = Checkout(shell, wheels[0].parent, "lib-chip")
        assert not [*place.package.rglob("*.so")]
        printed = place.run_workflow(LIBRARY_URL=f"file://{library_path()}")
        assert "Success: no issues found" in printed
        passed, waived = re.search(r"\b(\d+) passed, .*\b(\d+) xfailed", printed).groups()
        assert int(passed) > (300 if WHOLE else 100)
        assert int(waived) == WAIVERS.read_text().count("[[waiver]]")

    def test_a_missing_library_is_reported_with_its_cure(self, shell: Shell) -> None:
        variables = {"JAX_PLATFORMS": "lib-chip", "LIB_CHIP_LIBRARY_PATH": "/no/such.so"}
        row = shell.rows(**variables)["lib-chip"]
        assert row["state"] == "broken"
        assert "there is no library /no/such.so; correct LIB_CHIP_LIBRARY_PATH" in row["reason"]


@needs_cc
class TestCpp:
    """``plugrt new NAME --kind cpp``: a runtime in C++ with a few kernels."""

    pytestmark = slow

    def test_its_workflow_is_green_and_jax_computes_on_it(
        self, shell: Shell, wheels: list[Path]
    ) -> None:
        """The package's tests also check that a network's launches copy nothing in between."""
        shell.run("plugrt new run-chip --kind cpp")
        place = Checkout(shell, wheels[0].parent, "run-chip")
        printed = place.run_workflow()
        assert "Success: no issues found" in printed
        assert re.search(r"\b\d+ passed", printed)
        assert "chosen: run-chip" in printed
        assert is_gradient(place.run(f'python -c "{GRADIENT}"', JAX_PLATFORMS="run-chip"))
        built = place.run("ls venv/lib/python*/site-packages/run_chip").split()
        assert {"librun_chip.so", "runtime.h"} <= {*built}

    def test_without_a_compiler_pip_says_so(self, shell: Shell) -> None:
        shell.run("plugrt new no-compiler --kind cpp")
        printed = shell.run("! pip install ./no-compiler 2>&1", CXX="/no/such/compiler")
        assert "no_compiler needs a compiler for C++17" in " ".join(printed.split())


@pytest.fixture(scope="session")
def stubs_package(shell: Shell) -> None:
    shell.run("plugrt new cpp-chip --kind cpp-stubs")
    shell.run("pip install --quiet './cpp-chip[test]'", PJRT_HEADER=str(header_path()))


@needs_library  # its wheel has the header
@needs_cc
@pytest.mark.usefixtures("stubs_package")
class TestCppStubs:
    """``plugrt new NAME --kind cpp-stubs``: a stub for each function of a vendor's header."""

    pytestmark = slow

    def test_it_is_found_and_says_what_is_missing(self, shell: Shell) -> None:
        row = shell.rows(JAX_PLATFORMS="cpp-chip")["cpp-chip"]
        assert (row["state"], row["distribution"]) == ("broken", "cpp-chip")
        assert row["reason"].startswith("UNIMPLEMENTED: PJRT_Client_Create is not written yet")

    def test_stock_jax_says_what_is_missing(self, shell: Shell) -> None:
        printed = shell.run(f'! python -c "{GRADIENT}" 2>&1', JAX_PLATFORMS="cpp-chip")
        assert "UNIMPLEMENTED: PJRT_Client_Create is not written yet" in printed

    def test_its_workflow_is_green(self, shell: Shell, wheels: list[Path]) -> None:
        """Also at the start, when every function is a stub; the build finds a header."""
        printed = Checkout(shell, wheels[0].parent, "cpp-chip").run_workflow()
        assert "Success: no issues found" in printed
        assert re.search(r"\b\d+ passed, \d+ skipped, (\d+ deselected, )?\d+ xfailed in", printed)
        assert "PJRT_Client_Create is not written yet" in printed

    def test_the_commands_of_its_readme_list_what_is_missing(
        self, shell: Shell, wheels: list[Path]
    ) -> None:
        place = Checkout(shell, wheels[0].parent, "cpp-chip", whole=True)
        printed = place.run_readme(expect="JAX_PLATFORMS=cpp-chip plugrt doctor")
        assert re.search(r"\b\d+ passed, \d+ skipped, (\d+ deselected, )?\d+ xfailed in", printed)
        assert "PJRT_Client_Create is not written yet" in printed

    def test_every_slot_has_a_stub_with_its_name(self, shell: Shell) -> None:
        header = header_path()
        assert header is not None
        names = re.findall(r"_PJRT_API_STRUCT_FIELD\(\s*(PJRT_\w+)\)", header.read_text())
        written = {"PJRT_Error_Destroy", "PJRT_Error_Message", "PJRT_Error_GetCode",
                   "PJRT_Plugin_Initialize", "PJRT_Plugin_Attributes"}  # fmt: skip
        found = json.loads(shell.run(f"python -c {shlex.quote(CALL_ALL)}"))
        assert len(names) > 100
        expected = {n: f"{n} is not written yet" for n in names if n not in written}
        expected["PJRT_Event_Await"] = expected["PJRT_Event_IsReady"]  # it is called first
        assert found == expected

    @pytest.mark.parametrize(
        ("header", "fact"), [("/no/such.h", "which is no file"), ("/dev/null", "no pjrt_c_api.h")]
    )
    def test_a_header_that_is_none_is_refused(self, shell: Shell, header: str, fact: str) -> None:
        command = f"cmake -S cpp-chip -B refused -DPJRT_HEADER={header} 2>&1"
        printed = shell.run(f"pip install --quiet cmake ninja\n! {command}")
        assert fact in " ".join(printed.split())
        assert header in printed

    def test_the_errors_of_a_newer_header(self, shell: Shell) -> None:
        """From API 0.107 on an error begins with a table of functions, which hosts may call."""
        shell.run(f"cp {HEADERS}/newer.h {HEADERS}/host.cc .")
        printed = shell.run(
            "cmake -G Ninja -S cpp-chip -B newer -DPJRT_HEADER=$PWD/newer.h >log 2>&1 && "
            "cmake --build newer >log 2>&1 || { cat log; false; }\n"
            "c++ -fpermissive -w host.cc -o host newer/libpjrt_cpp_chip.so "
            "-Wl,-rpath,$PWD/newer\n./host"
        )
        assert printed == "12 PJRT_Client_Create is not written yet\n0\n"


class TestExport:
    """``plugrt export`` needs no compiler, and no package but plugrt-sdk."""

    pytestmark = slow

    def test_the_numpy_backend_for_stock_jax(self, shell: Shell) -> None:
        only = f"{shell.folder}/venv/bin:{shell.folder}/nothing"
        shell.run(f"PATH={only}\nplugrt export numpy -o libpjrt_numpy.so\n! type cc gcc clang")
        library = shell.folder / "libpjrt_numpy.so"
        printed = shell.run(
            f'PATH={only}\npython -c "{GRADIENT}"',
            PJRT_NAMES_AND_LIBRARY_PATHS=f"np:{library}", JAX_PLATFORMS="np",
        )  # fmt: skip
        assert is_gradient(printed)
