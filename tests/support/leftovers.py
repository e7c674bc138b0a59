"""Finds the processes that a test left behind: each child gets a token in its environment."""

from __future__ import annotations

import os
import time
from pathlib import Path

VARIABLE = "TEST_TOKEN"


def processes_with(token: str) -> dict[int, str]:
    """Returns the living processes whose environment has the token, with their command lines.

    A process that was ended and not reaped has no environment any more, and does not count.
    """
    found = {}
    wanted = f"{VARIABLE}={token}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().decode()
        except OSError:  # it ended meanwhile
            continue
    found.pop(os.getpid(), None)
    return found


def left_after(token: str, seconds: float = 30.0) -> dict[int, str]:
    """Returns the remaining processes with the token, after a wait for their end."""
    deadline = time.monotonic() + seconds
    while (found := processes_with(token)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def wait_for(path: Path, seconds: float = 60.0) -> str:
    """Returns the contents of a file once it is not empty."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text()):
            return text
        time.sleep(0.01)
    raise AssertionError(f"nothing was written to {path}")
