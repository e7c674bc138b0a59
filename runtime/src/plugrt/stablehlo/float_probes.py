"""A copy of a program that reports from which operation its results have a NaN or an infinity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plugrt.errors import UnsupportedDtype
from plugrt.stablehlo.bindings import hlo, ir
from plugrt.stablehlo.diagnostics import file_and_line
from plugrt.stablehlo.entry_attributes import forget_donation
from plugrt.stablehlo.float_faults import holds_one, is_floating
from plugrt.stablehlo.manual_scalars import ManualScalars
from plugrt.stablehlo.modules import bytecode, parse
from plugrt.stablehlo.regions import (
    functions_by_name,
    inline_calls,
    return_values,
    returned_values,
    retype,
    terminator,
)
from plugrt.stablehlo.types import ir_type_to_tensor_type, tensor_type

_REDUCTIONS = ("stablehlo.reduce", "stablehlo.reduce_window")
_COLLECTIVES = (
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_permute",
    "stablehlo.reduce_scatter",
)
_ONE_TO_ONE = (*_COLLECTIVES, "stablehlo.optimization_barrier", "stablehlo.sort")
"""Operations with results that depend on one operand each."""
_NEVER = np.iinfo(np.int64).max
_TICK = 1 << 24
"""Greater than the number of operations of any program."""


@dataclass(frozen=True)
class Probes:
    """A module whose ``main`` returns the births of faults (NaN, infinity) in its results.

    A birth is an int64: the number of loop steps begun before it, times 2**24, plus the number of
    the operation that made the fault; the greatest int64 if the value has no fault. After the
    births of the results comes the earliest birth of a fault that collectives sent.
    """

    module: ir.Module
    operations: Sequence[ir.Operation | None]
    """By number, in the order of the program; None is a parameter."""
    width: int
    """The number of births that ``main`` returns; 0 without floating results, and so probes."""

    def describe_origin(self, births: NDArray[np.int64]) -> str:
        """Describes the origin of the fault in the first result with one; empty if none has one.

        ``births`` has the shape (devices, width).
        """
        *results, sent = (int(birth) for birth in births.min(axis=0))
        birth = next((birth for birth in results if birth != _NEVER), None)
        if birth is None:
            return ""
        made_by = self.operations[birth % _TICK]
        if made_by is not None and made_by.name in _COLLECTIVES and sent != _NEVER:
            made_by = self.operations[sent % _TICK]  # the fault came from another device
        return _describe(made_by) if made_by else "it was passed in, no operation made it"


def add_probes(module: ir.Module, nans: bool, infs: bool) -> Probes:
    """Returns the probes of a module, which is not changed. Functions that it calls are inlined.

    Probes the bodies of loops and branches. Conditions of loops and branch indices need no probes:
    they reach results only through a boolean or an integer, which have no faults. Does not probe
    the functions within reductions, sorts and the like. Regions of manual computations compute
    births on each device of the mesh, of which the earliest counts.
    """
    copy = parse(bytecode(module))
    functions = functions_by_name(copy)
    main = functions["main"]
    block = main.regions[0].blocks[0]
    floats = [i for i, x in enumerate(returned_values(block)) if is_floating(x)]
    if not floats:
        return Probes(copy, (), 0)
    with copy.context, ir.Location.unknown():
        prober = _Prober(functions, block, nans, infs)
        with ir.InsertionPoint(terminator(block)):
            one = tensor_type([1], np.dtype(np.int64))
            births = [hlo.reshape(one, x) for x in prober.births_of(block, floats)]
            vector = hlo.concatenate(births, dimension=0)
        return_values(block, [vector])
        takes = [x.type for x in block.arguments]
        main.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(takes, [vector.type])
        )
        forget_donation(main)
        if "res_attrs" in main.attributes:
            del main.attributes["res_attrs"]
        copy.operation.verify()
    return Probes(copy, prober.operations, len(births))


class _Prober:
    """One walk over a program in its order, which computes a birth beside each floating value.

    A result has the earliest birth of its operands' faults; if they have none, the birth of the
    operation itself, which is later than all of theirs.
    """

    def __init__(
        self, functions: Mapping[str, object], main: ir.Block, nans: bool, infs: bool
    ) -> None:
        self.operations: list[ir.Operation | None] = []
        self._functions = functions
        self._looked_for = nans, infs
        self._births: dict[ir.Value, ir.Value] = {}
        self._integer = tensor_type([], np.dtype(np.int64))
        inline_calls(main, functions)
        operations = [*main.operations]
        with ir.InsertionPoint(operations[0]):
            self._never = self._sent = self._constant(_NEVER)
            self._clock = self._constant(0)
            for value in main.arguments:
                if is_floating(value):
                    self._add_birth(value, self._number(None))
        self._probe(operations)

    def _probe_block(self, block: ir.Block) -> None:
        inline_calls(block, self._functions)
        self._probe([*block.operations])

    def _probe(self, operations: Sequence[Any]) -> None:
        """Adds births to a block's operations, up to its end."""
        for op, following in pairwise(operations):
            with ir.InsertionPoint(following):
                if op.name == "stablehlo.while":
                    self._probe_loop(op.operation)
                elif op.name in ("stablehlo.if", "stablehlo.case"):
                    self._probe_branches(op.operation)
                elif op.name == "sdy.manual_computation":
                    self._probe_parts(op.operation)
                else:
                    self._probe_operation(op.operation)

    def births_of(self, block: ir.Block, floats: Sequence[int]) -> list[ir.Value]:
        """Returns births of results of a block (``floats``), and the earliest birth sent so far."""
        values = returned_values(block)
        return [*(self._birth(values[i]) for i in floats), self._sent]

    def _probe_operation(self, op: Any) -> None:
        made = [i for i, x in enumerate(op.results) if is_floating(x)]
        if not made:
            return
        own = self._number(op)
        before = [
            self._never if _is_start(op, i) else self._birth(x) for i, x in enumerate(op.operands)
        ]
        if op.name in _COLLECTIVES:
            self._sent = reduce(hlo.minimum, before, self._sent)
        for i in made:
            sources = before[i : i + 1] if op.name in _ONE_TO_ONE else before
            first = reduce(hlo.minimum, [x for x in sources if x != self._never], own)
            self._add_birth(op.results[i], first)

    def _probe_loop(self, op: Any) -> None:
        """Carries the births of the carried values. Each step is a tick of the clock."""
        condition, body = (region.blocks[0] for region in op.regions)
        floats = [i for i, x in enumerate(body.arguments) if is_floating(x)]
        starts = [*(self._birth(op.operands[i]) for i in floats), self._sent, self._clock]
        carried = [
            [block.add_argument(self._integer, op.location) for _ in starts]
            for block in (condition, body)
        ]
        *births, self._sent, self._clock = carried[1]
        for i, birth in zip(floats, births, strict=True):
            self._births[body.arguments[i]] = birth
        self._probe_block(body)
        with ir.InsertionPoint(terminator(body)):
            clock = hlo.add(self._clock, self._constant(_TICK))
        return_values(body, [*returned_values(body), *self.births_of(body, floats), clock])
        self._widen(op, floats, starts)

    def _probe_branches(self, op: Any) -> None:
        """Makes each branch return the births of its results, too."""
        floats = [i for i, x in enumerate(op.results) if is_floating(x)]
        sent, clock = self._sent, self._clock
        for region in op.regions:
            (block,) = region.blocks
            self._sent, self._clock = sent, clock
            self._probe_block(block)
            births = self.births_of(block, floats)
            return_values(block, [*returned_values(block), *births, self._clock])
        self._widen(op, floats, ())

    def _probe_parts(self, op: Any) -> None:
        """Makes each device return the births of its parts. The region captures no value."""
        if not any(map(is_floating, op.results)):
            return
        scalars = ManualScalars(op, self._functions)
        block = scalars.block
        floats = [i for i, x in enumerate(block.arguments) if is_floating(x)]
        before = [*(self._birth(op.operands[i]) for i in floats), self._sent, self._clock]
        never, arguments = self._never, scalars.add_arguments(len(before))
        *births, self._sent, self._clock = arguments
        for i, birth in zip(floats, births, strict=True):
            self._births[block.arguments[i]] = birth
        with ir.InsertionPoint.at_block_begin(block):
            self._never = self._constant(_NEVER)
        self._probe_block(block)
        made = [i for i, x in enumerate(op.results) if is_floating(x)]
        with ir.InsertionPoint(terminator(block)):
            given = [*self.births_of(block, made), self._clock]
        new, outside = scalars.finish(before, given)
        for old, result in zip(list(op.results), list(new.results)[: len(op.results)], strict=True):
            old.replace_all_uses_with(result)
        op.erase()
        self._never = never
        *after, self._sent, self._clock = outside
        for i, birth in zip(made, after, strict=True):
            self._births[new.results[i]] = birth

    def _widen(self, old: Any, floats: Sequence[int], operands: Sequence[ir.Value]) -> None:
        """Replaces an operation by one that also returns births, the birth sent, and the clock."""
        count = len(old.results)
        types = [*(x.type for x in old.results), *[self._integer] * (len(floats) + 2)]
        new = retype(old, [*old.operands, *operands], types)
        for result, replacement in zip(list(old.results), list(new.results)[:count], strict=True):
            result.replace_all_uses_with(replacement)
        old.erase()
        *births, self._sent, self._clock = list(new.results)[count:]
        for i, birth in zip(floats, births, strict=True):
            self._births[new.results[i]] = birth

    def _number(self, op: ir.Operation | None) -> ir.Value:
        """Numbers an operation; returns the birth of a fault that it would make now."""
        self.operations.append(op)
        return hlo.add(self._clock, self._constant(len(self.operations) - 1))

    def _add_birth(self, value: ir.Value, birth: ir.Value) -> None:
        held = holds_one(value, *self._looked_for)
        self._births[value] = hlo.select(held, birth, self._never)

    def _birth(self, value: ir.Value) -> ir.Value:
        return self._births.get(value, self._never)

    def _constant(self, value: int) -> ir.Value:
        integer = ir.IntegerAttr.get(self._integer.element_type, value)
        return hlo.constant(ir.DenseElementsAttr.get_splat(self._integer, integer))


def _is_start(operation: Any, i: int) -> bool:
    """Whether an operand is the initial value of a reduction, such as the infinity of a maximum."""
    return operation.name in _REDUCTIONS and i >= len(operation.operands) // 2


def _describe(operation: Any) -> str:
    where = _find_line(operation.location)
    if operation.name == "stablehlo.constant":
        return f"it is in a constant of the program, {_type_name(operation.results[0])}{where}"
    takes = ", ".join(map(_type_name, operation.operands))
    return f"it comes from {operation.name} of ({takes}){where}"


def _type_name(value: ir.Value) -> str:
    try:
        return str(ir_type_to_tensor_type(value.type))
    except UnsupportedDtype:  # a token, for one
        return str(value.type)


def _find_line(location: ir.Location) -> str:
    if (found := file_and_line(location)) is None:
        return ""
    file, line = found
    return f" in line {line} of its text" if file == "-" else f" at {file}:{line}"
