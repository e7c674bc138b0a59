"""The ``main`` function of a traced module: parameters, results, forwarding and aliasing."""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from plugrt.execution.placement.plan import Source
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.frames.traceback_filter import warn_user
from plugrt.interface import TensorType
from plugrt.settings.declarations import config
from plugrt.stablehlo.bindings import func, ir
from plugrt.stablehlo.dead_code import erase_arguments, is_used, return_only
from plugrt.stablehlo.modules import rename
from plugrt.stablehlo.regions import returned_values
from plugrt.tracing.mlir_constants import constant_data, constant_nbytes
from plugrt.tracing.trace import Trace

_LITERAL = 1 << 16
"""Constant outputs up to this size in bytes are put on the device by each call, not computed."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A flat argument of a function to be traced."""

    type: TensorType
    weak: bool = False
    name: str = ""
    donated: bool = False
    sharding: NamedSharding | None = None
    """The sharding over Explicit axes in the parameter's type, if it has one."""


def add_main(trace: Trace, name: str, types: list[ir.Type]) -> func.FuncOp:
    """Adds ``main``, without a body, to the module."""
    rename(trace.module, f"jit_{name}")
    main = func.FuncOp(
        "main", ir.FunctionType.get(types, []), ip=ir.InsertionPoint(trace.module.body)
    )
    main.attributes["sym_visibility"] = ir.StringAttr.get("public")
    return main


def route_outputs(
    trace: Trace,
    block: ir.Block,
    parameters: Sequence[Parameter],
    forward: bool,
    placed: Collection[int] = (),
) -> tuple[list[Source], list[int], list[npt.NDArray[Any]]]:
    """Decides the source of each output, and removes from ``main`` the outputs that bypass it.

    Outputs numbered in ``placed`` stay, since the program puts them in a memory. Returns the
    sources, the positions of the outputs that ``main`` returns, and the literals: small constants,
    unless the program has something to compute anyway.
    """
    values = returned_values(block)
    known: dict[ir.Value, Source] = {}
    if forward:
        for i, (value, p) in enumerate(zip(block.arguments, parameters, strict=False)):
            if not p.donated:
                known[value] = ("argument", i)
        for i, captured in enumerate(trace.captured.values()):
            known[captured.value] = ("constant", i)
    elsewhere = [v for v in values if v not in known]
    literals = _literals(trace, elsewhere) if forward and not placed else None
    sources: list[Source] = []
    results: list[int] = []
    for position, value in enumerate(values):
        if value not in known and literals is not None:
            known[value] = ("literal", [*literals].index(value))
        if value in known and position not in placed:
            sources.append(known[value])
        else:
            sources.append(("result", len(results)))
            results.append(position)
    return_only(block, [origin == "result" for origin, _ in sources])
    for value in trace.root.constants.values():
        if not is_used(value):
            value.owner.erase()
    return sources, results, [*(literals or {}).values()]


def _literals(trace: Trace, values: Sequence[ir.Value]) -> dict[ir.Value, npt.NDArray[Any]] | None:
    """Returns the contents of values that are small constants; None if one is anything else."""
    constants = {value: key for key, value in trace.root.constants.items()}
    found = {}
    for value in values:
        key = constants.get(value)
        if key is None or constant_nbytes(key) > _LITERAL:
            return None
        found[value] = constant_data(key)
    return found


def has_effects(block: ir.Block) -> bool:
    """Whether a block without results and dead code has a side effect."""
    return any(op.operation.name != "stablehlo.constant" for op in [*block.operations][:-1])


def prune(block: ir.Block, parameters: Sequence[Parameter], keep_unused: bool) -> list[int]:
    """Drops unused parameters, unless ``keep_unused``; returns the others."""
    own = len(parameters)
    used = [keep_unused or i >= own or is_used(a) for i, a in enumerate(block.arguments)]
    erase_arguments(block, used)
    return [i for i in range(own) if used[i]]


