"""Reads ELF files: machine, needed libraries, and which of those are missing."""

from __future__ import annotations

import os
import platform
import struct
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from plugrt.base.files import open_regular
from plugrt.errors import FileRefused

_MACHINES = {
    "x86_64": ("EM_X86_64", 62),
    "amd64": ("EM_X86_64", 62),
    "aarch64": ("EM_AARCH64", 183),
    "arm64": ("EM_AARCH64", 183),
    "ppc64le": ("EM_PPC64", 21),
    "riscv64": ("EM_RISCV", 243),
    "s390x": ("EM_S390", 22),
}
"""``e_machine`` by Python's name of a machine, as a name and as a number."""
_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")
_MAX_LIBRARIES = 500
_HEADER = struct.Struct("<32x Q Q 6x H H H H 2x")
"""``e_phoff``, ``e_shoff``, ``e_phentsize``, ``e_phnum``, ``e_shentsize``, ``e_shnum``."""
_SEGMENT = struct.Struct("<I 4x Q 16x Q")
"""``p_type``, ``p_offset``, ``p_filesz``."""


class ElfFacts(NamedTuple):
    """``machine`` is ELF's name, such as ``EM_X86_64``; ``needed`` are direct dependencies."""

    machine: str
    bits: int
    shared: bool
    needed: tuple[str, ...]
    search: tuple[str, ...]
    exports_api: bool


class NotElf(Exception):
    """The file is not an ELF file, or is damaged; the message describes the fault."""


def read_elf(path: str) -> ElfFacts:
    """Returns the facts of an ELF file; raises `NotElf` or `OSError`."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.dynamic import DynamicSection
    from elftools.elf.elffile import ELFFile

    with open_regular(path) as stream:
        try:
            elf = ELFFile(stream)
            needed: list[str] = []
            search: list[str] = []
            sections = [*elf.iter_sections()]
            for section in sections:
                if not isinstance(section, DynamicSection):
                    continue
                for tag in section.iter_tags():
                    if tag.entry.d_tag == "DT_NEEDED":
                        needed.append(tag.needed)
                    elif tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
                        found = getattr(tag, tag.entry.d_tag[3:].lower())
                        search += found.split(":")
            symbols = _look_up(sections, "GetPjrtApi")
            exported = any(symbol["st_shndx"] != "SHN_UNDEF" for symbol in symbols)
            origin = os.path.dirname(os.path.realpath(path))
            return ElfFacts(
                machine=str(elf["e_machine"]),
                bits=int(elf.elfclass),
                shared=elf["e_type"] == "ET_DYN",
                needed=tuple(needed),
                search=tuple(
                    p.replace("$ORIGIN", origin).replace("${ORIGIN}", origin) for p in search
                ),
                exports_api=exported,
            )
        except (ELFError, ValueError, KeyError, OverflowError, UnicodeDecodeError) as error:
            raise NotElf(str(error)) from error


def is_for_this_machine(path: str) -> bool:
    """Whether a file begins as a 64-bit ELF file for this machine does; 20 bytes of it are read.

    `read_elf` needs some 40 ms more, most of them for its imports.
    """
    try:
        with open_regular(path) as stream:
            start = stream.read(20)
    except (FileRefused, OSError):
        return False
    kind = b"\x7fELF\x02\x01" if sys.byteorder == "little" else b"\x7fELF\x02\x02"
    number = int.from_bytes(start[18:], sys.byteorder)
    return len(start) == 20 and start.startswith(kind) and number == _get_machine()[1]


def needed_by(path: str) -> tuple[str, ...]:
    """Returns the shared libraries that a library states; empty where it cannot be read."""
    try:
        return read_elf(path).needed
    except (NotElf, OSError):
        return ()


def _look_up(sections: Iterable[Any], name: str) -> Iterable[Any]:
    """Returns the dynamic symbols of that name, by the file's hash table where it has one.

    pyelftools searches the table of symbols by a dictionary of all of them: seconds for a library
    of some 100 MB.
    """
    from elftools.elf.hash import ELFHashSection, GNUHashSection
    from elftools.elf.sections import SymbolTableSection

    for section in sections:
        if isinstance(section, GNUHashSection | ELFHashSection):
            found = section.get_symbol(name)
            return [] if found is None else [found]
    for section in sections:
        if section.name == ".dynsym" and isinstance(section, SymbolTableSection):
            return section.get_symbol_by_name(name) or ()
    return []


def build_id(path: str) -> str:
    """Returns the linker's build ID of an ELF file; empty if it has none or is no ELF file."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    with open_regular(path) as stream:
        try:
            section = ELFFile(stream).get_section_by_name(".note.gnu.build-id")
            notes = section.iter_notes() if section else ()
            return next((str(n["n_desc"]) for n in notes if n["n_type"] == "NT_GNU_BUILD_ID"), "")
        except (ELFError, ValueError, KeyError, OverflowError, UnicodeDecodeError):
            return ""


