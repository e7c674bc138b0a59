"""The PJRT library among a package's files, and its dependencies; none of its code runs."""

from __future__ import annotations

import mmap
from pathlib import Path

from plugrt.errors import PluginIncompatible
from plugrt.plugins import distributions
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
    """Whether the symbol's name is in the file: a mapped search reads 250 MB in about 0.1 s."""
    if file.stat().st_size == 0:
        return False
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(b"GetPjrtApi") >= 0
