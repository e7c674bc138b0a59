"""Level 3: many cycles, threads, a fork, and the exit of a process during work."""

from __future__ import annotations

import gc
import os
import threading
import time
import timeit
import warnings
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.check import Chapter, Demand, Level, Needs
from plugrt_sdk.conformance.expect import Array, expect, expect_equal, expect_same_bits
from plugrt_sdk.conformance.function_table import is_error
from plugrt_sdk.conformance.resident import count_held, resident_bytes
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.table_arrays import Arrays
from plugrt_sdk.conformance.table_client import TableClient
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter(
    "endurance", Level.BEHAVES, "plugrt.interface: ownership is explicit", demand=Demand.REFERENCE
)

_ROUNDS, _MOST, _MANY = 5, 200, 2000
_SECONDS = 0.5
"""The seconds of a round: on a slow device it has fewer cycles, and detects only larger leaks."""
_FEW = np.ones(35, np.float32)
_SMALL, _LARGE = np.arange(1024, dtype=np.float32), np.arange(1 << 14, dtype=np.float32)
_RESTS_ON = "what the process holds: its memory, descriptors, threads and maps"

Cycle = Callable[[int], None]
"""Runs cycle number ``i``, and drops everything it made."""


def _cycle(subject: PluginSubject, array: Array) -> Cycle:
    """Returns a cycle that puts an array, launches, compares the result, and drops both."""
    program = subject.compile(programs.ADD.replace("tensor<3xf32>", f"tensor<{array.size}xf32>"))

    def cycle(number: int) -> None:
        given = array + np.float32(number % 1000)
        x = (subject.put(given),)
        [[total]] = program.execute([x, x])
        expect_same_bits(total.to_host(), given + given, f"the result of launch {number}")

    return cycle


class _Rounds:
    """Rounds of cycles, as many each as the device does in a certain time."""

    def __init__(self, subject: PluginSubject, cycle: Cycle, most: int = _MOST) -> None:
        self._cycle, self._done = cycle, 0
        self._run(1)
        # The fastest one: on a loaded machine, others are slow.
        each = min(timeit.repeat(partial(self._run, 1), repeat=3, number=1))
        subject.note_launch(each)
        self.count = max(1, min(most, int(_SECONDS / each)))

    def _run(self, count: int) -> None:
        for _ in range(count):
            self._cycle(self._done)
            self._done += 1

    def growths(self, measure: Callable[[], Mapping[str, int]], span: int = 1) -> dict[str, int]:
        """Returns the growth of each measured number in the middle ``span`` of rounds.

        A leak grows in each round; memory that an allocator or a cache gets or frees once grows in
        one.
        """
        found = []
        for _ in range(_ROUNDS + span):
            self._run(self.count)
            gc.collect()
            found.append(measure())
        return {
            name: sorted(b[name] - a[name] for a, b in zip(found, found[span:], strict=False))[
                _ROUNDS // 2
            ]
            for name in found[0]
        }


