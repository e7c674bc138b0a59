"""`Patience`: the time of a run for a plugin that hangs or crashes in functions of many checks."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

from plugrt_sdk.conformance.check import Check
from plugrt_sdk.conformance.verdict import Result, Verdict

_LEAST_SECONDS = 3.0
"""The least limit of a check once another has not ended: a process's first check also starts
the client and the reference, which costs a second or two."""
_TIMES_SLOWEST = 5
"""The limit of a check then, if that is more, in times of the slowest check's time."""
_MOST_SECONDS = 10.0
"""The highest limit then, where a third of the run's limit is not more."""
_FLOOR_SECONDS, _FLOOR_TIMES_SLOWEST = 1.0, 1.5
"""The least, in both ways, once several chapters were given up: thirty may meet the fault."""
_MOST_CRASHES = 5
"""The CRASHes of a chapter, with no other verdict between, after which the rest of it is not run:
each costs a process, and a function that all call would end hundreds."""


@dataclass
class Patience:
    """The limit of each check, and the chapters that are given up, of one run.

    A function that hangs costs ``seconds``, the limit, once. After the first TIMEOUT a check has
    five times what the slowest one took, between 3 s and 10 s or a third of ``seconds``. That it
    does not end in them proves nothing against it: it is NOT-RUN, with the rest of its chapter. The
    second chapter of which that happens has half that time, the third a third, and so on. What
    follows five CRASHes of a chapter one after the other is NOT-RUN, too. Any thread may call it.
    """

    seconds: float
    _hung: str = ""
    """The id of the first check that did not end in time."""
    _slowest: float = 0.0
    """The most seconds that a check took which ended."""
    _given_up: dict[str, str] = field(default_factory=dict)
    """Chapter to the id of its check that did not end in the short time."""
    _crashes: Counter[str] = field(default_factory=Counter)
    """Chapter to the number of its last checks that all ended their process."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def limit(self) -> float:
        """Returns the limit of a check now, in seconds."""
        with self._lock:
            if not self._hung:
                return self.seconds
            most = min(self.seconds, max(_MOST_SECONDS, self.seconds / 3))
            first = max(_LEAST_SECONDS, _TIMES_SLOWEST * self._slowest)
            least = max(_FLOOR_SECONDS, _FLOOR_TIMES_SLOWEST * self._slowest)
            return min(most, max(least, min(first, most) / (1 + len(self._given_up))))

    def judge_late(self, name: str, late: Result, limit: float) -> Result:
        """Returns the result of a check that did not end in ``limit`` seconds."""
        with self._lock:
            if not self._hung:
                self._hung = name
                return late
            self._given_up.setdefault(_chapter(name), name)
            if limit >= self.seconds:
                return late
            why = f"it had not ended after {limit:.3g} s, and had no more: {self._hung} hangs"
        return Result(Verdict.NOT_RUN, got=f"{why}; --check ID gives it {self.seconds:g} s")

    def note(self, check: Check, result: Result) -> None:
        """Notes a result of the run."""
        with self._lock:
            self._slowest = max(self._slowest, result.seconds)
            if result.verdict is not Verdict.NOT_RUN:
                more = self._crashes[_chapter(check.id)] + 1
                crashed = result.verdict is Verdict.CRASH
                self._crashes[_chapter(check.id)] = more if crashed else 0

    def find_why_given_up(self, check: Check) -> str:
        """Returns why the rest of a check's chapter is not run; empty if it is."""
        chapter = _chapter(check.id)
        with self._lock:
            late, crashes = self._given_up.get(chapter), self._crashes[chapter]
        if late:
            return f"{late} had not ended in time; --check ID runs one of them"
        if crashes >= _MOST_CRASHES:
            said = f"{crashes} checks of {chapter}, one after the other, had ended their process"
            return f"{said}; --check ID runs one of them"
        return ""


def _chapter(name: str) -> str:
    return name.partition(".")[0]
