"""Which jaxlib there is to test, and whether a wheel holds the private names that we use."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

FIRST_MINOR = (0, 9)


def version_key(version: str) -> tuple[int, ...]:
    """Returns what versions are sorted by; only releases of numbers and dots have one."""
    return tuple(map(int, version.split(".")))


def versions_in(listing: str) -> list[str]:
    """Returns the releases that ``pip index versions`` printed, oldest first."""
    line = next((x for x in listing.splitlines() if x.startswith("Available versions:")), "")
    found = re.findall(r"\d+(?:\.\d+)+(?![\w.])", line)
    return sorted(found, key=version_key)


def newest_of_each_minor(versions: Iterable[str]) -> list[str]:
    """Returns the newest release of each minor that is supported, oldest minor first."""
    newest: dict[tuple[int, ...], str] = {}
    for version in sorted(versions, key=version_key):
        minor = version_key(version)[:2]
        if minor >= FIRST_MINOR:
            newest[minor] = version
    return [newest[minor] for minor in sorted(newest)]


def stands_for(wanted: str, version: str) -> bool:
    """Returns whether a release is the one that was asked for, in full or by its first numbers."""
    return f"{version}.".startswith(f"{wanted}.")


def names_missing_in(wheel: Path, names: Iterable[str]) -> list[str]:
    """Returns the dotted names of which some part occurs nowhere in a wheel's libraries.

    A name that a nanobind module defines is a string in its library. That it is there does not
    prove that it still means the same; that it is not there proves that it is gone.
    """
    wanted = {part: name for name in names for part in name.split(".")}
    missing = set(wanted)
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            if not missing:
                break
            if member.endswith((".so", ".pyd", ".dll", ".dylib", ".py", ".pyi")):
                text = archive.read(member) + member.encode()
                missing = {part for part in missing if part.encode() not in text}
    return sorted(name for name in names if missing & set(name.split(".")))
