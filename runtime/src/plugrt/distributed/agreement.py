"""`require_agreement`: what several processes do must be the same in all of them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

from plugrt.distributed.initialization import current_run
from plugrt.errors import DeadlineExceeded, DistributedError
from plugrt.plugins.coordination import Connection

_WAIT_MS = 500
_SHOWN = 4
_VERDICT = "verdict"
_BLOCK = 64
"""How many comparisons are forgotten at once: each time is a message more."""
_lock = threading.Lock()


def require_agreement(
    what: str,
    value: str,
    processes: Iterable[int],
    cure: str,
    *,
    note: str = "",
    series: str = "equal",
) -> None:
    """Raises `DistributedError` in all of these processes where one of them does something else.

    ``what`` is done, with ``value``, which is text and short: a digest of what is long. All say
    theirs in the same order; the first process compares, and tells the others what it found. Raises
    `DeadlineExceeded`, naming the processes, where some do not come to it while
    ``initialization_timeout`` passes. Nothing in a single process. ``note`` is said where they
    differ, and may. Each ``series`` has an order of its own, for what threads do beside each other.
    """
    run, among = current_run(), tuple(sorted(set(processes)))
    if run is None or len(among) < 2 or run.connection.process_id not in among:
        return
    with _lock:
        # Of one run: the next one has another connection, and counts anew.
        number = run.comparisons[series, among] = run.comparisons.get((series, among), 0) + 1
    Comparison(run.connection, among, number, series).make(what, value, cure, note)


class Comparison:
    """One comparison of these processes, by the key-value store of their run."""

    def __init__(self, me: Connection, among: Sequence[int], number: int, series: str) -> None:
        self._me, self._among, self._number, self._series = me, among, number, series
        self._seconds = me.membership.initialization_timeout
        self._until = time.monotonic() + self._seconds

    def make(self, what: str, value: str, cure: str, note: str) -> None:
        """Says what this process does; raises where it is not what all do."""
        me, first = self._me, self._among[0]
        me.put(self._key(me.process_id), json.dumps([what, value, note]).encode())
        if me.process_id == first:
            found = self._compare()
            me.put(self._key(_VERDICT), json.dumps(found).encode())
        else:
            found = self._hear()
        if late := found.get("late"):
            who = f"process {', '.join(map(str, late))}"
            raise DeadlineExceeded(
                f"{who} has not come to what the others do, for {self._seconds:g} s; process "
                f"{me.process_id} does {what}: all processes must do the same, in the same order"
            )
        if me.process_id == first and self._number % _BLOCK == 1 and self._number > 2 * _BLOCK:
            # All have come to this one, and so are done with those long before it.
            me.delete(self._folder(self._number - 2 * _BLOCK))
        if said := found.get("said"):
            shown = ", ".join(f"{_name(who)}: {words}" for who, words in said)
            raise DistributedError(f"the processes do not do the same: {shown}. {cure}")

    def _compare(self) -> dict[str, Any]:
        """Returns who says what, if that is not the same in all; or who has not come."""
        said: dict[tuple[str, str], list[int]] = {}
        notes: dict[tuple[str, str], str] = {}
        for index in self._among:
            found = self._wait_for(index)
            if found is None:
                return {"late": self._missing()}
            what, value, note = json.loads(found)
            said.setdefault((what, value), []).append(index)
            notes.setdefault((what, value), note)
        if len(said) == 1:
            return {}
        shown = [(who, " ".join(filter(None, [*done, notes[done]]))) for done, who in said.items()]
        return {"said": shown[:_SHOWN]}

    def _hear(self) -> dict[str, Any]:
        """Returns what the first process found; who has not come, where that takes too long."""
        found = self._wait_for(_VERDICT)
        heard: dict[str, Any] = (
            json.loads(found) if found else {"late": self._missing() or [self._among[0]]}
        )
        return heard

    def _wait_for(self, who: int | str) -> bytes | None:
        while True:
            try:
                return self._me.get(self._key(who), _WAIT_MS)
            except DeadlineExceeded:
                if time.monotonic() >= self._until:
                    return None

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
