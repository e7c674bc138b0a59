"""`compare`: the differences between two versions of the PJRT C API, and which break callers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from plugrt.errors import InvalidArgument
from plugrt_sdk.abi.api import Api, Field


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. ``breaks``: a program built for one version does not work with the other."""

    kind: str
    """``added``, ``inserted``, ``removed``, ``moved``, ``renamed``, ``type``, ``value`` or
    ``version``."""
    what: str
    """``function``, ``callback``, ``struct``, ``field``, ``enumeration``, ``enumerator`` or
    ``version``."""
    name: str
    """What changed; a field or an enumerator after its type and a dot."""
    text: str
    breaks: bool


def compare(old: Api, new: Api) -> list[Change]:
    """Returns all differences: functions in table order, then structs, then enumerations.

    A struct that one side keeps opaque is not compared: newer versions describe some handles.
    Raises `InvalidArgument` for two different tables.
    """
    if old.table != new.table:
        raise InvalidArgument(
            f"{old.source} is about {old.table} and {new.source} about {new.table}: there is "
            "nothing to compare"
        )
    old, new = old.restrict(new.opaque), new.restrict(old.opaque)
    changes = [
        *_sequence("function", old.table, old.functions, new.functions),
        *_signatures(old, new),
        *_structs(old, new),
        *_enums(old, new),
    ]
    return [*_version(old, new, changes), *changes]


def _version(old: Api, new: Api, changes: Sequence[Change]) -> Iterator[Change]:
    name = "PJRT_API" if old.table == "PJRT_Api" else old.table
    told = f"from {old.number} to {new.number}"
    if not (old.version and new.version):
        return  # plugrt's declarations of an extension state none
    if new.version != old.version:
        went_back = new.version < old.version
        text = f"{told}: it goes back" if went_back else told
        yield Change("version", "version", name, text, went_back)
    elif changes:
        text = f"the version is {old.number} in both: it was not raised"
        yield Change("version", "version", name, text, True)


def _sequence(what: str, where: str, old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    """Yields removed, moved and added items.

    An inserted or removed item shifts all items after it. These are not listed: the text of the
    inserted or removed item gives their number.
    """
    kept_old = [name for name in old if name in new]
    kept_new = [name for name in new if name in old]
    stay = _longest_in_order(kept_old, kept_new)
    for place, name in enumerate(old):
        if name not in new:
            behind = sum(other in new for other in old[place + 1 :])
            yield Change(
                "removed",
                _kind(what, name),
                _name(what, where, name),
                _shift(place, behind, "was"),
                True,
            )
        elif name not in stay:
            text = f"from place {place + 1} to {new.index(name) + 1}"
            yield Change("moved", _kind(what, name), _name(what, where, name), text, True)
    last = max((new.index(name) for name in kept_new), default=-1)
    for place, name in enumerate(new):
        if name not in old:
            behind = sum(other in old for other in new[place + 1 :])
            kind = "inserted" if place < last else "added"
            text = _shift(place, behind, "is") if place < last else f"at place {place + 1}"
            yield Change(kind, _kind(what, name), _name(what, where, name), text, place < last)


def _kind(what: str, name: str) -> str:
    return "field" if "." in name else what


def _name(what: str, where: str, name: str) -> str:
    return name if what == "function" or "." in name else f"{where}.{name}"


def _shift(place: int, behind: int, verb: str) -> str:
    rest = f"; the {behind} behind it have another place" if behind else ""
    return f"{verb} at place {place + 1}{rest}"


def _longest_in_order(old: Sequence[str], new: Sequence[str]) -> set[str]:
    """Returns the most items that are in the same order in both; the others have moved."""
    places = {name: place for place, name in enumerate(new)}
    best: list[tuple[int, int]] = []  # (length, place of the one before) for each of old
    for i, name in enumerate(old):
        before = [(best[j][0], j) for j in range(i) if places[old[j]] < places[name]]
        length, previous = max(before, default=(0, -1))
        best.append((length + 1, previous))
    at = max(range(len(old)), key=lambda i: best[i][0], default=-1)
    found = set()
    while at >= 0:
        found.add(old[at])
        at = best[at][1]
    return found


def _signatures(old: Api, new: Api) -> Iterator[Change]:
    for name, before in old.signatures.items():
        after = new.signatures.get(name, before)
        if before != after and (name in old.functions) == (name in new.functions):
            what = _kind("function", name) if name in old.functions else "callback"
            yield Change("type", what, name, f"from {before} to {after}", True)


def _structs(old: Api, new: Api) -> Iterator[Change]:
    for name, fields in old.structs.items():
        if name in new.structs:
            yield from _fields(name, fields, new.structs[name], {*old.enums, *new.enums})
        elif name.removesuffix("_Args") not in old.functions:
            yield Change("removed", "struct", name, f"had {len(fields)} fields", True)
    for name, fields in new.structs.items():
        if name not in old.structs and name.removesuffix("_Args") not in new.functions:
            yield Change("added", "struct", name, f"has {len(fields)} fields", False)


def _fields(
    struct: str, old: Sequence[Field], new: Sequence[Field], enums: Collection[str]
) -> Iterator[Change]:
    renamed = _find_renamed(old, new)
    before = [renamed.get(field.name, field.name) for field in old]
    for was, name in renamed.items():
        yield Change("renamed", "field", f"{struct}.{was}", f"to {name}", False)
    yield from _sequence("field", struct, before, [field.name for field in new])
    types = {field.name: field.type for field in new}
    for field, name in zip(old, before, strict=True):
        if name in types and _plain(types[name], enums) != _plain(field.type, enums):
            text = f"from {field.type} to {types[name]}"
            yield Change("type", "field", f"{struct}.{name}", text, True)


def _plain(type_text: str, enums: Collection[str]) -> str:
    """Returns the passed type: int for an enumeration, which some headers declare as int."""
    return "int" if type_text in enums else type_text


def _find_renamed(old: Sequence[Field], new: Sequence[Field]) -> dict[str, str]:
    """Returns the fields that have another name at the same place, and the same type."""
    names_old, names_new = {field.name for field in old}, {field.name for field in new}
    return {
        a.name: b.name
        for a, b in zip(old, new, strict=False)
        if a.type == b.type and a.name not in names_new and b.name not in names_old
    }


def _enums(old: Api, new: Api) -> Iterator[Change]:
    for name, values in old.enums.items():
        if name in new.enums:
            yield from _enumerators(name, values, new.enums[name])
        else:
            text = f"had {len(values)} enumerators"
            yield Change("removed", "enumeration", name, text, True)
    for name, values in new.enums.items():
        if name not in old.enums:
            text = f"has {len(values)} enumerators"
            yield Change("added", "enumeration", name, text, False)


def _enumerators(enum: str, old: dict[str, int], new: dict[str, int]) -> Iterator[Change]:
    taken = {value: name for name, value in old.items()}
    others = {value: name for name, value in new.items() if name not in old}
    for name, value in old.items():
        where = f"{enum}.{name}"
        if name not in new and value in others:
            yield Change("renamed", "enumerator", where, f"to {others.pop(value)}", False)
        elif name not in new:
            yield Change("removed", "enumerator", where, f"was {value}", True)
        elif new[name] != value:
            yield Change("value", "enumerator", where, f"from {value} to {new[name]}", True)
    for name, value in new.items():
        if others.get(value) == name:
            used = f", which was {taken[value]}" if value in taken else ""
            text = f"is {value}{used}"
            yield Change("added", "enumerator", f"{enum}.{name}", text, bool(used))
