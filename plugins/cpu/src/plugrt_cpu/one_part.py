"""`for_one_device`: a program of several partitions, for jaxlib to load on a single device.

XLA's partitioner turns a program into the program of one part. If that neither reads its partition
id nor needs data of the others, it can run on any device by itself. But jaxlib's serialised
executables state how arguments and results are divided, and jaxlib 0.10 ends the process when it
loads one for another number of devices ("sharding's tile count and device count does not match",
``xla/python/pjrt_ifrt/xla_sharding.cc``). So the shardings are removed.

The bytes are a ``SerializedXlaExecutableMetadata``, after its length, and an
``ExecutableAndOptionsProto``.
"""

from __future__ import annotations

from plugrt.errors import Unimplemented
from plugrt.wire.protobuf import integers, read_varint, varint, without

# Workaround for jaxlib-fewer-devices
_VERSION, _KNOWN_VERSION = 1, 3
_IN_METADATA = {5: {5: None}, 6: {2: None}}
"""Fields of each parameter, and of the results."""

_INSTRUCTION = {40: None}
_MODULE = {3: {2: _INSTRUCTION}, 12: None, 14: None}
"""``HloModuleProto``: computations, with their instructions; shardings of results and arguments."""
_IN_EXECUTABLE = {1: {1: {1: _MODULE}}}


def for_one_device(payload: bytes) -> bytes:
    """Returns jaxlib's serialised executable without its shardings.

    Raises `Unimplemented` for an unknown version of the format, and `ValueError` for other bytes.
    """
    size, start = read_varint(memoryview(payload), 0)
    metadata, executable = payload[start : start + size], payload[start + size :]
    if integers(metadata, _VERSION) != [_KNOWN_VERSION]:
        raise Unimplemented("jaxlib's serialised executables are of a version not known here")
    edited = without(metadata, _IN_METADATA)
    return varint(len(edited)) + edited + without(executable, _IN_EXECUTABLE)
