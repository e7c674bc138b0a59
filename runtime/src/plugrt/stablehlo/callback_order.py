"""Calls of Python functions in a module: finds them, and orders the ordered ones.

An ordered call is emitted with a mark, so that control flow and inner functions are traced without
regard to the order. `order_callbacks` adds the tokens that keep the order to a finished module.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from plugrt.errors import Unimplemented
from plugrt.interface import HOST_CALLBACK
from plugrt.stablehlo.attributes import text_of
from plugrt.stablehlo.bindings import hlo, ir, register_shardy, shardy
from plugrt.stablehlo.call_attributes import CONFIG_OF_JAX
from plugrt.stablehlo.regions import (
    callee,
    functions_by_name,
    operations_within,
    return_values,
    returned_values,
    retype,
)
from plugrt.stablehlo.shardings import mesh_axes, read_manual_axes
from plugrt.stablehlo.types import is_token

ORDERED = "plugrt.ordered"
"""The attribute that marks an ordered call until it has its token."""
_FIRST_CHANNEL = 1 << 20
"""A trace counts its own channels from 1, and has fewer."""
_DEVICES = "devices"
"""The axis of all devices of a program."""


def add_callback(
    number: int,
    operands: Sequence[ir.Value],
    results: Sequence[ir.Type],
    *,
    effect: bool,
    ordered: bool,
    location: ir.Location,
) -> Any:
    """Adds the call of a Python function to the current block, with row-major arrays.

    With ``effect`` it is made even if nothing uses its results; ``ordered`` calls have an effect.
    """
    made = hlo.CustomCallOp(
        results,
        operands,
        call_target_name=HOST_CALLBACK,
        has_side_effect=effect or ordered,
        backend_config=_config(number),
        api_version=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4),
        called_computations=ir.ArrayAttr.get([]),
        operand_layouts=_row_major([value.type for value in operands]),
        result_layouts=_row_major(results),
        loc=location,
    )
    if ordered:
        made.operation.attributes[ORDERED] = ir.UnitAttr.get()
    return made


def _row_major(types: Sequence[ir.Type]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([_layout(_rank(each)) for each in types])


def _layout(rank: int) -> ir.Attribute:
    order = np.arange(rank, dtype=np.int64)[::-1]  # from the dimension that varies fastest
    return ir.DenseIntElementsAttr.get(order.copy(), type=ir.IndexType.get())


def _rank(each: ir.Type) -> int:
    return 0 if is_token(each) else int(ir.RankedTensorType(each).rank)


def host_callbacks(module: ir.Module) -> list[ir.Operation]:
    """Returns the calls of Python functions in a module."""
    return [op for op in operations_within(module.operation) if _is_callback(op)]


def called_target(op: ir.Operation) -> str:
    """Returns the target of a custom call; an empty text for other operations."""
    if op.name != "stablehlo.custom_call":
        return ""
    return text_of(op.attributes["call_target_name"])


def callback_number(call: ir.Operation) -> int:
    """Returns the number of the function that a call calls."""
    return int(call.attributes["backend_config"]["index"].value)


def number_callbacks_in_order(module: ir.Module) -> None:
    """Gives the functions that a module calls the numbers 1, 2 …, in the order of first calls.

    So programs of different processes, whose functions have different numbers, can be compared.
    """
    numbers: dict[int, int] = {}
    renumber_callbacks(
        module, lambda call: numbers.setdefault(callback_number(call), len(numbers) + 1)
    )


def renumber_callbacks(
    module: ir.Module, number: Callable[[ir.Operation], int], targets: Container[str] = ()
) -> None:
    """Gives the function of each call the number that ``number(call)`` returns.

    Custom calls of ``targets`` become calls of Python functions, too.
    """
    with module.context:
        for call in operations_within(module.operation):
            if _is_callback(call) or called_target(call) in targets:
                config, attributes = _config(number(call)), call.attributes
                attributes["call_target_name"] = ir.StringAttr.get(HOST_CALLBACK)
                attributes["api_version"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4)
                attributes["backend_config"] = config
                if CONFIG_OF_JAX in attributes:
                    del attributes[CONFIG_OF_JAX]


def _config(number: int) -> ir.DictAttr:
    """Returns the attribute with the number of the function to call."""
    unsigned = ir.IntegerType.get_unsigned(64)
    return ir.DictAttr.get({"index": ir.IntegerAttr.get(unsigned, number)})


def call_from_each(
    module: ir.Module, renumbered: Mapping[int, int], partitions: int, *, sends: bool = False
) -> None:
    """Makes each device of a partitioned program call some of the functions.

    They are called with the device's number in the program, an array of one element, and whole
    arrays, under new numbers. A token goes into the region and out of it, so that each device makes
    ordered calls in their order. With ``sends`` all devices get the results of the first device's
    call.
    """
    channels = itertools.count(_FIRST_CHANNEL) if sends else None
    register_shardy(module.context)
    with module.context:
        for call in host_callbacks(module):
            number = renumbered.get(callback_number(call))
            if number is not None:
                with call.location:
                    _call_in_parts(call, number, partitions, channels)


def _call_in_parts(
    call: ir.Operation, number: int, partitions: int, channels: Iterator[int] | None
) -> None:
    """Moves a call into a manual computation, which each device runs.

    The region's operands are the devices' numbers, divided over the devices, and the call's
    operands.
    """
    types = [result.type for result in call.results]
    unsigned = ir.IntegerType.get_unsigned(32)
    numbers_type, part = (ir.RankedTensorType.get([n], unsigned) for n in (partitions, 1))
    operands = [*call.operands]
    wholes = [*map(_whole, operands)]
    place = int(bool(operands) and is_token(operands[0].type))  # a token stays the first
    given = [value.type for value in operands]
    given.insert(place, part)
    with ir.InsertionPoint(call):
        operands.insert(place, hlo.iota(numbers_type, 0))
        wholes.insert(place, f'{{"{_DEVICES}"}}')
        made = (
            shardy()
            .ManualComputationOp(
                types,
                operands,
                _shardings(partitions, wholes),
                _shardings(partitions, [*map(_whole, call.results)]),
                ir.Attribute.parse(f'#sdy<manual_axes{{"{_DEVICES}"}}>'),
            )
            .operation
        )
    block = made.regions[0].blocks.append(*given, arg_locs=[call.location] * len(given))
    with ir.InsertionPoint(block):
        effect = ir.BoolAttr(call.attributes["has_side_effect"]).value
        arguments = [*block.arguments]
        inner = add_callback(
            number, arguments, types, effect=effect, ordered=False, location=call.location
        )
        returned = [*inner.results]
        if channels is not None:
            returned = [
                value if is_token(value.type) else _first_of(value, partitions, next(channels))
                for value in returned
            ]
        shardy().ReturnOp(returned)
    _replace(call, [*made.results])


def _first_of(value: ir.Value, partitions: int, channel: int) -> ir.Value:
    """Returns the first device's value on all devices."""
    kind = ir.RankedTensorType(value.type)
    row, rows = (
        ir.RankedTensorType.get([n, *kind.shape], kind.element_type) for n in (1, partitions)
    )
    groups = np.arange(partitions, dtype=np.int64).reshape(1, partitions)
    gathered = hlo.AllGatherOp(
        [rows],
        [hlo.reshape(row, value)],
        all_gather_dim=0,
        replica_groups=ir.DenseIntElementsAttr.get(groups),
        channel_handle=ir.Attribute.parse(
            f"#stablehlo.channel_handle<handle = {channel}, type = 1>"
        ),
        use_global_device_ids=ir.UnitAttr.get(),
    )
    starts, limits, strides = [0] * (kind.rank + 1), [1, *kind.shape], [1] * (kind.rank + 1)
    first: ir.Value = hlo.reshape(kind, hlo.slice(gathered.results[0], starts, limits, strides))
    return first


