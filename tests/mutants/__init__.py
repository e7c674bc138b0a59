"""Plugins with one defect each: each check of the kit must find its mutant.

`MUTANTS` of a module here has the mutants for the kit's module of that name. The mutants in
`KILLERS` end or hang the process. Those in `LIARS` declare a feature that they lack, or do not
declare one that they have.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Protocol

from plugrt.plugins.plugin import Plugin
from plugrt_sdk.conformance import checks


class Mutant(Protocol):
    """Makes a plugin with a defect."""

    def plugin_of(self) -> Plugin:
        """Returns the plugin."""


@cache
def mutants() -> Mapping[str, Mutant]:
    """Returns the mutants by the id of their check, and those that no single check is for."""
    from mutants.killers import KILLERS
    from mutants.liars import LIARS
    from mutants.tables import SICK

    found: dict[str, Mutant] = {}
    for module in modules_of_checks():
        found |= mutants_of(module)
    return {**found, **LIARS, **KILLERS, **SICK}


def modules_of_checks() -> list[str]:
    """Returns the full names of the kit's modules of checks."""
    found = pkgutil.walk_packages(checks.__path__, f"{checks.__name__}.")
    return [module.name for module in found if not module.ispkg]


def mutants_of(module: str) -> Mapping[str, Mutant]:
    """Returns the mutants of a module of checks, by the check's id."""
    name = module.rpartition(".")[2]
    of_module: Mapping[str, Mutant] = import_module(f"mutants.{name}").MUTANTS
    return of_module


def mutant(name: str) -> Plugin:
    """Returns the mutant of a check, or one of `KILLERS`, as a plugin for a `Target`."""
    return mutants()[name].plugin_of()
