"""Which plugins are installed: reads metadata of distributions, imports and opens nothing.

The scan lists ``*.dist-info`` folders itself and reads only their ``entry_points.txt``:
importing importlib_metadata costs 18 ms, and its scan fails as a whole on one sick folder
(measured, version 10.2). It serves what a folder listing cannot: zip files and eggs.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path

from plugrt.plugins.record import Record, Source, State, normalised

PLUGIN_GROUPS = {source.value: source for source in (Source.ENTRY_POINT, Source.JAX, Source.XLA)}
ALIAS_GROUP = "plugrt.aliases"
"""Entry points of this group say ``alias = plugin``: data, so that no import is needed."""
COMMAND_GROUP = "plugrt.cli"
"""Entry points of this group name objects that add commands (``plugrt_add_commands``)."""

_OURS = tuple(group.encode() for group in (*PLUGIN_GROUPS, ALIAS_GROUP, COMMAND_GROUP))
_VALUE = re.compile(r"([\w.]+)\s*(?::\s*([\w.]+)\s*)?(?:\[.*\]\s*)?")


@dataclass
class Discovered:
    """What a scan found: candidates, aliases (alias to plugin names), and command providers."""

    records: list[Record] = field(default_factory=list)
    aliases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    commands: list[Record] = field(default_factory=list)


@dataclass(frozen=True)
class _Metadata:
    """One distribution: its name and version as the folder's name says, and where it is."""

    name: str
    version: str
    folder: str
    text: str = ""
    fault: str = ""


def discover(path: Sequence[str] | None = None) -> Discovered:
    """Returns every candidate that is installed on ``path`` (``sys.path`` if None)."""
    found = Discovered()
    entries = list(sys.path) if path is None else list(path)
    for metadata in _distributions(entries):
        _read_entry_points(metadata, found)
    for group in ("jax_plugins", "xla_plugins"):
        _add_namespace_modules(group, entries, found)
    return found


# --- distributions ----------------------------------------------------------------------------


def _distributions(entries: Iterable[str]) -> Iterator[_Metadata]:
    """Yields the distributions that have entry points of ours, or that cannot be read.

    As for importers, the first distribution of a name on the path hides later ones: an editable
    install is found twice, by its dist-info and by the egg-info beside its sources.
    """
    seen: set[str] = set()
    for entry in entries:
        for metadata in _in_folder(entry or os.curdir):
            key = normalised(metadata.name)
            if key not in seen and (metadata.fault or metadata.text):
                yield metadata
            seen.add(key)


def _in_folder(entry: str) -> Iterator[_Metadata]:
    try:
        names = sorted(n for n in os.listdir(entry) if n.endswith((".dist-info", ".egg-info")))
    except NotADirectoryError:
        yield from _in_archive(entry)
        return
    except OSError:
        return  # a path entry that does not exist is no fault
    for name in names:
        stem, _, _ = name.rpartition(".")
        distribution, _, version = stem.partition("-")
        folder = os.path.join(entry, name)
        text, fault = _read_ours(os.path.join(folder, "entry_points.txt"))
        yield _Metadata(distribution.replace("_", "-"), version, folder, text, fault)


def _read_ours(file: str) -> tuple[str, str]:
    """Returns the text of an entry_points.txt if it has a group of ours, and what is wrong."""
    try:
        with open(file, "rb", buffering=0) as stream:
            content = stream.read()
    except (FileNotFoundError, NotADirectoryError):
        return "", ""
    except OSError as error:
        return "", f"its entry_points.txt cannot be read: {error.strerror}"
    if not any(group in content for group in _OURS):
        return "", ""
    try:
        return content.decode(), ""
    except UnicodeDecodeError as error:
        return "", f"its entry_points.txt is not UTF-8: {error.reason} at byte {error.start}"


def _in_archive(entry: str) -> Iterator[_Metadata]:
    """Yields the distributions inside a zip file or an egg on the path."""
    import importlib_metadata

    for found in importlib_metadata.distributions(path=[entry]):
        name, version, text, fault = entry, "", "", ""
        try:
            name, version = found.metadata["Name"], found.version
            text = found.read_text("entry_points.txt") or ""
        except Exception as error:  # noqa: BLE001 a sick distribution becomes a row that says so
            fault = f"its metadata cannot be read: {type(error).__name__}: {error}"
        yield _Metadata(name, version, entry, text, fault)


