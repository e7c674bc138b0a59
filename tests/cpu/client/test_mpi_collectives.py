"""MPI collectives: errors that come before jaxlib ends the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plugrt.errors import FailedPrecondition, InvalidArgument, PjrtError
from plugrt.plugins.coordination import Connection
from plugrt_cpu import plugin
from support.behaviour import behaviour
from support.clib import compile_c, needs_cc
from support.processes import of_cpu_processes

pytestmark = of_cpu_processes


class Unused(Connection):
    """A connection to other processes; its use fails the test."""

    def __init__(self) -> None:
        pass

    client: Any = property(lambda self: pytest.fail("jaxlib was asked for collectives"))

    def put(self, key: str, value: bytes) -> None:
        pytest.fail("the others were told of a backend that cannot start")

    get = try_get = delete = wait_at_barrier = live_processes = put  # type: ignore[assignment]
    await_loss = close = put  # type: ignore[assignment]


def refused(error: type[PjrtError], **options: Any) -> str:
    with pytest.raises(error) as caught:
        plugin.create_client({"collectives": "mpi", "num_devices": 1, **options}, Unused())
    return str(caught.value)


@behaviour(114, "MPI collectives on cpu without `MPITRAMPOLINE_LIB` are refused, and it is named",
           jax="the process ends with MPItrampoline's message")  # fmt: skip
def test_the_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MPITRAMPOLINE_LIB", raising=False)
    said = refused(FailedPrecondition)
    assert "JAX_CPU_COLLECTIVES_IMPLEMENTATION=mpi needs MPITRAMPOLINE_LIB, which is not" in said
    assert "is the path of the libmpiwrapper.so" in said
    assert "or leave it to Gloo" in said


@behaviour(114, "`MPITRAMPOLINE_LIB` set too late, after jaxlib was imported, is refused",
           jax="the process ends with MPItrampoline's message")  # fmt: skip
@needs_cc
def test_the_variable_is_set_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = compile_c(tmp_path, "int mpiwrapper_version_major = 2;")
    monkeypatch.setenv("MPITRAMPOLINE_LIB", str(wrapper))
    assert "which was not set when jaxlib was imported" in refused(FailedPrecondition)


@behaviour(114, "MPI collectives serve one device a process; several are refused with their number",
           jax="the first exchange fails")  # fmt: skip
def test_several_devices() -> None:
    said = refused(InvalidArgument, num_devices=3)
    assert "one device per process, and this one has 3: set JAX_NUM_CPU_DEVICES=1" in said


@behaviour(
    114,
    "a `MPITRAMPOLINE_LIB` that is missing, or is no MPIwrapper, such as MPI's own library, is an "
    "error with the path, and not the end of the process",
    jax="importing jaxlib ends the process, also where MPI is not wanted",
)
@needs_cc
@pytest.mark.parametrize("call", ["devices()", "jit(abs).lower(1)"])
def test_a_library_that_is_none(tmp_path: Path, call: str) -> None:
    missing = tmp_path / "missing.so"
    other = compile_c(tmp_path, "int MPI_Init(void) { return 0; }")
    code = (
        "import os, plugrt\n"
        "for path in os.environ['PATHS'].split(':'):\n"
        "    os.environ['MPITRAMPOLINE_LIB'] = path\n"
        "    try:\n"
        f"        plugrt.{call}\n"
        "    except plugrt.errors.PlugrtError as error:\n"
        "        print(error)\n"
        "    plugrt.clear_backends()\n"
        "del os.environ['MPITRAMPOLINE_LIB']\n"
        "print(plugrt.device_count())\n"
    )
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "PATHS": f"{missing}:{other}:"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    absent, alien, empty, count = done.stdout.splitlines()
    assert f"MPITRAMPOLINE_LIB='{missing}' cannot be loaded ({missing}: cannot open" in absent
    assert f"MPITRAMPOLINE_LIB='{other}' is not an MPIwrapper" in alien
    assert "MPITRAMPOLINE_LIB='' cannot be loaded" in empty
    assert count == "8"


def test_one_process_needs_none_of_it() -> None:
    """The setting is for several processes: a single process ignores it, as in JAX."""
    code = (
        "import numpy as np, plugrt;"
        "print(plugrt.device_count(), np.asarray(plugrt.jit(lambda x: x + 1)(np.ones(2))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "mpi"},
    )  # fmt: skip
    assert done.stdout.startswith("8 [2. 2.]")
