"""Finds installed plugins in distributions' metadata; imports and opens nothing."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from importlib.machinery import PathFinder

from plugrt.plugins.packages import distributions
from plugrt.plugins.packages.distributions import Distribution
from plugrt.plugins.record import Record, Source, State, sort_key

PLUGIN_GROUPS = {
    "plugrt.plugins": Source.ENTRY_POINT,
    "jax_plugins": Source.JAX,
    "xla_plugins": Source.XLA,
    "torch_xla.plugins": Source.TORCH,
}
ALIAS_GROUP = "plugrt.aliases"
"""Entry points of this group have the form ``alias = plugin``; they are never imported."""
HOOK_GROUPS = {
    "plugrt.cli": "plugrt_add_commands",
    "plugrt.clusters": "plugrt_cluster_environments",
    "plugrt.conformance": "plugrt_conformance_checks",
    "plugrt.coordination": "plugrt_coordination",
    "plugrt.doctor": "plugrt_doctor_facts",
    "plugrt.isolation": "plugrt_start_isolated",
    "plugrt.linear_algebra": "plugrt_linear_algebra",
    "plugrt.lowerings": "plugrt_lowerings",
    "plugrt.rewriters": "plugrt_program_rewriters",
}
"""The groups whose entry points name objects that implement a hook, and that hook."""

_OURS = tuple(group.encode() for group in (*PLUGIN_GROUPS, ALIAS_GROUP, *HOOK_GROUPS))
_VALUE = re.compile(r"([\w.]+)\s*(?::\s*([\w.]+)\s*)?(?:\[.*\]\s*)?")


class Discovered:
    """The result of a scan: candidates, aliases (alias to plugin names), and objects with hooks."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.aliases: dict[str, tuple[str, ...]] = {}
        self.hooks: dict[str, list[Record]] = {}
        """Group of `HOOK_GROUPS` to its entry points, in the order of distributions."""


def discover(path: Sequence[str] | None = None) -> Discovered:
    """Returns every candidate that is installed on ``path`` (``sys.path`` if None)."""
    found = Discovered()
    for distribution in distributions.installed(path):
        _read_entry_points(distribution, found)
    for group in (Source.JAX, Source.XLA):
        _add_namespace_modules(group, list(sys.path) if path is None else path, found)
    found.records = _merge_groups(found.records)
    return found


def _merge_groups(records: Sequence[Record]) -> list[Record]:
    """Drops the records of plugins that the same package also offers in another group.

    A package for several programs has one entry point for each, of the same name: the one with
    precedence is kept, and the others do not count as duplicates.
    """
    best: dict[tuple[str, str], Record] = {}
    for record in records:
        if record.distribution and record.named:
            known = best.setdefault((record.name, record.distribution), record)
            if sort_key(record) < sort_key(known):
                best[record.name, record.distribution] = record

    def is_repeated(record: Record) -> bool:
        chosen = best.get((record.name, record.distribution), record)
        return chosen.source is not record.source

    return [record for record in records if not is_repeated(record)]


def _read_own_groups(distribution: Distribution) -> tuple[str, str]:
    """Returns (text of entry_points.txt if it has one of plugrt's groups, fault)."""
    try:
        content = distribution.read("entry_points.txt")
    except OSError as error:
        return "", f"its entry_points.txt cannot be read: {error.strerror}"
    plain = content.replace(b"\0", b"")  # some editors write UTF-16
    if not any(map(plain.__contains__, _OURS)):
        return "", distribution.fault
    if plain != content:
        return "", "its entry_points.txt is not UTF-8: it has bytes that are zero"
    try:
        text = content.decode().removeprefix("\ufeff")  # some editors write a mark first
        return text, distribution.fault
    except UnicodeDecodeError as error:
        return "", f"its entry_points.txt is not UTF-8: {error.reason} at byte {error.start}"


