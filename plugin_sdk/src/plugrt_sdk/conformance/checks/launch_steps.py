"""Level 3: launches in steps whose arguments another thread's launch uses, too."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from plugrt.errors import DeletedBuffer
from plugrt_sdk.conformance.check import Chapter, Demand, Level, Needs
from plugrt_sdk.conformance.checks.executables import open_results
from plugrt_sdk.conformance.expect import Array, expect, expect_equal, expect_same_bits
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter(
    "launch_steps", Level.BEHAVES, "plugrt.interface.LaunchSteps", demand=Demand.PLUGRT
)

_RACE_SECONDS, _END_SECONDS = 1.0, 10.0
_SWITCH_SECONDS = 1e-6
"""The switch interval of Python's threads: very short, so that the threads meet."""
_READ_EACH = 100
"""One of so many launches is read: threads that read meet each other too rarely."""


class _Launches:
    """Launches a program with one result in steps, as the core does."""

    def __init__(self, subject: PluginSubject, text: str) -> None:
        self.subject, self.program = subject, subject.compile(text)
        steps = self.program.launch_steps
        if steps is None:
            subject.refuse("launch_steps is None: the compiled core calls the launcher")
        self.steps = steps

    def launch(self, *arguments: Any) -> Any:
        """Launches; returns the contents of the result. Donated arguments are deleted."""
        steps, given = self.steps, list(arguments)
        try:
            [found] = steps.take(steps.launch(given), *steps.take_arguments)
        except Exception as error:
            raise steps.explain(error, given) from error
        if steps.is_deleted is not None and steps.delete is not None:
            for number in steps.donated:
                if not steps.is_deleted(given[number]):
                    steps.delete(given[number])
        return found

    def expect(self, held: Any, wanted: Array) -> None:
        """Expects that a result equals this one."""
        [[found]] = open_results(self.subject, self.program, [held])
        expect_same_bits(found.to_host(), wanted, "the sum")


@CHAPTER.check(
    "waits_for_uses", refusable=True, needs=Needs.PROCESS,
    covers=("LoadedExecutable.launch_steps",),
    rests_on="plugrt.interface.LaunchSteps.waits_for_uses",
    why="two threads, of which one donates what the other uses, wait for each other for ever",
)  # fmt: skip
def waits_for_uses(subject: PluginSubject) -> None:
    """Threads that launch with an array end, while another donates it, or copies it if it must.

    It must copy if ``waits_for_uses`` is True, as the core does. Ending proves little, as the
    threads may not have met; waiting for ever proves that ``waits_for_uses`` is False and should be
    True. If it is True without need, copies are made for nothing, which a check cannot see.
    """
    copy, add, taking = (
        _Launches(subject, text)
        for text in (programs.IDENTITY, programs.ADD, programs.DONATING_ADD)
    )
    if not taking.steps.donated:
        subject.refuse("launches in steps take no argument")
    [kept] = copy.program.launcher([subject.client.shards((subject.put(ONE),))])
    arrays = [copy.launch(kept) for _ in range(4)]
    must_copy = taking.steps.waits_for_uses
    stop = time.monotonic() + _RACE_SECONDS

    def use() -> None:
        for i in _turns(stop):
            shared = arrays[i % len(arrays)]
            try:
                held = add.launch(shared, shared)
            except DeletedBuffer:  # another thread donated it meanwhile
                expect(not must_copy, "an array that nobody took", "a deleted one")
                continue
            if i % _READ_EACH == 0:
                add.expect(held, 2 * ONE)

    def take() -> None:
        for i in _turns(stop):
            shared, arrays[i % len(arrays)] = arrays[i % len(arrays)], copy.launch(kept)
            held = taking.launch(copy.launch(shared) if must_copy else shared, kept)
            if i % _READ_EACH == 0:
                taking.expect(held, 2 * ONE)

    _expect_ends(use, use, take)


def _turns(stop: float) -> Iterator[int]:
    """Yields numbers from 0 on, until a time."""
    for i in count():
        if time.monotonic() >= stop:
            return
        yield i


def _expect_ends(*works: Callable[[], None]) -> None:
    """Expects that functions end without an error, each in its own thread."""
    errors: list[Exception] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  # raised below, on the check's thread
            errors.append(error)

    # Daemon threads: those that wait for ever must not keep the process alive.
    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        for thread in threads:
            thread.start()
        until = time.monotonic() + _RACE_SECONDS + _END_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
    finally:
        sys.setswitchinterval(usual)
    if errors:
        raise errors[0]
    waiting = sum(thread.is_alive() for thread in threads)
    expect_equal(waiting, 0, f"{_END_SECONDS:g} s after the end of the race, threads that wait:")
