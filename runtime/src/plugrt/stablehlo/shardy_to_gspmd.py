"""`to_gspmd`: rewrites a module's shardings from Shardy to GSPMD."""

from __future__ import annotations

import math
from typing import Any

from plugrt.errors import Unimplemented
from plugrt.stablehlo.attributes import attribute_names, symbol_of
from plugrt.stablehlo.bindings import ir, shardy
from plugrt.stablehlo.regions import operations_within
from plugrt.stablehlo.shardings import (
    TensorSharding,
    read_manual_axes,
    read_shardy,
    read_shardy_list,
)
from plugrt.stablehlo.types import is_token

_SHARDY, _GSPMD = "sdy.sharding", "mhlo.sharding"
_MANUAL = "{manual}"
"""The sharding of an array that is one device's part."""


def to_gspmd(module: ir.Module) -> None:
    """Replaces a module's Shardy attributes and operations by GSPMD's, in place.

    Parameters and results get ``mhlo.sharding``, and custom calls replace constraints and manual
    computations, as JAX wrote them before Shardy. Raises `Unimplemented` for manual computations
    over only some axes of a mesh, and for Shardy's other operations.
    """
    meshes = {
        str(symbol_of(op)): op.operation
        for op in module.body.operations
        if op.operation.name == "sdy.mesh"
    }
    with module.context, ir.Location.unknown():
        # Names and places are read first: the rewrite of a manual computation erases its terminator
        # and moves the other operations out.
        found = [(op.name, _is_manual(op), op) for op in operations_within(module.operation)]
        for name, manual, operation in found:
            match name:
                case "func.func":
                    _write_entry(operation, meshes)
                case "sdy.sharding_constraint" if manual:  # on a part, which no axis divides
                    operation.results[0].replace_all_uses_with(operation.operands[0])
                    operation.erase()
                case "sdy.sharding_constraint":
                    _write_constraint(operation, meshes)
                case "sdy.manual_computation":
                    _write_manual(operation, meshes)
                case "sdy.mesh" | "sdy.return":
                    pass
                case _:
                    _refuse_others(operation)
        for mesh in meshes.values():
            mesh.erase()


def _is_manual(operation: Any) -> bool:
    """Whether an operation is within a manual computation."""
    parent = operation.parent
    while parent is not None and parent.name != "sdy.manual_computation":
        parent = parent.parent
    return parent is not None


def gspmd_text(sharding: TensorSharding) -> str:
    """Returns XLA's text of a sharding, such as ``{devices=[2,1,4]0,1,2,3,4,5,6,7 …}``."""
    parts, devices = sharding.counts, sharding.devices
    copies = len(devices) // math.prod(parts)
    if copies == len(devices):
        return "{replicated}"
    order = sorted(range(len(devices)), key=lambda place: (sharding.tile(place), place))
    sizes = ",".join(map(str, [*parts, copies] if copies > 1 else parts))
    listed = ",".join(str(devices[place]) for place in order)
    return f"{{devices=[{sizes}]{listed}{' last_tile_dim_replicate' if copies > 1 else ''}}}"


def _write_entry(function: Any, meshes: dict[str, object]) -> None:
    for key in ("arg_attrs", "res_attrs"):
        if key not in function.attributes:
            continue
        written = []
        for each in function.attributes[key]:
            found = {a.name: a.attr for a in each}
            stated = found.pop(_SHARDY, None)
            if stated is not None:
                found[_GSPMD] = ir.StringAttr.get(gspmd_text(read_shardy(stated, meshes)))
            written.append(ir.DictAttr.get(found))
        function.attributes[key] = ir.ArrayAttr.get(written)


def _call(
    target: str, value: Any, result: ir.Type, sharding: str, before: Any, config: str
) -> object:
    attributes = {
        "call_target_name": target, "backend_config": config, _GSPMD: sharding,
    }  # fmt: skip
    made = ir.Operation.create(
        "stablehlo.custom_call",
        results=[result],
        operands=[value],
        attributes={name: ir.StringAttr.get(text) for name, text in attributes.items()},
        loc=before.location,
        ip=ir.InsertionPoint(before),
    )
    return made.results[0]


def _write_constraint(operation: Any, meshes: dict[str, object]) -> None:
    sdy, [value] = shardy(), operation.operands
    stated = operation.attributes["sharding"]
    dimensions = map(sdy.DimensionShardingAttr, sdy.TensorShardingAttr(stated).dimension_shardings)
    is_open = [str(i) for i, dimension in enumerate(dimensions) if not dimension.is_closed]
    config = f"unspecified_dims=[{','.join(is_open)}]" if is_open else ""
    text = gspmd_text(read_shardy(stated, meshes))
    made = _call("Sharding", value, value.type, text, operation, config)
    operation.results[0].replace_all_uses_with(made)
    operation.erase()


def _write_manual(operation: Any, meshes: dict[str, object]) -> None:
    """Inlines a manual computation between calls that convert whole arrays to parts and back."""
    given = read_shardy_list(operation.attributes["in_shardings"], meshes)
    gives = read_shardy_list(operation.attributes["out_shardings"], meshes)
    _require_all_axes(operation)
    [block] = operation.regions[0].blocks
    for value, argument, sharding in zip(operation.operands, block.arguments, given, strict=True):
        if is_token(value.type):
            argument.replace_all_uses_with(value)
            continue
        text = gspmd_text(sharding)
        placed = _call("Sharding", value, value.type, text, operation, "")
        part = _call("SPMDFullToShardShape", placed, argument.type, _MANUAL, operation, "")
        argument.replace_all_uses_with(part)
    *inner, last = [view.operation for view in block.operations]
    for each in inner:
        each.move_before(operation)
        for call in operations_within(each):  # propagation gives tokens no sharding
            if call.name == "stablehlo.custom_call" and all(is_token(r.type) for r in call.results):
                call.attributes[_GSPMD] = ir.StringAttr.get(_MANUAL)
    for value, result, sharding in zip(last.operands, operation.results, gives, strict=True):
        if is_token(value.type):
            result.replace_all_uses_with(value)
            continue
        text = gspmd_text(sharding)
        part = _call("Sharding", value, value.type, _MANUAL, operation, "")
        whole = _call("SPMDShardToFullShape", part, result.type, text, operation, "")
        result.replace_all_uses_with(whole)
    last.erase()
    operation.erase()


def _require_all_axes(operation: Any) -> None:
    named = set(read_manual_axes(operation.attributes["manual_axes"]))
    stated = operation.attributes["in_shardings"], operation.attributes["out_shardings"]
    sdy = shardy()
    for attribute in stated:
        for sharding in sdy.TensorShardingPerValueAttr(attribute).shardings:
            mesh = sdy.MeshAttr(sdy.TensorShardingAttr(sharding).mesh_or_ref)
            axes = [sdy.MeshAxisAttr(axis).name for axis in mesh.axes]
            if left := [name for name in axes if name not in named]:
                raise Unimplemented(
                    f"shard_map over {sorted(named)} alone, of a mesh with {axes}: GSPMD is not "
                    f"told to divide over {left[0]!r} within it. It needs Shardy "
                    "(config.use_shardy_partitioner, JAX_USE_SHARDY_PARTITIONER)"
                )


def _refuse_others(operation: Any) -> None:
    name = next((a for a in attribute_names(operation) if a.startswith("sdy.")), "")
    if operation.name.startswith("sdy.") or name:
        raise Unimplemented(
            f"{operation.name}{f' with {name}' if name else ''} has no form for GSPMD; it needs "
            "Shardy (config.use_shardy_partitioner, JAX_USE_SHARDY_PARTITIONER)"
        )
