"""`PluginSubject`: the plugin under test, as checks use it."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.abi.element_types import supported_dtypes
from plugrt.errors import (
    HARDWARE_ABSENT,
    InvalidArgument,
    PjrtError,
    PluginUnavailable,
    PlugrtError,
    Unimplemented,
    UnsupportedDtype,
    describe,
)
from plugrt.interface import Buffer, Device, LoadedExecutable, Shards, TensorType, Topology
from plugrt.plugins.library import LibraryPlugin
from plugrt.plugins.plugin import Plugin
from plugrt.stablehlo.element_names import ELEMENT_NAMES
from plugrt_sdk.conformance.effects import Effects, ProcessState
from plugrt_sdk.conformance.reference import Reference
from plugrt_sdk.conformance.sweeps import within_limits
from plugrt_sdk.conformance.target import Target
from plugrt_sdk.conformance.verdict import NotTried, Verdict
from plugrt_sdk.testing.program_text import named_dtype
from plugrt_sdk.testing.programs import ADD
from plugrt_sdk.testing.subject import ONE, Array, Subject

_SMALL = 1 << 16
"""The number of bytes that is assumed to fit on each device."""
_DTYPES = {element: name for name, element in ELEMENT_NAMES.items()}
_ELEMENT = re.compile(r"tensor<(?:[\d?]+x)*([^,>]+>?)>")
_LAUNCHES, _PART_OF_SWEEP = 1001, 0.02
"""An operation's launches on each device, and the part of a sweep's time for one dtype's."""
_PACE = 0.1
"""The time of a launch in seconds; longer launches raise a run's limits."""
MOST_SLOWNESS = 20.0
"""The largest factor of these limits."""


def slowness(launch_seconds: float) -> float:
    """Returns the factor of a run's limits for a device with launches of so many seconds."""
    return min(max(1.0, launch_seconds / _PACE), MOST_SLOWNESS)


