"""`refuse_two_bit_gathers`: all-gathers of int2 and uint2, which XLA computes wrongly on CPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from plugrt.errors import PjrtError, Unimplemented
from plugrt.hlo_proto import PRIMITIVE_TYPES, read_module
from plugrt.interface import LoadedExecutable
from plugrt.protobuf import Content, integers, messages

_GATHER = b"all-gather"
_OF_TWO_BITS = {
    number: name for number, name in PRIMITIVE_TYPES.items() if name in ("int2", "uint2")
}
_MAY_HAVE = re.compile(rb"\x10[" + bytes(_OF_TWO_BITS) + rb"]")
"""The field of a shape that says such a type. Other fields may look so: the instructions decide."""
_COMPUTATIONS, _INSTRUCTIONS = 3, 2
_OPCODE, _SHAPE = 2, 3
_ELEMENT_TYPE, _TUPLE_SHAPES = 2, 4


def refuse_two_bit_gathers(loaded: LoadedExecutable) -> None:
    """Raises `Unimplemented` where the devices of a program for CPUs gather int2 or uint2.

    XLA's CPU runtime writes past the end of the result, and returns wrong values or ends the
    process, in jaxlib 0.10.2 (under JAX, too) and xla-cpu-pjrt 0.0.1: docs/findings.md. Other
    exchanges of these types are right, or refused by XLA.
    """
    executable = loaded.executable
    if executable.num_replicas * executable.num_partitions == 1 or loaded.client.platform != "cpu":
        return
    try:
        optimized = executable.optimized_program()
    except PjrtError:  # what cannot be read is not known to be wrong
        return
    if _GATHER not in optimized.code or not _MAY_HAVE.search(optimized.code):
        return
    for dtype in _gathered(read_module(optimized)):
        raise Unimplemented(
            f"{executable.name!r} gathers {dtype} from several devices, which XLA's CPU runtime "
            "does wrongly: it returns other values or ends the process. Give it int8, of a "
            "conversion that is a call of its own (within this one XLA moves it behind the "
            "gather), or keep it divided; plugrt.device_put gathers without a program"
        )


def _gathered(module: Content) -> Iterator[str]:
    """Yields the dtypes of two bits that are gathered."""
    for computation in messages(module, _COMPUTATIONS):
        for instruction in messages(computation, _INSTRUCTIONS):
            if any(bytes(name).startswith(_GATHER) for name in messages(instruction, _OPCODE)):
                for shape in messages(instruction, _SHAPE):
                    for part in (shape, *messages(shape, _TUPLE_SHAPES)):
                        kinds = integers(part, _ELEMENT_TYPE)
                        yield from (_OF_TWO_BITS[k] for k in kinds if k in _OF_TWO_BITS)
