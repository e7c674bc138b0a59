"""Collectives over MPI: the error without a library, and a run if MPITRAMPOLINE_LIB names one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cpu.distributed import mpi_programs
from support.apart import runs_apart
from support.behaviour import behaviour
from support.processes import all_results, environment, free_port, of_cpu_processes, run_together

pytestmark = [runs_apart("processes"), of_cpu_processes]

has_mpi = pytest.mark.skipif(
    not (os.environ.get("MPITRAMPOLINE_LIB") and shutil.which("mpirun")),
    reason="no MPI here: MPITRAMPOLINE_LIB names no MPIwrapper library, or there is no mpirun",
)


@behaviour(
    114,
    "where MPI cannot be had the backend does not start, and all processes go on",
    jax="the process ends",
)
def test_processes_are_told_and_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MPITRAMPOLINE_LIB", raising=False)
    found = all_results(
        run_together(mpi_programs.start_without_mpi, 2, tmp_path, devices=1,
                     JAX_CPU_COLLECTIVES_IMPLEMENTATION="mpi")
    )  # fmt: skip
    for one in found:
        assert one.startswith("PluginUnavailable")
        assert "needs MPITRAMPOLINE_LIB, which is not set" in one


@has_mpi
def test_exchanges_over_mpi(tmp_path: Path) -> None:
    command = [
        "mpirun", "-n", "2", "--oversubscribe", "--bind-to", "none", "--host", "localhost:2",
        sys.executable, "-m", mpi_programs.__name__, str(tmp_path),
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False,
        env=environment(
            JAX_NUM_CPU_DEVICES="1", JAX_CPU_COLLECTIVES_IMPLEMENTATION="mpi",
            JAX_COORDINATOR_ADDRESS=f"127.0.0.1:{free_port()}",
            OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        ),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for index in (0, 1):
        assert (tmp_path / f"{index}.txt").read_text() == "2 12.0 [1.0, 11.0] [11.0, 1.0] [12, 12]"
    assert "Gloo" not in done.stdout + done.stderr
