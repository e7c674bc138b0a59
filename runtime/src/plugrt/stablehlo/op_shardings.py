"""What a program says of how its arguments and results lie on devices, as ``xla.OpSharding``."""

from __future__ import annotations

import math
from typing import Any

from plugrt.protobuf import integer, message, varint
from plugrt.stablehlo.attributes import symbol_of
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.shardings import TensorSharding, read_shardy

REPLICATED = b""
"""The sharding of an array that every device has whole."""

_OTHER = 3


def main_shardings(module: ir.Module) -> tuple[list[bytes], list[bytes]] | None:
    """Returns the sharding of each parameter and of each result of ``main``.

    What carries none is `REPLICATED`. None for a module without a mesh: JAX states shardings in
    Shardy's dialect, by the axes of one. Raises what `read_shardy` raises.
    """
    operations = list(module.body.operations)
    meshes = {op.sym_name.value: op for op in operations if op.operation.name == "sdy.mesh"}
    if not meshes:
        return None
    [main] = [op for op in operations if symbol_of(op) == "main"]
    signature = main.attributes["function_type"].value
    return (
        _shardings(main, "arg_attrs", len(signature.inputs), meshes),
        _shardings(main, "res_attrs", len(signature.results), meshes),
    )


def _shardings(main: Any, where: str, count: int, meshes: dict[str, Any]) -> list[bytes]:
    if where not in main.attributes:
        return [REPLICATED] * count
    dictionaries = [ir.DictAttr(d) for d in main.attributes[where]]
    return [
        op_sharding(read_shardy(d["sdy.sharding"], meshes)) if "sdy.sharding" in d else REPLICATED
        for d in dictionaries
    ]


def op_sharding(sharding: TensorSharding) -> bytes:
    """Returns the ``xla.OpSharding`` of an array, serialised.

    A mesh of one device (``<[], device_ids=[5]>``) divides nothing: its arrays are whole.
    """
    counts = sharding.counts
    parts = math.prod(counts)
    if parts == 1:
        return REPLICATED
    devices = sharding.devices
    order = sorted(range(len(devices)), key=lambda position: (sharding.tile(position), position))
    copies = len(devices) // parts
    tiles = [*counts, copies] if copies > 1 else counts
    return b"".join(
        (
            integer(1, _OTHER),
            message(3, b"".join(map(varint, tiles))),
            message(4, b"".join(varint(devices[position]) for position in order)),
            integer(6, 1) if copies > 1 else b"",
        )
    )
