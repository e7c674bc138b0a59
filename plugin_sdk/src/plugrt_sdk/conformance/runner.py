"""`Runner`: runs checks in child processes; the verdict of a crash or hang is a result."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from plugrt.processes.run_in_child import Outcome, run_in_child
from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.batches import batches_of, with_library
from plugrt_sdk.conformance.check import Check, Needs
from plugrt_sdk.conformance.journal import Journal, read_ends
from plugrt_sdk.conformance.judge import LAUNCH
from plugrt_sdk.conformance.patience import Patience
from plugrt_sdk.conformance.subject import MOST_SLOWNESS, slowness
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.verdict import Result, Verdict
from plugrt_sdk.conformance.worker import IMPORT, START

_WORKER = "plugrt_sdk.conformance.worker:run_checks"
_SUSPECTS = 5
"""The number of earlier checks to name for a crash that the check alone does not repeat."""

OnResult = Callable[[Check, Result], None]


@dataclass
class Runner:
    """One run of checks.

    ``seconds`` is the limit of each check; ``on_result`` is called with each result. `run` returns
    the results in the checks' order, for any ``jobs``, the number of concurrent child processes.
    They include the checks that others depend on (the plugin's import, the client's start, the
    library's file, the first launch) if these are bad, even if they were not selected. Afterwards
    ``facts`` are the client's statements about itself. `Patience` has the limits of time and of
    crashes.
    """

    target: Target
    checks: Sequence[Check]
    seconds: float = 30.0
    seed: int = 0
    jobs: int = 1
    tolerances: Mapping[str, int] = field(default_factory=dict)
    on_result: OnResult = lambda check, result: None
    facts: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    """Side effects that no check tests: output on stdout, and processes left behind.

    The first word of each, to its text, which names the checks of the process.
    """

    _launch_seconds: float = 0.0
    """The time of a launch in seconds, if a process reported that it is long."""
    _results: dict[str, Result] = field(default_factory=dict)
    _patience: Patience = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._patience = Patience(self.seconds)

    def run(self) -> dict[str, Result]:
        """Runs the checks, once; a plugin causes no exception.

        After ``KeyboardInterrupt``, `results` are those so far.
        """
        free = [c for c in self.checks if not c.needs.has_client and c.id != IMPORT]
        bound = [c for c in self.checks if c.needs.has_client and c.id != START]
        imported, started = self._begin()
        if not imported:
            free = [c for c in free if not self._imports(c)]
        batches = batches_of(with_library(free), self.jobs)
        if imported and started:
            if started.verdict is Verdict.PASS:
                # Some accelerators' libraries allow one client in a process.
                own = [c for c in bound if c.needs is Needs.LIBRARY_CLIENT]
                batches += batches_of([c for c in bound if c not in own], self.jobs)
                batches += batches_of(own, self.jobs)
            else:
                self._give_up(bound, started)
        self._run_batches(batches)
        found = self._results
        if LAUNCH not in found and any(r.got.startswith(f"{LAUNCH}:") for r in found.values()):
            self._run_batches([[registry.find(LAUNCH)]])
        return self.results()

    def results(self) -> dict[str, Result]:
        """Returns the results so far; checks that have not started are NOT-RUN."""
        with self._lock:
            known = dict(self._results)
        asked = [check.id for check in self.checks]
        unasked = [name for name in known.keys() - set(asked) if known[name].verdict.is_bad]
        rest = Result(Verdict.NOT_RUN, got="the run was interrupted before its end")
        return {name: known.get(name, rest) for name in (*unasked, *asked)}

    def _record(self, check: Check, result: Result) -> None:
        """Records the first result of a check, which is final."""
        with self._lock:
            if check.id in self._results:
                return
            self._results[check.id] = result
            self._patience.note(check, result)
            if check in self.checks:
                self.on_result(check, result)

    def _begin(self) -> tuple[bool, Result | None]:
        """Imports the plugin and starts a client, once, in a child process.

        Returns whether the import ended, even with an error (otherwise nothing is run that imports
        the plugin), and the result of the client's start, which all other checks need: None if no
        selected check needs a client.
        """
        importing = [c for c in self.checks if self._imports(c)]
        if not importing:
            return True, None
        with_client = any(c.needs.has_client for c in importing)
        first = [registry.find(name) for name in (IMPORT, *([START] if with_client else []))]
        found = self._run_batch(first)
        for check in first:
            if check.id in found:
                self._record(check, found[check.id])
        if found[IMPORT].verdict in (Verdict.CRASH, Verdict.TIMEOUT):
            for check in importing:
                why = f"{IMPORT}: {found[IMPORT].verdict}"
                self._record(check, Result(Verdict.NOT_RUN, got=why))
            return False, None
        return True, found.get(START)

    def _imports(self, check: Check) -> bool:
        """Whether a check imports the plugin. Finding a plugin given as an object imports it."""
        return check.needs is not Needs.DISTRIBUTION or self.target.kind != "plugin"

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
            # Daemon threads: an interrupted run ends at once, with its child processes.
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
        """Runs a batch, in one process after another, until each check has a verdict."""
        rest = [check for check in batch if not self._skip(check)]
        while rest:
            found = self._run_batch(rest)
            for check in rest:
                if check.id in found:
                    self._record(check, found[check.id])
            rest = [check for check in rest if check.id not in found]
            rest = [check for check in rest if not self._skip(check)]

    def _skip(self, check: Check) -> bool:
        """Whether a check is to be skipped; records it then."""
        if why := self._patience.find_why_given_up(check):
            self._record(check, Result(Verdict.NOT_RUN, got=why))
        return bool(why)

    def _run_batch(self, batch: Sequence[Check]) -> dict[str, Result]:
        """Runs checks in one process; returns the results of those that started, at least one."""
        journal, found = self._run_process(batch, self._record)
        last = journal.open or (journal.begun[-1] if journal.begun else "")
        if last and found[last].verdict is Verdict.CRASH and journal.begun[0] != last:
            found[last] = self._try_alone(registry.find(last), found[last], journal.begun)
        return found

    def _run_process(
        self, batch: Sequence[Check], on_end: OnResult = lambda check, result: None
    ) -> tuple[Journal, dict[str, Result]]:
        """Runs checks in one process; its end is blamed on the check that was open.

        Calls ``on_end`` with each result that the end of the process cannot change, as soon as the
        check ends: an interrupted run keeps these.
        """
        alone = batch[0].needs is Needs.PROCESS
        names = [check.id for check in batch]
        seconds = self._patience.limit()
        argument = {
            "target": self.target.as_dict(), "checks": names, "seed": self.seed,
            "seconds": seconds, "launch_seconds": self._launch_seconds,
            "tolerances": dict(self.tolerances), "finalise": alone,
            "path": sys.path,
        }  # fmt: skip

        def hear(line: Mapping[str, Any]) -> None:
            for name, result in read_ends([line], names[:-1]):
                on_end(registry.find(name), result)

        most = MOST_SLOWNESS * seconds * len(batch) + 5  # the worker states the limit of each check
        outcome = run_in_child(_WORKER, argument, most, on_line=hear)
        journal = Journal.of(outcome, names)
        if journal.launch_seconds:
            self._launch_seconds = journal.launch_seconds
        seconds *= slowness(self._launch_seconds)
        self.facts.update(journal.facts)
        self._note_effects(outcome, journal)
        found = dict(journal.ended)
        if len(found) < len(batch) or (
            not outcome.succeeded and (alone or outcome.how == "signal")
        ):
            blamed = journal.open or (journal.begun[-1] if journal.begun else names[0])
            result = journal.blame(outcome, seconds)
            if result.verdict is Verdict.TIMEOUT and blamed != IMPORT:  # it is not run again
                result = self._patience.judge_late(blamed, result, seconds)
            found[blamed] = result
        return journal, found

    def _note_effects(self, outcome: Outcome, journal: Journal) -> None:
        """Records a process's output and leftovers, unless it was ended before its clean-up."""
        if not (outcome.succeeded and journal.begun):
            return
        first, last = journal.begun[0], journal.begun[-1]
        which = f"the check {first}" if first == last else f"the checks from {first} to {last}"
        for remark in outcome.remarks():
            self.notes.setdefault(
                remark.partition(" ")[0], f"in the process of {which} it {remark}"
            )

    def _try_alone(self, check: Check, crash: Result, begun: Sequence[str]) -> Result:
        """Returns a crash; adds the checks before it if the check passes in its own process.

        Memory that one check destroys may end the process in another.
        """
        if not self._run_process([check])[1][check.id].verdict.is_good:
            return crash
        before = ", ".join(begun[: begun.index(check.id)][-_SUSPECTS:])
        said = f"{crash.got}; alone it holds: suspect what ran before it in the process, {before}"
        return replace(crash, got=said)
