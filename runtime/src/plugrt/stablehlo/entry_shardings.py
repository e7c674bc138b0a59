"""Reads the shardings of a program's arguments and results as ``xla.OpSharding``."""

from __future__ import annotations

import math
from typing import Any

from plugrt.stablehlo.attributes import symbol_of, text_of
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.shardings import TensorSharding, read_gspmd, read_shardy
from plugrt.wire.hlo_proto import WHOLE, write_tiles

_COUNT = "mhlo.num_partitions"


def main_shardings(module: ir.Module) -> tuple[list[bytes], list[bytes]] | None:
    """Returns the sharding of each parameter and of each result of ``main``.

    Those without one get `WHOLE`. Returns None for a module without any sharding. Raises the errors
    of `read_shardy` and `read_gspmd`.
    """
    operations = list(module.body.operations)
    meshes = {op.sym_name.value: op for op in operations if op.operation.name == "sdy.mesh"}
    [main] = [op for op in operations if symbol_of(op) == "main"]
    signature = main.attributes["function_type"].value
    stated = module.operation.attributes
    partitions = ir.IntegerAttr(stated[_COUNT]).value if _COUNT in stated else 1

    def read(key: str, number: int) -> list[bytes]:
        if key not in main.attributes:
            return [WHOLE] * number
        return [_read(ir.DictAttr(each), meshes, partitions) for each in main.attributes[key]]

    parameters = read("arg_attrs", len(signature.inputs))
    results = read("res_attrs", len(signature.results))
    if not meshes and not any((*parameters, *results)):
        return None
    return parameters, results


def _read(attributes: Any, meshes: dict[str, object], partitions: int) -> bytes:
    if "sdy.sharding" in attributes:
        return op_sharding(read_shardy(attributes["sdy.sharding"], meshes, unreduced=True))
    if "mhlo.sharding" in attributes:
        return op_sharding(read_gspmd(text_of(attributes["mhlo.sharding"]), partitions))
    return WHOLE


def op_sharding(sharding: TensorSharding) -> bytes:
    """Returns the ``xla.OpSharding`` of an array, serialised.

    A mesh of one device (``<[], device_ids=[5]>``) divides nothing: its arrays are replicated.
    """
    devices = sharding.devices
    order = sorted(
        range(len(devices)),
        key=lambda position: (sharding.tile(position), sharding.term(position), position),
    )
    terms = math.prod(axis.size for axis in sharding.summed)
    return write_tiles(sharding.counts, [devices[position] for position in order], terms)