def prune_constants(
    trace: Trace, block: ir.Block, first: int, sources: list[Source]
) -> tuple[list[object], int]:
    """Drops unused captured values and renumbers ``sources``.

    Returns the data of the values that remain. First come those that the program uses, which are
    its parameters, then those that are only returned. Also returns the number of the former.
    """
    captured = [*trace.captured.values()]
    if not captured:
        return [], 0
    used = [is_used(block.arguments[first + i]) for i in range(len(captured))]
    erase_arguments(block, [True] * first + used)
    fed = [i for i, u in enumerate(used) if u]
    passed = [i for origin, i in sources if origin == "constant" and not used[i]]
    order = [*dict.fromkeys((*fed, *passed))]
    sources[:] = [(origin, order.index(i) if origin == "constant" else i) for origin, i in sources]
    return [captured[i].data for i in order], len(fed)


def warn_of_constants(constants: Sequence[Any], name: str) -> None:
    """Warns if the captured values reach ``config.captured_constants_warn_bytes``."""
    if not constants:
        return
    most = config.captured_constants_warn_bytes
    nbytes = sum(math.prod(c.shape) * c.dtype.itemsize for c in constants)
    if 0 <= most <= nbytes:
        largest = max(constants, key=lambda c: math.prod(c.shape) * c.dtype.itemsize)
        warn_user(
            f"{name!r} closes over {len(constants)} arrays with {nbytes / 1e6:.3g} MB together, "
            f"the largest {TensorType(largest.shape, largest.dtype)}: they stay on the device as "
            "long as the program. Pass them as arguments, or set captured_constants_warn_bytes "
            "(JAX_CAPTURED_CONSTANTS_WARN_BYTES) to -1"
        )


def set_type(main: func.FuncOp, block: ir.Block) -> None:
    """Gives ``main`` the type that its body has."""
    results = [value.type for value in returned_values(block)]
    function_type = ir.FunctionType.get([a.type for a in block.arguments], results)
    main.attributes["function_type"] = ir.TypeAttr.get(function_type)


def name_results(main: func.FuncOp, count: int) -> None:
    """Names the results as JAX does."""
    named = ir.DictAttr.get
    main.attributes["res_attrs"] = ir.ArrayAttr.get(
        [
            named(
                {"jax.result_info": ir.StringAttr.get("result" if count == 1 else f"result[{i}]")}
            )
            for i in range(count)
        ]
    )


def alias_donated(
    main: func.FuncOp,
    parameters: Sequence[Parameter],
    kept: list[int],
    results: Sequence[TensorType],
    others: Sequence[TensorType],
) -> tuple[list[int], list[int]]:
    """Pairs donated parameters with results; returns the indices with and without a result.

    Pairs equal types first, then types of equal size, as XLA does. ``others`` are the types of
    results that the program does not compute: the call deletes a parameter of such a pair, too.
    """
    free: dict[int, TensorType] = dict(enumerate([*results, *others]))
    attributes: list[dict[str, ir.Attribute]] = [{} for _ in main.entry_block.arguments]
    wanted = {i: p.type for i, p in enumerate(parameters) if p.donated}
    found: dict[int, int] = {}
    for fits in (operator.eq, _is_as_large):
        for i in sorted(wanted.keys() & set(kept) - found.keys()):
            match = next((j for j, result in free.items() if fits(result, wanted[i])), None)
            if match is None:
                continue
            found[i] = match
            result = free.pop(match)
            if match < len(results) and result == wanted[i]:
                i32 = ir.IntegerType.get_signless(32)
                attributes[kept.index(i)]["tf.aliasing_output"] = ir.IntegerAttr.get(i32, match)
            else:
                attributes[kept.index(i)]["jax.buffer_donor"] = ir.BoolAttr.get(True)
    donated = sorted(found)
    if donated:
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in attributes])
    return donated, sorted(wanted.keys() - found.keys())


def _is_as_large(one: TensorType, other: TensorType) -> bool:
    """Whether arrays of two types have the same size: XLA then lets them share donated memory."""
    sizes = [math.prod(each.shape) * each.dtype.itemsize for each in (one, other)]
    return sizes[0] == sizes[1]