# --- entry points -----------------------------------------------------------------------------


def _read_entry_points(metadata: _Metadata, found: Discovered) -> None:
    if metadata.fault:
        found.records.append(_sick(metadata, metadata.name, "", metadata.fault))
        found.records[-1].named = False
        return
    version = metadata.version or _version_in(metadata.folder)
    for group, name, value in _parse(metadata.text):
        if group == ALIAS_GROUP:
            found.aliases[name] = (*found.aliases.get(name, ()), value)
            continue
        if group not in PLUGIN_GROUPS and group != COMMAND_GROUP:
            continue
        if not name or not _VALUE.fullmatch(value):
            fault = f"the entry point {name!r} = {value!r} of the group {group} is malformed"
            found.records.append(_sick(metadata, name or metadata.name, value, fault))
            continue
        source = PLUGIN_GROUPS.get(group, Source.ENTRY_POINT)
        record = Record(name, source, metadata.name, version, value, metadata.folder)
        if group == COMMAND_GROUP:
            found.commands.append(record)
            continue
        if source.rank > Source.ENTRY_POINT.rank:
            record.name, record.aliases = _names_of_jax_plugin(name)
        found.records.append(record)


def _parse(text: str) -> Iterator[tuple[str, str, str]]:
    """Yields (group, name, value) of each entry; a line without ``=`` has an empty value."""
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif line and line[0] not in "#;":
            name, _, value = line.partition("=")
            yield group, name.strip(), value.strip()


def _sick(metadata: _Metadata, name: str, value: str, fault: str) -> Record:
    record = Record(name, Source.ENTRY_POINT, metadata.name, metadata.version, value,
                    metadata.folder)  # fmt: skip
    record.became(State.BROKEN, fault, f"pip install --force-reinstall {metadata.name}")
    return record


def _version_in(folder: str) -> str:
    """Returns the version in the PKG-INFO of an egg-info folder, whose name may lack it."""
    try:
        text = Path(folder, "PKG-INFO").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.search(r"^Version:\s*(\S+)", text, re.MULTILINE)
    return found[1] if found else ""


# --- modules made for JAX ---------------------------------------------------------------------


def _names_of_jax_plugin(name: str) -> tuple[str, tuple[str, ...]]:
    """Returns the name of a plugin made for JAX, and others that it may be asked for by.

    Its real name is known only to its ``initialize()``, so that of the entry point serves, less
    the words for the packaging: ``xla_cpu_pjrt`` is ``xla_cpu``, and ``xla_chip12`` may be asked
    for as ``chip``.
    """
    short = re.sub(r"_(pjrt|plugin|pjrt_plugin)$", "", name)
    bare = re.sub(r"\d+$", "", short.removeprefix("xla_"))
    # "cpu" is no alias: whoever asks for cpu means the cpu plugin, or wants to hear that it
    # is not installed.
    others = {name, short.removeprefix("xla_"), bare} - {short, "cpu", ""}
    return short, tuple(sorted(others))


def _add_namespace_modules(group: str, entries: Sequence[str], found: Discovered) -> None:
    """Adds modules of the namespace package ``group`` that no entry point names."""
    spec = PathFinder.find_spec(group, [e or os.curdir for e in entries])
    if spec is None:
        return
    known = {r.value for r in found.records if r.source == group}
    for folder in spec.submodule_search_locations or ():
        for name in _modules_in(folder):
            module = f"{group}.{name}"
            if module in known:
                continue
            known.add(module)
            short, aliases = _names_of_jax_plugin(name)
            found.records.append(
                Record(short, Source(group), value=module, location=os.path.join(folder, name),
                       aliases=aliases)
            )  # fmt: skip


def _modules_in(folder: str) -> list[str]:
    """Returns the names of the modules in a folder; importing none of them."""
    import pkgutil

    return sorted(info.name for info in pkgutil.iter_modules([folder]))
