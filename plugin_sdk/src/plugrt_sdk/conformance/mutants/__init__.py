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
    from plugrt_sdk.conformance.mutants.ahead_of_time import AHEAD_OF_TIME
    from plugrt_sdk.conformance.mutants.arguments import ARGUMENTS, EVENTS
    from plugrt_sdk.conformance.mutants.arrays import ARRAYS
    from plugrt_sdk.conformance.mutants.behaviour import BEHAVIOUR
    from plugrt_sdk.conformance.mutants.collectives import COLLECTIVE
    from plugrt_sdk.conformance.mutants.computing import COMPUTING
    from plugrt_sdk.conformance.mutants.declared import DECLARED
    from plugrt_sdk.conformance.mutants.effects import EFFECTS
    from plugrt_sdk.conformance.mutants.endurance import ENDURANCE
    from plugrt_sdk.conformance.mutants.executables import EXECUTABLES
    from plugrt_sdk.conformance.mutants.failures import FAILURES
    from plugrt_sdk.conformance.mutants.forms import FORMS
    from plugrt_sdk.conformance.mutants.handles import HANDLES
    from plugrt_sdk.conformance.mutants.installed import INSTALLED
    from plugrt_sdk.conformance.mutants.killers import KILLERS
    from plugrt_sdk.conformance.mutants.launch_steps import LAUNCH_STEPS
    from plugrt_sdk.conformance.mutants.layouts import LAYOUTS
    from plugrt_sdk.conformance.mutants.liars import LIARS
    from plugrt_sdk.conformance.mutants.loans import LOANS
    from plugrt_sdk.conformance.mutants.operations import COMPOSITES, OPERATIONS, RANDOMNESS
    from plugrt_sdk.conformance.mutants.ownership import OWNERSHIP
    from plugrt_sdk.conformance.mutants.places import PLACES
    from plugrt_sdk.conformance.mutants.scales import SCALES
    from plugrt_sdk.conformance.mutants.table_answers import TABLE_ANSWERS
    from plugrt_sdk.conformance.mutants.table_buffers import TABLE_BUFFERS
    from plugrt_sdk.conformance.mutants.table_events import TABLE_EVENTS
    from plugrt_sdk.conformance.mutants.table_executables import TABLE_EXECUTABLES
    from plugrt_sdk.conformance.mutants.table_launches import TABLE_LAUNCHES
    from plugrt_sdk.conformance.mutants.table_places import TABLE_PLACES
    from plugrt_sdk.conformance.mutants.table_programs import TABLE_PROGRAMS
    from plugrt_sdk.conformance.mutants.table_puts import TABLE_PUTS
    from plugrt_sdk.conformance.mutants.table_structs import TABLE_STRUCTS
    from plugrt_sdk.conformance.mutants.table_transfers import TABLE_TRANSFERS
    from plugrt_sdk.conformance.mutants.tables import LIBRARIES, SICK, TABLES
    from plugrt_sdk.conformance.mutants.topologies import TOPOLOGIES
    from plugrt_sdk.conformance.mutants.views import VIEWS

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
