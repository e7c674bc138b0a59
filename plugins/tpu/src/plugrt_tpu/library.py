"""`find_library` and `explain`: the path of libtpu, and its start-up errors explained."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from plugrt.base import files
from plugrt.errors import Aborted, NotFound, PjrtError, PluginBroken
from plugrt.plugins.library import named_library
from plugrt_tpu import hardware

FILE = "libtpu.so"
_LOCK = "lockfile"


def find_library() -> str:
    """Returns the path of the library: TPU_LIBRARY_PATH, else the one of the package libtpu.

    The package is not imported. Raises `PluginBroken` if the path is no file (JAX falls back with a
    warning), and without the package.
    """
    named = named_library("tpu_library_path")
    if named:
        return named
    spec = importlib.util.find_spec("libtpu")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / FILE
        if path.is_file():
            return str(path)
    where = f" (the package at {spec.origin} has no {FILE})" if spec else ""
    raise PluginBroken(
        f'libtpu is not installed{where}; pip install "plugrt[tpu]", or name a library with '
        "TPU_LIBRARY_PATH"
    )


def explain(error: PjrtError, root: str | Path = "/") -> Exception:
    """Returns a start-up error of libtpu with an explanation, and any other error unchanged."""
    if isinstance(error, NotFound) and hardware.detect(root).is_tpu_machine:
        return PluginBroken(
            f"this machine has TPU chips but libtpu finds none ({error.message}): they belong to "
            "another container or user, or their device files (/dev/accel*, /dev/vfio) are absent"
        )
    if not isinstance(error, Aborted) or _LOCK not in error.message:
        return error
    holders = processes_with_libtpu(Path(root, "proc"))
    who = f"; libtpu is loaded in {'; '.join(holders)}" if holders else ""
    return PluginBroken(
        f"libtpu runs in one process of a machine at a time, and another one has it{who}. End that "
        "process (also an idle notebook, or a child that was left behind). To compile ahead of "
        "time beside it, or if each process has chips of its own, set ALLOW_MULTIPLE_LIBTPU_LOAD=1 "
        f"and start this process again. libtpu said: {' '.join(error.message.split())}"
    )


def processes_with_libtpu(proc: Path) -> list[str]:
    """Returns "process 12 (its command)" for other processes that map the library.

    Other users' processes cannot be read, and are omitted.
    """
    found = []
    for folder in sorted(proc.glob("[0-9]*"), key=lambda f: int(f.name)):
        if folder.name == str(os.getpid()):
            continue
        try:
            if FILE not in files.read_text(folder / "maps", errors="replace"):
                continue
            command = (
                files.read_bytes(folder / "cmdline").replace(b"\0", b" ").decode(errors="replace")
            )
        except OSError:  # It ended meanwhile, or belongs to another user.
            continue
        found.append(f"process {folder.name} ({' '.join(command.split())[:80]})")
    return found
