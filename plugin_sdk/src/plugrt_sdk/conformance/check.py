"""`Check`: one statement about a plugin that a run can refute."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from plugrt_sdk.conformance.subject import PluginSubject

Body = Callable[[PluginSubject], None]
"""Runs a check: returns if the statement holds, and raises if not."""


class Level(enum.IntEnum):
    """The statements that a user may rely on; each level needs all lower ones."""

    INSTALLS = 0
    """The plugin is found and imported without touching a device. Needs no hardware."""
    BUFFERS = 1
    """Arrays reach the device and come back."""
    COMPUTES = 2
    """Programs compile, run and give the right numbers."""
    BEHAVES = 3
    """Ownership, donation, threads, errors and the end of the process."""
    SCALES = 4
    """Several devices."""


class Needs(enum.StrEnum):
    """The thing that a check needs to run."""

    DISTRIBUTION = "distribution"
    """The installed files of the plugin: of one that is found by its name nothing is imported."""
    PLUGIN = "plugin"
    """The plugin alone, imported in a process that has made no client."""
    CLIENT = "client"
    """A started client, shared by the checks of one process."""
    TWO_DEVICES = "two devices"
    """A client with two devices or more; one that has fewer must refuse to launch on two."""
    LIBRARY = "library"
    """The function table of a PJRT library; a plugin that is none has nothing to show here."""
    LIBRARY_CLIENT = "library client"
    """The function table of a PJRT library: the check makes a client of its own by it."""
    PROCESS = "process"
    """A client in a process of its own, whose end is part of the check."""

    @property
    def has_table(self) -> bool:
        """Whether only PJRT libraries are tried."""
        return self in (Needs.LIBRARY, Needs.LIBRARY_CLIENT)

    @property
    def has_client(self) -> bool:
        """Whether a client is started; what needs none runs on machines without the device."""
        return self not in (Needs.DISTRIBUTION, Needs.PLUGIN, Needs.LIBRARY)


class Demand(enum.StrEnum):
    """Who demands what a check states."""

    SPEC = "spec"
    """A sentence of ``pjrt_c_api.h`` or of the StableHLO specification; the check names it."""
    REFERENCE = "reference"
    """The behaviour of XLA's own libraries, or a need of every process with a library in it."""
    PLUGRT = "plugrt"
    """plugrt alone: advice. Only the level of the installation counts it."""


@dataclass(frozen=True, slots=True)
class Check:
    """A statement, how it is tried, and the text that demands it.

    ``id`` is for ever: a check whose meaning changes gets another one. ``title`` is the statement
    in one sentence, ``rests_on`` the text that demands it and ``why`` what a user meets where it
    does not hold. ``capability`` names a field of `plugrt.interface.Capabilities`: where that is
    not declared, the same body must be refused with `plugrt.errors.Unimplemented` and leave the
    client usable. ``refusable`` checks may be refused so whatever is declared. ``covers`` lists the
    methods of `plugrt.interface` that the body calls, as ``Buffer.to_host``. ``slow`` checks need
    more than a second; ``--quick`` leaves them out. ``demand`` says who demands it.
    """

    id: str
    title: str
    level: Level
    rests_on: str
    why: str
    run: Body
    needs: Needs = Needs.CLIENT
    capability: str = ""
    refusable: bool = False
    covers: tuple[str, ...] = ()
    slow: bool = False
    demand: Demand = Demand.SPEC

    def counts_for_level(self, *, table: bool = True) -> bool:
        """Whether a level needs it: not where it is advice, nor, without ``table``, where it calls
        the function table itself."""
        if not table and self.needs.has_table:
            return False
        return self.demand is not Demand.PLUGRT or self.level is Level.INSTALLS


@dataclass
class Chapter:
    """The checks of one module, in order.

    ``prefix`` begins their ids; a check has the other fields where it states none of its own.
    """

    prefix: str
    level: Level
    rests_on: str
    needs: Needs = Needs.CLIENT
    demand: Demand = Demand.SPEC
    checks: list[Check] = field(default_factory=list)

    def check(self, name: str, *, why: str, **rest: Any) -> Callable[[Body], Body]:
        """Returns a decorator: the function is a check, the docstring's first line its title."""

        def add(body: Body) -> Body:
            title = (body.__doc__ or "").strip().partition("\n")[0]
            self.add(name, title, body, why=why, **rest)
            return body

        return add

    def add(self, name: str, title: str, body: Body, *, why: str, **rest: Any) -> None:
        """Adds a check."""
        rest = {
            "level": self.level, "rests_on": self.rests_on, "needs": self.needs,
            "demand": self.demand, **rest,
        }  # fmt: skip
        self.checks.append(Check(f"{self.prefix}.{name}", title, run=body, why=why, **rest))

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)
