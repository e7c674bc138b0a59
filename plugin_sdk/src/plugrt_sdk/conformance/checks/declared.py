"""Level 3: one check for each capability: it works if declared, and is refused otherwise."""

from __future__ import annotations

import numpy as np

from plugrt.errors import PjrtError, Unimplemented, UnsupportedDtype, describe
from plugrt_sdk.conformance.check import Chapter, Demand, Level, Needs
from plugrt_sdk.conformance.checks.sizes import RETURNED, expect_returned, returned
from plugrt_sdk.conformance.expect import (
    Mismatch,
    expect,
    expect_equal,
    expect_refusal,
    expect_same_bits,
)
from plugrt_sdk.conformance.inputs import RANKS, SMALL, fill
from plugrt_sdk.conformance.saving import save_in_child
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.sweeps import within_limits
from plugrt_sdk.testing import declarations, programs
from plugrt_sdk.testing.device_memory import measure_growth
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter("declared", Level.BEHAVES, "plugrt.interface.Capabilities", demand=Demand.PLUGRT)
_OTHER = "stablehlo.subtract"
_FEW, _TIMES = np.arange(35, dtype=np.float32), 1001


@CHAPTER.check(
    "serialization",
    capability="executable_serialization",
    why="compilation caches hand out broken programs",
    covers=("Executable.serialize", "Client.deserialize_executable"),
)
def serialization(subject: PluginSubject) -> None:
    """A program is saved, is loaded again, and runs."""
    declarations.serialization(subject)


@CHAPTER.check(
    "serialization.own", capability="executable_serialization",
    why="compilation caches hand out one program for another",
)  # fmt: skip
def saved_programs_are_their_own(subject: PluginSubject) -> None:
    """Two programs are saved, and each is loaded as itself."""
    texts = (programs.ADD, programs.ADD.replace("stablehlo.add", "stablehlo.subtract"))
    saved = [subject.compile(text).executable.serialize() for text in texts]
    x, y = subject.put(10 * ONE), subject.put(ONE)
    for content, wanted, what in zip(saved, (11 * ONE, 9 * ONE), ("sum", "rest"), strict=True):
        [[found]] = subject.client.deserialize_executable(content).execute([(x,), (y,)])
        expect_same_bits(found.to_host(), wanted, f"the {what}")


@CHAPTER.check(
    "serialization.results", capability="executable_serialization", slow=True,
    demand=Demand.SPEC,
    rests_on="PJRT_Executable_DeserializeAndLoad, PJRT_LoadedExecutable_Execute",
    why="a program from a cache has wrong results, of a dtype or a size that no example has",
)  # fmt: skip
def results_of_loaded_programs(subject: PluginSubject) -> None:
    """Programs that were saved and loaded return arrays of each dtype and rank, on each device."""
    random = subject.random("serialization.results")
    places = [i for i, d in enumerate(subject.client.devices()) if d.is_addressable]
    dtypes = [dtype for dtype in subject.dtypes if dtype in RETURNED]
    for number, dtype in enumerate(within_limits(dtypes, 3)):
        place = places[number % len(places)]
        arrays = [fill(dtype, shape, random) for shape in (*RANKS, *SMALL)]
        try:
            program = subject.compile_for(returned(arrays), place)
        except (Unimplemented, UnsupportedDtype):  # another check states it
            continue
        saved = program.executable.serialize()
        expect_returned(subject.client.deserialize_executable(saved), arrays, subject, place)
    add = programs.ADD.replace("tensor<3xf32>", "tensor<35xf32>")
    for place in places:
        saved = subject.compile_for(add, place).executable.serialize()
        loaded = subject.client.deserialize_executable(saved)
        x = (subject.put(_FEW, place),)
        for launch in within_limits(range(_TIMES), 0.3):
            [[found]] = loaded.execute([x, x])
            expect_same_bits(found.to_host(), _FEW + _FEW, f"launch {launch} on device {place}")


@CHAPTER.check(
    "serialization.process", needs=Needs.PROCESS, refusable=True,
    rests_on="PJRT_Executable_Serialize; PJRT_Executable_DeserializeAndLoad", demand=Demand.SPEC,
    why="a cache on disk holds programs that only the process which saved them can load",
    covers=("Executable.serialize", "Client.deserialize_executable"),
)  # fmt: skip
def saved_by_another_process(subject: PluginSubject) -> None:
    """A program that another process saved, which has ended, is loaded and runs."""
    try:  # no client exists here before the other process has ended: some devices have one user
        saved = save_in_child(subject.target, programs.ADD.replace("stablehlo.add", _OTHER))
        loaded = subject.client.deserialize_executable(saved)
    except Unimplemented as error:
        name = "executable_serialization"
        if subject.declared.executable_serialization and subject.states(name):
            raise Mismatch(f"it works: {name} is declared", describe(error)) from error
        raise
    x, y = subject.put(10 * ONE), subject.put(ONE)
    [[found]] = loaded.execute([(x,), (y,)])
    expect_same_bits(found.to_host(), 9 * ONE, "the rest")


@CHAPTER.check("serialization.nonsense", why="a damaged cache file crashes the program")
def nonsense_is_not_loaded(subject: PluginSubject) -> None:
    """Bytes that are not a saved program are refused."""
    expect_refusal(
        lambda: subject.client.deserialize_executable(b"nonsense"),
        PjrtError,
        what="deserialize_executable(b'nonsense')",
    )


@CHAPTER.check(
    "cost_analysis",
    capability="cost_analysis",
    why="figures of speed are wrong",
    covers=("Executable.cost_analysis",),
)
def cost_analysis(subject: PluginSubject) -> None:
    """A program states its operations: three for the sum of two arrays of three."""
    declarations.costs(subject)


