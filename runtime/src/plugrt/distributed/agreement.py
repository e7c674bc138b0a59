"""What processes of a run tell each other: `require_agreement`, and `tell_each_other`."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from plugrt.distributed.initialization import current_run
from plugrt.distributed.watch import logger
from plugrt.errors import DeadlineExceeded, DistributedError, PjrtError, escape_controls
from plugrt.plugins.coordination import Connection
from plugrt.wire.checked_fields import decode_json, require

_WAIT_MS = 500
_SHOWN = 4
_VERDICT = "verdict"
_FAILED = "failed"
_BLOCK = 64
"""How many comparisons are forgotten at once: each time is a message more."""
# Process-wide: threads count the comparisons of the one run together.
_lock = threading.Lock()


def require_agreement(
    what: str,
    value: str,
    processes: Iterable[int],
    cure: str,
    *,
    note: str = "",
    perhaps: str = "",
    series: str = "equal",
) -> None:
    """Raises `DistributedError` in all of these processes where one of them does something else.

    ``what`` is done, with ``value``, which is text and short: a digest of what is long. All say
    theirs in the same order; the first process compares, and tells the others what it found. Raises
    `DeadlineExceeded`, naming the processes, where some do not come to it while
    ``initialization_timeout`` passes. Nothing in a single process. ``note`` is said where they
    differ, and may; ``perhaps`` why some do not come. Each ``series`` has an order of its own, for
    what threads do beside each other.
    """
    comparison = begin_comparison(processes, series)
    if comparison is None:
        return
    said = comparison.make(what, value, note, perhaps)
    if len(said) > 1:
        shown = ", ".join(
            escape_controls(" ".join(filter(None, [f"{_name(who)}:", *words])))
            for who, *words in said[:_SHOWN]
        )
        raise DistributedError(f"the processes do not do the same: {shown}. {cure}")


def tell_each_other(
    what: str, value: str, processes: Iterable[int], *, series: str
) -> list[tuple[list[int], str]]:
    """Returns what these processes say, the same in all: which of them, and the text.

    ``what`` is why they do, the same in all. Raises as `require_agreement` does where some do not
    come. In a single process it says all there is.
    """
    comparison = begin_comparison(processes, series)
    if comparison is None:
        return [([0], value)]
    return [(who, told) for who, _, told, _ in comparison.make(what, value)]


def begin_comparison(processes: Iterable[int], series: str) -> Comparison | None:
    """Returns the next of these processes; None where there is nothing to compare."""
    run, among = current_run(), tuple(sorted(set(processes)))
    if run is None or len(among) < 2 or run.connection.process_id not in among:
        return None
    with _lock:
        # Of one run: the next one has another connection, and counts anew.
        number = run.comparisons[series, among] = run.comparisons.get((series, among), 0) + 1
    return Comparison(run.connection, among, number, series)


Said = tuple[list[int], str, str, str]
"""Which processes; what they do, with which value; and what is said where they differ."""
_VERDICT_KIND = dict[str, list[int] | list[Said]]
"""The first process's finding: ``said``, or who is ``late``."""


class Comparison:
    """One comparison of these processes, by the key-value store of their run.

    After ``warn_after`` seconds a warning names the processes that are late.
    """

    def __init__(
        self, me: Connection, among: Sequence[int], number: int, series: str,
        warn_after: float = 10.0,
    ) -> None:  # fmt: skip
        self._warn_after = warn_after
        self._me, self._among, self._number, self._series = me, among, number, series
        self._seconds = me.membership.initialization_timeout
        now = time.monotonic()
        self._until, self._warn_at = now + self._seconds, now + warn_after
        self._does = self._perhaps = ""

    def make(self, what: str, value: str, note: str = "", perhaps: str = "") -> list[Said]:
        """Says what this process does; returns what all do, those together that do the same.

        Raises `DeadlineExceeded` where some do not say it.
        """
        me, first = self._me, self._among[0]
        self._does, self._perhaps = " ".join(filter(None, [what, value, note])), perhaps
        me.put(self._key(me.process_id), json.dumps([what, value, note]).encode())
        if me.process_id == first:
            found = self._compare()
            me.put(self._key(_VERDICT), json.dumps(found).encode())
        else:
            found = self._hear()
        if late := found.get("late"):
            raise DeadlineExceeded(
                f"{self._describe_late(late)}, for {self._seconds:g} s (initialization_timeout): "
                f"all processes must do the same, in the same order. {perhaps}".rstrip(". ")
            )
        if me.process_id == first and self._number % _BLOCK == 1 and self._number > 2 * _BLOCK:
            # All have come to this one, and so are done with those long before it.
            me.delete(self._folder(self._number - 2 * _BLOCK))
        return [tuple(each) for each in found["said"]]

    def tell_failure(self, text: str) -> None:
        """Tells the others that what all do has failed here; unless one told them before."""
        with suppress(PjrtError):  # the coordinator is gone, too
            self._me.put(self._key(_FAILED), f"process {self._me.process_id}: {text}".encode())

    def hear_failure(self) -> str:
        """Returns which of them told of a failure, and what; empty if none has."""
        told = None
        with suppress(PjrtError):
            told = self._me.try_get(self._key(_FAILED))
        return escape_controls(told.decode("utf-8", "replace")) if told else ""

    def _compare(self) -> dict[str, Any]:
        """Returns who says what, or who has not come."""
        said: dict[tuple[str, str], list[int]] = {}
        notes: dict[tuple[str, str], str] = {}
        for index in self._among:
            found = self._wait_for(index)
            if found is None:
                return {"late": self._missing()}
            what, value, note = decode_json(tuple[str, str, str], found, "a comparison")
            said.setdefault((what, value), []).append(index)
            notes.setdefault((what, value), note)
        return {"said": [(who, *done, notes[done]) for done, who in said.items()]}

    def _hear(self) -> dict[str, object]:
        """Returns what the first process found; who has not come, where that takes too long."""
        found = self._wait_for(_VERDICT)
        if found is None:
            return {"late": self._missing() or [self._among[0]]}
        heard: dict[str, object] = decode_json(_VERDICT_KIND, found, "a verdict")
        require(len(heard) == 1 and heard.keys() <= {"said", "late"}, f"{found!r:.60}")
        return heard

    def _wait_for(self, who: int | str) -> bytes | None:
        while True:
            try:
                return self._me.get(self._key(who), _WAIT_MS)
            except DeadlineExceeded:
                now = time.monotonic()
                if now >= self._until:
                    return None
                if now >= self._warn_at and (late := self._missing()):
                    self._warn_at = self._until
                    logger.warning(
                        "%s, for %g s; waiting for %g s. %s",
                        self._describe_late(late), self._warn_after, self._seconds, self._perhaps,
                    )  # fmt: skip

    def _describe_late(self, late: Sequence[int]) -> str:
        return (
            f"process {', '.join(map(str, late))} has not come to what process "
            f"{self._me.process_id} does: {self._does}"
        )

    def _missing(self) -> list[int]:
        return [i for i in self._among if self._me.try_get(self._key(i)) is None]

    def _key(self, who: int | str) -> str:
        return f"{self._folder(self._number)}/{self._number}/{who}"

    def _folder(self, number: int) -> str:
        among = "-".join(map(str, self._among))
        return f"plugrt/{self._series}/{among}/{(number - 1) // _BLOCK}"


def _name(processes: Sequence[int]) -> str:
    first, *others = processes
    if not others:
        return f"process {first}"
    return f"process {first} and {len(others)} other{'s' if len(others) > 1 else ''}"
