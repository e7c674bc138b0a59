"""`LaunchLog`: the log of launches on several devices, under ``config.distributed_debug``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from plugrt.errors import PjrtError, describe
from plugrt.interface import Device, LoadedExecutable
from plugrt.monitoring.distributed_debug import log_step

# Process-wide: the launches of a process are numbered in one sequence, as in other processes.
_numbers = count(1)
"""Numbers of launches; a launch has the same number in all processes that launch the same."""


class LaunchLog:
    """Logs the launches of one executable, each with its number in this process."""

    __slots__ = ("_facts", "_heading")

    def __init__(
        self,
        name: str,
        executable: LoadedExecutable,
        devices: Sequence[Device],
        arguments: Sequence[str],
    ) -> None:
        """``name`` is the function's name, ``arguments`` a text for each argument."""
        client = devices[0].client
        self._heading = f"launching {name!r}"
        self._facts = {
            "devices": f"{client.platform} {[device.id for device in devices]}",
            "process": f"{client.process_index} of {client.process_count}",
            "arguments": "; ".join(arguments) or "none",
            "fingerprint": _read_fingerprint(executable),
        }

    def write(self) -> None:
        """Logs one launch; called before it is made, since it may hang."""
        log_step(self._heading, {"launch": next(_numbers), **self._facts})


def _read_fingerprint(loaded: LoadedExecutable) -> str:
    try:
        return loaded.executable.fingerprint().hex()
    except PjrtError as error:  # `Unimplemented`, or the error of a library
        return f"none ({describe(error)})"
