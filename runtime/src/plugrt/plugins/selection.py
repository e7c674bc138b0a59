"""Which candidates to start, in which order: pure functions of the settings and the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from plugrt.errors import DuplicatePlugin, PluginError, UnknownPlatform
from plugrt.plugins import vendors
from plugrt.plugins.record import Record, Source, State, normalised

MADE_FOR_JAX = (Source.JAX, Source.XLA)


@dataclass(frozen=True)
class Request:
    """What the user asked for: names in order, and the setting that says so.

    No names mean an automatic choice. An ``exclusive`` request admits no other platform.
    """

    names: tuple[str, ...] = ()
    setting: str = ""
    exclusive: bool = False

    def __str__(self) -> str:
        return self.setting or "JAX_PLATFORMS unset"


def parse_request(platforms: str | None, platform_name: str | None = None) -> Request:
    """Returns the request that JAX_PLATFORMS and JAX_PLATFORM_NAME make.

    Spaces, empty items and repetitions are ignored; the first name is the default.
    """
    names = _names(platforms)
    if names:
        return Request(names, f"JAX_PLATFORMS={platforms}", exclusive=True)
    names = _names(platform_name)
    if names:
        return Request(names[:1], f"JAX_PLATFORM_NAME={platform_name}")
    return Request()


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(str.strip, (text or "").split(",")))))


# --- what the table as a whole says -----------------------------------------------------------


def mark_blocked(
    records: Iterable[Record], allow: Sequence[str] | None, block: Sequence[str]
) -> None:
    """Marks the candidates that PLUGRT_PLUGINS_ALLOW or PLUGRT_PLUGINS_BLOCK takes out of use."""
    for record in records:
        ids = {record.name, normalised(record.distribution)}
        blocked = {normalised(b) for b in block} | set(block)
        allowed = None if allow is None else {normalised(a) for a in allow} | set(allow)
        if ids & blocked:
            reason, cure = "blocked by PLUGRT_PLUGINS_BLOCK", "take it out of PLUGRT_PLUGINS_BLOCK"
        elif allowed is not None and not ids & allowed:
            reason, cure = "not in PLUGRT_PLUGINS_ALLOW", "add it to PLUGRT_PLUGINS_ALLOW"
        else:
            continue
        record.blocked = True
        record.became(State.NOT_SELECTED, reason, cure)


def mark_duplicates(records: Sequence[Record]) -> None:
    """Marks candidates of one name: a better source hides the rest, equal sources conflict."""
    by_name: dict[str, list[Record]] = {}
    for record in records:
        if not record.blocked and record.state in (State.FOUND, State.LOADED):
            by_name.setdefault(record.name, []).append(record)
    for name, same in by_name.items():
        best = min(r.source.rank for r in same)
        equal = [r for r in same if r.source.rank == best]
        for record in same:
            if record.source.rank > best:
                record.became(State.DUPLICATE, f"hidden by {equal[0].who} ({equal[0].source})")
        if len(equal) > 1 and not _one_package(equal):
            for record in equal:
                record.became(State.DUPLICATE, _conflict(name, equal), _choice(name, equal))
        elif len(equal) > 1:
            for record in equal[1:]:
                record.became(State.DUPLICATE, f"hidden by {equal[0].value} of the same package")


def _one_package(records: Sequence[Record]) -> bool:
    """Whether one distribution offers a plugin by several doors (both groups made for JAX)."""
    return bool(records[0].distribution) and len({r.distribution for r in records}) == 1


def _conflict(name: str, records: Sequence[Record]) -> str:
    owners = " and ".join(r.value if r.source is Source.ENVIRONMENT else r.who for r in records)
    return f"{name!r} is provided by {owners}"


def _choice(name: str, records: Sequence[Record]) -> str:
    owners = [r.distribution for r in records if r.distribution]
    if not owners:
        return "take one of them out of PJRT_NAMES_AND_LIBRARY_PATHS"
    return (
        f"choose with JAX_PLATFORMS={name}@{owners[0]} (or @{owners[-1]}), block one with "
        f"PLUGRT_PLUGINS_BLOCK={owners[-1]}, or uninstall one"
    )


def is_conflict(record: Record) -> bool:
    """Whether the candidate is one of several between which the user must choose."""
    return record.state is State.DUPLICATE and bool(record.cure)


# --- one name ---------------------------------------------------------------------------------


def candidates(
    name: str, records: Sequence[Record], aliases: Mapping[str, Sequence[str]], asked_by: str
) -> list[Record]:
    """Returns the candidates that ``name`` means: one, or for an alias those to try in order.

    ``asked_by`` says who asks, for the errors: `UnknownPlatform` with a suggestion,
    `DuplicatePlugin` with the ways to choose, `PluginError` if it is blocked.
    """
    usable = [r for r in records if not r.blocked]
    named = _named(name, usable, asked_by)
    if named is not None:
        return [named]
    found = []
    for meant in aliases.get(name, ()):
        one = _named(meant, usable, asked_by)
        found += [one] if one else _answering(meant, usable)
    if found:
        return found
    for match in (_answering, _on_platform):
        found = match(name, usable)
        if found:
            return found
    for record in records:
        if record.blocked and record.answers_to(name):
            raise PluginError(f"{asked_by}: {record} is {record.reason}; {record.cure}")
    raise UnknownPlatform(unknown(name, usable, aliases, asked_by))


def _named(name: str, records: Sequence[Record], asked_by: str) -> Record | None:
    """Returns the candidate of exactly that name, or ``name@distribution``."""
    plain, at, owner = name.partition("@")
    same = [r for r in records if r.name == plain]
    if at:
        same = [r for r in same if normalised(r.distribution) == normalised(owner)]
        return same[0] if same else None
    conflicting = [r for r in same if is_conflict(r)]
    if conflicting:
        raise DuplicatePlugin(f"{asked_by}: {conflicting[0].reason}; {conflicting[0].cure}")
    same = [r for r in same if r.state is not State.DUPLICATE]
    return same[0] if same else None


def _answering(name: str, records: Sequence[Record]) -> list[Record]:
    return [r for r in records if r.answers_to(name) and r.state is not State.DUPLICATE][:1]


def _on_platform(name: str, records: Sequence[Record]) -> list[Record]:
    """Returns a started candidate whose client reports that platform."""
    return [r for r in records if r.client is not None and r.platform == name][:1]


def unknown(
    name: str, records: Sequence[Record], aliases: Mapping[str, Sequence[str]], asked_by: str
) -> str:
    """Returns the message that says that no plugin has that name, and what to do."""
    names = sorted({r.name for r in records if r.named})
    known = ", ".join(names) or "none"
    close = get_close_matches(name.lower(), {*names, *aliases}, n=1, cutoff=0.6)
    if name in vendors.INSTALL:
        cure = f"to get it: {vendors.install(name)}"
    elif close:
        cure = f"did you mean {close[0]!r}?"
    else:
        cure = f"install a plugin that provides {name!r}, or choose among those installed"
    unread = "".join(f"; {r.reason}" for r in records if not r.named)
    return (
        f"{asked_by} asks for {name!r}, but no installed plugin has that name; {cure} "
        f"(installed: {known}; `plugrt doctor` explains each){unread}"
    )


# --- no name ----------------------------------------------------------------------------------


def automatic(records: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """Returns the candidates of an automatic choice: those to rank, and those for want of any.

    The latter are plugins made for JAX: what their names and priorities are is known only once
    their code has run, so that they are not started where another backend can be.
    """
    usable = [
        r for r in records
        if not r.blocked and r.state is not State.DUPLICATE and r.named
    ]  # fmt: skip
    first = [r for r in usable if r.source not in MADE_FOR_JAX]
    return first, [r for r in usable if r.source in MADE_FOR_JAX]


def ranked(records: Iterable[Record]) -> list[Record]:
    """Returns loaded candidates, the highest priority first, equal ones by name."""
    return sorted(records, key=lambda r: (-(r.priority or 0), r.name))


def malformed(records: Iterable[Record]) -> str:
    """Returns what is wrong with PJRT_NAMES_AND_LIBRARY_PATHS if an item is malformed."""
    for record in records:
        if record.source is Source.ENVIRONMENT and not record.named:
            return record.reason
    return ""