def _limits(count: int, is_slow: bool) -> Mapping[str, int]:
    """Returns the allowed growth after so many cycles, by kind.

    The heap is measured to the byte: a leak of 16 bytes costs 32, which is above the limit, and in
    rounds of many cycles so is a leak of 64 bytes at each tenth. Rounds
    on a slow device have too few cycles to show that a library frees memory later, and so have a
    higher limit.
    """
    least = 32 if is_slow else 1
    return {
        "bytes of the heap": max((4 if count >= _MANY else 16) * count, 4096 * least),
        "bytes of resident memory": 128 * count + (32 << 10) * least,
        "Python objects": max(count // 2, 64 * least),
        "maps": 1 + count // 64,
        "descriptors": 0,
        "threads": 0,
    }


def _expect_none_lost(subject: PluginSubject, cycle: Cycle, most: int = _MOST) -> None:
    """Expects that cycles leave nothing behind.

    A growth counts if it is repeated over several rounds: a library may free the remains of earlier
    launches at each thousandth launch, as jaxlib does for plugrt-cpu.
    """
    rounds = _Rounds(subject, cycle, most)
    lost: dict[str, int] = {}
    for span in (1, _ROUNDS):
        count = span * rounds.count
        limits = _limits(count, rounds.count < most)
        lost = {k: n for k, n in rounds.growths(count_held, span).items() if n > limits[k]}
        if not lost:
            return
    got = ", ".join(f"{n} {k}" for k, n in lost.items())
    expect(False, f"the process to hold no more after {count} cycles", f"{got} more")


@CHAPTER.check(
    "cycles", why="a server runs out of memory or descriptors, or has a wrong result, within days",
    rests_on=_RESTS_ON,
)  # fmt: skip
def cycles(subject: PluginSubject) -> None:
    """Cycles that put, add, read and drop arrays give right results, and leak nothing."""
    _expect_none_lost(subject, _cycle(subject, _SMALL))


@CHAPTER.check(
    "arrays", why="a program that sends and reads arrays runs out of memory or descriptors",
    rests_on=f"{_RESTS_ON}; PJRT_Buffer_Destroy",
)  # fmt: skip
def arrays(subject: PluginSubject) -> None:
    """Cycles that put, read and drop arrays give right results, and leak nothing."""

    def cycle(number: int) -> None:
        given = _LARGE + np.float32(number % 1000)
        expect_same_bits(subject.put(given).to_host(), given, f"array {number}")

    _expect_none_lost(subject, cycle)


@CHAPTER.check(
    "reads", why="a program that reads results runs out of memory", needs=Needs.LIBRARY_CLIENT,
    rests_on=f"{_RESTS_ON}; PJRT_Buffer_ToHostBuffer, PJRT_Event_Destroy",
)  # fmt: skip
def reads(subject: PluginSubject) -> None:
    """Reads by PJRT_Buffer_ToHostBuffer are right, and leak nothing."""
    client, room = TableClient.of(subject), np.empty_like(_SMALL)
    buffer = client.put(_SMALL)
    read = client.args(
        "Buffer_ToHostBuffer", src=buffer, dst=ffi.from_buffer(room), dst_size=room.nbytes
    )
    ready, destroy = client.args("Event_IsReady"), client.args("Event_Destroy")

    # Calls without `TableClient.call`, which keeps memory of each call until the check ends.
    def cycle(number: int) -> None:
        room[:] = 0
        error = client.api.Buffer_ToHostBuffer(read)
        expect(not is_error(error), "a read without an error", number)
        ready.event = destroy.event = read.event
        while not is_error(client.api.Event_IsReady(ready)) and not ready.is_ready:
            time.sleep(0)
        client.api.Event_Destroy(destroy)
        expect_same_bits(room, _SMALL, f"the array of read {number}")

    _expect_none_lost(subject, cycle)


def _calls_leak_nothing(subject: PluginSubject, make: Callable[[Arrays], Cycle]) -> None:
    _expect_none_lost(subject, make(Arrays.of(subject)), _MANY)


def _puts(arrays: Arrays) -> Cycle:
    return lambda number: arrays.destroy(arrays.put(_FEW, device=arrays.devices[0]))


def _copies(arrays: Arrays) -> Cycle:
    source, device = arrays.put(_FEW, device=arrays.devices[0]), arrays.devices[-1]

    def cycle(number: int) -> None:
        copy = arrays.call("Buffer_CopyToDevice", buffer=source, dst_device=device).dst_buffer
        arrays.finish(arrays.call("Buffer_ReadyEvent", buffer=copy).event, "a copy")
        arrays.destroy(copy)

    return cycle


def _ready_events(arrays: Arrays) -> Cycle:
    buffer = arrays.put(_FEW, device=arrays.devices[0])
    return lambda number: arrays.finish(
        arrays.call("Buffer_ReadyEvent", buffer=buffer).event, "an array"
    )


def _answers(arrays: Arrays) -> Cycle:
    buffer = arrays.put(_FEW, device=arrays.devices[0])

    def cycle(number: int) -> None:
        for name in ("Dimensions", "ElementType", "Device", "Memory", "IsDeleted"):
            arrays.call(f"Buffer_{name}", buffer=buffer)

    return cycle


def _launches(arrays: Arrays) -> Cycle:
    client = arrays.client
    x = arrays.put(ONE, device=arrays.devices[0])
    args, outputs = client.execute_args(client.compile(programs.ADD.encode())[0], x, x)
    fields = {
        name: getattr(args, name)
        for name in ("executable", "options", "argument_lists", "output_lists", "num_args")
    }

    def cycle(number: int) -> None:
        arrays.call("LoadedExecutable_Execute", num_devices=1, **fields)
        arrays.finish(arrays.call("Buffer_ReadyEvent", buffer=outputs[0]).event, "a result")
        arrays.destroy(outputs[0])

    return cycle


for _name, _make, _functions in (
    ("puts", _puts, "PJRT_Client_BufferFromHostBuffer, PJRT_Buffer_Destroy"),
    ("copies", _copies, "PJRT_Buffer_CopyToDevice"),
    ("events", _ready_events, "PJRT_Buffer_ReadyEvent, PJRT_Event_Await, PJRT_Event_Destroy"),
    ("answers", _answers, "PJRT_Buffer_Dimensions, _ElementType, _Device, _Memory, _IsDeleted"),
    ("launches", _launches, "PJRT_LoadedExecutable_Execute"),
):
    CHAPTER.add(
        f"calls.{_name}",
        f"Many calls leak nothing: {_functions}.",
        partial(_calls_leak_nothing, make=_make), needs=Needs.LIBRARY_CLIENT,
        refusable=_name == "copies", rests_on=f"{_RESTS_ON}; {_functions}",
        why="a server that makes millions of calls a day runs out of memory",
    )  # fmt: skip


@CHAPTER.check(
    "results", why="a program that launches in a loop runs out of memory or threads",
    rests_on=f"{_RESTS_ON}; PJRT_LoadedExecutable_Execute",
)  # fmt: skip
def results(subject: PluginSubject) -> None:
    """Launches with the same arguments, whose results are dropped, leak nothing."""
    program = subject.compile(programs.ADD.replace("tensor<3xf32>", f"tensor<{_LARGE.size}xf32>"))
    x = (subject.put(_LARGE),)
    _expect_none_lost(subject, lambda number: program.execute([x, x])[0][0].block_until_ready())


@CHAPTER.check(
    "memory_stats", capability="memory_stats", rests_on="PJRT_Device_MemoryStats",
    demand=Demand.SPEC,
    why="memory of the device leaks, which nothing on the host shows",
)  # fmt: skip
def memory_stats(subject: PluginSubject) -> None:
    """After a thousand cycles the device states no more bytes in use than before."""
    device = subject.client.addressable_devices()[0]
    name = "bytes_in_use"
    rounds = _Rounds(subject, _cycle(subject, _SMALL))
    grown = rounds.growths(lambda: {name: device.memory_stats()[name]})[name]
    expect(grown <= 0, f"no more bytes in use after {rounds.count} cycles", f"{grown} bytes more")


@CHAPTER.check(
    "programs", why="a program that compiles as it goes runs out of memory",
    rests_on="resident memory of the process",
)  # fmt: skip
def compiled_programs(subject: PluginSubject) -> None:
    """Programs that are compiled, launched and deleted cost less than a megabyte each."""

    def cycle(number: int) -> None:
        program = subject.compile(programs.ADD)
        x = (subject.put(ONE),)
        program.execute([x, x])[0][0].block_until_ready()
        program.delete()

    rounds = _Rounds(subject, cycle, 10)
    grown = rounds.growths(lambda: {"": resident_bytes()})[""]
    expect(
        grown < rounds.count << 20, f"less than {rounds.count} MB more after as many programs",
        f"{grown >> 20} MB",
    )  # fmt: skip


def in_threads(work: Callable[[int], None], count: int = 4) -> None:
    """Calls a function in threads, with their numbers; raises the first error."""
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001  # raised below, on the check's thread
            errors.append(error)

    threads = [threading.Thread(target=partial(run, number)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@CHAPTER.check("threads.compile", why="two requests that compile at once get each other's program")
def threads_compile(subject: PluginSubject) -> None:
    """Four threads compile their own programs at once, and each gets its own."""
    names = ("add", "subtract", "multiply", "maximum")
    wanted = (11 * ONE, 9 * ONE, 10 * ONE * ONE, 10 * ONE)

    def work(number: int) -> None:
        text = programs.ADD.replace("stablehlo.add", f"stablehlo.{names[number]}")
        for _ in range(3):
            x, y = (subject.put(10 * ONE),), (subject.put(ONE),)
            [[found]] = subject.compile(text).execute([x, y])
            expect_same_bits(found.to_host(), wanted[number], f"the result of {names[number]}")

    in_threads(work)


@CHAPTER.check("threads.read", why="a result that several requests read is torn")
def threads_read(subject: PluginSubject) -> None:
    """Four threads read one array at once, while others are put and deleted."""
    source = np.arange(50_000, dtype=np.float32)
    x = subject.put(source)

    def work(number: int) -> None:
        for _ in range(20):
            subject.put(np.full(50_000, number, np.float32)).delete()
            expect_same_bits(x.to_host(), source, "the array that all threads read")

    in_threads(work)


@CHAPTER.check(
    "callback.thread", rests_on="PJRT_Event_OnReady", demand=Demand.SPEC,
    why="what another thread asked to be told is never told",
)  # fmt: skip
def callback_of_another_thread(subject: PluginSubject) -> None:
    """Callbacks that ended threads have requested are each called once."""
    program, x = subject.compile(programs.ADD), (subject.put(ONE),)
    told: list[int] = []
    done = threading.Semaphore(0)

    def work(number: int) -> None:
        [[total]] = program.execute([x, x])

        def tell(error: object) -> None:
            told.append(number)
            done.release()

        total.ready_event().on_ready(tell)

    in_threads(work)
    for _ in range(4):
        expect(done.acquire(timeout=20), "four callbacks within 20 s", sorted(told))
    expect_equal(sorted(told), [0, 1, 2, 3], "the threads whose callbacks were called:")


@CHAPTER.check(
    "callback.reads",
    rests_on="PJRT_Event_OnReady",
    demand=Demand.SPEC,
    why="a server that reads when told hangs",
)
def callback_reads(subject: PluginSubject) -> None:
    """A callback reads the array whose event called it."""
    x = (subject.put(ONE),)
    [[total]] = subject.compile(programs.ADD).execute([x, x])
    found: list[object] = []
    done = threading.Event()

    def read(error: object) -> None:
        found.append(total.to_host() if error is None else error)
        done.set()

    total.ready_event().on_ready(read)
    expect(done.wait(20), "a callback within 20 s", "none")
    expect(isinstance(found[0], np.ndarray), "an array", found[0])
    expect_same_bits(np.asarray(found[0]), 2 * ONE, "the array that the callback read")


@CHAPTER.check(
    "fork", needs=Needs.PROCESS, refusable=True, rests_on="os.fork; multiprocessing, subprocess",
    why="a data loader that forks hangs, or takes the program with it",
)  # fmt: skip
def fork(subject: PluginSubject) -> None:
    """A child forked from a working program ends with exit code 0, and both can go on."""
    program, x = subject.compile(programs.ADD), (subject.put(ONE),)
    [[total]] = program.execute([x, x])
    total.block_until_ready()
    if not hasattr(os, "fork"):
        subject.refuse("this system has no fork")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's warning: a process with threads forks
        child = os.fork()
    if child == 0:
        os._exit(0)
    _, status = os.waitpid(child, 0)
    expect_equal(os.waitstatus_to_exitcode(status), 0, "the child's exit code:")
    [[total]] = program.execute([x, x])
    expect_same_bits(total.to_host(), 2 * ONE, "the launch after the fork:")


@CHAPTER.check(
    "exit.at_work", needs=Needs.PROCESS, rests_on="pjrt_c_api.h: nothing relies on exit order",
    demand=Demand.SPEC,
    why="programs that worked end with a crash, and their exit code says so",
)  # fmt: skip
def exit_at_work(subject: PluginSubject) -> None:
    """A process with launches and callbacks that nobody awaits ends with exit code 0."""
    program, x = subject.compile(programs.ADD), (subject.put(ONE),)
    results = [program.execute([x, x])[0][0] for _ in range(50)]
    results[-1].ready_event().on_ready(lambda error: None)
    subject.kept = (results, program)


@CHAPTER.check(
    "exit.closed", needs=Needs.PROCESS, rests_on="plugrt.interface.Client.close",
    demand=Demand.PLUGRT,
    why="programs that clean up end with a crash, and their exit code says so",
)  # fmt: skip
def exit_closed(subject: PluginSubject) -> None:
    """A process that closed its client, and kept an array of it, ends with exit code 0."""
    subject.kept = subject.put(ONE)
    subject.client.close()
