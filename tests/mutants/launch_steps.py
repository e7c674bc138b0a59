"""Mutants of launches in steps that wait for each other for ever."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

from mutants.loans import with_steps
from plugrt_sdk.conformance.mutants.faults import Faults, execute
from plugrt_sdk.loaded_executable import BackendLoadedExecutable

_turn = threading.Condition()
_uses: Counter[int] = Counter()
_taken: set[int] = set()
"""Arguments of launches, by id: the number of uses, and those that a launch waits to take."""
_USE_SECONDS = 0.001


def _launch_waiting(self: BackendLoadedExecutable, arguments: Any) -> Any:
    """Starts a launch once it has its arguments, in turn, and nothing uses those that it takes.

    jaxlib does so as well: if one thread runs f(x, x) and another takes x, the first gets x for one
    use, must wait for the second use, and the other waits for the end of the first.
    """
    donated = self.executable.compiled.donated
    used = [id(shards) for i, shards in enumerate(arguments) if i not in donated]
    taking = {id(arguments[i]) for i in donated}
    for name in used:
        with _turn:
            while name in _taken:
                _turn.wait()
            _uses[name] += 1
        time.sleep(_USE_SECONDS)
    with _turn:
        _taken.update(taking)
        while any(_uses[name] for name in taking):
            _turn.wait()
    try:
        return execute(self, arguments)
    finally:
        with _turn:
            _uses.subtract(used)
            _taken.difference_update(taking)
            _turn.notify_all()


MUTANTS: Mapping[str, Faults] = {
    "launch_steps.waits_for_uses": with_steps(launch=lambda self: partial(_launch_waiting, self)),
}