def _whole(value: ir.Value) -> str:
    return ", ".join(["{}"] * _rank(value.type))


def _shardings(partitions: int, dimensions: Sequence[str]) -> ir.Attribute:
    """Returns the shardings of several values, each given by the text of its dimensions."""
    bodies = [f'<mesh<["{_DEVICES}"={partitions}]>, [{own}]>' for own in dimensions]
    return ir.Attribute.parse(f"#sdy.sharding_per_value<[{', '.join(bodies)}]>")


def has_ordered(module: ir.Module, block: ir.Block) -> bool:
    """Whether a block has an ordered call, also in its regions and in functions that it calls."""
    return _Order(module).is_ordered(block)


def order_callbacks(module: ir.Module, main: ir.Block) -> None:
    """Makes the ordered calls of a module run in program order.

    Each consumes the token of the one before. Loops carry the token, branches and functions return
    it, and each device has its own in a region that computes one device's part. The condition of a
    loop has no ordered call: its region returns only the condition.
    """
    with ir.InsertionPoint.at_block_begin(main), ir.Location.unknown(module.context):
        token = hlo.create_token()
    _Order(module).thread(main, token)


class _Order:
    """One walk over a module that passes a token from each ordered operation to the next."""

    def __init__(self, module: ir.Module) -> None:
        self._functions = functions_by_name(module)
        self._ordered: dict[str, bool] = {}
        self._done: set[str] = set()

    def thread(self, block: ir.Block, token: ir.Value) -> ir.Value:
        """Passes a token through the ordered operations of a block; returns the last token."""
        for view in list(block.operations)[:-1]:
            op = view.operation
            if self._is_ordered(op):
                token = self._step(op, token)
        return token

    def is_ordered(self, block: ir.Block) -> bool:
        """Whether any operation of a block is ordered."""
        return any(self._is_ordered(view.operation) for view in block.operations)

    def _is_ordered(self, op: ir.Operation) -> bool:
        if op.name == "func.call":
            return self._is_function_ordered(callee(op))
        if _is_callback(op):
            return ORDERED in op.attributes
        return any(self.is_ordered(block) for region in op.regions for block in region.blocks)

    def _is_function_ordered(self, symbol: str) -> bool:
        found = self._ordered.get(symbol)
        if found is None:
            body = self._functions[symbol].operation.regions[0].blocks[0]
            found = self._ordered[symbol] = self.is_ordered(body)
        return found

    def _step(self, op: ir.Operation, token: ir.Value) -> ir.Value:
        if _is_callback(op):
            return self._thread_callback(op, token)
        if op.name == "func.call":
            self._thread_function(callee(op))
        elif op.name == "stablehlo.while":
            condition, body = (region.blocks[0] for region in op.regions)
            condition.add_argument(token.type, op.location)
            self._thread_and_return(body, body.add_argument(token.type, op.location))
        elif op.name == "sdy.manual_computation":
            return self._step_into_parts(op, token)
        else:  # branches use values from outside directly
            for region in op.regions:
                self._thread_and_return(region.blocks[0], token)
            return _add_token(op, [*op.operands], token)
        return _add_token(op, [*op.operands, token], token)

    def _step_into_parts(self, op: ir.Operation, token: ir.Value) -> ir.Value:
        """Passes a token through each device's own computation."""
        sides = {
            side: [*shardy().TensorShardingPerValueAttr(op.attributes[side]).shardings]
            for side in ("in_shardings", "out_shardings")
        }
        mesh = shardy().TensorShardingAttr(next(itertools.chain(*sides.values()))).mesh_or_ref
        axes = read_manual_axes(op.attributes["manual_axes"])
        if left := [n for n, size in mesh_axes(mesh, {}).items() if size > 1 and n not in axes]:
            # Workaround for xla-ordered-call-in-nested-regions
            raise Unimplemented(
                f"a function is called in order within a shard_map over {left} within one over "
                f"{axes}. Map once, over all the axes, or take ordered=False"
            )
        [block] = op.regions[0].blocks
        self._thread_and_return(block, block.add_argument(token.type, op.location))
        whole = shardy().TensorShardingAttr.get(mesh, [])
        for side, stated in sides.items():
            stated.append(whole)
            op.attributes[side] = shardy().TensorShardingPerValueAttr.get(stated)
        return _add_token(op, [*op.operands, token], token)

    def _thread_callback(self, op: ir.Operation, token: ir.Value) -> ir.Value:
        del op.attributes[ORDERED]
        operands = [token, *op.operands]
        results = [token.type, *(result.type for result in op.results)]
        layouts = {
            "operand_layouts": _row_major([value.type for value in operands]),
            "result_layouts": _row_major(results),
        }
        after, *made = retype(op, operands, results, **layouts).results
        _replace(op, made)
        return after

    def _thread_function(self, symbol: str) -> None:
        if symbol in self._done:
            return
        self._done.add(symbol)
        function = self._functions[symbol].operation
        block = function.regions[0].blocks[0]
        token = block.add_argument(hlo.TokenType.get(), function.location)
        self._thread_and_return(block, token)
        results = [value.type for value in returned_values(block)]
        function_type = ir.FunctionType.get([a.type for a in block.arguments], results)
        function.attributes["function_type"] = ir.TypeAttr.get(function_type)

    def _thread_and_return(self, block: ir.Block, token: ir.Value) -> None:
        after = self.thread(block, token)
        return_values(block, [*returned_values(block), after])


def _add_token(op: ir.Operation, operands: list[ir.Value], token: ir.Value) -> ir.Value:
    """Replaces an operation by one that also returns a token, its last result."""
    *made, after = retype(op, operands, [*(r.type for r in op.results), token.type]).results
    _replace(op, made)
    return after


def _replace(op: ir.Operation, made: list[ir.Value]) -> None:
    for old, new in zip(list(op.results), made, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def _is_callback(op: ir.Operation) -> bool:
    return called_target(op) == HOST_CALLBACK