class PluginSubject(Subject):
    """A plugin, its client (made at its first use), and a run's settings.

    ``tolerances`` are the units in the last place that the run allows for results of a dtype, if
    larger than the kit's own. ``seconds`` is the limit of a check.
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
        """Objects that live until the process ends."""
        self.used_dtypes: set[str] = set()
        """The dtypes of arrays and programs of the current check."""
        self.launch_seconds = 0.0
        """The shortest time of a launch that a check measured; 0 before."""
        self.on_slow: Callable[[], None] = lambda: None
        """Called for a slow launch."""

    @cached_property
    def plugin(self) -> Plugin:
        """The plugin; the first use imports it."""
        before = Effects.now()
        plugin = self._load()
        self.import_effects = Effects.now().since(before)
        return plugin

    def create_topology(self) -> Topology:
        """Makes the topology of the run: the one it names, or the plugin's first.

        Raises `NotTried` if no name is known, since the device would then be needed.
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
        """StableHLO's reference interpreter; the first use starts it."""
        return Reference()

    def put(self, array: Any, device: int = 0) -> Buffer:
        """Puts an array as `Subject.put` does, and compares the library's statements about it."""
        from plugrt_sdk.conformance.asking import expect_as_noted

        array = np.asarray(array)
        self.used_dtypes.add(array.dtype.name)
        self.require_room(array.nbytes, self.client.devices()[device])
        buffer = super().put(array, device)
        expect_as_noted(buffer)
        return buffer

    def compile(self, text: str, **options: Any) -> LoadedExecutable:
        """Compiles a program as `Subject.compile` does."""
        self.note_program(text)
        return super().compile(text, **options)

    def note_program(self, text: str) -> None:
        """Records the dtypes of a program's arrays."""
        self.used_dtypes |= {_DTYPES[name] for name in _ELEMENT.findall(text) if name in _DTYPES}

    def lacks_dtype(self) -> bool:
        """Whether the device refuses arrays of a dtype that the check used.

        All devices must have float32, and the dtypes that they declare.
        """
        stated = self.declared.dtypes if self.states("dtypes") else frozenset[str]()
        for name in sorted(self.used_dtypes - stated - {"float32"}):
            try:
                super().put(np.zeros(1, named_dtype(name)))
            except (Unimplemented, UnsupportedDtype):
                return True
            except PjrtError:  # another check reports it
                continue
        return False

    @cached_property
    def dtypes(self) -> Sequence[str]:
        """The dtypes that the client puts, float32 in any case."""
        found = []
        for name in sorted(supported_dtypes(API_MINOR) - {"void"}):
            try:
                super().put(np.zeros(1, named_dtype(name)))
            except PlugrtError:
                if name != "float32":
                    continue
            found.append(name)
        return found

    @cached_property
    def launch_refusal(self) -> str:
        """The library's message if it refuses to launch a program that all backends run, or ""."""
        with suppress(PjrtError):  # other checks report it
            program, x = super().compile(ADD), (super().put(ONE),)
            try:
                program.execute([x, x])
            except Unimplemented as error:
                return error.message.partition("\n")[0]
        return ""

    def run(self, text: str, *arrays: Any) -> list[Array]:
        """Runs a program as `Subject.run` does, if its arguments fit in the device's memory."""
        total = sum(np.asarray(array).nbytes for array in arrays)
        self.require_room(total, self.client.devices()[0])
        program = self.compile(text)
        arguments = [(self.put(array),) for array in arrays]
        begin = time.perf_counter()
        results = [buffer.to_host() for [buffer] in program.execute(arguments)]
        self.note_launch(time.perf_counter() - begin)
        return results

    def launches(self, text: str, turn: int, turns: int, *arrays: Any) -> Iterator[list[Array]]:
        """Yields the results of a program's launches, as many as a short time allows.

        They run on the device whose turn it is. If there are so many turns, each device has a
        thousand launches. The first launch is like `run`.
        """
        places = [i for i, d in enumerate(self.client.devices()) if d.is_addressable]
        place = places[turn % len(places)]
        if not place:
            program = self.compile(text)
        else:
            self.note_program(text)
            program = self.compile_for(text, place)
        self.require_room(sum(a.nbytes for a in arrays), self.client.devices()[place])
        arguments = [(self.put(array, place),) for array in arrays]
        begin = time.perf_counter()
        yield [buffer.to_host() for [buffer] in program.execute(arguments)]
        self.note_launch(time.perf_counter() - begin)
        count = _LAUNCHES * len(places) // max(turns, len(places))
        for _ in within_limits(range(count), _PART_OF_SWEEP):
            yield [buffer.to_host() for [buffer] in program.execute(arguments)]

    def note_launch(self, seconds: float) -> None:
        """Records the time of a launch; checks get longer limits on a device with slow launches."""
        if not self.launch_seconds or seconds < self.launch_seconds:
            self.launch_seconds = seconds
            if slowness(seconds) > 1:
                self.on_slow()

    def require_room(self, count: int, device: Device) -> None:
        """Raises `NotTried` if a device states less memory than twice so many bytes.

        Results, or a copy, need as much as the arguments. A refusal of what fits, for lack of
        memory, is a fault: memory was leaked.
        """
        if count <= _SMALL or not self.declared.memory_stats:
            return
        try:
            stated = device.memory_stats().get("bytes_limit", 0)
        except PjrtError:  # another check requires an answer
            return
        if 0 < stated < 2 * count:
            why = (
                f"arrays of {count} bytes, with as much for results, do not fit into the {stated} "
                f"bytes that {device!r} states (memory_stats: bytes_limit); "
                f"a device with {2 * count} bytes or more runs it"
            )
            raise NotTried(Verdict.NOT_RUN, why, applies=False)

    def random(self, name: str) -> np.random.Generator:
        """Returns a random generator with the run's seed."""
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def ulps(self, dtype: str, least: int) -> int:
        """Returns the allowed error of a dtype's results, in units in the last place."""
        return max(least, self.tolerances.get(dtype, 0)) if least else 0

    def states(self, capability: str) -> bool:
        """Whether the plugin itself states a field of the client's capabilities.

        PJRT libraries declare nothing about some fields. plugrt assumes the most, and the library
        refuses by an error.
        """
        if not isinstance(self.plugin, LibraryPlugin):
            return True
        from plugrt.capi.devices.capabilities import ASSUMED

        return capability not in ASSUMED

    def open(self, held: Any, kind: TensorType) -> Shards:
        """Returns an array on the first device as its buffers.

        Launchers, and puts of several arrays, may return another object, which `Client.held_form`
        converts.
        """
        if isinstance(held, Sequence):
            return held
        memory = self.client.addressable_devices()[0].default_memory()
        return self.client.held_form(kind, memory).open(held)

    def refuse(self, why: str) -> NoReturn:
        """Raises `Unimplemented`: the capability cannot be tried."""
        raise Unimplemented(why)

    def check_declared(
        self, capability: str, step: Callable[[], None], *refusals: type[Exception]
    ) -> None:
        """Makes a step; raises errors that refuse it as `Unimplemented`, which the kit judges."""
        try:
            step()
        except refusals as error:
            raise Unimplemented(f"{capability}: {describe(error)}") from error
