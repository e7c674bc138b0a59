"""`why_not_loaded`, `why_no_plugin`: find in the file why a library cannot be loaded."""

from __future__ import annotations

import platform
from collections.abc import Mapping

from plugrt.base.files import open_regular, why_no_file
from plugrt.capi.loading.elf import NotElf, get_machine_name, missing_libraries, read_elf
from plugrt.errors import PluginBroken, PluginError, PluginIncompatible

_MAGICS = {
    b"MZ": "a Windows library",
    b"\xcf\xfa\xed\xfe": "a macOS library",
    b"\xca\xfe\xba\xbe": "a macOS library",
    b"#!": "a script",
    b"PK": "a zip archive (a wheel that was not installed?)",
    b"!<arch>": "a static library",
    b"version https://git-lfs": "a pointer of Git LFS: its contents were not fetched",
}


def why_not_loaded(path: str, error: str, hints: Mapping[str, str]) -> PluginError:
    """Returns the exception for a ``path`` that the loader refused, with reason and cure.

    ``hints`` maps patterns of shared libraries' names to their sources.
    """
    wrong = wrong_file(path)
    if wrong is not None:
        return wrong
    missing = list(missing_libraries(path))
    if missing:
        return PluginBroken(_describe_missing(path, missing, hints))
    if "GLIBC" in error:
        return PluginIncompatible(
            f"{path} needs a newer C library than this system has: {error}. Use a newer "
            "distribution of Linux, or an older version of the package"
        )
    if "undefined symbol" in error:
        return PluginBroken(
            f"{path} cannot be loaded: {error}. One of its shared libraries is of another version "
            "than it was built with"
        )
    return PluginBroken(f"{path} cannot be loaded: {error}")


def why_no_plugin(path: str) -> PluginError | None:
    """Returns the exception for a file that is no PJRT library of this machine, else None.

    Does not run its code, and does not look for the libraries that it needs.
    """
    wrong = wrong_file(path)
    if wrong is None and not read_elf(path).exports_api:
        return no_function(path)
    return wrong


def no_function(path: str) -> PluginBroken:
    """Returns the exception for a library without PJRT's function."""
    return PluginBroken(
        f"{path} is a shared library but not a PJRT plugin: it has no function GetPjrtApi"
    )


def wrong_file(path: str) -> PluginError | None:
    """Returns the exception for a file that cannot be loaded on this machine, else None."""
    if fault := why_no_file(path):
        return PluginBroken(f"{path} {fault}; the path of a shared library was expected")
    try:
        with open_regular(path) as stream:
            start = stream.read(32)
    except OSError as error:
        return PluginBroken(f"{path} cannot be read: {error.strerror}")
    if not start:
        return PluginBroken(f"{path} is empty")
    for magic, what in _MAGICS.items():
        if start.startswith(magic):
            return PluginIncompatible(f"{path} is {what}, not a shared library for Linux")
    try:
        facts = read_elf(path)
    except NotElf as error:
        return PluginBroken(f"{path} is not a shared library, or is cut short: {error}")
    if facts.machine != get_machine_name() and get_machine_name():
        return PluginIncompatible(
            f"{path} is built for {facts.machine.removeprefix('EM_').lower()}; this machine is "
            f"{platform.machine()}. Install the package for this machine"
        )
    if facts.bits != 64:
        return PluginIncompatible(f"{path} is a {facts.bits}-bit library; 64 bits are needed")
    if not facts.shared:
        return PluginBroken(f"{path} is not a shared library but another kind of ELF file")
    return None


def _describe_missing(path: str, missing: list[tuple[str, str]], hints: Mapping[str, str]) -> str:
    from fnmatch import fnmatchcase  # not needed by every start

    by_source: dict[str, list[str]] = {}
    for name, needed_by in missing:
        source = next((hints[known] for known in hints if fnmatchcase(name, known)), "")
        line = f"{name}" if needed_by == path else f"{name} (needed by {needed_by})"
        by_source.setdefault(source, []).append(line)
    lines = [
        ", ".join(names) + (f", which {source} brings" if source else "")
        for source, names in by_source.items()
    ]
    count = "a shared library" if len(missing) == 1 else f"{len(missing)} shared libraries"
    note = ""
    if not read_elf(path).exports_api:
        note = "; besides, it has no function GetPjrtApi, so that it is not a PJRT plugin"
    return (
        f"{path} needs {count} that this system does not have: {'; '.join(lines)}{note}. "
        "Install what brings them, or name their folders in LD_LIBRARY_PATH"
    )
