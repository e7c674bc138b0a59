"""Marks candidates that are blocked or hidden by others: pure functions of rows and settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plugrt.plugins.packages.distributions import normalise_name
from plugrt.plugins.record import Record, Source, State


def mark_blocked(rows: Iterable[Record], allow: Sequence[str] | None, block: Sequence[str]) -> None:
    """Marks the candidates that PLUGRT_PLUGINS_ALLOW or PLUGRT_PLUGINS_BLOCK excludes."""
    blocked = {normalise_name(b) for b in block} | set(block)
    allowed = None if allow is None else {normalise_name(a) for a in allow} | set(allow)
    for row in rows:
        ids = {row.name, normalise_name(row.distribution)}
        if ids & blocked:
            reason, cure = "blocked by PLUGRT_PLUGINS_BLOCK", "take it out of PLUGRT_PLUGINS_BLOCK"
        elif allowed is not None and not ids & allowed:
            reason, cure = "not in PLUGRT_PLUGINS_ALLOW", "add it to PLUGRT_PLUGINS_ALLOW"
        else:
            continue
        row.blocked = True
        row.set_state(State.NOT_SELECTED, reason, cure)


def mark_duplicates(rows: Sequence[Record]) -> None:
    """Marks candidates of one name: a better source hides the rest, equal sources are rivals."""
    by_name: dict[str, list[Record]] = {}
    for row in rows:
        if row.named and not row.blocked:
            by_name.setdefault(row.name, []).append(row)
    for same in by_name.values():
        _mark(same)


def _mark(same: Sequence[Record]) -> None:
    """Hides records of one name behind the record with the best source.

    If several have that source, one package's records are hidden by its first one; records of
    different packages are all marked as duplicates.
    """
    best = min(row.source.rank for row in same)
    equal = [row for row in same if row.source.rank == best]
    for row in same:
        if row.source.rank > best:
            _hide(row, f"hidden by {equal[0].who} ({equal[0].source})")
    if len(equal) > 1 and _are_one_package(equal):
        for row in equal[1:]:
            _hide(row, f"hidden by {equal[0].value} of the same package",
                  "none is needed: the other entry provides the backend")  # fmt: skip
    elif len(equal) > 1:
        for row in equal:
            row.rivalled = True
            name = row.name
            fault, cure = describe_conflict(name, equal), describe_choices(name, equal)
            row.set_state(State.DUPLICATE, fault, cure)


def _hide(row: Record, reason: str, cure: str = "") -> None:
    row.hidden = True
    row.set_state(State.DUPLICATE, reason, cure)


def _are_one_package(rows: Sequence[Record]) -> bool:
    """Whether one distribution has several entry points that mean this name."""
    return bool(rows[0].distribution) and len({row.distribution for row in rows}) == 1


def describe_conflict(name: str, rows: Sequence[Record]) -> str:
    """Returns the sentence that lists the providers of one name."""
    owners = " and ".join(r.value if r.source is Source.ENVIRONMENT else r.who for r in rows)
    return f"{name!r} is provided by {owners}"


def describe_choices(name: str, rows: Sequence[Record]) -> str:
    """Returns how to choose between candidates of one name."""
    owners = [row.distribution for row in rows if row.distribution]
    if not owners:
        return "take one of them out of PJRT_NAMES_AND_LIBRARY_PATHS"
    return (
        f"choose with JAX_PLATFORMS={name}@{owners[0]} (or @{owners[-1]}), block one with "
        f"PLUGRT_PLUGINS_BLOCK={owners[-1]}, or uninstall one"
    )
