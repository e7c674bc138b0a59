"""Many command lines in one child process, which imports plugrt once and forks for each of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

CODE = """
import json, os, sys
import numpy
import plugrt.cli, plugrt.cli.inputs, plugrt.cli.run, plugrt.execution.arrays.array

# What is imported so far has started no thread, so that a copy of the process is whole.
for number, arguments in enumerate(json.loads(sys.argv[1])):
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(f"{number}.out", os.O_CREAT | os.O_WRONLY), 1)
        os.dup2(os.open(f"{number}.err", os.O_CREAT | os.O_WRONLY), 2)
        plugrt.cli.main(arguments)  # which exits
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Done(NamedTuple):
    """How a command ended and what it wrote, as `subprocess.CompletedProcess` has it."""

    returncode: int
    stdout: str
    stderr: str


def run_all(commands: Sequence[Sequence[object]], folder: Path, timeout: float = 150) -> list[Done]:
    """Runs ``plugrt`` with each of the argument lists; ``folder`` is for their output."""
    arguments = json.dumps([[str(word) for word in command] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", CODE, arguments],
        cwd=folder, env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    codes = [int(line) for line in done.stdout.split()]
    assert len(codes) == len(commands), done.stderr
    return [
        Done(code, (folder / f"{i}.out").read_text(), (folder / f"{i}.err").read_text())
        for i, code in enumerate(codes)
    ]
