"""Plugins with one defect each, on which the checks are tested: each check must find its own.

`mutants` has one for each check; `KILLERS` are plugins that end or hang the process, and `LIARS`
declare what they lack or deny what they do.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Protocol

from plugrt.plugins.plugin import Plugin


class Mutant(Protocol):
    """Something that makes a plugin with a defect."""

    def plugin_of(self) -> Plugin:
        """Returns the plugin."""


@cache
def mutants() -> Mapping[str, Mutant]:
    """Returns the mutant of each check by the check's id."""
    from mutants.ahead_of_time import AHEAD_OF_TIME
    from mutants.arguments import ARGUMENTS, EVENTS
    from mutants.arrays import ARRAYS
    from mutants.behaviour import BEHAVIOUR
    from mutants.collectives import COLLECTIVE
    from mutants.computing import COMPUTING
    from mutants.declared import DECLARED
    from mutants.effects import EFFECTS
    from mutants.endurance import ENDURANCE
    from mutants.executables import EXECUTABLES
    from mutants.failures import FAILURES
    from mutants.forms import FORMS
    from mutants.handles import HANDLES
    from mutants.installed import INSTALLED
    from mutants.killers import KILLERS
    from mutants.launch_steps import LAUNCH_STEPS
    from mutants.layouts import LAYOUTS
    from mutants.liars import LIARS
    from mutants.loans import LOANS
    from mutants.operations import COMPOSITES, OPERATIONS, RANDOMNESS
    from mutants.ownership import OWNERSHIP
    from mutants.places import PLACES
    from mutants.scales import SCALES
    from mutants.table_answers import TABLE_ANSWERS
    from mutants.table_buffers import TABLE_BUFFERS
    from mutants.table_events import TABLE_EVENTS
    from mutants.table_executables import TABLE_EXECUTABLES
    from mutants.table_launches import TABLE_LAUNCHES
    from mutants.table_places import TABLE_PLACES
    from mutants.table_programs import TABLE_PROGRAMS
    from mutants.table_puts import TABLE_PUTS
    from mutants.table_structs import TABLE_STRUCTS
    from mutants.table_transfers import TABLE_TRANSFERS
    from mutants.tables import LIBRARIES, SICK, TABLES
    from mutants.topologies import TOPOLOGIES
    from mutants.views import VIEWS

    return {
        **PLACES,
        **INSTALLED,
        **TABLES,
        **ARGUMENTS,
        **EVENTS,
        **HANDLES,
        **TABLE_PROGRAMS,
        **TABLE_PUTS,
        **TABLE_BUFFERS,
        **TABLE_TRANSFERS,
        **TABLE_ANSWERS,
        **TABLE_STRUCTS,
        **TABLE_EXECUTABLES,
        **TABLE_PLACES,
        **TABLE_LAUNCHES,
        **TABLE_EVENTS,
        **ARRAYS,
        **VIEWS,
        **COMPUTING,
        **FORMS,
        **OPERATIONS,
        **RANDOMNESS,
        **COMPOSITES,
        **OWNERSHIP,
        **BEHAVIOUR,
        **ENDURANCE,
        **FAILURES,
        **EFFECTS,
        **DECLARED,
        **SCALES,
        **COLLECTIVE,
        **EXECUTABLES,
        **LOANS,
        **LAUNCH_STEPS,
        **LAYOUTS,
        **TOPOLOGIES,
        **AHEAD_OF_TIME,
        **LIBRARIES,
        **LIARS,
        **KILLERS,
        **SICK,
    }


def mutant(name: str) -> Plugin:
    """Returns the mutant of a check as a plugin, or one of `KILLERS`; for `Target`s."""
    return mutants()[name].plugin_of()
