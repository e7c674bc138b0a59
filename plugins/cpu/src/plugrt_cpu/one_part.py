"""`for_one_device`: a program of several parts, for jaxlib to load on a single device.

XLA's partitioner turns a program into the program of one part. If that needs no data of the others,
it can run by itself. But jaxlib's serialised executables state how arguments and results are
divided, and jaxlib 0.10 ends the process when it loads one for another number of devices
("sharding's tile count and device count does not match",
``xla/python/pjrt_ifrt/xla_sharding.cc``). So the shardings are removed.

A part may read its replica or partition number, which XLA finds by its device in the device
assignment. So the assignment keeps its shape, with a device of another process in the places of the
other parts: XLA loads the parts of its own process. It is written to the bytes, since jaxlib
refuses an assignment beside them that has unknown devices.

The bytes are a ``SerializedXlaExecutableMetadata``, after its length, and an
``ExecutableAndOptionsProto``.
"""

from __future__ import annotations

from collections.abc import Callable

from plugrt.errors import Unimplemented
from plugrt.wire.protobuf import integer, integers, message, read_varint, varint, without

# Workaround for jaxlib-fewer-devices
_VERSION, _KNOWN_VERSION = 1, 3
_IN_METADATA = {5: {5: None}, 6: {2: None}}
"""Fields of each parameter, and of the results."""

_INSTRUCTION = {40: None}
_MODULE = {3: {2: _INSTRUCTION}, 12: None, 14: None}
"""``HloModuleProto``: computations, with their instructions; shardings of results and arguments."""
_OPTIONS, _BUILD, _ASSIGNMENT = 2, 3, 9
"""The compile options, their ``ExecutableBuildOptionsProto``, and its ``DeviceAssignmentProto``."""
_IN_EXECUTABLE = {1: {1: {1: _MODULE}}, _OPTIONS: {_BUILD: {_ASSIGNMENT: None}}}
_OTHER_PROCESS = 1 << 17
"""A bit of the process's number, which XLA's device ids have from bit 11 on, or from bit 17, by
XLA's version (``kMaxCpuDevicesPerProcess``)."""


def for_one_device(payload: bytes, replicas: int, partitions: int) -> Callable[[int, int], bytes]:
    """Returns a function from a part's number and its device's id to jaxlib's bytes of that part.

    Raises `Unimplemented` for an unknown version of the format, and `ValueError` for other bytes.
    """
    size, start = read_varint(memoryview(payload), 0)
    metadata, executable = payload[start : start + size], payload[start + size :]
    if integers(metadata, _VERSION) != [_KNOWN_VERSION]:
        raise Unimplemented("jaxlib's serialised executables are of a version not known here")
    edited = without(metadata, _IN_METADATA)
    common = varint(len(edited)) + edited + without(executable, _IN_EXECUTABLE)
    counts = integer(1, replicas) + integer(2, partitions)

    def with_device(number: int, device: int) -> bytes:
        replica, partition = divmod(number, partitions)
        other = varint(device ^ _OTHER_PROCESS)
        ids = other * replica + varint(device) + other * (replicas - replica - 1)
        others, column = (message(3, message(1, x)) for x in (other * replicas, ids))
        placed = counts + others * partition + column + others * (partitions - partition - 1)
        # protobuf merges a message that comes twice
        return common + message(_OPTIONS, message(_BUILD, message(_ASSIGNMENT, placed)))

    return with_device
