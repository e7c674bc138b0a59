"""`remove_dead_code`: removes what neither results nor effects of ``main`` depend on.

MLIR's own passes do not do it: ``remove-dead-values`` changes neither ``stablehlo.while`` nor
``stablehlo.if``, and none of them drops unused values of a public function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

from plugrt.stablehlo.bindings import ir, shardy
from plugrt.stablehlo.regions import (
    callee,
    functions_by_name,
    return_values,
    returned_values,
    retype,
)

_EFFECTS = ("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.recv", "stablehlo.send")
_KNOWN = ("stablehlo.", "chlo.", "sdy.", "builtin.")
_CALLS = {"func.call": "callee", "stablehlo.composite": "decomposition"}
"""Operations that call a function, and the attribute that names it."""


def remove_dead_code(module: ir.Module, main: ir.Block, *, unswept: bool = False) -> None:
    """Removes dead operations from ``main`` and from the functions that it calls.

    Operations with effects stay, with their operands. Loops lose carried values that are unused or
    that no step changes, branches, shard_maps and calls lose unused results; a call that uses only
    some results of its function calls a copy that returns only those. Constants of ``main`` stay.
    Unused parameters and functions are left for the caller to drop. ``unswept`` means that the
    functions come from elsewhere and still contain dead code: calls then lose arguments that no
    result of the function needs.
    """
    _Sweep(module, main, unswept).sweep(main)


class _Sweep:
    """One walk over a module, backwards, so that users of a value are removed before it."""

    def __init__(self, module: ir.Module, main: ir.Block, unswept: bool) -> None:
        self._module = module
        self._main = main
        self._unswept = unswept
        self._variants: dict[tuple[str, tuple[bool, ...]], tuple[str, list[int]]] = {}
        self._functions: dict[str, object] | None = None
        self._special: dict[str, Callable[[object], None]] = {
            "stablehlo.while": self._narrow_loop,
            "stablehlo.if": self._narrow_branches,
            "stablehlo.case": self._narrow_branches,
            "func.call": self._narrow_call,
            "sdy.manual_computation": self._narrow_manual,
        }

    def sweep(self, block: ir.Block) -> None:
        """Removes what is dead from a block, and from the regions within it."""
        for op in [*block.operations][-2::-1]:
            results = op.operation.results
            called = self._unswept and op.operation.name == "func.call"
            plain = not (called or len(op.operation.regions))
            if plain and len(results) == 1 and is_used(results[0]):
                continue  # the usual case
            if self._is_erased(op):
                continue
            special = self._special.get(op.operation.name)
            if special:
                special(op)
                continue
            for region in op.operation.regions:
                for inner in region.blocks:
                    self.sweep(inner)

    def _is_erased(self, op: Any) -> bool:
        """Erases an operation without used results and effects; returns whether it did."""
        if any(map(is_used, op.operation.results)) or self._has_effect(op):
            return False
        if op.operation.name == "stablehlo.constant" and op.operation.block == self._main:
            return False  # the trace still refers to these values
        op.operation.erase()
        return True

    def _has_effect(self, op: Any) -> bool:
        """Whether an operation has an effect; unknown operations count as having one."""
        name = op.operation.name  # the view of a composite has the composite's name
        if name in _CALLS:
            return self._has_inner_effect(self._functions_by_name()[callee(op, _CALLS[name])])
        if name == "stablehlo.custom_call":
            attributes = op.operation.attributes
            return "has_side_effect" in attributes and bool(attributes["has_side_effect"].value)
        return name in _EFFECTS or not name.startswith(_KNOWN) or self._has_inner_effect(op)

    def _has_inner_effect(self, op: Any) -> bool:
        return any(
            self._has_effect(inner)
            for region in op.operation.regions
            for block in region.blocks
            for inner in [*block.operations][:-1]
        )

    def _narrow_loop(self, op: Any) -> None:
        condition, body = (region.blocks[0] for region in op.operation.regions)
        self.sweep(condition)
        self.sweep(body)
        operands = [*op.operation.operands]
        yielded = returned_values(body)
        changes = [y != a for y, a in zip(yielded, body.arguments, strict=True)]
        for i, result in enumerate(op.operation.results):
            if not changes[i]:
                for carried in (result, condition.arguments[i], body.arguments[i]):
                    carried.replace_all_uses_with(operands[i])
        if self._is_erased(op):
            return
        used = [*map(is_used, op.operation.results)]
        used = [u or is_used(a) for u, a in zip(used, condition.arguments, strict=True)]
        while used != changes:
            # Finds by a trial on a copy which values without uses outside a step itself needs.
            trial = op.operation.clone(ip=ir.InsertionPoint(op))
            step = trial.operation.regions[1].blocks[0]
            return_only(step, used)
            self.sweep(step)
            needed = [u or is_used(a) for u, a in zip(used, step.arguments, strict=True)]
            trial.operation.erase()
            if needed == used:
                break
            used = needed
        if all(used):
            return
        return_only(body, used)
        self.sweep(body)
        for block in (condition, body):
            erase_arguments(block, used)
        self._narrow(op, used, [x for x, u in zip(operands, used, strict=True) if u])

    def _narrow_branches(self, op: Any) -> None:
        blocks = [region.blocks[0] for region in op.operation.regions]
        for block in blocks:
            self.sweep(block)
        yielded = [returned_values(block) for block in blocks]
        if len(blocks) > 1:
            for result, first, *others in zip(op.operation.results, *yielded, strict=True):
                if all(value == first for value in others):  # then it was computed outside of both
                    result.replace_all_uses_with(first)
        if self._is_erased(op):
            return
        used = [*map(is_used, op.operation.results)]
        if all(used):
            return
        for block in blocks:
            return_only(block, used)
            self.sweep(block)
        self._narrow(op, used, [*op.operation.operands])

    def _narrow_manual(self, op: Any) -> None:
        block, old = op.operation.regions[0].blocks[0], op.operation
        used = [*map(is_used, old.results)]
        if not any(used):  # kept for its effects
            used = [True] * len(used)
        return_only(block, used)
        self.sweep(block)
        needed = [*map(is_used, block.arguments)]
        if all(used) and (all(needed) or not any((*used, *needed))):
            return  # without any value it would name no mesh
        erase_arguments(block, needed)
        per_value = shardy().TensorShardingPerValueAttr
        attributes = {
            side: per_value.get(list(compress(per_value(old.attributes[side]).shardings, flags)))
            for side, flags in (("in_shardings", needed), ("out_shardings", used))
        }
        self._narrow(op, used, [*compress(old.operands, needed)], **attributes)

    def _narrow_call(self, op: Any) -> None:
        used = tuple(map(is_used, op.operation.results))
        if all(used) and not self._unswept:
            return
        key = (callee(op), used)
        found = self._variants.get(key)
        if found is None:
            found = self._variants[key] = self._narrow_function(*key)
        symbol, kept = found
        if symbol == callee(op):
            return
        operands = op.operation.operands
        taken = [operands[i] for i in kept]
        self._narrow(op, used, taken, callee=ir.FlatSymbolRefAttr.get(symbol))

    def _narrow_function(self, symbol: str, used: tuple[bool, ...]) -> tuple[str, list[int]]:
        """Returns the name of a function with only the used results, and its arguments' numbers.

        It is a copy, or the function itself if all its results and arguments are needed.
        """
        source = self._functions_by_name()[symbol]
        if all(used):
            own = source.operation.regions[0].blocks[0]
            self.sweep(own)
            if all(map(is_used, own.arguments)):
                return symbol, [*range(len(own.arguments))]
        copy = source.operation.clone(ip=ir.InsertionPoint(source))
        symbols = [*self._functions_by_name()]
        name = next(n for i in range(len(symbols) + 1) if (n := f"{symbol}_{i}") not in symbols)
        copy.operation.attributes["sym_name"] = ir.StringAttr.get(name)
        self._functions_by_name()[name] = copy
        block = copy.operation.regions[0].blocks[0]
        return_only(block, used)
        self.sweep(block)
        needed = [*map(is_used, block.arguments)]
        erase_arguments(block, needed)
        results = [x.type for x in returned_values(block)]
        function_type = ir.FunctionType.get([a.type for a in block.arguments], results)
        copy.operation.attributes["function_type"] = ir.TypeAttr.get(function_type)
        return name, [i for i, n in enumerate(needed) if n]

    def _functions_by_name(self) -> dict[str, Any]:
        if self._functions is None:
            self._functions = functions_by_name(self._module)
        return self._functions

    def _narrow(
        self,
        op: Any,
        used: Sequence[bool],
        operands: Sequence[ir.Value],
        **attributes: ir.Attribute,
    ) -> None:
        """Replaces an operation by one with the same regions and only the used results."""
        old = op.operation
        results = [result for result, u in zip(old.results, used, strict=True) if u]
        new = retype(old, operands, [result.type for result in results], **attributes)
        for result, replacement in zip(results, new.results, strict=True):
            result.replace_all_uses_with(replacement)
        old.erase()


def is_used(value: ir.Value) -> bool:
    """Whether any operation uses a value."""
    return next(iter(value.uses), None) is not None


def return_only(block: ir.Block, used: Sequence[bool]) -> None:
    """Makes a block return only some of its results."""
    if all(used):
        return
    values = zip(returned_values(block), used, strict=True)
    return_values(block, [value for value, u in values if u])


def erase_arguments(block: ir.Block, used: Sequence[bool]) -> None:
    """Erases the arguments of a block that are not ``used``."""
    for i in reversed(range(len(used))):
        if not used[i]:
            block.erase_argument(i)