@CHAPTER.check(
    "memory_analysis",
    capability="memory_analysis",
    why="programs that fit are refused",
    covers=("Executable.memory_analysis",),
)
def memory_analysis(subject: PluginSubject) -> None:
    """A program states the bytes of its arguments and results."""
    declarations.memory_needs(subject)


@CHAPTER.check(
    "optimized_program",
    capability="optimized_program",
    why="nobody can see what the compiler did",
    covers=("Executable.optimized_program",),
)
def optimized_program(subject: PluginSubject) -> None:
    """The program after optimisation can be read."""
    declarations.optimized_programs(subject)


@CHAPTER.check(
    "fingerprint",
    capability="fingerprint",
    why="caches mix up programs",
    covers=("Executable.fingerprint",),
)
def fingerprint(subject: PluginSubject) -> None:
    """Equal programs have equal fingerprints, and different programs different ones."""
    declarations.fingerprints(subject)


@CHAPTER.check(
    "memory_stats",
    capability="memory_stats",
    why="monitors show no memory, or all of it",
    covers=("Device.memory_stats",),
)
def memory_stats(subject: PluginSubject) -> None:
    """A device states the bytes in use, which grow with an array."""
    declarations.memory_statistics(subject)


@CHAPTER.check(
    "memory_stats.devices", capability="memory_stats",
    why="a monitor shows one device's memory for all",
)  # fmt: skip
def memory_stats_of_devices(subject: PluginSubject) -> None:
    """Each device states the bytes in use of its own memory."""
    for place, device in enumerate(subject.client.addressable_devices()):
        grown = measure_growth(subject.client, device)
        expect(grown >= 1 << 18, f"on device {place}, {1 << 18} bytes more in use", grown)


@CHAPTER.check(
    "memory_stats.bounds", capability="memory_stats", refusable=True,
    why="a user who plans by the peak or by the limit runs out of memory",
)  # fmt: skip
def bounds_of_memory(subject: PluginSubject) -> None:
    """If a device states a peak or a limit of its memory, the bytes in use are not above it."""
    array = subject.put(np.zeros(1 << 16, np.float32))
    array.block_until_ready()
    found = subject.client.addressable_devices()[0].memory_stats()
    stated = [name for name in ("peak_bytes_in_use", "bytes_limit") if found.get(name)]
    if not stated:
        subject.refuse("the device states neither a peak nor a limit")
    used = found["bytes_in_use"]
    for name in stated:
        expect(found[name] >= used, f"{name} of {used}, which are in use, at least", found[name])


@CHAPTER.check(
    "unsafe_pointer",
    capability="unsafe_pointer",
    why="custom kernels read other memory",
    covers=("Buffer.unsafe_pointer",),
)
def unsafe_pointer(subject: PluginSubject) -> None:
    """An array's address is not 0, stays the same, and differs from another array's."""
    x, y = subject.put(ONE), subject.put(ONE)
    first = x.unsafe_pointer()
    expect(first, "an address", first)
    expect_equal(x.unsafe_pointer(), first, "still")
    expect(y.unsafe_pointer() != first, "another address for another array", first)


@CHAPTER.check(
    "dlpack",
    capability="dlpack",
    why="arrays of other libraries arrive scrambled",
    covers=(
        "Buffer.to_dlpack",
        "Buffer.dlpack_device",
        "Client.buffer_from_dlpack",
        "Device.stream_for_external_ready_events",
    ),
)
def dlpack(subject: PluginSubject) -> None:
    """An array is exported by DLPack and imported again, with the same bits."""
    x = subject.put(ONE)
    kind, number = x.dlpack_device()
    expect(kind > 0 and number >= 0, "a DLPack device", (kind, number))
    place = subject.client.devices()[0]
    try:
        stream = place.stream_for_external_ready_events()
    except Unimplemented:
        back = subject.client.buffer_from_dlpack(x.to_dlpack(), place)
    else:
        back = subject.client.buffer_from_dlpack(x.to_dlpack(stream), place, stream)
    expect_same_bits(back.to_host(), ONE, "the array that came back")


@CHAPTER.check(
    "zero_copy_get",
    why="a declaration of zero copies hides one, and doubles the memory",
    rests_on="Capabilities.zero_copy_get",
)
def zero_copy_get(subject: PluginSubject) -> None:
    """If reading without a copy is declared, two reads share their memory."""
    x = subject.put(np.arange(4096, dtype=np.float32))
    first, second = x.to_host(), x.to_host()
    if subject.declared.zero_copy_get:
        same = np.shares_memory(first, second)
        expect_equal(same, True, "np.shares_memory(first, second):")
    expect_same_bits(first, second, "the second reading")


@CHAPTER.check(
    "stablehlo_version",
    level=Level.COMPUTES,
    why="hosts write programs that it cannot read",
    rests_on="PJRT_Plugin_Attributes: stablehlo_current_version",
    demand=Demand.SPEC,
)
def stablehlo_version(subject: PluginSubject) -> None:
    """The stated StableHLO versions are in order, and a program of the newest is read."""
    oldest = subject.declared.stablehlo_minimum_version
    newest = subject.declared.stablehlo_current_version
    if oldest is not None and newest is not None:
        expect(oldest <= newest, f"a minimum up to {newest}", oldest)
    for version in (oldest, newest):
        if version is not None:
            numbers = all(isinstance(n, int) and n >= 0 for n in version)
            expect(numbers and len(version) == 3, "three numbers from 0 on", version)
    subject.compile(programs.ADD)
