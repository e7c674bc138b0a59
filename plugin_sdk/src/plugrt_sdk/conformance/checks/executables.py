"""Level 3: statements of a compiled program about itself, and ways to launch it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrt.errors import DeletedBuffer, Unimplemented, describe
from plugrt.execution.shardings.op_sharding import read_op_sharding
from plugrt.interface import LoadedExecutable, Shards
from plugrt_sdk.conformance.check import Chapter, Demand, Level, Needs
from plugrt_sdk.conformance.expect import (
    Array,
    expect,
    expect_equal,
    expect_refusal,
    expect_same_bits,
)
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

_THREE = "tensor<3xf32>"

CHAPTER = Chapter("executables", Level.BEHAVES, "plugrt.interface.Executable; PJRT_Executable_*")


@CHAPTER.check(
    "text", refusable=True, why="nobody can see what the compiler did",
    covers=("Executable.as_text",),
)  # fmt: skip
def text(subject: PluginSubject) -> None:
    """The text of a compiled program is readable and names its operation."""
    found = subject.compile(programs.ADD).executable.as_text()
    expect(isinstance(found, str) and "add" in found, "a text with the word add", found)


@CHAPTER.check(
    "code_size", refusable=True, why="budgets of device memory leave out the programs",
    covers=("Executable.generated_code_size_in_bytes",),
    rests_on="PJRT_Executable_SizeOfGeneratedCodeInBytes",
)  # fmt: skip
def code_size(subject: PluginSubject) -> None:
    """The size of the machine code is a number of bytes, and the same each time."""
    executable = subject.compile(programs.ADD).executable
    found = executable.generated_code_size_in_bytes()
    expect(isinstance(found, int) and found >= 0, "a number from 0 on", found)
    expect_equal(executable.generated_code_size_in_bytes(), found, "still")


@CHAPTER.check(
    "memory_kinds.results", refusable=True, why="results are looked for in another memory",
    covers=("Executable.output_memory_kinds",), rests_on="PJRT_Executable_OutputMemoryKinds",
)  # fmt: skip
def result_memory_kinds(subject: PluginSubject) -> None:
    """A program states a memory kind for each result, and the result is in it."""
    loaded = subject.compile(programs.ADD)
    kinds = list(loaded.executable.output_memory_kinds)
    [[total]] = loaded.execute([(subject.put(ONE),), (subject.put(ONE),)])
    expect_equal(kinds, [total.memory.kind], "the kinds")


@CHAPTER.check(
    "memory_kinds.arguments", refusable=True, why="arguments are put where no launch takes them",
    covers=("Executable.parameter_memory_kinds",),
    rests_on="PJRT_Executable_ParameterMemoryKinds",
)  # fmt: skip
def argument_memory_kinds(subject: PluginSubject) -> None:
    """A program states for each argument a memory kind of its device."""
    kinds = subject.compile(programs.ADD).executable.parameter_memory_kinds
    known = {memory.kind for memory in subject.client.addressable_devices()[0].memories()}
    expect(len(kinds) == 2 and set(kinds) <= known, f"two kinds among {sorted(known)}", list(kinds))


_SPMD = {"use_spmd_partitioning": True, "use_shardy_partitioner": True}
_MAXIMAL, _OTHER = 1, 3
"""Values of ``xla.OpSharding.Type``: on one device, and in parts."""


def _compile_partitioned(subject: PluginSubject) -> LoadedExecutable:
    return subject.compile_text(programs.PARTITIONED_ADD, num_partitions=2, **_SPMD)


def _expect_parts(found: Sequence[bytes], what: str) -> None:
    """One sharding, whose field 1, the type, is OTHER: an array in parts."""
    expect(len(found) == 1, f"one sharding, of {what}", list(found))
    expect(found[0][:2] == bytes([0x08, _OTHER]), f"{what} in parts (OpSharding.type OTHER)",
           found[0])  # fmt: skip


@CHAPTER.check(
    "input_types.partitioned", refusable=True, needs=Needs.TWO_DEVICES, level=Level.SCALES,
    rests_on="plugrt.interface.Executable.input_types", demand=Demand.PLUGRT,
    why="hosts cut an argument into parts of another size than the program takes",
)  # fmt: skip
def partitioned_input_types(subject: PluginSubject) -> None:
    """A partitioned program states the type of each device's part of its argument."""
    found = [str(kind) for kind in _compile_partitioned(subject).executable.input_types]
    expect_equal(found, ["float32[3]"], "the types of the parts:")


