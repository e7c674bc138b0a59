"""Child processes that Ctrl-C reaches, however the suite itself was started.

A shell without job control starts ``make test &`` with SIGINT ignored, and an ignored signal stays
ignored in children: Python then installs no handler, and neither a signal nor
``_thread.interrupt_main`` interrupts anything.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def start(
    command: Sequence[object], *, cwd: Path | None = None, env: Mapping[str, str] | None = None,
    stdin: int | None = None,
) -> subprocess.Popen[str]:  # fmt: skip
    """Starts a child with the default disposition of SIGINT and pipes for both its streams.

    Only the main thread can do that: it changes this process's own disposition during the start,
    since ``preexec_fn`` may deadlock in a process with threads.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # becomes SIG_DFL by exec
    try:
        return subprocess.Popen(
            [str(part) for part in command], stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, env=env,
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)


def run(
    command: Sequence[object], *, timeout: float, cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Runs a command to its end, started by `start`; kills it after ``timeout`` seconds."""
    with start(command, cwd=cwd, env=env) as child:
        try:
            output, errors = child.communicate(timeout=timeout)
        except BaseException:
            child.kill()
            raise
    return subprocess.CompletedProcess(child.args, child.returncode, output, errors)


def path_with(*folders: Path) -> str:
    """Returns a PYTHONPATH for a child: these folders, and then this process's own."""
    given = filter(None, [os.environ.get("PYTHONPATH")])
    return os.pathsep.join([*map(str, folders), *given])
