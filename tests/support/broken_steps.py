"""A host's use of a library, step by step, while the library misbehaves (run as a worker).

``python -m support.broken_steps LIBRARY SEED SHARE START`` prints a line of JSON before and after
each case, so that a reader can find the case in which the process ended.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import json
import random
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from plugrt.capi import create_client, load_library
from plugrt.capi.buffers import host_read
from plugrt.capi.buffers.buffer_spec import BufferSpec
from plugrt.capi.buffers.dlpack_import import view
from plugrt.capi.client.async_transfers import (
    AsyncTransfer,
    create_error_buffer,
    create_uninitialized,
)
from plugrt.errors import Internal, NotFound, PlugrtError, Unimplemented
from plugrt.interface import (
    Client,
    CompileOptions,
    ExecuteOptions,
    HostBufferSemantics,
    LoadedExecutable,
    Program,
    TensorType,
)
from support.broken_library import WORDS, Case, Control, misbehaviours
from support.xla_cpu import DONATED, add, program

F4 = np.dtype(np.float32)
SOURCE = np.arange(6, dtype=F4).reshape(2, 3)
KIND = "tensor<2x3xf32>"
STEPS: dict[str, Callable[[World], list[Any]]] = {}
"""Each returns the arrays that it read, all of which must equal `SOURCE` doubled."""


class World:
    """A client, programs and buffers that were made without misbehaviour."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.client: Client = create_client(path, {"cpu_device_count": 2}, name="broken")
        self.device = self.client.devices()[0]
        options = CompileOptions()
        self.add = self.client.compile(add(KIND), options)
        self.donating = self.client.compile(add(KIND, DONATED), options)
        body = f"%0 = stablehlo.add %a, %b : {KIND} return %0, %0 : {KIND}, {KIND}"
        two = program(body, f"%a: {KIND}, %b: {KIND}", f"{KIND}, {KIND}")
        self.two_results = self.client.compile(two, options)
        self.replicas = self.client.compile(add(KIND), CompileOptions(num_replicas=2))
        self.saved = self.add.executable.serialize()
        for loaded in (self.add, self.two_results, self.donating):
            loaded.execute([(self.put(),), (self.put(),)])[0][0].to_host()
        self.twice = self.put(2)

    def put(self, factor: int = 1, device: int = 0) -> Any:
        """Returns a buffer of `SOURCE` times ``factor``."""
        return self.client.buffer_from_host(SOURCE * factor, self.client.devices()[device])

    def launch(self, loaded: LoadedExecutable) -> Any:
        """Returns all results of a launch."""
        return loaded.execute([(self.put(),), (self.put(),)])


def step(function: Callable[[World], list[Any]]) -> Callable[[World], list[Any]]:
    """Registers a step under its name."""
    STEPS[function.__name__] = function
    return function


def transferred(buffer: Any) -> Any:
    """Returns the contents by a transfer, and not by a view."""
    host_read.VIEW_HOST_MEMORY = False
    try:
        return buffer.to_host()
    finally:
        host_read.VIEW_HOST_MEMORY = True


@step
def start(world: World) -> list[Any]:
    client = create_client(world.path, {"cpu_device_count": 1}, name="another")
    facts = [client.platform, client.platform_version, client.attributes, client.process_count]
    facts += [(d.id, d.kind, d.attributes, d.memories()) for d in client.devices()]
    client.close()
    return []


@step
def put_and_look(world: World) -> list[Any]:
    buffer = world.put(2)
    return [buffer.to_host(), buffer.to_host()]


@step
def put_and_transfer(world: World) -> list[Any]:
    return [transferred(world.put(2)), transferred(world.twice)]


@step
def put_with_all_semantics(world: World) -> list[Any]:
    made = [
        world.client.buffer_from_host(SOURCE * 2, world.device, None, semantics)
        for semantics in HostBufferSemantics
    ]
    strided = world.client.buffer_from_host(np.asfortranarray(SOURCE * 2), world.device)
    return [buffer.to_host() for buffer in [*made, strided]]


@step
def wait(world: World) -> list[Any]:
    world.put(2).block_until_ready()
    event = world.twice.ready_event()
    event.wait()
    event.is_ready()
    told = threading.Event()
    event.on_ready(lambda _: told.set())
    told.wait(0.05)
    return []