@CHAPTER.check(
    "shardings.arguments", refusable=True, needs=Needs.TWO_DEVICES, level=Level.SCALES,
    why="hosts hand each device a part that is not its own",
    covers=("Executable.parameter_shardings",),
    rests_on="PJRT_Shardings_PJRT_Executable_ParameterShardings",
)  # fmt: skip
def argument_shardings(subject: PluginSubject) -> None:
    """A partitioned program states that each device has a part of its argument."""
    _expect_parts(_compile_partitioned(subject).executable.parameter_shardings(), "the argument")


@CHAPTER.check(
    "shardings.results", refusable=True, needs=Needs.TWO_DEVICES, level=Level.SCALES,
    why="hosts put the parts of a result together wrong",
    covers=("Executable.output_shardings",),
    rests_on="PJRT_Shardings_PJRT_Executable_OutputShardings",
)  # fmt: skip
def result_shardings(subject: PluginSubject) -> None:
    """A partitioned program states that each device has a part of its result."""
    _expect_parts(_compile_partitioned(subject).executable.output_shardings(), "the result")


@CHAPTER.check(
    "shardings.chosen", capability="auto_partitioning", needs=Needs.TWO_DEVICES,
    level=Level.SCALES, why="a program that was left to divide itself computes with other parts",
    covers=("Executable.parameter_shardings", "Executable.output_shardings"),
    rests_on="xla.ExecutableBuildOptionsProto.use_auto_spmd_partitioning", demand=Demand.REFERENCE,
)  # fmt: skip
def chosen_shardings(subject: PluginSubject) -> None:
    """A program that chooses its argument's sharding states it, and computes with the parts."""
    program = subject.compile_text(
        programs.ADD_TO_ITSELF, num_partitions=2, use_auto_spmd_partitioning=True,
        auto_spmd_partitioning_mesh_shape=(2,), auto_spmd_partitioning_mesh_ids=(0, 1), **_SPMD,
    )  # fmt: skip
    x = np.arange(6, dtype=np.float32)
    [taken], [given] = (_parts_of(stated(), x) for stated in (
        program.executable.parameter_shardings, program.executable.output_shardings
    ))  # fmt: skip
    shards = [subject.put(x[part], i) for i, part in enumerate(taken)]
    [results] = program.execute([shards])
    for i, (result, part) in enumerate(zip(results, given, strict=True)):
        expect_same_bits(result.to_host(), 2 * x[part], f"the part of device {i}")


