"""`PluginSubject`: the plugin under test, as the checks see it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from plugrt.errors import (
    HARDWARE_ABSENT,
    InvalidArgument,
    PluginUnavailable,
    Unimplemented,
    describe,
)
from plugrt.interface import Buffer, Shards, TensorType, Topology
from plugrt.plugins.library import LibraryPlugin
from plugrt.plugins.plugin import Plugin
from plugrt_sdk.conformance.effects import Effects, ProcessState
from plugrt_sdk.conformance.reference import Reference
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.verdict import NotTried, Verdict
from plugrt_sdk.testing.subject import Subject


class PluginSubject(Subject):
    """A plugin, its client (made when a check first asks for it), and a run's settings.

    ``tolerances`` are the units in the last place that the run allows for results of a dtype,
    where the kit's own limits are narrower. ``seconds`` is the limit of a check.
    """

    def __init__(
        self,
        target: Target,
        seed: int = 0,
        tolerances: Mapping[str, int] | None = None,
        load: Callable[[], Plugin] | None = None,
        seconds: float = 30.0,
    ) -> None:
        super().__init__(lambda: target.create_client(self.plugin))
        self.target = target
        self.seed = seed
        self.tolerances = dict(tolerances or {})
        self.seconds = seconds
        self._load = load or target.load
        self.process = ProcessState()
        """The state of the process before the plugin was imported."""
        self.import_effects = Effects()
        """What importing the plugin did to the process."""
        self.kept: object = None
        """What lives until the process ends."""

    @cached_property
    def plugin(self) -> Plugin:
        """The plugin, imported when it is first asked for."""
        before = Effects.now()
        plugin = self._load()
        self.import_effects = Effects.now().since(before)
        return plugin

    def create_topology(self) -> Topology:
        """Makes the topology of the run: the one that it names, or the plugin's first.

        Raises `NotTried` where no name of one is known, and the device would be needed instead.
        """
        named = [self.target.topology, *self.plugin.topology_names]
        name = next(filter(None, named), "")
        try:
            return self.plugin.create_topology(name, self.target.topology_options)
        except PluginUnavailable as error:
            raise NotTried(Verdict.NO_HARDWARE, describe(error)) from error
        except HARDWARE_ABSENT as error:
            if name:
                raise
            raise NotTried(Verdict.NO_HARDWARE, describe(error)) from error
        except InvalidArgument as error:
            if name:
                raise
            why = f"name a topology with --topology: {describe(error)}"
            raise NotTried(Verdict.NOT_RUN, why, applies=False) from error

    @cached_property
    def reference(self) -> Reference:
        """StableHLO's reference interpreter, started when it is first asked for a result."""
        return Reference()

    def put(self, array: Any, device: int = 0) -> Buffer:
        """Puts an array as `Subject.put` does; the library must say of it what plugrt noted."""
        from plugrt_sdk.conformance.asking import expect_as_noted

        buffer = super().put(array, device)
        expect_as_noted(buffer)
        return buffer

    def random(self, name: str) -> np.random.Generator:
        """Returns a generator of numbers that are the same in each run of one seed."""
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def ulps(self, dtype: str, least: int) -> int:
        """Returns the units in the last place that results of a dtype may be wrong by."""
        return max(least, self.tolerances.get(dtype, 0)) if least else 0

    def states(self, capability: str) -> bool:
        """Whether a field of the client's capabilities is the plugin's own statement.

        Of some fields a PJRT library declares nothing, and plugrt assumes the most: the library
        then refuses by an error.
        """
        if not isinstance(self.plugin, LibraryPlugin):
            return True
        from plugrt.capi.devices.capabilities import ASSUMED

        return capability not in ASSUMED

    def open(self, held: Any, kind: TensorType) -> Shards:
        """Returns an array on the first device as its buffers.

        Launchers, and puts of several arrays, may give another object instead, which
        `Client.held_form` opens.
        """
        if isinstance(held, Sequence):
            return held
        memory = self.client.addressable_devices()[0].default_memory()
        return self.client.held_form(kind, memory).open(held)

    def refuse(self, why: str) -> NoReturn:
        """Raises `Unimplemented`: there is nothing to try the capability on."""
        raise Unimplemented(why)

    def check_declared(
        self, capability: str, step: Callable[[], None], *refusals: type[Exception]
    ) -> None:
        """Makes a step; errors that refuse it are `Unimplemented` here, which the kit judges."""
        try:
            step()
        except refusals as error:
            raise Unimplemented(f"{capability}: {describe(error)}") from error
