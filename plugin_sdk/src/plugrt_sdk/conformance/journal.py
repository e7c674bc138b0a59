"""`Journal`: a worker process's reports of its checks, and the checks that its end is blamed on.

A check whose begin is reported and whose end is not was open when the process ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plugrt.errors import escape_controls
from plugrt.processes.run_in_child import Outcome
from plugrt_sdk.conformance.verdict import Result, Verdict

_MOST_CHARACTERS = 2000
"""The most that is kept of a text: a library may call itself a gigabyte of x."""


@dataclass(frozen=True, slots=True)
class Journal:
    """The reports of one process, in order. ``facts`` are a client's statements about itself."""

    begun: tuple[str, ...]
    ended: Mapping[str, Result]
    facts: Mapping[str, Any]
    launch_seconds: float = 0.0
    """The time of a launch, where it is long: see `PluginSubject.launch_seconds`."""

    @classmethod
    def of(cls, outcome: Outcome, names: Sequence[str]) -> Journal:
        """Returns the journal of the checks of these ids; other lines are of other code."""
        begun = [line["begin"] for line in outcome.lines if line.get("begin") in names]
        facts = [line["facts"] for line in outcome.lines if isinstance(line.get("facts"), dict)]
        launches = [line["launch"] for line in outcome.lines if "launch" in line]
        return cls(
            tuple(begun), dict(read_ends(outcome.lines, names)), _shown(facts[0]) if facts else {},
            *launches[-1:],
        )  # fmt: skip

    @property
    def open(self) -> str:
        """The id of the check that had begun and not ended; empty if there is none."""
        return next((name for name in self.begun if name not in self.ended), "")

    def blame(self, outcome: Outcome, seconds: float) -> Result:
        """Returns what the end of the process says of the check that was open, or the last."""
        after = bool(self.begun) and not self.open
        last = outcome.last_output()
        output = f"; its last output: {last}" if last else ""
        if outcome.how == "deadline":
            late = "the check had ended, and the process had not" if after else "it had not ended"
            return Result(Verdict.TIMEOUT, f"an end within {seconds:g} s", late + output)
        when = " after the check had ended" if after else "" if self.begun else " before the check"
        ending = f"the process {outcome.ending}{when}"
        if outcome.lost_report:
            ending = f"the process closed a file that is not its own{when}"
        return Result(Verdict.CRASH, "the process to live", ending + output)


def read_ends(
    lines: Iterable[Mapping[str, Any]], names: Collection[str]
) -> Iterator[tuple[str, Result]]:
    """Yields id and result of each of these checks whose end the lines report."""
    verdicts = {str(verdict) for verdict in Verdict}
    for line in lines:
        result = line.get("result")
        whole = isinstance(result, dict) and result.get("verdict") in verdicts
        if whole and line.get("end") in names:
            yield line["end"], Result.from_dict(_shown(result))


def _shown(value: Any) -> Any:
    """Returns a value whose texts may be printed and are not long: they may be a library's own."""
    if isinstance(value, str):
        kept = value[:_MOST_CHARACTERS] + "…" * (len(value) > _MOST_CHARACTERS)
        return escape_controls(kept)
    if isinstance(value, dict):
        return {_shown(key): _shown(item) for key, item in value.items()}
    return [_shown(item) for item in value] if isinstance(value, list) else value
