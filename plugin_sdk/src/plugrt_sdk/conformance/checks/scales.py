"""Level 4: launches on several devices. A client of one device must refuse them."""

from __future__ import annotations

from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.expect import expect_equal, expect_same_bits
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import launches, programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter("scales", Level.SCALES, "StableHLO specification: Parallel execution")


@CHAPTER.check(
    "each_device",
    needs=Needs.TWO_DEVICES,
    why="all work lands on the first device",
)
def each_device(subject: PluginSubject) -> None:
    """A program runs on the device that it is compiled for, and its result is on it."""
    launches.each_device_computes(subject)


@CHAPTER.check(
    "replicas",
    needs=Needs.TWO_DEVICES,
    capability="multiple_devices",
    why="pmap gives each device another's data",
)
def replicas(subject: PluginSubject) -> None:
    """Two replicas run on their assigned devices, each with its own data."""
    launches.replicas(subject)


@CHAPTER.check(
    "all_reduce", needs=Needs.TWO_DEVICES, capability="collectives", why="gradients are not summed"
)
def all_reduce(subject: PluginSubject) -> None:
    """all_reduce gives each of two replicas the sum over both."""
    launches.collectives(subject)


@CHAPTER.check(
    "all_reduce.repeated",
    needs=Needs.TWO_DEVICES,
    capability="collectives",
    why="the second step of a loop hangs, or takes the first one's data",
)
def all_reduce_repeated(subject: PluginSubject) -> None:
    """Twenty launches that exchange data, one after the other, return their own results."""
    program = subject.compile_for(programs.ALL_REDUCE, 0, 1)
    for i in range(20):
        [results] = program.execute([(subject.put(ONE * i, 0), subject.put(ONE, 1))])
        for buffer in results:
            expect_same_bits(buffer.to_host(), ONE * (i + 1), f"the sum of launch {i}")


@CHAPTER.check(
    "partitions",
    needs=Needs.TWO_DEVICES,
    capability="partitions",
    why="a sharded array is put together wrong",
)
def partitions(subject: PluginSubject) -> None:
    """A program for a whole array runs on two devices that have a half each."""
    launches.partitions(subject)


@CHAPTER.check(
    "devices_of_program",
    needs=Needs.TWO_DEVICES,
    capability="multiple_devices",
    why="hosts place arguments where the program does not run",
    covers=("LoadedExecutable.addressable_devices",),
)
def devices_of_program(subject: PluginSubject) -> None:
    """A program states its devices in the order of its assignment."""
    program = subject.compile_for(programs.ADD, 1, 0)
    wanted = [subject.client.devices()[i].id for i in (1, 0)]
    expect_equal([d.id for d in program.addressable_devices], wanted, "devices")
