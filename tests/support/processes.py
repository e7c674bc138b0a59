"""Programs of several processes on the loopback interface: started, awaited, never left behind."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
of_cpu_processes = pytest.mark.skipif(
    os.environ.get("JAX_PLATFORMS", "cpu") not in ("", "cpu"),
    reason="no processes here: the test is about the cpu plugin's processes",
)
"""The mark of tests of processes that share cpu devices, for runs of the suite on others."""
SECONDS = 120.0
"""The limit of a run on a loaded machine."""
_NOT_OURS = ("cannot listen at", "recv() failed errno: 107")
"""Errors after which a run is repeated.

Another program used the port, or the transfer server of jaxlib 0.10.2 lost its first connection to
a process that listens (seen once, in CI).
"""

_PRELUDE = """
import ctypes, json, os, runpy, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # ends with the test that started it
if os.getppid() != int(sys.argv[1]):
    os._exit(0)
from importlib import import_module
module, function, results = sys.argv[2:5]
found = getattr(import_module(module), function)()
with open(results, "w") as file:
    json.dump(found, file)
"""


@dataclass(frozen=True)
class Ended:
    """The end of one process of a run; ``results`` is its function's result, if it returned."""

    returncode: int
    output: str
    errors: str
    results: Any


def free_port() -> int:
    """Returns a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(**variables: str) -> dict[str, str]:
    """Returns this process's environment for a child, with tests/ in its path and ``variables``."""
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu", **variables}


def run_together(
    function: Callable[[], Any],
    count: int,
    folder: Path,
    *,
    devices: int = 2,
    each: Sequence[Mapping[str, str]] = (),
    **variables: str,
) -> list[Ended]:
    """Runs a function in ``count`` processes of ``devices`` devices, with each other's addresses.

    JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID are set, ``variables`` for all and
    ``each`` for one. If one fails with an error of `_NOT_OURS`, all begin again, at most twice.
    """
    for attempt in range(3):
        address = f"127.0.0.1:{free_port()}"
        children = []
        for index in range(count):
            env = environment(
                **{
                    "JAX_NUM_CPU_DEVICES": str(devices),
                    "JAX_COORDINATOR_ADDRESS": address,
                    "JAX_NUM_PROCESSES": str(count),
                    "JAX_PROCESS_ID": str(index),
                    **variables,
                    **(each[index] if each else {}),
                }
            )
            results = folder / f"results-{index}.json"
            results.unlink(missing_ok=True)
            children.append((start(function, results, env), results))
        ended = _await(children)
        errors = "".join(one.errors for one in ended if one.returncode)
        if attempt == 2 or not any(fault in errors for fault in _NOT_OURS):
            return ended
    raise AssertionError("unreachable")


def start(
    function: Callable[[], Any], results: Path, env: Mapping[str, str]
) -> subprocess.Popen[str]:
    """Starts a child that calls the function and writes its result, as JSON."""
    command = [sys.executable, "-c", _PRELUDE, str(os.getpid())]
    command += [function.__module__, function.__name__, str(results)]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=env,
    )  # fmt: skip


def _await(children: Sequence[tuple[subprocess.Popen[str], Path]]) -> list[Ended]:
    """Returns the end of each; one that does not end within `SECONDS` ends the others too.

    The coordinator's process has the standard error of the process that started it, and lives until
    the others have left.
    """
    until = time.monotonic() + SECONDS
    ended = []
    for child, results in children:
        try:
            output, errors = child.communicate(timeout=max(1.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            for each, _ in children:
                each.kill()
            output, errors = child.communicate()
            errors += f"\n(killed after {SECONDS:g} s)"
        found = json.loads(results.read_text()) if results.exists() else None
        ended.append(Ended(child.returncode, output, errors, found))
    return ended


def all_results(ended: Sequence[Ended]) -> list[Any]:
    """Returns the result of each process; fails with the output of one that failed."""
    for index, one in enumerate(ended):
        assert one.returncode == 0, f"process {index}: {one.returncode}\n{one.errors[-6000:]}"
    return [one.results for one in ended]


def outcome(call: Callable[[], Any]) -> str:
    """Returns the class and the message of a call's exception; ``none`` without one."""
    try:
        call()
    except Exception as error:  # noqa: BLE001  # whatever it is is compared
        return f"{type(error).__name__}: {error}"
    return "none"
