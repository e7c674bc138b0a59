"""Metadata of installed distributions: names, versions, files and entry points, read from files.

Folders of ``*.dist-info`` and ``*.egg-info`` are listed here, in about a millisecond.
importlib_metadata costs 13 to 18 ms to import, and its scan for entry points fails entirely on one
damaged folder (importlib_metadata 10.2). It is imported only for distributions that a folder
listing cannot show: zip files, eggs, and importers that provide distributions.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from plugrt.base import files

if TYPE_CHECKING:
    from pathlib import Path

_SUFFIXES = (".dist-info", ".egg-info")


class Distribution(NamedTuple):
    """An installed distribution; ``location`` is its metadata folder, or the archive it is in.

    ``foreign`` is importlib_metadata's object, for one that is not in a folder; ``fault`` is why
    nothing else is known of it.
    """

    name: str
    version: str
    location: str
    foreign: Any = None
    fault: str = ""

    def read(self, file: str) -> bytes:
        """Returns the content of a file of its metadata; empty if there is no such file.

        Raises `OSError` where the file cannot be read.
        """
        if self.foreign is not None:
            return (self.foreign.read_text(file) or "").encode()
        try:
            return files.read_bytes(os.path.join(self.location, file))
        except (FileNotFoundError, NotADirectoryError):
            return b""

    def files(self, endings: tuple[str, ...] = ("",)) -> list[Path]:
        """Returns the files that it installed, sorted; empty where no list of them can be read.

        Only those whose names have one of the endings: a path costs 10 µs, and lists are long.
        """
        import csv
        from pathlib import Path

        try:
            record = b"" if self.foreign is not None else self.read("RECORD")
            if not record:
                return self._files_of_an_egg(endings)
            root = Path(self.location).parent
            rows = csv.reader(record.decode(errors="replace").splitlines())
            return sorted(root / row[0] for row in rows if row and row[0].endswith(endings))
        except (OSError, csv.Error):
            return []

    def _files_of_an_egg(self, endings: tuple[str, ...]) -> list[Path]:
        foreign = self.foreign
        if foreign is None:
            if not self.location.endswith(".egg-info"):
                return []
            import importlib_metadata

            foreign = importlib_metadata.Distribution.at(self.location)
        from pathlib import Path

        found = (file for file in foreign.files or () if file.name.endswith(endings))
        return sorted(Path(str(file.locate())) for file in found)


def normalise_name(distribution: str) -> str:
    """Returns the normalised name of a distribution (PEP 503)."""
    name = distribution.lower().replace("_", "-").replace(".", "-")
    while "--" in name:
        name = name.replace("--", "-")
    return name


def installed(path: Sequence[str] | None = None) -> Iterator[Distribution]:
    """Yields the distributions on ``path`` (``sys.path`` if None).

    As for importers, the first distribution of a name on the path hides later ones: an editable
    install is found twice, by its dist-info and by the egg-info beside its sources.
    """
    seen: set[str] = set()
    for distribution in _iterate(path):
        key = normalise_name(distribution.name)
        if key not in seen:
            seen.add(key)
            yield distribution


def find(name: str, path: Sequence[str] | None = None) -> Distribution | None:
    """Returns the distribution of that name, None where it is not installed."""
    key = normalise_name(name)
    return next((d for d in installed(path) if normalise_name(d.name) == key), None)


def find_owner(folder: str, module: str) -> Distribution | None:
    """Returns the distribution in ``folder`` whose list of files has a module, by its path there.

    Such a list is searched as text: to parse all of them costs 100 ms.
    """
    listed = re.compile(rb'^"?%s(/|\.py)' % re.escape(module).encode(), re.MULTILINE)
    for distribution in installed([folder]):
        try:
            if distribution.foreign is None and listed.search(distribution.read("RECORD")):
                return distribution
        except OSError:
            continue
    return None


def extras(name: str) -> list[str]:
    """Returns the extras of a distribution; none where it is not installed."""
    found = find(name)
    try:
        metadata = found.read("METADATA") if found else b""
    except OSError:
        return []
    return re.findall(r"^Provides-Extra:\s*(\S+)", metadata.decode(errors="replace"), re.MULTILINE)


def version(name: str) -> str | None:
    """Returns the version of a distribution, None where it is not installed."""
    found = find(name)
    return found.version if found else None


def at(location: str) -> Distribution | None:
    """Returns the distribution whose metadata is at ``location``, None if there is none."""
    if not os.path.isdir(location):
        return next(_ask_importers([location]), None) if os.path.isfile(location) else None
    return _read_folder(os.path.dirname(location), os.path.basename(location))


def _iterate(path: Sequence[str] | None) -> Iterator[Distribution]:
    for entry in sys.path if path is None else path:
        folder = entry or os.curdir
        try:
            names = sorted(n for n in os.listdir(folder) if n.endswith(_SUFFIXES))
        except NotADirectoryError:
            if os.path.isfile(folder):  # reading a FIFO or a device could block
                yield from _ask_importers([folder])
            continue
        except OSError:
            continue  # nonexistent path entries are common
        if folder.endswith(".egg"):
            yield from _ask_importers([folder])
        for name in names:
            yield _read_folder(folder, name)
    if path is None and any(map(_has_distributions, sys.meta_path)):
        yield from _ask_importers(sys.path)


def _read_folder(folder: str, name: str) -> Distribution:
    """Returns the distribution of a metadata folder, from the folder's name if possible."""
    location = os.path.join(folder, name)
    stem, _, suffix = name.rpartition(".")
    distribution, _, version = stem.partition("-")
    if suffix == "egg-info":
        version = version.partition("-")[0]  # the rest is the version of Python
    return Distribution(
        distribution.replace("_", "-"), version or _version_in(location), location
    )  # fmt: skip


def _version_in(location: str) -> str:
    """Returns the version in the metadata of a folder whose name lacks it."""
    for file in ("METADATA", "PKG-INFO"):
        try:
            text = files.read_text(os.path.join(location, file), errors="replace")
        except OSError:
            continue
        found = re.search(r"^Version:\s*(\S+)", text, re.MULTILINE)
        if found:
            return found[1]
    return ""


def _has_distributions(finder: object) -> bool:
    """Whether an importer of ``sys.meta_path`` provides distributions of its own."""
    cls = finder if isinstance(finder, type) else type(finder)
    ours = cls.__module__.split(".")[0] in ("importlib_metadata", "_frozen_importlib_external")
    return hasattr(finder, "find_distributions") and not ours


def _ask_importers(entries: Iterable[str]) -> Iterator[Distribution]:
    """Yields the distributions that importlib_metadata finds in archives and through importers."""
    import importlib_metadata

    entries = list(entries)
    for found in importlib_metadata.distributions(path=entries):
        name, version, fault = entries[0], "", ""
        try:
            name, version = found.metadata["Name"], found.version
        except Exception as error:  # noqa: BLE001 a damaged distribution becomes a row with the fault
            fault = f"its metadata cannot be read: {type(error).__name__}: {error}"
        yield Distribution(name, version, entries[0], found, fault)