@step
def copy(world: World) -> list[Any]:
    there = world.twice.copy_to_device(world.client.devices()[1])
    memory = world.device.memories()[0]
    return [there.to_host(), world.twice.copy_to_memory(memory).to_host()]


@step
def look_at_a_buffer(world: World) -> list[Any]:
    buffer = world.put(2)
    size = buffer.on_device_size_in_bytes()
    raw = np.frombuffer(buffer.copy_raw_to_host(0, SOURCE.nbytes), F4).reshape(SOURCE.shape)
    assert size
    buffer.unsafe_pointer()
    buffer.minor_to_major()
    return [raw]


@step
def delete(world: World) -> list[Any]:
    buffer = world.put()
    buffer.delete()
    buffer.is_deleted()
    return []


@step
def dlpack(world: World) -> list[Any]:
    class Source:
        def __dlpack__(self, **_: Any) -> Any:
            return world.twice.to_dlpack()

        def __dlpack_device__(self) -> tuple[int, int]:
            return world.twice.dlpack_device()

    array = np.from_dlpack(Source())
    taken = world.client.buffer_from_dlpack(world.twice.to_dlpack(), world.device)
    return [array, taken.to_host()]


@step
def view_memory(world: World) -> list[Any]:
    handle = world.client.handle()
    room = np.zeros(64 + SOURCE.nbytes, np.uint8)
    start = -room.ctypes.data % 64
    array = room[start : start + SOURCE.nbytes].view(F4).reshape(SOURCE.shape)
    array[...] = SOURCE * 2
    spec = BufferSpec(handle, SOURCE.shape, F4, world.device)
    return [view(handle, array.ctypes.data, spec, None, lambda: None).to_host()]


@step
def launch(world: World) -> list[Any]:
    found = [world.launch(world.add)[0][0] for _ in range(3)]
    return [buffer.to_host() for buffer in found]


@step
def launch_for_two_results(world: World) -> list[Any]:
    return [r.to_host() for _ in range(2) for (r,) in world.launch(world.two_results)]


@step
def launch_on_two_devices(world: World) -> list[Any]:
    found = []
    for _ in range(2):
        shards = [[world.put(1, 0), world.put(1, 1)] for _ in range(2)]
        found += [r.to_host() for row in world.replicas.execute(shards) for r in row]
    return found


@step
def launch_with_events(world: World) -> list[Any]:
    options = ExecuteOptions(launch_id=3, non_donatable_input_indices=(0,))
    arguments = [(world.put(),), (world.put(),)]
    results, events = world.add.execute_with_events(arguments, options)
    for event in events:
        event.wait()
    return [results[0][0].to_host()]


@step
def donate(world: World) -> list[Any]:
    return [world.launch(world.donating)[0][0].to_host() for _ in range(2)]


@step
def compile_and_launch(world: World) -> list[Any]:
    loaded = world.client.compile(add(KIND), CompileOptions())
    result = world.launch(loaded)[0][0].to_host()
    loaded.delete()
    return [result]


@step
def load_what_was_saved(world: World) -> list[Any]:
    return [world.launch(world.client.deserialize_executable(world.saved))[0][0].to_host()]


def optional(*questions: Callable[[], Any]) -> None:
    """Calls all functions; ignores that the real library implements no such function."""
    for question in questions:
        with contextlib.suppress(Unimplemented, NotFound):
            question()


@step
def facts_of_an_executable(world: World) -> list[Any]:
    e = world.client.deserialize_executable(world.saved).executable
    optional(
        lambda: e.name, lambda: e.num_replicas, lambda: e.num_partitions, lambda: e.num_outputs,
        lambda: e.output_types, lambda: e.output_memory_kinds, lambda: e.parameter_memory_kinds,
        e.cost_analysis, e.memory_analysis, e.optimized_program, e.fingerprint, e.serialize,
        e.generated_code_size_in_bytes, e.compile_options, world.replicas.device_assignment,
        world.replicas.logical_device_ids,
    )  # fmt: skip
    return []


@step
def facts_of_a_client(world: World) -> list[Any]:
    client, device = world.client, world.device
    optional(
        client.memories, lambda: client.lookup_local_device(0), device.memory_stats,
        lambda: client.default_device_assignment(2, 1), client.library.attributes,
        lambda: [m.addressable_by_devices() for m in device.memories()],
        device.clear_memory_stats, lambda: client.capabilities,
    )  # fmt: skip
    from plugrt.capi.buffers.host_put import can_keep_layouts
    from plugrt.capi.devices.capabilities import find_capabilities

    find_capabilities(client, can_keep_layouts(client._transfers, device))
    return []


