"""Plugins of November 2026, for version 1.0 of plugrt.interface, work with today's plugrt.

tests/frozen/README.md describes them, and the steps for a change that must break one.
tests/cpu/packaging/test_new_packages.py installs the package of `plugrt new`.
"""

from __future__ import annotations

import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from plugrt.errors import PluginIncompatible
from support.absent_core import needs_sdk_core
from support.distributions import install, run_python
from support.made_for_jax import be_version as be_version
from support.registries import registry
from support.requirements import needs_jax

FROZEN = Path(__file__).parents[2] / "frozen"
[WHEEL] = FROZEN.glob("*.whl")
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
AS_WRITTEN = """
import numpy as np, plugrt
print(plugrt.devices(), plugrt.jit(lambda x: x + x)(np.float32([1, 2])).tolist())
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.numpy_backend import backend, plugin, table
print(backend.NumpyBackend is NumpyBackend, plugin.name, table.__name__)
"""
UNDER_JAX = """
import jax, numpy as np
print(jax.devices()[0].device_kind, jax.jit(lambda x: x + x)(np.float32([1, 2])).tolist())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the unpacked wheel, like an installation by pip."""
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


@pytest.fixture(scope="module")
def as_written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installed package of `plugrt new`, written when plugrt-sdk had the NumPy backend."""
    folder = tmp_path_factory.mktemp("new")
    with tarfile.open(FROZEN / "frozen-new.tar.gz") as package:
        package.extractall(folder, filter="data")
    project = tomllib.loads((folder / "frozen-new/pyproject.toml").read_text())["project"]
    site = folder / "frozen-new/src"
    install(site, project["name"], project["entry-points"])
    return site


def test_the_former_name_of_the_numpy_backend_works_and_warns(as_written: Path) -> None:
    done = run_python(
        AS_WRITTEN, as_written,
        JAX_PLATFORMS="frozen-new", PYTHONWARNINGS="default::DeprecationWarning",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[frozen-new:0] [2.0, 4.0]",
        "True numpy plugrt_numpy.table",
    ]
    [warning] = [line for line in done.stderr.splitlines() if "DeprecationWarning" in line]
    assert warning.startswith(str(as_written / "frozen_new/backend.py"))
    assert "plugrt_numpy" in warning
    assert "plugrt-numpy" in warning


@needs_jax
@needs_sdk_core
def test_it_works_under_stock_jax(installed: Path) -> None:
    done = run_python(UNDER_JAX, installed, JAX_PLATFORMS="frozen", XLA_FLAGS="")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "frozen chip [2.0, 4.0]\n"


def test_a_later_major_version_refuses_it_with_the_lines_to_type(
    installed: Path, be_version: Callable[[tuple[int, int]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(installed))
    be_version((2, 0))
    backends = registry(path=installed, JAX_PLATFORMS="frozen-client")
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
