"""``in_parts`` and ``out_parts`` of `xla_computation`: into how many parts arrays are divided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from plugrt.errors import ArgumentError, ArgumentTypeError, ShapeError
from plugrt.execution.trees import tree
from plugrt.execution.trees.tree_prefixes import spread_prefix
from plugrt.interface import TensorType
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.regions import functions_by_name

Parts: TypeAlias = tuple[int, ...] | None
"""Into how many parts each dimension of an array is divided; None: each device has all of it."""


def read_parts(what: str, prefix: Any, full: Any, types: Sequence[TensorType]) -> list[Parts]:
    """Returns the parts of each leaf of ``full``, of which ``prefix`` is a pytree prefix.

    A leaf of the prefix is None or a tuple of positive integers, one for each dimension. Raises
    `ArgumentTypeError`, `StructureError` and `ShapeError`, which name ``what`` was wrong.
    """
    for leaf in tree.flatten_with_none(prefix, _is_parts)[0]:
        if leaf is not None and not _is_parts(leaf):
            raise ArgumentTypeError(
                f"{what} takes None or a tuple of positive integers, such as (2, 1), for each "
                f"array; got {leaf!r:.80}"
            )
    found = spread_prefix(prefix, full, what, "what it divides", _is_parts)
    for parts, one in zip(found, types, strict=True):
        if parts is not None and len(parts) != len(one.shape):
            raise ShapeError(
                f"{what} divides {one} into {parts}: that is {len(parts)} numbers for "
                f"{len(one.shape)} dimensions"
            )
    return found


def _is_parts(x: Any) -> bool:
    return isinstance(x, tuple) and bool(x) and all(type(n) is int and n > 0 for n in x)


def state_parts(
    module: ir.Module, arguments: Sequence[Parts] | None, results: Sequence[Parts] | None
) -> None:
    """Writes the parts into ``main``, as GSPMD's shardings of its parameters and results.

    Raises `ArgumentError` where two arrays are divided over different numbers of devices.
    """
    stated = [parts for parts in (*(arguments or ()), *(results or ())) if parts]
    counts = {math.prod(parts): parts for parts in stated if math.prod(parts) > 1}
    if len(counts) > 1:
        raise ArgumentError(
            "in_parts and out_parts divide arrays over different numbers of devices: "
            + ", ".join(f"{parts} over {count}" for count, parts in counts.items())
        )
    main = functions_by_name(module)["main"]
    with module.context:
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), max(counts, default=1))
        module.operation.attributes["mhlo.num_partitions"] = number
        for key, parts_of in (("arg_attrs", arguments), ("res_attrs", results)):
            if parts_of is not None:
                _add_attributes(main, key, [_gspmd(parts) for parts in parts_of])


def _gspmd(parts: Parts) -> str:
    if parts is None or math.prod(parts) == 1:
        return "{replicated}"
    devices = ",".join(map(str, range(math.prod(parts))))
    return f"{{devices=[{','.join(map(str, parts))}]{devices}}}"


def _add_attributes(main: Any, key: str, shardings: Sequence[str]) -> None:
    before = [*ir.ArrayAttr(main.attributes[key])] if key in main.attributes else []
    dictionaries = [{named.name: named.attr for named in ir.DictAttr(d)} for d in before] or [
        {} for _ in shardings
    ]
    for attributes, sharding in zip(dictionaries, shardings, strict=True):
        attributes["mhlo.sharding"] = ir.StringAttr.get(sharding)
    main.attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get(d) for d in dictionaries])
