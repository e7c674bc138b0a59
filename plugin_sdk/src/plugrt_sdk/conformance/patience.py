"""`Patience`: limits the time of a run for a plugin that hangs or crashes in many checks."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

from plugrt_sdk.conformance.check import Check
from plugrt_sdk.conformance.verdict import Result, Verdict

_LEAST_SECONDS = 3.0
"""The least limit of a check after another has hung: a process's first check also starts the client
and the reference, which takes a second or two."""
_TIMES_SLOWEST = 5
"""The limit of a check after that, if larger, as a multiple of the slowest check's time."""
_MOST_SECONDS = 10.0
"""The maximum limit after that, unless a third of the run's limit is larger."""
_FLOOR_SECONDS, _FLOOR_TIMES_SLOWEST = 1.0, 1.5
"""The least limit after several chapters were given up: thirty chapters may have one fault."""
_MOST_CRASHES = 5
"""The number of consecutive CRASHes of a chapter that end it: each costs a process, and a function
that all checks call would end hundreds."""


@dataclass
class Patience:
    """The limit of each check, and the chapters that are given up, in one run.

    A function that hangs costs the full limit ``seconds`` once. After the first TIMEOUT the limit
    of a check is five times the slowest check's time, within 3 s and 10 s or a third of
    ``seconds``. Exceeding this limit proves no fault: the check is NOT-RUN, and so is the rest of
    its chapter. The second such chapter gets half of the limit, the third a third, and so on. After
    five consecutive CRASHes in a chapter the rest of it is NOT-RUN, too. Methods may be called on
    any thread.
    """

    seconds: float
    _hung: str = ""
    """The id of the first check that exceeded its limit."""
    _slowest: float = 0.0
    """The time of the slowest check that ended, in seconds."""
    _given_up: dict[str, str] = field(default_factory=dict)
    """The chapters that exceeded the short limit, with the check's id."""
    _crashes: Counter[str] = field(default_factory=Counter)
    """The number of consecutive crashes at the end of a chapter's results."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def limit(self) -> float:
        """Returns the present limit of a check, in seconds."""
        with self._lock:
            if not self._hung:
                return self.seconds
            most = min(self.seconds, max(_MOST_SECONDS, self.seconds / 3))
            first = max(_LEAST_SECONDS, _TIMES_SLOWEST * self._slowest)
            least = max(_FLOOR_SECONDS, _FLOOR_TIMES_SLOWEST * self._slowest)
            return min(most, max(least, min(first, most) / (1 + len(self._given_up))))

    def judge_late(self, name: str, late: Result, limit: float) -> Result:
        """Returns the result of a check that did not end within ``limit`` seconds."""
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
        """Records a result of the run."""
        with self._lock:
            self._slowest = max(self._slowest, result.seconds)
            if result.verdict is not Verdict.NOT_RUN:
                more = self._crashes[_chapter(check.id)] + 1
                crashed = result.verdict is Verdict.CRASH
                self._crashes[_chapter(check.id)] = more if crashed else 0

    def find_why_given_up(self, check: Check) -> str:
        """Returns why the rest of a check's chapter is not run, or an empty string."""
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
