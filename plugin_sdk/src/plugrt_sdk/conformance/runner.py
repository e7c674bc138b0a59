"""`Runner`: runs checks in child processes; a child that crashes or hangs is a verdict."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plugrt.processes.run_in_child import Outcome, run_in_child
from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.check import Check, Needs
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.verdict import Result, Verdict
from plugrt_sdk.conformance.worker import START

_WORKER = "plugrt_sdk.conformance.worker:run_checks"
_BATCH = 40
"""The most checks of one process: a process costs about a second, and its end one batch."""

OnResult = Callable[[Check, Result], None]


@dataclass
class Runner:
    """One run. ``seconds`` is the limit of each check; ``on_result`` is called with each result.

    `run` returns the results in the checks' order, which does not depend on ``jobs``, the number of
    child processes at a time. The check that starts the client is among them if it is bad, even
    where nobody asked for it. ``facts`` then says what the client states of itself.
    """

    target: Target
    checks: Sequence[Check]
    seconds: float = 30.0
    seed: int = 0
    jobs: int = 1
    tolerances: Mapping[str, int] = field(default_factory=dict)
    on_result: OnResult = lambda check, result: None
    facts: dict[str, Any] = field(default_factory=dict)

    def run(self) -> dict[str, Result]:
        """Runs the checks; raises nothing that a plugin causes."""
        self._results: dict[str, Result] = {}
        self._lock = threading.Lock()
        free = [c for c in self.checks if c.needs in (Needs.PLUGIN, Needs.LIBRARY)]
        bound = [c for c in self.checks if c not in free and c.id != START]
        batches = _batches(free, self.jobs)
        if bound or any(c.id == START for c in self.checks):
            started = self._start()
            if started.verdict is Verdict.PASS:
                batches += _batches(bound, self.jobs)
            else:
                self._give_up(bound, started)
        self._run_batches(batches)
        unasked = self._results.keys() - {c.id for c in self.checks}
        return {name: self._results[name] for name in (*unasked, *(c.id for c in self.checks))}

    def _record(self, check: Check, result: Result) -> None:
        with self._lock:
            self._results[check.id] = result
            self.on_result(check, result)

    def _start(self) -> Result:
        """Starts a client once, in a process of its own; everything else depends on it."""
        start = registry.find(START)
        found = self._run_batch([start])[START]
        if start in self.checks:
            self._record(start, found)
        elif found.verdict.is_bad:  # else a run in which nothing could run would look good
            self._results[START] = found
        return found

    def _give_up(self, checks: Sequence[Check], started: Result) -> None:
        """Records that checks could not run, because no client could be started."""
        absent = started.verdict is Verdict.NO_HARDWARE
        verdict = Verdict.NO_HARDWARE if absent else Verdict.NOT_RUN
        why = started.got if absent else f"{START}: {started.verdict}"
        for check in checks:
            self._record(check, Result(verdict, got=why))

    def _run_batches(self, batches: Sequence[Sequence[Check]]) -> None:
        if self.jobs == 1 or len(batches) < 2:
            for batch in batches:
                self._finish(batch)
            return
        waiting: queue.SimpleQueue[Sequence[Check]] = queue.SimpleQueue()
        ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        for batch in batches:
            waiting.put(batch)
        for _ in range(min(self.jobs, len(batches))):
            # Daemons: an interrupted run ends at once, and with it all its child processes.
            threading.Thread(target=self._serve, args=(waiting, ended), daemon=True).start()
        for _ in batches:
            if (fault := ended.get()) is not None:
                raise fault

    def _serve(self, waiting: Any, ended: Any) -> None:
        while True:
            try:
                batch = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self._finish(batch)
            except BaseException as fault:  # noqa: BLE001  # raised by `_run_batches`
                ended.put(fault)
            else:
                ended.put(None)

    def _finish(self, batch: Sequence[Check]) -> None:
        """Runs a batch, in one process after the other until each check has a verdict."""
        rest = list(batch)
        while rest:
            found = self._run_batch(rest)
            for check in rest:
                if check.id in found:
                    self._record(check, found[check.id])
            rest = [check for check in rest if check.id not in found]

    def _run_batch(self, batch: Sequence[Check]) -> dict[str, Result]:
        """Runs checks in one process; returns the results of those it came to, at least one."""
        alone = batch[0].needs is Needs.PROCESS
        argument = {
            "target": self.target.as_dict(), "checks": [c.id for c in batch], "seed": self.seed,
            "seconds": self.seconds, "tolerances": dict(self.tolerances), "finalise": alone,
            "path": sys.path,
        }  # fmt: skip
        outcome = run_in_child(_WORKER, argument, self.seconds * len(batch) + 5)
        self.facts.update(next((line["facts"] for line in outcome.lines if "facts" in line), {}))
        return _read(batch, outcome, self.seconds, alone=alone)


def _batches(checks: Sequence[Check], jobs: int) -> list[list[Check]]:
    """Returns the checks in batches, in order; those with a process of their own are alone."""
    together = [c for c in checks if c.needs is not Needs.PROCESS]
    size = max(1, min(_BATCH, -(-len(together) // jobs)))
    found = [together[i : i + size] for i in range(0, len(together), size)]
    return found + [[c] for c in checks if c.needs is Needs.PROCESS]


def _read(
    batch: Sequence[Check], outcome: Outcome, seconds: float, *, alone: bool
) -> dict[str, Result]:
    """Returns the results that a process reported, and what its end says of the check it was at."""
    found = {
        line["end"]: Result.from_dict(line["result"]) for line in outcome.lines if "end" in line
    }
    begun = [line["begin"] for line in outcome.lines if "begin" in line]
    left = [check.id for check in batch if check.id not in found]
    if not left and (outcome.succeeded or not alone):
        return found
    open_check = next((name for name in begun if name not in found), "")
    blamed = open_check or (begun[-1] if begun else left[0])
    found[blamed] = _blame(outcome, seconds, is_open=bool(open_check), begun=bool(begun))
    return found


def _blame(outcome: Outcome, seconds: float, *, is_open: bool, begun: bool) -> Result:
    when = "" if is_open else " after the check had ended" if begun else " before the check began"
    if outcome.how == "deadline":
        return Result(Verdict.TIMEOUT, f"an end within {seconds:g} s", f"it had not ended{when}")
    ending = f"the process {outcome.ending}{when}"
    if outcome.lost_report:
        ending = f"the process closed a file that is not its own{when}"
    last = outcome.last_output()
    got = f"{ending}; its last output: {last}" if last else ending
    return Result(Verdict.CRASH, "the process to live", got)
