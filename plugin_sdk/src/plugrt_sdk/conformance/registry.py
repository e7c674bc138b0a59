"""`CHECKS`: all checks in the order in which they run, and how some of them are selected."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType

from plugrt.errors import InvalidArgument
from plugrt_sdk.conformance.check import Check, Level
from plugrt_sdk.conformance.installed_checks import installed_chapters


@cache
def checks() -> Mapping[str, Check]:
    """Returns id to check, in order: the kit's, then those of installed packages.

    Ids are unique.
    """
    from plugrt_sdk.conformance.checks import CHAPTERS

    found: dict[str, Check] = {}
    taken = {chapter.prefix.partition(".")[0] for chapter in CHAPTERS}
    for chapter in (*CHAPTERS, *installed_chapters(taken)):
        for check in chapter:
            if check.id in found:
                raise ValueError(f"two checks have the id {check.id}")
            found[check.id] = check
    return MappingProxyType(found)


def find(name: str) -> Check:
    """Returns the check of an id; raises `InvalidArgument` with the nearest ids."""
    known = checks()
    if name not in known:
        near = get_close_matches(name, known, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise InvalidArgument(f"there is no check {name}{hint} (--list names them all)")
    return known[name]


def select(names: Iterable[str] = (), level: int | None = None, words: str = "") -> Sequence[Check]:
    """Returns the checks of these ids, up to this level, whose id or title has all the words.

    ``words`` are separated by spaces; a word that begins with ``-`` must be absent. Raises
    `InvalidArgument` for an id that does not exist and for a selection of nothing.
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


def manifest_hash() -> str:
    """Returns the SHA-256 of all ids, levels, titles and capabilities: two kits of one hash ask
    the same."""
    lines = (f"{c.id}\t{int(c.level)}\t{c.capability}\t{c.title}\n" for c in checks().values())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def level_counts() -> Mapping[Level, int]:
    """Returns the number of checks of each level."""
    return {level: sum(c.level is level for c in checks().values()) for level in Level}
