"""Comparisons between the processes of a run: `require_agreement` and `tell_each_other`."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from plugrt.errors import DeadlineExceeded, DistributedError, PjrtError, escape_controls
from plugrt.plugins.coordination import Connection
from plugrt.wire.checked_fields import decode_json, require

_WAIT_MS = 500
_SHOWN = 4
_VERDICT = "verdict"
_FAILED = "failed"
_BLOCK = 64
"""How many comparisons are deleted at once: each deletion is one more message."""
# Process-wide: all threads count the comparisons of the same run.
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
    """Raises `DistributedError` in all of these processes if they do not do the same.

    ``what`` names the action and ``value`` its details, a short text: a digest if it is long. All
    processes compare in the same order. The first process compares the values and sends the result
    to the others. Raises `DeadlineExceeded`, naming the processes, if some do not arrive within
    ``initialization_timeout``. Does nothing in a single process. ``note`` is added to the message
    if the values differ, ``perhaps`` is a possible reason if processes are late. Each ``series``
    has its own order, for threads that compare at the same time.
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
    """Returns the texts of these processes, equal in all: the processes with each text, and the
    text.

    ``what`` is the reason of the exchange, equal in all. Raises as `require_agreement` if some
    processes are late. In a single process it returns that process's text.
    """
    comparison = begin_comparison(processes, series)
    if comparison is None:
        return [([0], value)]
    return [(who, told) for who, _, told, _ in comparison.make(what, value)]


def begin_comparison(processes: Iterable[int], series: str) -> Comparison | None:
    """Returns the next comparison of these processes; None if there is nothing to compare."""
    among = tuple(sorted(set(processes)))
    if len(among) < 2:
        return None
    from plugrt.distributed.initialization import current_run  # not for a single process

    run = current_run()
    if run is None or run.connection.process_id not in among:
        return None
    with _lock:
        # Counts per run: the next run has another connection and begins at 1.
        number = run.comparisons[series, among] = run.comparisons.get((series, among), 0) + 1
    return Comparison(run.connection, among, number, series)


Said = tuple[list[int], str, str, str]
"""Processes, their action, its value, and a note for the message if values differ."""
_VERDICT_KIND = dict[str, list[int] | list[Said]]
"""The result of the first process: all ``said``, or the processes that are ``late``."""


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
        """Sends the action of this process; returns the actions of all, grouped if equal.

        Raises `DeadlineExceeded` if some processes do not send theirs.
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
            # All processes have reached this comparison, so that they are done with much older
            # ones.
            me.delete(self._folder(self._number - 2 * _BLOCK))
        return [tuple(each) for each in found["said"]]

    def tell_failure(self, text: str) -> None:
        """Tells the others that this process failed, unless another one has done so."""
        with suppress(PjrtError):  # the coordinator is gone, too
            self._me.put(self._key(_FAILED), f"process {self._me.process_id}: {text}".encode())

    def hear_failure(self) -> str:
        """Returns which process failed and the reason; empty if none has reported a failure."""
        told = None
        with suppress(PjrtError):
            told = self._me.try_get(self._key(_FAILED))
        return escape_controls(told.decode("utf-8", "replace")) if told else ""

    def _compare(self) -> dict[str, Any]:
        """Returns the actions of all processes, or the processes that are late."""
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
        """Returns the result of the first process, or the late processes after a timeout."""
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
                    from plugrt.distributed.watch import logger  # not for a single process

                    self._warn_at = self._until
                    logger.warning(
                        "%s, for %g s; waiting for %g s. %s",
                        self._describe_late(late), self._warn_after, self._seconds, self._perhaps,
                    )  # fmt: skip

    def _describe_late(self, late: Sequence[int]) -> str:
        return (
            f"process {', '.join(map(str, late))} has not reached the step of process "
            f"{self._me.process_id}: {self._does}"
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
