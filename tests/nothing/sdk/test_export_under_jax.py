"""Exported Python backends under stock JAX, in child processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from plugrt_sdk.export import export_library
from support import children
from support.apart import runs_apart
from support.effort import EFFORT, WHOLE
from support.requirements import needs_jax

pytestmark = [needs_jax, runs_apart("sdk")]
TESTS = Path(__file__).parents[2]
EXIT = "exit_with_live_arrays"
"""The last function of a child: the process exits normally with live arrays."""
SHARED = ("devices", "dtypes", "jit_and_get", "beside_cpu", "pending_exception", "failures",
          "caches", "eight_threads", "no_handle_left")  # fmt: skip
COMPLETE = ("devices", "dtypes", "jit_and_get", "beside_cpu", "pending_exception", "transforms",
            "random", "several_devices", "no_results", "tokens", "host_functions",
            "effects_without_results", "donation", "errors", "caches",
            "eight_threads", "no_handle_left", EXIT)  # fmt: skip
BY_ENTRY_POINT = COMPLETE if WHOLE else ("devices", "jit_and_get", "no_handle_left", EXIT)
"""The functions for the backend of JAX's entry point, which is the same library."""


def run(backend: str, *functions: str) -> None:
    """Runs functions of `support.under_jax` in one child, which must end with exit code 0."""
    command = [sys.executable, "-m", "support.under_jax", backend, *functions]
    done = children.run(
        command,
        timeout=250,
        env={**os.environ, "PYTHONPATH": children.path_with(TESTS), "XLA_FLAGS": ""},
    )
    assert done.stdout.split() == [w for name in functions for w in ("ok", name)], done.stderr
    assert done.returncode == 0, done.stderr


def test_a_python_backend() -> None:
    run("adder", *SHARED, EXIT)
    for _ in range(EFFORT - 1):
        run("adder", EXIT)


def test_results_that_are_ready_later() -> None:
    run("late", *SHARED, "late_failure", "two_threads_on_one_array", EXIT)
    for _ in range(EFFORT - 1):
        run("late", EXIT)


def test_the_asynchronous_example() -> None:
    run("asynchronous", "devices", "jit_and_get", "while_the_device_is_busy", "eight_threads",
        "two_threads_on_one_array", "no_handle_left", "exit_with_live_arrays")  # fmt: skip


@pytest.mark.parametrize("name", ["np", "numpy"])
def test_the_numpy_backend(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a library that the environment names, and by the entry point of plugrt-sdk."""
    if name == "np":
        library = export_library("numpy", tmp_path / "libpjrt_numpy.so")
        monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", f"np:{library}")
    functions = [*(COMPLETE if name == "np" else BY_ENTRY_POINT)]
    if name == "numpy":  # the entry point gives JAX rules for it, which a library cannot
        functions.insert(-1, "linear_algebra")
    else:  # only the library has topologies
        functions.insert(-1, "absent_devices")
    run(name, *functions)


def test_a_host_that_waits_with_the_gil_held_gets_an_error() -> None:
    run("absent", "absent_devices_beside_a_client", "no_handle_left")


def test_a_forked_child_computes() -> None:
    run("adder", "fork")


OFFER = """
def initialize():
    from plugrt_sdk.export import register_with_jax

    def make(devices):
        from plugrt_sdk import BackendClient
        from support.late_client import Adder

        return BackendClient(Adder(devices))

    register_with_jax("adder", make, options={"devices": 3}, only_when_named=ONLY)
"""
ASK = """
import sys
import jax
import numpy as np
print(jax.default_backend(), len(jax.devices()))
print(*sorted(m for m in ("plugrt", "plugrt_numpy.backend") if m in sys.modules))
print(np.asarray(jax.jit(lambda x: x + x)(np.float32([1, 2, 3]))).tolist())
"""


@pytest.mark.parametrize(
    ("only", "platforms", "expected", "imported"),
    [(False, None, "adder 3", "plugrt"), (True, None, "cpu 1", ""),
     (True, "cpu, adder", "cpu 1", "plugrt"), (True, "adder", "adder 3", "plugrt"),
     (True, "numpy", "numpy 2", "plugrt plugrt_numpy.backend")],
)  # fmt: skip
def test_jax_finds_plugins_and_imports_what_is_named(
    tmp_path: Path, only: bool, platforms: str | None, expected: str, imported: str
) -> None:
    """A module of ours, beside the entry point of plugrt-sdk, which offers ``numpy`` if named."""
    (tmp_path / "jax_plugins").mkdir()
    (tmp_path / "jax_plugins/adder.py").write_text(f"ONLY = {only}\n{OFFER}")
    variables = {"PYTHONPATH": children.path_with(tmp_path, TESTS), "JAX_NUM_CPU_DEVICES": "1"}
    environment = {**os.environ, **variables, "XLA_FLAGS": ""}
    environment.pop("JAX_PLATFORMS", None)
    if platforms is not None:
        environment["JAX_PLATFORMS"] = platforms.replace(" ", "")
    if platforms == "numpy":
        environment["JAX_PJRT_CLIENT_CREATE_OPTIONS"] = "num_devices:2"
    done = children.run([sys.executable, "-c", ASK], timeout=250, env=environment)
    assert done.stdout.splitlines() == [expected, imported, "[2.0, 4.0, 6.0]"], done.stderr
    assert done.returncode == 0


REFUSED = """
import jax
import numpy as np
x = jax.device_put(np.float32([1, 2, 3]))
try:
    jax.jit(lambda x: jax.pure_callback(abs, x, x))(x)
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_backend_without_handlers_says_so_where_a_callback_is_lowered(tmp_path: Path) -> None:
    (tmp_path / "jax_plugins").mkdir()
    (tmp_path / "jax_plugins/adder.py").write_text(f"ONLY = False\n{OFFER}")
    path = children.path_with(tmp_path, TESTS)
    environment = {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "adder,cpu", "XLA_FLAGS": ""}
    done = children.run([sys.executable, "-c", REFUSED], timeout=250, env=environment)
    assert done.stdout.startswith("Unimplemented UNIMPLEMENTED: PJRT_FFI_Register"), done.stderr
    assert "the backend of this plugin takes no handlers" in done.stdout
    assert "takes no handlers for custom calls" in done.stdout