@step
def topology(world: World) -> list[Any]:
    made = world.client.topology()
    optional(
        lambda: made.platform, lambda: made.platform_version, lambda: made.devices,
        lambda: made.attributes, made.serialize, made.fingerprint, made.memories,
        lambda: made.compile(add(KIND), CompileOptions()),
    )  # fmt: skip
    return []


@step
def send_in_pieces(world: World) -> list[Any]:
    kind = TensorType(SOURCE.shape, F4)
    transfer = AsyncTransfer(world.client, [kind, kind], world.device.default_memory())
    optional(
        lambda: len(transfer), lambda: transfer.add_metadata({"a": "b"}),
        lambda: transfer.fail(1, Internal(WORDS)),
    )  # fmt: skip
    buffer = transfer.retrieve(0)
    transfer.send(0, SOURCE * 2)
    return [buffer.to_host()]


@step
def make_odd_buffers(world: World) -> list[Any]:
    kind, memory = TensorType(SOURCE.shape, F4), world.device.default_memory()
    optional(
        lambda: create_uninitialized(world.client, kind, memory).block_until_ready(),
        lambda: create_error_buffer(world.client, kind, memory, Internal(WORDS)),
    )  # fmt: skip
    return []


@step
def refuse_a_program(world: World) -> list[Any]:
    try:
        world.client.compile(Program(b"nonsense"), CompileOptions())
    except PlugrtError:
        return []
    raise AssertionError("nonsense was compiled")


UNSURE = {"Event_Await", "Event_IsReady", "Buffer_ToHostBuffer", "Event_Destroy"}
"""If the library reports data as ready, no host can detect otherwise."""


def judge(world: World, control: Control, case: Case, name: str) -> str:
    """Runs a step under a misbehaviour; returns the fault in the outcome, if any."""
    before = control.real_errors()
    try:
        arrays = STEPS[name](world)
    except PlugrtError as error:
        words = f"{type(error).__name__}: {error}"
        known = world.path in words or WORDS in words
        # After a misbehaviour the real library may refuse later calls.
        if known or control.real_errors() > before:
            return ""
        return f"does not name the library: {words}"
    except BaseException as error:  # noqa: BLE001 - that it is one of these is the finding
        return f"{type(error).__name__}: {error}"
    right = all(np.array_equal(array, SOURCE * 2) for array in arrays)
    return "" if right or case.function in UNSURE else f"wrong data: {arrays}"


def steps_of(world: World, control: Control) -> dict[str, set[int]]:
    """Returns for each step the functions that it calls without misbehaviour."""
    found = {}
    for name, run in STEPS.items():
        before = [control.calls(i) for i in range(139)]
        for array in run(world):
            assert np.array_equal(array, SOURCE * 2), name
        gc.collect()
        found[name] = {i for i in range(139) if control.calls(i) > before[i]}
    return found


def plan(world: World, control: Control, seed: int, share: float) -> list[tuple[Case, str, int]]:
    """Returns (case, step, correct calls first): for each case its share of the steps."""
    choose = random.Random(seed)
    uses = steps_of(world, control)
    chosen = []
    for case in misbehaviours():
        steps = [name for name, slots in uses.items() if case.slot in slots]
        choose.shuffle(steps)
        for name in steps[: max(1, round(share * len(steps)))]:
            chosen.append((case, name, choose.choice((0, 0, 1, 2))))
    return chosen


def say(**line: Any) -> None:
    """Prints a line of the report at once."""
    print(json.dumps(line), flush=True)


def main(path: str, seed: int, share: float, start: int) -> None:
    """Runs all cases from number ``start`` on."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    load_library(path)
    control = Control(path)
    world = World(load_library(path).path)
    cases = plan(world, control, seed, share)
    say(cases=len(cases), functions=len({case.function for case, _, _ in cases}))
    for i in range(start, len(cases)):
        case, name, skip = cases[i]
        say(begin=i, case=f"{case} (from call {skip} on), in the step {name}")
        control.misbehave(case, skip)
        wrong = judge(world, control, case, name)
        gc.collect(0)
        control.behave()
        if not wrong:
            wrong = judge(world, control, Case("", 0, 0), "launch")
            wrong = wrong and f"after that: {wrong}"
        say(end=i, wrong=wrong)
    say(done=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
