"""Checks each capability of a client: if declared, it works; if not, it is refused."""

from __future__ import annotations

import numpy as np

from plugrt.errors import FailedPrecondition, InvalidArgument, Unimplemented
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.device_memory import measure_growth
from plugrt_sdk.testing.subject import ONE, Subject


def serialization(subject: Subject) -> None:
    """A program is saved, loaded and launched; invalid bytes are not loaded."""

    def step() -> None:
        saved = subject.compile(programs.ADD).executable.serialize()
        loaded = subject.client.deserialize_executable(saved)
        [[total]] = loaded.execute([(subject.put(ONE),), (subject.put(ONE),)])
        np.testing.assert_array_equal(total.to_host(), 2 * ONE)

    subject.check_declared("executable_serialization", step, Unimplemented)


def costs(subject: Subject) -> None:
    """A program states the numbers of its operations and of the bytes that they access."""

    def step() -> None:
        found = subject.compile(programs.ADD).executable.cost_analysis()
        assert found["flops"] == 3

    subject.check_declared("cost_analysis", step, Unimplemented)


def memory_needs(subject: Subject) -> None:
    """A program states the bytes of its arguments and results."""

    def step() -> None:
        found = subject.compile(programs.ADD).executable.memory_analysis()
        assert (found.argument_size_in_bytes, found.output_size_in_bytes) == (24, 12)

    subject.check_declared("memory_analysis", step, Unimplemented)


def optimized_programs(subject: Subject) -> None:
    """The program after optimisation can be read back."""

    def step() -> None:
        assert subject.compile(programs.ADD).executable.optimized_program().code

    subject.check_declared("optimized_program", step, Unimplemented)


def fingerprints(subject: Subject) -> None:
    """Equal programs have equal fingerprints, and different programs different ones."""

    def step() -> None:
        first, again, other = (
            subject.compile(text).executable.fingerprint()
            for text in (programs.ADD, programs.ADD, programs.DONATING_ADD)
        )
        assert first == again != other

    subject.check_declared("fingerprint", step, Unimplemented)


def copies(subject: Subject) -> None:
    """An array is copied to each other device, and to its own."""

    def step() -> None:
        for device in subject.client.devices()[1:]:
            copy = x.copy_to_device(device)
            assert copy.device is device
            np.testing.assert_array_equal(copy.to_host(), ONE)

    x = subject.put(ONE)
    if len(subject.client.devices()) > 1:
        subject.check_declared("device_to_device_copy", step, Unimplemented)


def memories(subject: Subject) -> None:
    """An array is put in each memory of its device, and copied from there to the default one."""
    device = subject.client.devices()[0]
    assert (len(device.memories()) > 1) == subject.declared.memory_kinds
    for memory in device.memories():
        x = subject.client.buffer_from_host(ONE, device, memory)
        assert x.memory is memory
        np.testing.assert_array_equal(x.to_host(), ONE)
    try:
        back = x.copy_to_memory(device.default_memory())
    except Unimplemented:
        assert not subject.declared.memory_kinds
    else:
        np.testing.assert_array_equal(back.to_host(), ONE)


def memory_statistics(subject: Subject) -> None:
    """A device states how many bytes are in use, which grow with an array."""

    def step() -> None:
        grown = measure_growth(subject.client, subject.client.devices()[0])
        assert grown >= 1 << 18, grown

    subject.check_declared("memory_stats", step, Unimplemented)


def nonsense_is_not_loaded(subject: Subject) -> None:
    """Bytes that no program was saved as are refused."""
    try:
        subject.client.deserialize_executable(b"nonsense")
    except (InvalidArgument, FailedPrecondition, Unimplemented):
        return
    raise AssertionError("deserialize_executable(b'nonsense') returned a program")
