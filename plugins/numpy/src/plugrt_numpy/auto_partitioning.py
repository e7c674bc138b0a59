"""`choose_shardings`: a program whose parameters are divided over a mesh as the backend likes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from plugrt.interface import CompileOptions, Program
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.entry_attributes import SHARDING, EntryAttributes
from plugrt.stablehlo.modules import bytecode
from plugrt_numpy.partitions import read_symbols
from plugrt_sdk import read_module


def choose_shardings(program: Program, options: CompileOptions) -> Program:
    """Returns a program with a sharding for each parameter that has none, where options ask so.

    Each axis of the mesh divides the first dimension that it divides evenly.
    """
    if not options.use_auto_spmd_partitioning:
        return program
    module = read_module(program)
    main = read_symbols(module)["main"]
    with module.context:
        kind = main.attributes["function_type"].value
        shapes = [ir.RankedTensorType(t).shape for t in kind.inputs]
        stated = [*main.attributes["arg_attrs"]] if "arg_attrs" in main.attributes else []
        stated += [{}] * (len(shapes) - len(stated))
        parameters = tuple(
            () if _is_stated(own) else ((SHARDING, _choose(shape, options)),)
            for shape, own in zip(shapes, stated, strict=True)
        )
    divided = EntryAttributes(parameters, ((),) * len(kind.results), options.num_partitions)
    return replace(program, code=bytecode(divided.add_to(module)), format="mlir")


def _is_stated(attributes: Any) -> bool:
    return "sdy.sharding" in attributes or "mhlo.sharding" in attributes


def _choose(shape: Sequence[int], options: CompileOptions) -> str:
    """Returns Shardy's attribute for an array, over the mesh of the options."""
    left, axes = list(shape), []
    of_each: list[list[str]] = [[] for _ in shape]
    for number, size in enumerate(options.auto_spmd_partitioning_mesh_shape):
        axes.append(f'"{number}"={size}')
        for dimension, n in enumerate(left):
            if n and n % size == 0:
                left[dimension] = n // size
                of_each[dimension].append(f'"{number}"')
                break
    ids = list(options.auto_spmd_partitioning_mesh_ids)
    order = "" if ids == [*range(len(ids))] else f", device_ids={ids}"
    dimensions = ", ".join(f"{{{', '.join(own)}}}" for own in of_each)
    return f"#sdy.sharding<mesh<[{', '.join(axes)}]{order}>, [{dimensions}]>"
