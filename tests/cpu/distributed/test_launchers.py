"""examples/multiprocess.py by one command, and under a launcher with Slurm's variables."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from support.apart import runs_apart
from support.behaviour import behaviour
from support.markdown import ROOT
from support.processes import environment, free_port, of_cpu_processes

pytestmark = [runs_apart("processes"), of_cpu_processes]

EXAMPLE = ROOT / "examples/multiprocess.py"
SRUN = """#!/bin/bash
# Starts two copies of a command as srun does, with the variables that it sets.
export SLURM_JOB_ID=7 SLURM_STEP_NODELIST="localhost,other" SLURM_NTASKS=2
for index in 0 1; do SLURM_PROCID=$index SLURM_LOCALID=$index "$@" & pids[index]=$!; done
wait "${pids[0]}" && wait "${pids[1]}"
"""


def run(command: list[object], folder: Path, **variables: str) -> str:
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder, env=environment(JAX_NUM_CPU_DEVICES="2", **variables),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@behaviour(117, "one command starts the example in two processes, which train together")
def test_one_command_starts_two_processes(tmp_path: Path) -> None:
    output = run([sys.executable, EXAMPLE], tmp_path)
    for index in (0, 1):
        assert f"process {index} of 2: 2 of 4 devices, weights [1. 2. 3. 4.]" in output


@behaviour(117, "where one of them is killed, the other ends with an error that names it",
           jax="jaxlib ends the others: `Terminating process`")  # fmt: skip
def test_the_example_ends_with_the_name_of_a_process_that_was_killed(tmp_path: Path) -> None:
    started = subprocess.Popen(
        [sys.executable, EXAMPLE],
        cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(JAX_NUM_CPU_DEVICES="2", HEARTBEAT="3", STEPS=str(10**9)),
        start_new_session=True,
    )  # fmt: skip
    try:
        assert started.stdout is not None
        pids = {}
        while len(pids) < 2:  # until both have joined
            line = started.stdout.readline()
            assert line, started.communicate(timeout=60)[1]
            # Both write at the same time, so that a line may contain the output of both.
            for index, pid in re.findall(r"process (\d) of 2 begins, with pid (\d+)", line):
                pids[int(index)] = int(pid)
        os.kill(pids[1], signal.SIGKILL)
        _, errors = started.communicate(timeout=120)
    finally:
        with contextlib.suppress(ProcessLookupError):  # all have ended
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()
    assert started.returncode not in (0, None)
    assert "process 0 of 2 cannot go on: process 1 (multiprocess.py, process " in errors
    assert f"process {pids[1]} on " in errors
    assert "it was killed" in errors
    assert "plugrt.errors.ProcessLost" in errors or "this process exits" in errors
    assert "Terminating process" not in errors


@behaviour(117, "so does `srun`, by the variables that it sets")
def test_under_srun(tmp_path: Path) -> None:
    srun = tmp_path / "srun"
    srun.write_text(SRUN)
    srun.chmod(0o755)
    port = str(free_port())
    output = run([srun, sys.executable, EXAMPLE], tmp_path, JAX_COORDINATOR_PORT=port)
    for index in (0, 1):
        assert f"process {index} of 2: 2 of 4 devices, weights [1. 2. 3. 4.]" in output
