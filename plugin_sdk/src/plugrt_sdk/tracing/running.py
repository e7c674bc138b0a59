"""Runs a program under the tracer, and passes on the records of its processes."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from plugrt.errors import InvalidArgument
from plugrt_sdk.tracing.journal import Folder, Record
from plugrt_sdk.tracing.processes import Process

POLL_SECONDS = 0.1
"""How often new calls are shown while the program runs."""

OnRecord = Callable[[Process, Record], None]


def run(
    command: Sequence[str], environ: Mapping[str, str], folder: Path, on_record: OnRecord
) -> tuple[int, list[Process]]:
    """Runs a program, calls ``on_record`` with each record, and returns (exit code, processes).

    A program that a signal ended has the code 128 + its number, as in a shell. Ctrl-C is left to
    the program, which has it too. Raises `InvalidArgument` for a program that cannot be started.
    """
    processes: dict[str, Process] = {}
    journals = Folder(folder)

    def read() -> None:
        for name, record in journals.new_records():
            process = processes.setdefault(name, Process())
            process.add(record)
            on_record(process, record)

    before = signal.getsignal(signal.SIGINT)
    try:
        child = subprocess.Popen(command, env=dict(environ))
    except OSError as error:
        raise InvalidArgument(f"cannot run {command[0]}: {error.strerror}") from error
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = _wait(child, read)
    finally:
        signal.signal(signal.SIGINT, before)
    read()
    return (code if code >= 0 else 128 - code), [
        p for p in processes.values() if p.libraries or p.functions
    ]


def _wait(child: subprocess.Popen[bytes], read: Callable[[], None]) -> int:
    while True:
        try:
            return child.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            read()
