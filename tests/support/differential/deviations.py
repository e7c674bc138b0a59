"""Known differences from JAX: ``docs/data/jax_deviations.toml``, read and matched."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from support.differential import case as cases
from support.differential.case import Case
from support.differential.compare import Difference

PATH = Path(__file__).parents[3] / "docs/data/jax_deviations.toml"
KINDS = ("deviation", "fault")


@dataclass(frozen=True)
class Entry:
    """A class of differences: their kinds, their cases, and the reason."""

    id: str
    kind: str
    """``deviation``, which stays, or ``fault``, which an issue mends."""
    what: tuple[str, ...]
    """The kinds of `Difference` that it covers."""
    when: str
    """A Python expression of ``case``, ``difference`` and the functions of `names`."""
    jax: str
    plugrt: str
    reason: str
    issue: int
    """The issue that mends a fault; 0 for a deviation."""
    example: Case
    """A case that shows it."""

    def covers(self, case: Case, difference: Difference) -> bool:
        """Whether a difference of a case is of this class."""
        return difference.what in self.what and bool(
            eval(_compiled(self.when), names(case, difference))
        )


@cache
def _compiled(text: str) -> CodeType:
    return compile(text, "<when>", "eval")


def names(case: Case, difference: Difference) -> dict[str, Any]:
    """Returns what conditions are written with."""
    body, args = case.body, case.all_args
    return {
        "case": case,
        "difference": difference,
        "args": args,
        "body": body,
        "ours": difference.ours,
        "theirs": difference.theirs,
        "option": case.option,
        "has": lambda *parts: any(part in body for part in parts),
        "any_arg": lambda **wanted: any(
            all(getattr(a, name) == value for name, value in wanted.items()) for a in args
        ),
        "reads_arguments": bool(re.search(r"\b[xyz]\b", body)),
        "in_then": difference.step == "then",
    }


@cache
def entries() -> tuple[Entry, ...]:
    """Returns all entries; `ValueError` for one that is incomplete or listed twice."""
    found: dict[str, Entry] = {}
    for raw in tomllib.loads(PATH.read_text(encoding="utf-8"))["entry"]:
        example = eval(raw.pop("example"), {"Case": cases.Case, "Arg": cases.Arg})
        entry = Entry(**{"issue": 0, **raw, "what": tuple(raw["what"]), "example": example})
        if (
            entry.id in found
            or entry.kind not in KINDS
            or (entry.kind == "fault") != bool(entry.issue)
        ):
            raise ValueError(
                f"{PATH.name}: {entry.id} is listed twice, or its kind or issue is wrong"
            )
        found[entry.id] = entry
    return tuple(found.values())


def entry_of(case: Case, difference: Difference) -> Entry | None:
    """Returns the first entry that covers a difference."""
    return next((e for e in entries() if e.covers(case, difference)), None)


def unknown(case: Case, differences: Iterable[Difference]) -> list[Difference]:
    """Returns the differences that no entry covers."""
    return [d for d in differences if entry_of(case, d) is None]
