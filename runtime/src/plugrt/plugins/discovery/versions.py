"""Whether a plugin is compatible with this plugrt, by its interface version and its requirements.

A plugin states the version of `plugrt.interface` that it is written for
(`Plugin.interface_version`), its distribution the versions of plugrt that it requires. The former
decides. The latter, often narrower than necessary, explains a failure and determines what to
install: pip warns of a broken requirement only once, while it installs the other package.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

from plugrt import interface
from plugrt.plugins.packages import distributions
from plugrt.plugins.packages.distributions import Distribution
from plugrt.plugins.plugin import Plugin
from plugrt.plugins.record import Record

OURS = ("plugrt", "plugrt-numpy", "plugrt-sdk")
"""The distributions whose versions a plugin may be too old or too new for."""

_REQUIREMENT = r"(?m)^Requires-Dist:(?!.*\bextra\s*==)\s*([\w.-]+)\s*(?:\[[^]]*\])?\s*\(?([^;)\n]*)"
_CLAUSE = r"(<=|>=|==|!=|~=|<|>)\s*(\d+(?:\.\d+)*)(?![\d.*])"
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, ">": operator.gt, "~=": operator.ge,
}  # fmt: skip


def find_misfit(plugin: Plugin, row: Record | None = None) -> tuple[str, str] | None:
    """Returns why the interface is not the one that a plugin needs, and the cure; None if it is."""
    return find_version_misfit(plugin.interface_version, row, plugin.name)


def find_version_misfit(
    wanted: tuple[int, int], row: Record | None, name: str
) -> tuple[str, str] | None:
    """Returns why the interface is not compatible with ``wanted``, and the cure; None if it is.

    The same major version and a lower or equal minor version works: later additions are optional.
    ``name`` is the package to upgrade if the row has no distribution.
    """
    major, minor = interface.VERSION
    wanted_major, wanted_minor = wanted
    if wanted_major == major and wanted_minor <= minor:
        return None
    reason = (
        f"it is written for version {wanted_major}.{wanted_minor} of plugrt.interface, and plugrt "
        f"{distributions.version('plugrt')} has {major}.{minor}"
    )
    theirs = " ".join(f'"{name}{clauses}"' for name, clauses in _read_requirements(row))
    if wanted > interface.VERSION:
        return reason, f"pip install --upgrade {theirs or 'plugrt'}"
    return reason, _cure((row and row.distribution) or name, theirs)


def _cure(distribution: str, ours: str) -> str:
    """Returns the lines to type: for a newer plugin, or for the plugrt that this one needs."""
    newer = f"pip install --upgrade {distribution}"
    return f"{newer} (or, for the one that is installed: pip install {ours})" if ours else newer


def find_broken_requirement(row: Record) -> tuple[str, str] | None:
    """Returns which plugrt version a distribution excludes, and the cure; else None."""
    for name, clauses in _read_requirements(row):
        installed = distributions.version(name)
        if installed and not is_version_allowed(clauses, installed):
            reason = f"{row.who} requires {name}{clauses}, and {name} {installed} is installed"
            return reason, _cure(row.distribution, f'"{name}{clauses}"')
    return None


def _read_requirements(row: Record | None) -> Iterator[tuple[str, str]]:
    """Yields (name, clauses) of the row's distribution's requirements on plugrt's packages."""
    distribution = distributions.at(row.location) if row and row.location else None
    if distribution is not None:
        yield from ((name, c) for name, c in requirements(distribution) if name in OURS and c)


def requirements(distribution: Distribution) -> Iterator[tuple[str, str]]:
    """Yields (name, clauses) of a distribution's requirements without extras.

    None if they cannot be read.
    """
    try:
        metadata = distribution.read("METADATA")
    except OSError:
        return
    for name, clauses in re.findall(_REQUIREMENT, metadata.decode(errors="replace")):
        yield name, clauses.replace(" ", "")


def is_version_allowed(clauses: str, version: str) -> bool:
    """Whether each known clause allows a version; compares only the numbers."""
    installed = _numbers(version)
    return all(
        _COMPARE[sign](installed, _numbers(bound)) for sign, bound in re.findall(_CLAUSE, clauses)
    )


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    while numbers and not numbers[-1]:
        numbers.pop()  # 1.0 is 1
    return tuple(numbers)
