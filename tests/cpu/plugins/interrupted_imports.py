"""The first imports of plugrt, interrupted at each module that they begin or end.

At each place a child is forked, which gets the interrupt and imports everything again; the parent
continues. The argument n tests one in n places. The exit code is 0 if no child failed.
"""

from __future__ import annotations

import os
import sys
import traceback
from types import FrameType
from typing import Any

import plugrt
from support.interruption import EntryInterruption

ADDS = 8
"""One of this many children also starts a backend, and adds."""


def use_all() -> None:
    """Imports the modules of the public names."""
    for package in (plugrt, plugrt.array_api, plugrt.lax, plugrt.plugins):
        for name in package.__all__:
            getattr(package, name)


class Interruptions:
    """A profile function that forks a child and raises `KeyboardInterrupt` in it.

    It does so whenever the modules that are imported, or are being imported, have changed.
    """

    def __init__(self, step: int) -> None:
        self._step = step
        self._states = set[tuple[object, ...]]()
        self.place = ""
        """In a child, the place of the interrupt."""
        self.tried = 0
        self.wrong = 0

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if self.place or not EntryInterruption.is_checked(frame, event, arg):
            return
        state = self._state(frame)
        if state in self._states:
            return
        self._states.add(state)
        if len(self._states) % self._step:
            return
        self.tried += 1
        sys.stdout.flush()
        if not (child := os.fork()):
            self.place = f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_qualname}"
            raise KeyboardInterrupt
        self.wrong += bool(os.waitpid(child, 0)[1])

    @staticmethod
    def _state(frame: FrameType) -> tuple[object, ...]:
        outer: FrameType | None = frame
        imported = []
        while outer:
            if outer.f_code.co_name == "<module>":
                imported.append(outer.f_globals["__name__"])
            outer = outer.f_back
        return len(sys.modules), "importlib" in frame.f_code.co_filename, *imported


def check(adds: bool) -> None:
    """Checks that all imports succeed, and if asked that a backend computes."""
    use_all()
    from plugrt.native import native_core

    assert native_core.core or os.environ.get("PLUGRT_CORE") == "python", native_core.reason
    if adds:
        assert (plugrt.device_put([1.0, 2.0])[1] + 1).item() == 3


def main(step: str) -> int:
    interruptions = Interruptions(int(step))
    sys.setprofile(interruptions)
    try:
        use_all()
    except KeyboardInterrupt:
        sys.setprofile(None)
        try:
            check(interruptions.tried % ADDS == 0)
        except BaseException:  # noqa: BLE001 - it is reported
            print(f"{interruptions.place}: {traceback.format_exc()[-2500:]}", flush=True)
            os._exit(1)
        os._exit(0)
    sys.setprofile(None)
    print(f"{interruptions.tried} places, {interruptions.wrong} wrong", flush=True)
    return int(bool(interruptions.wrong))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
