"""`run_forks`: calls a function in forks of this process, a few at a time."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Ended:
    """The end of a fork: the returned value (JSON), or the reason why there is none."""

    value: Any = None
    how: str = "returned"
    """``returned``, ``raised``, ``late``, or the end of the process: ``signal 11``, ``exit 3``."""
    errors: str = ""


@dataclass
class _Fork:
    item: Any
    pid: int
    number: int
    until: float
    content: bytes = b""


def run_forks(
    function: Callable[[T], Any], items: Iterable[T], seconds: float, jobs: int = 2
) -> Iterator[tuple[T, Ended]]:
    """Yields (item, end of its fork) in the order in which they end.

    This process must have no threads, and must have imported the modules that the function needs: a
    fork costs a few milliseconds. The output of the forks is lost.
    """
    left, live = iter(items), selectors.DefaultSelector()
    for item in left:
        _start(function, item, seconds, live)
        if len(live.get_map()) == jobs:
            yield from _wait(live)
    while live.get_map():
        yield from _wait(live)


def _start(
    function: Callable[[T], Any], item: T, seconds: float, live: selectors.BaseSelector
) -> None:
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        _run(function, item, write)
    os.close(write)
    live.register(read, selectors.EVENT_READ, _Fork(item, pid, read, time.monotonic() + seconds))


def _run(function: Callable[[T], Any], item: T, write: int) -> NoReturn:
    """Runs the function in the fork, and ends all processes that it started."""
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    try:
        line = {"value": function(item), "how": "returned"}
    except BaseException:  # noqa: BLE001  # the copy must not go on as its original would
        line = {"how": "raised", "errors": traceback.format_exc()}
    with os.fdopen(write, "w") as file:
        json.dump(line, file, default=str)
    os._exit(0)


def _wait(live: selectors.BaseSelector) -> Iterator[tuple[Any, Ended]]:
    """Waits until at least one fork has ended, and yields those."""
    ended: list[_Fork] = []
    while not ended:
        forks = [key.data for key in live.get_map().values()]
        first = min(fork.until for fork in forks)
        for key, _ in live.select(max(0.0, first - time.monotonic())):
            part = os.read(key.fd, 2**16)
            key.data.content += part
            if not part:
                ended.append(key.data)
        late = [fork for fork in forks if fork.until <= time.monotonic()]
        ended += [fork for fork in late if fork not in ended]
    for fork in ended:
        live.unregister(fork.number)
        yield fork.item, _collect(fork)


def _collect(fork: _Fork) -> Ended:
    late = fork.until <= time.monotonic() and not fork.content
    with contextlib.suppress(ProcessLookupError):
        os.killpg(fork.pid, signal.SIGKILL)  # and the processes that it started
    os.close(fork.number)
    status = os.waitstatus_to_exitcode(os.waitpid(fork.pid, 0)[1])
    if late:
        return Ended(how="late")
    try:
        return Ended(**json.loads(fork.content))
    except ValueError:
        return Ended(how=f"signal {-status}" if status < 0 else f"exit {status}")
