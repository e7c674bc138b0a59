"""`Journal`: the reports of a worker process, and the check that its end is blamed on.

A check was open at the end of the process if its start is reported and its end is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plugrt.errors import escape_controls
from plugrt.processes.run_in_child import Outcome
from plugrt_sdk.conformance.verdict import Result, Verdict

_MOST_CHARACTERS = 2000
"""The maximum length of a kept text: a library may return a gigabyte."""


@dataclass(frozen=True, slots=True)
class Journal:
    """The reports of one process, in order. ``facts`` are the client's statements about itself."""

    begun: tuple[str, ...]
    ended: Mapping[str, Result]
    facts: Mapping[str, Any]
    launch_seconds: float = 0.0
    """The time of a launch, if it is long: see `PluginSubject.launch_seconds`."""

    @classmethod
    def of(cls, outcome: Outcome, names: Sequence[str]) -> Journal:
        """Parses the journal of these checks; ignores other lines."""
        begun = [line["begin"] for line in outcome.lines if line.get("begin") in names]
        facts = [line["facts"] for line in outcome.lines if isinstance(line.get("facts"), dict)]
        launches = [line["launch"] for line in outcome.lines if "launch" in line]
        return cls(
            tuple(begun), dict(read_ends(outcome.lines, names)), _shown(facts[0]) if facts else {},
            *launches[-1:],
        )  # fmt: skip

    @property
    def open(self) -> str:
        """The id of the check that has started and not ended; empty if there is none."""
        return next((name for name in self.begun if name not in self.ended), "")

    def blame(self, outcome: Outcome, seconds: float) -> Result:
        """Returns what the process's exit shows about the open check, or the last one."""
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
    """Yields id and result of each check whose end is reported."""
    verdicts = {str(verdict) for verdict in Verdict}
    for line in lines:
        result = line.get("result")
        whole = isinstance(result, dict) and result.get("verdict") in verdicts
        if whole and line.get("end") in names:
            yield line["end"], Result.from_dict(_shown(result))


def _shown(value: Any) -> Any:
    """Shortens a library's texts in a value, and makes them printable."""
    if isinstance(value, str):
        kept = value[:_MOST_CHARACTERS] + "…" * (len(value) > _MOST_CHARACTERS)
        return escape_controls(kept)
    if isinstance(value, dict):
        return {_shown(key): _shown(item) for key, item in value.items()}
    return [_shown(item) for item in value] if isinstance(value, list) else value
