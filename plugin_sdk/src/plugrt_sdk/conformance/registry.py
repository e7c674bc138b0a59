"""`CHECKS`: all checks in the order of a run, and functions to select some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType

from plugrt.errors import InvalidArgument
from plugrt_sdk.conformance.check import Check, Level
from plugrt_sdk.conformance.installed_checks import installed_chapters

# Process-wide: a constant.
RETIRED: Mapping[str, str] = {
    "executables.launcher.lent": "since 0.1.0: a put per argument replaces what it tried",
    "table_transfers.alias": "since 0.1.0: table_transfers.alias.layout gives the layout, on which "
    "the header says nothing where there is none",
}
"""The ids of removed checks, each with version and reason.

A value is such as ``since 0.2.0: repeats buffers.put_get.one``. No other check may have these ids.
``docs/data/check_ids.txt`` lists all ids that have existed.
"""


@cache
def checks() -> Mapping[str, Check]:
    """Returns the checks by id, in order: the kit's, then those of installed packages.

    Ids are unique.
    """
    from plugrt_sdk.conformance.checks import CHAPTERS

    found: dict[str, Check] = {}
    taken = {chapter.prefix.partition(".")[0] for chapter in CHAPTERS}
    for chapter in (*CHAPTERS, *installed_chapters(taken)):
        for check in chapter:
            if check.id in found:
                raise ValueError(f"two checks have the id {check.id}")
            if check.id in RETIRED:
                raise ValueError(f"a check has the id {check.id}, which was another's")
            found[check.id] = check
    return MappingProxyType(found)


def find(name: str) -> Check:
    """Returns the check with an id; raises `InvalidArgument` with similar ids."""
    known = checks()
    if name in RETIRED:
        raise InvalidArgument(f"there is no check {name} any more, {RETIRED[name]}")
    if name not in known:
        near = get_close_matches(name, known, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise InvalidArgument(f"there is no check {name}{hint} (--list names them all)")
    return known[name]


def select(names: Iterable[str] = (), level: int | None = None, words: str = "") -> Sequence[Check]:
    """Returns the checks with these ids, up to a level, whose id or title has all the words.

    Words are separated by spaces; ``-word`` must be absent. Raises `InvalidArgument` for an id that
    does not exist, and for an empty selection.
    """
    wanted = [find(name) for name in names] or list(checks().values())
    ids = {check.id for check in wanted}
    chosen = [
        check
        for check in checks().values()
        if check.id in ids and (level is None or check.level <= level) and _matches(check, words)
    ]
    if not chosen:
        raise InvalidArgument("the selection holds no check, and a run of none proves nothing")
    return chosen


def _matches(check: Check, words: str) -> bool:
    text = f"{check.id} {check.title}".lower()
    return all(
        (word[1:] not in text) if word.startswith("-") and word[1:] else word in text
        for word in words.lower().split()
    )


def level_counts() -> Mapping[Level, int]:
    """Returns the number of checks of each level."""
    return {level: sum(c.level is level for c in checks().values()) for level in Level}
