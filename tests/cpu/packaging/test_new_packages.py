"""What `plugrt new` writes: built, installed beside plugrt's wheels, found by each host, and run.

This takes a minute and packages that other tests do not need, so `make test` skips it, and says so:
`make test-new` runs it, which CI does for each change. What can be seen without installing is
tested in tests/nothing/sdk/test_new_package.py.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from support.installed import attempt, needs_uv, unreachable_is_skipped, uv_as_pip
from support.markdown import ROOT

SWITCH = "PLUGRT_TEST_NEW"
slow = [
    needs_uv,
    pytest.mark.skipif(not os.environ.get(SWITCH), reason="a minute long: make test-new runs it"),
    pytest.mark.long,
    pytest.mark.timeout(900),
]
GRADIENT = (
    "import jax, jax.numpy as jnp; "
    "print(jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x)**2)))(jnp.arange(4.)))"
)


class Shell:
    """A folder with an environment of its own, as a user has one: commands run in it."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.folder = folder
        self._environment = {**uv_as_pip(folder, wheels), "COLUMNS": "160"}
        folder.mkdir()
        self.run("make-venv venv")

    def run(self, command: str, **environment: str) -> str:
        """Runs a line of a shell in the folder; returns what it prints. It must end well."""
        lines = [
            'set -eo pipefail; PATH="$PWD/venv/bin:$PATH"',
            "unset ${!JAX_@} ${!PLUGRT_@} ${!PJRT_@} ${!XLA_@}",
            *(f"export {name}={shlex.quote(value)}" for name, value in environment.items()),
            command,
        ]
        script = "\n".join(lines)
        done = attempt("bash", "-c", script, cwd=self.folder, env=self._environment)
        unreachable_is_skipped(done)
        assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def rows(self, **environment: str) -> dict[str, dict[str, str]]:
        """Returns the rows of ``plugrt doctor`` that the entry points of plugrt give, by name."""
        report = json.loads(self.run("plugrt doctor --json || true", **environment))
        return {r["name"]: r for r in report["candidates"] if r["source"] == "plugrt.plugins"}


@pytest.fixture(scope="session")
def shell(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """An environment with plugrt-sdk and JAX, and what the packages' own tests need."""
    made = Shell(tmp_path_factory.mktemp("shells") / "shell", wheels[0].parent)
    made.run("pip install --quiet plugrt-sdk jax mypy ruff pytest")
    return made


@pytest.fixture(scope="session")
def python_package(shell: Shell) -> None:
    shell.run("plugrt new my-chip && pip install --quiet './my-chip[test]'")


def is_gradient(printed: str) -> bool:
    """Whether the numbers that JAX printed are those of the gradient of ``sum(sin(x) ** 2)``."""
    found = [float(word) for word in re.findall(r"-?\d+\.\d*", printed)]
    return bool(np.allclose(found, np.sin(2 * np.arange(4.0)), rtol=1e-5))


def test_what_is_skipped_here_runs_in_ci() -> None:
    target = re.search(r"^test-new:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert target
    assert f"{SWITCH}=1" in target[1]
    assert str(Path(__file__).relative_to(ROOT)) in target[1]
    assert re.search(r"^tools/fresh\.sh .*\btest-new\b", (ROOT / ".ci/run").read_text(), re.M)


@pytest.mark.usefixtures("python_package")
class TestPython:
    """``plugrt new NAME``: four methods over NumPy."""

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

    def test_its_own_checks_pass(self, shell: Shell) -> None:
        checks = "ruff check . && ruff format --check . && mypy && python -m pytest -q"
        printed = shell.run(f"cd my-chip && {checks}")
        assert "Success: no issues found" in printed
        assert re.search(r"\b\d+ passed in", printed)

    def test_its_probe_is_asked_by_both_hosts(self, shell: Shell) -> None:
        """A device that is absent: unavailable under plugrt, JAX's cpu works, and both say why."""
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
