"""Finds PJRT libraries among packages' files, without running their code or opening them."""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from plugrt.errors import PluginIncompatible
from plugrt.plugins import distributions
from plugrt.plugins.distributions import Distribution
from plugrt.plugins.record import Record

_SUFFIXES = (".so", ".dylib", ".dll")


def find_library(record: Record) -> str:
    """Returns the one PJRT library of the distribution, or of the module's folder.

    Raises `PluginIncompatible` if there is none or more than one.
    """
    files = [f for f in _files(record) if f.name.endswith(_SUFFIXES) and f.is_file()]
    found = files if len(files) == 1 else [f for f in files if _exports_pjrt(f)]
    if len(found) == 1:
        return str(found[0])
    what = f"has no file that exports GetPjrtApi (of {len(files)} libraries)"
    if found:
        what = f"has several libraries that export GetPjrtApi: {', '.join(map(str, found))}"
    raise PluginIncompatible(
        f"{record}: it {what}; name the library yourself: "
        f"PJRT_NAMES_AND_LIBRARY_PATHS={record.name}:/path/to/library.so"
    )


def find_unannounced(
    announced: Collection[str], libraries: Collection[str], path: Sequence[str] | None = None
) -> Iterator[tuple[Distribution, Path]]:
    """Yields the PJRT libraries of installed packages that offer no plugin, with their packages.

    ``announced`` are the distributions that do. A library with the file name of one in
    ``libraries``, of known plugins, is left out: that plugin may use it.
    """
    names = {Path(library).name for library in libraries}
    for distribution in distributions.installed(path):
        if distribution.name in announced:
            continue
        for file in distribution.files():
            # Python's extension modules are many, and none of them.
            module = ".cpython-" in file.name or file.name.endswith(".abi3.so")
            if not file.name.endswith(_SUFFIXES) or module or file.name in names:
                continue
            if file.is_file() and _exports_pjrt(file):
                yield distribution, file


def needed_libraries(record: Record) -> tuple[str, ...]:
    """Returns the shared libraries that the record's PJRT library needs, from its file; opens none.

    Empty where there is no one library, or where it cannot be read.
    """
    from plugrt.capi.loading.elf import NotElf, read_elf

    try:
        path = record.library or (find_library(record) if record.made_for_others else "")
        return read_elf(path).needed if path else ()
    except (PluginIncompatible, NotElf, OSError):
        return ()


def _files(record: Record) -> list[Path]:
    """Returns the files of the record's distribution; without one, those beside its module."""
    if record.distribution:
        distribution = distributions.at(record.location)
        listed = distribution.files() if distribution else []
        if listed:
            return listed
        root = Path(record.location).parent.joinpath(*record.value.split("."))
    else:
        root = Path(record.location)
    return sorted(root.rglob("*")) if root.is_dir() else []


def _exports_pjrt(file: Path) -> bool:
    """Whether a library defines GetPjrtApi; of other formats than ELF, whether it has the name."""
    from plugrt.capi.loading.elf import NotElf, read_elf

    if file.stat().st_size == 0:
        return False
    try:
        return read_elf(str(file)).exports_api
    except NotElf:
        pass
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(b"GetPjrtApi") >= 0