def is_cut_short(path: str) -> bool:
    """Whether a 64-bit little-endian ELF file is shorter than its header states.

    The loader maps such a file, and reading past its end kills the process with a bus error. This
    check reads 64 bytes and the segment table only. Raises `FileRefused` for other than regular
    files: the loader would block at a FIFO.
    """
    try:
        with open_regular(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            header = stream.read(_HEADER.size)
            if not header.startswith(b"\x7fELF\x02\x01"):
                return False
            if len(header) < _HEADER.size:
                return True
            segments_at, sections_at, entry, count, section, sections = _HEADER.unpack(header)
            stream.seek(segments_at)
            table = stream.read(entry * count)
    except FileRefused:
        raise
    except OSError:
        return False
    if entry < _SEGMENT.size or len(table) < entry * count:
        return True
    ends = [sections_at + section * sections]
    for i in range(count):
        _kind, offset, length = _SEGMENT.unpack_from(table, i * entry)
        ends.append(offset + length)
    return bool(max(ends) > size)


def get_machine_name() -> str:
    """Returns ELF's name for this machine, ``""`` where plugrt does not know it."""
    return _get_machine()[0]


def _get_machine() -> tuple[str, int]:
    return _MACHINES.get(platform.machine().lower(), ("", -1))


@lru_cache(maxsize=1)
def _cached_libraries() -> frozenset[str]:
    """Returns the names in the loader's cache."""
    import subprocess  # to explain why a library cannot be loaded

    for program in ("/sbin/ldconfig", "/usr/sbin/ldconfig"):
        try:
            done = subprocess.run(
                [program, "-p"], capture_output=True, text=True, timeout=10, check=False
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return frozenset(line.split()[0] for line in done.stdout.splitlines()[1:] if line.split())
    return frozenset()


def list_loaded() -> dict[str, str]:
    """Returns the libraries loaded in this process, name to path."""
    try:
        with open("/proc/self/maps", errors="replace") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return {}
    paths = {line.split(maxsplit=5)[5] for line in lines if line.count("/")}
    return {os.path.basename(p): p for p in paths}


def _find(name: str, search: tuple[str, ...], loaded: dict[str, str]) -> str | None:
    """Returns the path of a library, ``""`` if it exists at an unknown path, or None."""
    if "/" in name:
        return name if os.path.exists(name) else None
    folders = [*search, *os.environ.get("LD_LIBRARY_PATH", "").split(":")]
    for folder in filter(None, folders):
        candidate = os.path.join(folder, name)
        if os.path.exists(candidate):
            return candidate
    if name in loaded or name in _cached_libraries():
        return ""
    if any(os.path.exists(os.path.join(folder, name)) for folder in _FOLDERS):
        return ""
    return None


def missing_libraries(path: str) -> Iterator[tuple[str, str]]:
    """Yields (missing library, file that needs it), for all transitive dependencies."""
    loaded = list_loaded()
    queue, seen = [path], {path}
    while queue and len(seen) < _MAX_LIBRARIES:
        current = queue.pop(0)
        try:
            facts = read_elf(current)
        except (NotElf, OSError):
            continue
        for name in facts.needed:
            if name in seen:
                continue
            seen.add(name)
            found = _find(name, facts.search, loaded)
            if found is None:
                yield name, current
            elif found:
                queue.append(found)