def _parts_of(stated: Sequence[bytes], x: np.ndarray[Any, Any]) -> list[list[tuple[slice, ...]]]:
    """Returns for each sharding the part of an array on each of two devices."""
    tilings = [read_op_sharding(sharding, x.ndim, 2) for sharding in stated]
    return [
        tiling.slices(tuple(n // parts for n, parts in zip(x.shape, tiling.parts, strict=True)))
        for tiling in tilings
    ]


def _expect_none_stated(*questions: Callable[[], Sequence[Any]]) -> None:
    """Expects that each answer is empty, or is not stated: hosts distinguish the two."""
    for question in questions:
        try:
            found = list(question())
        except Unimplemented:
            continue
        expect_equal(found, [], "stated:")


@CHAPTER.check(
    "no_results", why="a program that is run for its effects does not compile, or hosts read "
    "behind what it states", covers=("Executable.output_layouts",),
)  # fmt: skip
def no_results(subject: PluginSubject) -> None:
    """A program without results states empty types, layouts and memory kinds."""
    found = subject.compile(programs.NO_RESULTS).executable
    expect_equal(list(found.output_types), [], "the results' types")
    _expect_none_stated(
        found.output_layouts, found.output_shardings, lambda: found.output_memory_kinds
    )


@CHAPTER.check(
    "no_results.partitioned", refusable=True, needs=Needs.TWO_DEVICES, level=Level.SCALES,
    why="hosts put a result together that is not there",
    rests_on="plugrt.interface.Executable.output_shardings", demand=Demand.PLUGRT,
)  # fmt: skip
def no_results_partitioned(subject: PluginSubject) -> None:
    """A partitioned program without results returns none, and states no sharding of them."""
    program = subject.compile_text(programs.PARTITIONED_NO_RESULTS, num_partitions=2, **_SPMD)
    _expect_none_stated(program.executable.output_shardings)
    shards = [(subject.put(ONE, 0), subject.put(ONE, 1))]
    expect_equal(len(program.execute(shards)), 0, "results:")


@CHAPTER.check(
    "no_arguments", why="hosts put arguments that a program does not have",
    covers=("Executable.parameter_layouts",),
)  # fmt: skip
def no_arguments(subject: PluginSubject) -> None:
    """A program without arguments states empty types, layouts and memory kinds."""
    found = subject.compile(programs.CONSTANT).executable
    _expect_none_stated(
        lambda: found.input_types, found.parameter_layouts, found.parameter_shardings,
        lambda: found.parameter_memory_kinds,
    )  # fmt: skip


@CHAPTER.check(
    "no_arguments.partitioned", refusable=True, needs=Needs.TWO_DEVICES, level=Level.SCALES,
    why="arrays that are made on several devices are made wrong",
    rests_on="plugrt.interface.Executable.parameter_shardings", demand=Demand.PLUGRT,
)  # fmt: skip
def no_arguments_partitioned(subject: PluginSubject) -> None:
    """A partitioned program without arguments makes a part on each device."""
    program = subject.compile_text(programs.PARTITIONED_CONSTANT, num_partitions=2, **_SPMD)
    _expect_none_stated(program.executable.parameter_shardings)
    [shards] = program.execute([])
    for i, (shard, wanted) in enumerate(zip(shards, ([1, 2], [3, 4]), strict=True)):
        expect_same_bits(shard.to_host(), np.array(wanted, np.int32), f"the part of device {i}")


_WAITED = "plugrt.interface.LoadedExecutable.execute_with_wait"


@CHAPTER.check(
    "wait", refusable=True, rests_on=_WAITED,
    demand=Demand.PLUGRT, why="a host that bounds its launches waits for ever",
    covers=("LoadedExecutable.execute_with_wait",),
)  # fmt: skip
def wait(subject: PluginSubject) -> None:
    """A launch has ended when the wait for it ends, also if the program was deleted."""
    x = (subject.put(ONE),)
    _expect_wait(subject.compile(programs.ADD), [x, x], 2 * ONE)


@CHAPTER.check(
    "cancel", refusable=True, rests_on="plugrt.interface.LoadedExecutable.cancel",
    why="launches that have begun lose their results, or the program is lost",
    demand=Demand.PLUGRT, covers=("LoadedExecutable.cancel",),
)  # fmt: skip
def cancel(subject: PluginSubject) -> None:
    """A cancellation when no launch waits cancels none, and later launches run."""
    program, x = subject.compile(programs.ADD), subject.put(ONE)
    [[before]] = program.execute([(x,), (x,)])
    before.block_until_ready()
    expect_equal(program.cancel(), 0, "the number of cancelled launches")
    [[after]] = program.execute([(x,), (x,)])
    for result in (before, after):
        expect_same_bits(result.to_host(), 2 * ONE, "the sum")


@CHAPTER.check(
    "wait.collectives", refusable=True, needs=Needs.TWO_DEVICES, level=Level.SCALES,
    why="queues of launches that exchange data fill up, and hang",
    rests_on="Capabilities.max_blocking_launches: it demands execute_with_wait",
    demand=Demand.PLUGRT,
)  # fmt: skip
def wait_for_collectives(subject: PluginSubject) -> None:
    """The host can wait for a launch on two devices, if the number in flight is limited."""
    bound = subject.declared.max_blocking_launches
    expect(bound is None or bound > 0, "a bound above 0, or None", bound)
    x = (subject.put(ONE, 0), subject.put(10 * ONE, 1))
    try:
        _expect_wait(subject.compile_for(programs.ALL_REDUCE, 0, 1), [x], 11 * ONE)
    except Unimplemented as error:
        expect(bound is None, f"it works: max_blocking_launches is {bound}", describe(error))
        raise


@CHAPTER.check(
    "tuple_arguments", refusable=True, why="programs of many parameters do not run",
    rests_on="Capabilities.tuple_arguments_above; xla.CompileOptionsProto", demand=Demand.REFERENCE,
)  # fmt: skip
def tuple_arguments(subject: PluginSubject) -> None:
    """A program whose parameters are one tuple gets each argument, also above the stated bound."""
    bound = subject.declared.tuple_arguments_above
    stated = bound is None or (type(bound) is int and bound >= 0)
    expect(stated, "a bound of at least 0, or None", bound)
    count = max(3, (bound or 0) + 1)
    names = [f"%x{i}" for i in range(count)]
    lines = [f"%y1 = stablehlo.subtract {names[0]}, {names[1]} : {_THREE}"]
    lines += [f"%y{i} = stablehlo.subtract %y{i - 1}, %x{i} : {_THREE}" for i in range(2, count)]
    text = (
        f"func.func public @main({', '.join(f'{x}: {_THREE}' for x in names)}) -> {_THREE} {{"
        f"{chr(10).join(lines)}\nreturn %y{count - 1} : {_THREE} }}"
    )
    try:
        program = subject.compile_text(text, parameter_is_tupled=True)
        [[found]] = program.execute([(subject.put(i * ONE),) for i in range(count, 0, -1)])
    except Unimplemented as error:
        expect(bound is None, f"it works: tuple_arguments_above is {bound}", describe(error))
        raise
    # The first minus all others: each argument has its own weight.
    expect_same_bits(found.to_host(), (count - sum(range(1, count))) * ONE, "the difference")


@CHAPTER.check(
    "tuple_arguments.none", refusable=True,
    why="a program without arguments fails where a host passes arguments in a tuple",
    rests_on="xla.CompileOptionsProto.parameter_is_tupled_arguments", demand=Demand.REFERENCE,
)  # fmt: skip
def no_tuple_arguments(subject: PluginSubject) -> None:
    """A program whose parameters are an empty tuple is launched without arguments."""
    program = subject.compile_text(programs.CONSTANT, parameter_is_tupled=True)
    [[found]] = program.execute([])
    expect_same_bits(found.to_host(), np.array([7, -1], np.int32), "the constant")


def _expect_wait(program: LoadedExecutable, arguments: list[Shards], wanted: Array) -> None:
    [results], wait_for_end = program.execute_with_wait(arguments)
    wait_for_end()
    for buffer in results:
        expect_equal(buffer.ready_event().is_ready(), True, "is_ready() after the wait:")
        expect_same_bits(buffer.to_host(), wanted, "the result")
    [results], wait_for_end = program.execute_with_wait(arguments)
    for buffer in (*results, *arguments[0]):
        buffer.delete()
    wait_for_end()


def open_results(subject: PluginSubject, program: LoadedExecutable, found: Any) -> list[Shards]:
    """Returns the results of a launcher as shards."""
    types = program.executable.output_types
    return [subject.open(held, kind) for held, kind in zip(found, types, strict=True)]


@CHAPTER.check(
    "launcher", why="the path of every warm call gives other results than the careful one",
    covers=("LoadedExecutable.launcher", "Client.held_form"),
    rests_on="plugrt.interface.LoadedExecutable.launcher", demand=Demand.PLUGRT,
)  # fmt: skip
def launcher(subject: PluginSubject) -> None:
    """The launcher returns the results of execute, accepts them, and refuses deleted arrays."""
    program = subject.compile(programs.ADD)
    x, y = (subject.client.shards((subject.put(array),)) for array in (ONE, 10 * ONE))
    held = program.launcher([x, y])
    [[total]] = open_results(subject, program, held)
    expect_same_bits(total.to_host(), 11 * ONE, "the sum")
    [[twice]] = open_results(subject, program, program.launcher([held[0], held[0]]))
    expect_same_bits(twice.to_host(), 22 * ONE, "the sum of the results")
    x[0].delete()
    expect_refusal(lambda: program.launcher([x, y]), DeletedBuffer, what="a deleted argument")


@CHAPTER.check(
    "launcher.lent.parts", refusable=True, needs=Needs.TWO_DEVICES, level=Level.SCALES,
    why="a call with a NumPy array over several devices takes the numbers of another call",
    covers=("LoadedExecutable.host_launcher",),
    rests_on="plugrt.interface.LoadedExecutable.host_launcher", demand=Demand.PLUGRT,
)  # fmt: skip
def lent_parts(subject: PluginSubject) -> None:
    """A launcher of whole host arrays has copied their parts when it returns.

    20 launches are in flight, which wait for an argument that a slow launch computes.
    """
    quick = programs.ADD.replace("3xf32", "4096xf32")
    tried = [_launch_on_parts(subject, text) for text in (quick, programs.SLOW_ADD)]
    if not any(tried):
        subject.refuse("host_launcher() is None: parts of host arrays are put")


def _launch_on_parts(subject: PluginSubject, text: str) -> bool:
    """Launches a sum of 4096 floats on two devices; returns whether memory was lent to parts."""
    program, n = subject.compile_for(text, 0, 1), 4096
    first, second = slice(0, n), slice(n, 2 * n)
    halves: list[tuple[slice | int, ...]] = [(second,), (first,)]  # in another order
    one = program.host_launcher({0: halves})
    both = program.host_launcher({0: halves, 1: [(0,), (1,)]})
    if one is None and both is None:
        return False
    offset = np.arange(n, dtype=np.float32)
    flat, rows = np.empty(2 * n, np.float32), np.empty((2, n), np.float32)
    zero, y = (
        subject.client.shards((subject.put(a, 0), subject.put(b, 1)))
        for a, b in ((0 * offset, 0 * offset), (offset, -offset))
    )
    slow = subject.compile_for(programs.SLOW_ADD.replace("dense<400>", "dense<20000>"), 0, 1)
    [y] = slow.execute([zero, y])
    found = []
    for i in range(20):
        launch, other = (both, rows) if i % 4 == 3 else (one, y)
        if launch is None:
            continue
        flat[first], flat[second] = i, -i
        rows[0], rows[1] = offset, -offset
        arguments = [flat, other]
        results, wait = launch(arguments)
        flat[:] = rows[:] = 99
        arguments.clear()
        found.append((i, open_results(subject, program, results)[0], wait))
    for i, shards, wait in found:
        wait()
        sums = offset - np.float32(i), np.float32(i) - offset
        for device, (shard, wanted) in enumerate(zip(shards, sums, strict=True)):
            expect_same_bits(shard.to_host(), wanted, f"launch {i}, the result on device {device}:")
    return True


@CHAPTER.check(
    "launcher.steps", refusable=True, why="calls in the compiled core differ from those in Python",
    covers=("LoadedExecutable.launch_steps",),
    rests_on="plugrt.interface.LoadedExecutable.launch_steps", demand=Demand.PLUGRT,
)  # fmt: skip
def steps(subject: PluginSubject) -> None:
    """A launch in steps returns the launcher's results, explains errors, and ends with it."""
    program = subject.compile(programs.ADD)
    found = program.launch_steps
    if found is None:
        subject.refuse("launch_steps is None: the compiled core calls the launcher")
    x, y = (subject.client.shards((subject.put(array),)) for array in (ONE, 10 * ONE))
    [total], [twice] = program.launcher([x, y]), program.launcher([x, x])
    expect(type(total) is found.argument_class, f"a {found.argument_class}", type(total))
    expect(not any(map(len, found.unless)), "nothing that hinders a launch", found.unless)
    results = found.take(found.launch([total, twice]), *found.take_arguments)
    [[result]] = open_results(subject, program, results)
    expect_same_bits(result.to_host(), 13 * ONE, "the sum")
    [[gone]] = open_results(subject, program, [twice])
    gone.delete()
    try:
        found.take(found.launch([total, twice]), *found.take_arguments)
    except Exception as error:  # noqa: BLE001  # a backend's own: judged by its explanation
        explained = found.explain(error, [total, twice])
        expect(isinstance(explained, DeletedBuffer), "DeletedBuffer", describe(explained))
    else:
        expect(False, "an error for a deleted argument", "none")
    program.delete()
    expect(any(map(len, found.unless)), "what hinders a launch once deleted", found.unless)


@CHAPTER.check(
    "launcher.steps.donation", refusable=True, why="a step in C keeps what one in Python gives up",
    covers=("LoadedExecutable.launch_steps",),
    rests_on="plugrt.interface.LaunchSteps.donated", demand=Demand.PLUGRT,
)  # fmt: skip
def steps_donation(subject: PluginSubject) -> None:
    """Steps of a program that donates name the donated arguments, and can delete them."""
    found = subject.compile(programs.DONATING_ADD).launch_steps
    if found is None:
        subject.refuse("launch_steps is None: the compiled core calls the launcher")
    adding = subject.compile(programs.ADD)
    x, y = (subject.client.shards((subject.put(array),)) for array in (ONE, 10 * ONE))
    [first], [other] = adding.launcher([x, y]), adding.launcher([y, y])
    results = found.take(found.launch([first, other]), *found.take_arguments)
    [[result]] = open_results(subject, adding, results)
    expect_same_bits(result.to_host(), 31 * ONE, "the sum")
    expect_equal(found.donated, (0,) if subject.declared.donation else (), "the donated arguments:")
    if found.tidy is not None:
        found.tidy()
    if not found.donated:
        return
    is_deleted, delete = found.is_deleted, found.delete
    if is_deleted is None or delete is None:
        raise AssertionError("`donated` without `is_deleted` and `delete`")
    expect_equal(is_deleted(other), False, "is_deleted of the argument that is not donated:")
    if not is_deleted(first):
        delete(first)
    [[gone]] = open_results(subject, adding, [first])
    expect_refusal(gone.to_host, DeletedBuffer, what="reading the donated argument")


@CHAPTER.check(
    "read_steps", refusable=True, why="what the compiled core reads is not what is there",
    covers=("Client.held_form",), rests_on="plugrt.interface.Client.held_form",
    demand=Demand.PLUGRT,
)  # fmt: skip
def read_steps(subject: PluginSubject) -> None:
    """Steps read a launch's results as its shards do, and refuse deleted ones."""
    program = subject.compile(programs.ADD)
    arguments = [subject.client.shards((subject.put(array),)) for array in (ONE, 10 * ONE)]
    [held] = program.launcher(arguments)
    [kind], device = program.executable.output_types, subject.client.addressable_devices()[0]
    found = subject.client.held_form(kind, device.default_memory())
    if found.view is None:
        subject.refuse("held_form().view is None: the compiled core calls to_host()")
    if found.is_ready is None or found.wait is None or found.lock is None:
        missing = [name for name in ("is_ready", "wait", "lock") if getattr(found, name) is None]
        raise AssertionError(f"`view` without {', '.join(missing)}: the core does not call it then")
    expect(subject.declared.zero_copy_get, "zero_copy_get, which they need", "it is not declared")
    expect(type(held) is found.held_class, f"a {found.held_class}", type(held))
    expect(not any(map(len, found.unless)), "nothing that hinders a read", found.unless)
    found.wait(held)
    expect_equal(bool(found.is_ready(held)), True, "is_ready() after a wait:")
    with found.lock:
        host = np.asarray(found.view(held))
    expect_same_bits(host, 11 * ONE, "the sum")
    expect(not host.flags.writeable, "a read-only array", host.flags)
    [[buffer]] = open_results(subject, program, [held])
    buffer.delete()
    try:
        found.view(held)
    except Exception:  # noqa: BLE001, S110
        # Of whatever class, as `HeldForm` has it: the core then asks to_host, whose errors other
        # checks look at. A view that always fails has been found above, by the same call.
        pass
    else:
        expect(False, "an error for a deleted array", "none")
