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
    """The levels of conformance; each one needs all lower levels."""

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
    """The requirements of a check."""

    DISTRIBUTION = "distribution"
    """The plugin's installed files. A plugin that is found by its name is not imported."""
    PLUGIN = "plugin"
    """The plugin, imported in a process without a client."""
    CLIENT = "client"
    """A client, shared by the checks of one process."""
    TWO_DEVICES = "two devices"
    """A client with two devices or more; a client with one device must refuse a launch on two."""
    LIBRARY = "library"
    """The function table of a PJRT library; the check does not apply to other plugins."""
    LIBRARY_CLIENT = "library client"
    """The function table of a PJRT library; the check makes its own client with it."""
    PROCESS = "process"
    """A client in its own process, whose exit is part of the check."""

    @property
    def has_table(self) -> bool:
        """Whether the check applies to PJRT libraries only."""
        return self in (Needs.LIBRARY, Needs.LIBRARY_CLIENT)

    @property
    def has_client(self) -> bool:
        """Whether a client is started; checks without one run on machines without the device."""
        return self not in (Needs.DISTRIBUTION, Needs.PLUGIN, Needs.LIBRARY)


class Demand(enum.StrEnum):
    """The source of a check's demand."""

    SPEC = "spec"
    """A sentence of ``pjrt_c_api.h`` or of the StableHLO specification; the check names it."""
    REFERENCE = "reference"
    """The behaviour of XLA's own libraries, or a need of every process with a library in it."""
    PLUGRT = "plugrt"
    """plugrt's advice. Only level 0 counts it."""


@dataclass(frozen=True, slots=True)
class Check:
    """A statement about a plugin, the function that tests it, and the text that demands it.

    ``id`` is permanent: a check whose meaning changes gets another one. ``title`` is the statement
    in one sentence, ``rests_on`` the text that demands it, and ``why`` what a user meets if it is
    false. ``capability`` names a field of `plugrt.interface.Capabilities`: if the client does not
    declare it, the same function must be refused with `plugrt.errors.Unimplemented`, and the client
    must stay usable. ``refusable`` checks may be refused in this way in any case. ``covers`` lists
    the methods of `plugrt.interface` that the function calls, such as ``Buffer.to_host``. ``slow``
    checks need more than a second; ``--quick`` skips them. ``demand`` is the source of the demand.
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
        """Whether a level needs the check.

        Advice does not count; without ``table``, neither do checks that call the function table.
        """
        if not table and self.needs.has_table:
            return False
        return self.demand is not Demand.PLUGRT or self.level is Level.INSTALLS


@dataclass
class Chapter:
    """The checks of one module, in order.

    Their ids begin with ``prefix``. The other fields are defaults of the checks' fields.
    """

    prefix: str
    level: Level
    rests_on: str
    needs: Needs = Needs.CLIENT
    demand: Demand = Demand.SPEC
    checks: list[Check] = field(default_factory=list)

    def check(self, name: str, *, why: str, **rest: Any) -> Callable[[Body], Body]:
        """Returns a decorator that adds a function as a check.

        The first line of its docstring is the title.
        """

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
