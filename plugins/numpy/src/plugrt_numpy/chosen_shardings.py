"""`choose_shardings`: chooses shardings where a program states none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from plugrt.interface import CompileOptions, Program
from plugrt.stablehlo.bindings import ir, shardy
from plugrt.stablehlo.entry_attributes import SHARDING, EntryAttributes
from plugrt.stablehlo.modules import bytecode
from plugrt.stablehlo.passes import propagate_shardings
from plugrt_numpy.partitions import read_symbols
from plugrt_sdk import read_module

_GSPMD = "mhlo.sharding"
_MOST_KEPT = 1 << 20
"""The bytes of a program that is kept with its shardings."""


def choose_shardings(program: Program, options: CompileOptions) -> Program:
    """Returns a program whose parameters and results have shardings.

    Shardy's propagation divides those without a sharding, and open dimensions, if the options allow
    it. Anything that it leaves open stays whole, as does everything in GSPMD's form.
    """
    if options.use_auto_spmd_partitioning:
        program = _divide_over_mesh(program, options)
    if options.num_partitions == 1 or b"sdy" not in program.code:
        return program
    settle = _settle if len(program.code) <= _MOST_KEPT else _settle.__wrapped__
    code = settle(
        program.code,
        options.allow_spmd_sharding_propagation_to_parameters,
        options.allow_spmd_sharding_propagation_to_output,
    )
    return program if code is program.code else replace(program, code=code, format="mlir")


@lru_cache(maxsize=1)  # one compilation calls it three times or more
def _settle(code: bytes, of_parameters: tuple[bool, ...], of_results: tuple[bool, ...]) -> bytes:
    """Returns a program with propagated shardings where allowed; itself if nothing is open."""
    module = read_module(Program(code))
    main = read_symbols(module)["main"]
    kind = main.attributes["function_type"].value
    sides = ("arg_attrs", kind.inputs, of_parameters), ("res_attrs", kind.results, of_results)
    left = {key: _find_open(main, key, len(types), may) for key, types, may in sides}
    if not any(left.values()):
        return code
    chosen = ir.Module.parse(bytecode(module), module.context)
    propagate_shardings(chosen)
    found = read_symbols(chosen)["main"]
    with module.context:
        for key, types, _ in sides:
            _copy_shardings(found, main, key, len(types), left[key])
        return bytecode(module)


def _attributes(function: Any, key: str, count: int) -> list[dict[str, ir.Attribute]]:
    if key not in function.attributes:
        return [{} for _ in range(count)]
    return [{a.name: a.attr for a in each} for each in function.attributes[key]]


def _find_open(main: Any, key: str, count: int, allowed: tuple[bool, ...]) -> list[int]:
    """Returns the numbers of the parameters or results that may be divided, and are not yet."""
    every = allowed * count if len(allowed) == 1 else allowed
    return [
        i
        for i, (own, may) in enumerate(zip(_attributes(main, key, count), every, strict=False))
        if may and _GSPMD not in own and (SHARDING not in own or _is_open(own[SHARDING]))
    ]


def _is_open(sharding: ir.Attribute) -> bool:
    """Whether a sharding leaves a dimension to be divided further."""
    sdy = shardy()
    dimensions = sdy.TensorShardingAttr(sharding).dimension_shardings
    return any(not sdy.DimensionShardingAttr(each).is_closed for each in dimensions)


def _copy_shardings(source: Any, target: Any, key: str, count: int, places: Sequence[int]) -> None:
    found, stated = _attributes(source, key, count), _attributes(target, key, count)
    for i in places:
        if SHARDING in found[i] and not list(
            shardy().TensorShardingAttr(found[i][SHARDING]).unreduced_axes
        ):
            stated[i][SHARDING] = found[i][SHARDING]
    target.attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in stated])


def _divide_over_mesh(program: Program, options: CompileOptions) -> Program:
    """Returns a program with a sharding for each parameter that has none, over the options' mesh.

    Each axis of the mesh divides the first dimension that it divides evenly.
    """
    module = read_module(program)
    main = read_symbols(module)["main"]
    with module.context:
        kind = main.attributes["function_type"].value
        shapes = [ir.RankedTensorType(t).shape for t in kind.inputs]
        parameters = tuple(
            () if SHARDING in own or _GSPMD in own else ((SHARDING, _choose(shape, options)),)
            for shape, own in zip(shapes, _attributes(main, "arg_attrs", len(shapes)), strict=True)
        )
    divided = EntryAttributes(parameters, ((),) * len(kind.results), options.num_partitions)
    return replace(program, code=bytecode(divided.add_to(module)), format="mlir")


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