def _read_entry_points(distribution: Distribution, found: Discovered) -> None:
    text, fault = _read_own_groups(distribution)
    if fault:
        found.records.append(_broken_record(distribution, distribution.name, "", fault))
        found.records[-1].named = False
        return
    for group, name, value in _parse(text):
        if group == ALIAS_GROUP:
            found.aliases[name] = (*found.aliases.get(name, ()), value)
            continue
        if group.startswith("[") and any(map(group.encode().__contains__, _OURS)):
            fault = f"its entry_points.txt has the header {group!r}, which does not end with ']'"
            found.records.append(_broken_record(distribution, distribution.name, "", fault))
            found.records[-1].named = False
        if group not in PLUGIN_GROUPS and group not in HOOK_GROUPS:
            continue
        if not name or not _VALUE.fullmatch(value):
            fault = f"the entry point {name!r} = {value!r} of the group {group} is malformed"
            found.records.append(
                _broken_record(distribution, name or distribution.name, value, fault)
            )
            continue
        source = PLUGIN_GROUPS.get(group, Source.ENTRY_POINT)
        record = Record(name, source, distribution.name, distribution.version, value,
                        distribution.location)  # fmt: skip
        if group in HOOK_GROUPS:
            found.hooks.setdefault(group, []).append(record)
            continue
        if source.rank > Source.ENTRY_POINT.rank:
            record.name, record.aliases = names_of_foreign_plugin(name)
        found.records.append(record)


def entry_points(distribution: Distribution, group: str) -> Iterator[tuple[str, str]]:
    """Yields (name, value) of a distribution's entry points in a group; none where unreadable."""
    try:
        text = distribution.read("entry_points.txt").decode(errors="replace")
    except OSError:
        return
    for found, name, value in _parse(text):
        if found == group:
            yield name, value


def _parse(text: str) -> Iterator[tuple[str, str, str]]:
    """Yields (group, name, value) of each entry; a line without ``=`` has an empty value.

    For a header that is not closed, yields only that line: the entries after it have no group.
    """
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            closed = line.endswith("]")
            group = line[1:-1].strip() if closed else ""
            if not closed:
                yield line, "", ""
        elif line and line[0] not in "#;":
            name, _, value = line.partition("=")
            yield group, name.strip(), value.strip()


def _broken_record(distribution: Distribution, name: str, value: str, fault: str) -> Record:
    record = Record(name, Source.ENTRY_POINT, distribution.name, distribution.version, value,
                    distribution.location)  # fmt: skip
    record.set_state(State.BROKEN, fault, f"pip install --force-reinstall {distribution.name}")
    return record


def names_of_foreign_plugin(name: str) -> tuple[str, tuple[str, ...]]:
    """Returns the name of a plugin made for JAX or PyTorch, and its other possible names.

    Only its code knows its real name, so the entry point's is used, without packaging words:
    ``xla_cpu_pjrt`` is ``xla_cpu``, ``pjrt_plugin_tt`` is ``tt``, and ``xla_chip12`` may also be
    selected as ``chip``.
    """
    short = re.sub(r"^(pjrt_plugin|jax_plugin|pjrt)_|_(pjrt|plugin|pjrt_plugin)$", "", name)
    bare = re.sub(r"\d+$", "", short.removeprefix("xla_"))
    # "cpu" is no alias: a request for cpu means the cpu plugin, also where that is not installed.
    others = {name, short.removeprefix("xla_"), bare} - {short, "cpu", ""}
    return short, tuple(sorted(others))


def _add_namespace_modules(source: Source, entries: Sequence[str], found: Discovered) -> None:
    """Adds modules that no entry point names, in the namespace package with a group's name."""
    spec = PathFinder.find_spec(source, [e or os.curdir for e in entries])
    if spec is None:
        return
    known = {r.value for r in found.records if r.source == source}
    for folder in spec.submodule_search_locations or ():
        for module in _modules_in(folder, f"{source}.", known):
            name = module.removeprefix(f"{source}.")
            known.add(module)
            short, aliases = names_of_foreign_plugin(name)
            owner = distributions.find_owner(os.path.dirname(folder), f"{source}/{name}")
            place = owner.location if owner else os.path.join(folder, name)
            found.records.append(
                Record(short, source, owner.name if owner else "", owner.version if owner else "",
                       module, place, aliases=aliases)
            )  # fmt: skip


def _modules_in(folder: str, prefix: str, known: Set[str]) -> list[str]:
    """Returns the modules in a folder that are not ``known``, each with a prefix; imports none."""
    with suppress(OSError):  # archives cannot be listed this way
        names = {name.partition(".")[0] for name in os.listdir(folder)} - {"__pycache__"}
        if {prefix + name for name in names} <= known:
            return []
    import pkgutil  # not needed by every start

    return sorted({info.name for info in pkgutil.iter_modules([folder], prefix)} - known)
