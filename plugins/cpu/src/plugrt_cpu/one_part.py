"""`for_one_device`: a program of several partitions, as jaxlib loads it on a single device.

After XLA's partitioner a program is that of one part. If it asks neither which part it is nor for
data of the others, it can run on any device by itself. But jaxlib's serialised executables state
how arguments and results are divided, and jaxlib 0.10 ends the process where it loads one for
another number of devices ("sharding's tile count and device count does not match",
``xla/python/pjrt_ifrt/xla_sharding.cc``). So that is left out.

The bytes are a ``SerializedXlaExecutableMetadata``, after its length, and an
``ExecutableAndOptionsProto``.
"""

from __future__ import annotations

from plugrt.errors import Unimplemented
from plugrt.wire.protobuf import integers, read_varint, varint, without

_VERSION, _KNOWN_VERSION = 1, 3
_IN_METADATA = {5: {5: None}, 6: {2: None}}
"""Of each parameter, and of the results."""

_INSTRUCTION = {40: None}
_MODULE = {3: {2: _INSTRUCTION}, 12: None, 14: None}
"""``HloModuleProto``: computations, with their instructions; shardings of results and arguments."""
_IN_EXECUTABLE = {1: {1: {1: _MODULE}}}


def for_one_device(payload: bytes) -> bytes:
    """Returns jaxlib's serialised executable without what it states of its partitions.

    Raises `Unimplemented` for a version of the format that is not known here, and `ValueError` for
    what is no such executable.
    """
    size, start = read_varint(memoryview(payload), 0)
    metadata, executable = payload[start : start + size], payload[start + size :]
    if integers(metadata, _VERSION) != [_KNOWN_VERSION]:
        raise Unimplemented("jaxlib's serialised executables are of a version not known here")
    edited = without(metadata, _IN_METADATA)
    return varint(len(edited)) + edited + without(executable, _IN_EXECUTABLE)
