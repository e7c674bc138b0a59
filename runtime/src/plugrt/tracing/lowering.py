"""`lower_operations`: replaces operations of a module by the results of a platform's lowerings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plugrt.errors import PlugrtError, ProgramError, UnsupportedDtype, describe
from plugrt.execution.trees import pytrees
from plugrt.interface import HostCallback, TensorType
from plugrt.plugins.plugin import LoweringContext
from plugrt.stablehlo.attributes import (
    attribute_names,
    find_attribute,
    python_value,
    symbol_of,
    text_of,
)
from plugrt.stablehlo.bindings import func, ir
from plugrt.stablehlo.modules import bytecode, insert_functions
from plugrt.stablehlo.passes import legalize_chlo
from plugrt.stablehlo.regions import functions_by_name, operations_within
from plugrt.stablehlo.types import ir_type_to_tensor_type
from plugrt.tracing.captures import as_tracer, embed_captured
from plugrt.tracing.emit import strong
from plugrt.tracing.entry import add_main, set_type
from plugrt.tracing.lowering_rules import Rule, Rules
from plugrt.tracing.operation_claims import remove_marks
from plugrt.tracing.platform_operations import find_operation
from plugrt.tracing.trace import Scope, Trace
from plugrt.tracing.tracer import Tracer

_COMPOSITE = "stablehlo.composite"
_MOST_LEVELS = 16
"""The limit of nested lowerings of plugrt's own operations; its definitions need two levels."""


class Lowering:
    """The lowering of one module, in place, and the Python functions of its rules."""

    def __init__(self, module: ir.Module, title: str, rules: Rules) -> None:
        self.callbacks: dict[int, HostCallback] = {}
        """The Python functions that the rules call, by number."""
        self.uses_chlo = False
        """Whether the rules emitted CHLO operations."""
        self._module = module
        self._title = title
        self._rules = dict(rules)
        self._symbols: dict[object, str | None] = {}
        self._number = max(map(_trailing_number, functions_by_name(module)), default=0)

    def lower(self, chosen: Callable[[str], bool]) -> None:
        """Replaces each operation that has a rule and whose name is ``chosen``.

        Operations that a rule emits are not lowered again by this call.
        """
        found = [
            (name, op)
            for op in operations_within(self._module.operation)
            if (name := _name(op)) in self._rules and chosen(name)
        ]
        self._replace(found)

    def lower_platform_operations(self) -> None:
        """Replaces all operations of plugrt's own, also those that lowerings of others emit."""
        for _ in range(_MOST_LEVELS):
            operations = operations_within(self._module.operation)
            found = [(each.name, op) for op in operations if (each := find_operation(op))]
            if not found:
                return
            self._symbols.clear()  # a lowering may have emitted the operation again
            self._replace(found)
        name = found[0][0]
        raise ProgramError(
            f"{_who(name, self._rule_of(name))} cannot be used for {self._title!r}: its "
            f"result contains {name} again"
        )

    def _replace(self, found: Sequence[tuple[str, ir.Operation]]) -> None:
        for name, op in found:
            symbol = self._find_symbol(name, op)
            if symbol is not None:
                self._call(op, symbol)

    def _call(self, op: ir.Operation, symbol: str) -> None:
        results = [result.type for result in op.results]
        with self._module.context, op.location, ir.InsertionPoint(op):
            reference = ir.FlatSymbolRefAttr.get(symbol)
            call = func.CallOp(results, reference, list(op.operands)).operation
        for old, new in zip(list(op.results), list(call.results), strict=True):
            old.replace_all_uses_with(new)
        op.erase()

    def _find_symbol(self, name: str, op: ir.Operation) -> str | None:
        """Returns the symbol of a function that computes ``op``; None if ``op`` stays unchanged."""
        types = [str(value.type) for values in (op.operands, op.results) for value in values]
        key = (name, len(op.operands), *types, *_attribute_texts(op))
        if key not in self._symbols:
            self._symbols[key] = self._trace(name, op)
        return self._symbols[key]

    def _trace(self, name: str, op: ir.Operation) -> str | None:
        if name in self._rules and (symbol := self._trace_by(self._rule_of(name), name, op)):
            return symbol
        operation = find_operation(op)
        if operation is None:
            return None

        def define(context: LoweringContext, *operands: Tracer) -> object:
            return operation.definition(*operands, **context.attributes)

        return self._trace_by(Rule(define, "any platform", "plugrt"), name, op)

    def _trace_by(self, rule: Rule, name: str, op: ir.Operation) -> str | None:
        if len(op.regions):
            raise ProgramError(
                f"{_who(name, rule)} cannot be used for {self._title!r}: {name} has a "
                "region, which lowerings do not get"
            )
        try:
            operands, results = (
                [ir_type_to_tensor_type(value.type) for value in values]
                for values in (op.operands, op.results)
            )
        except UnsupportedDtype as error:
            raise ProgramError(f"{_who(name, rule)} cannot be used: {error}") from error
        context = _context(name, rule, op, tuple(results))
        trace = _trace_rule(rule, context, operands, self._title)
        if trace is None:
            return None
        self.callbacks.update(trace.callbacks)
        self.uses_chlo |= trace.uses_chlo
        title = f"lowered_{name.partition('.')[2]}"
        remove_marks(trace.module)  # the program's devices are known already
        code = bytecode(trace.module)
        functions, main = insert_functions(self._module, code, title, self._number)
        self._number += len(functions)
        return symbol_of(main)

    def _rule_of(self, name: str) -> Rule:
        rule, *others = self._rules[name]
        if others:
            owners = " and ".join(each.owner for each in (rule, *others))
            raise ProgramError(
                f"{self._title!r} has the operation {name}, of which both {owners} offer a "
                f"lowering for {rule.platform!r}. Uninstall one, leave one out with "
                "PLUGRT_PLUGINS_BLOCK, or state one in config.lowerings"
            )
        return rule


def _name(op: ir.Operation) -> str:
    if op.name == _COMPOSITE:
        return text_of(op.attributes["name"])
    operation = find_operation(op)
    return str(op.name) if operation is None else operation.name


def _trailing_number(symbol: str) -> int:
    found = re.search(r"\d+$", symbol)
    return int(found[0]) if found else 0


def _context(
    name: str, rule: Rule, op: ir.Operation, results: tuple[TensorType, ...]
) -> LoweringContext:
    attributes, version = _python_values(op), 0
    if op.name == _COMPOSITE:
        version = attributes.get("version", 0)
        attributes = attributes.get("composite_attributes", {})
    elif find_operation(op):
        attributes = attributes["backend_config"]
    return LoweringContext(name, rule.platform, results, attributes, version)


def _python_values(op: ir.Operation) -> dict[str, Any]:
    found = {name: find_attribute(op, name) for name in attribute_names(op)}
    return {name: python_value(value) for name, value in found.items() if value is not None}


def _attribute_texts(op: ir.Operation) -> list[object]:
    """Returns the texts that distinguish operations of one name."""
    found = [(name, find_attribute(op, name)) for name in attribute_names(op)]
    # An unreadable attribute equals no other.
    return [(name, object() if value is None else str(value)) for name, value in found]


def _who(name: str, rule: Rule) -> str:
    function = getattr(rule.function, "__qualname__", repr(rule.function))
    module = getattr(rule.function, "__module__", "")
    where = f"{module}.{function}" if module else function
    return f"the lowering of {name} for {rule.platform!r} of {rule.owner} ({where})"


def _trace_rule(
    rule: Rule, context: LoweringContext, operands: Sequence[TensorType], title: str
) -> Trace | None:
    """Returns a trace whose ``main`` computes the rule's results; None if the rule returns None."""
    trace = Trace(context.operation, None)

    def fill(scope: Scope) -> bool:
        arguments = [Tracer(value, trace) for value in scope.block.arguments]
        try:
            returned = rule.function(context, *arguments)
        except Exception as error:  # a package's rule may raise anything
            raise ProgramError(
                f"{_who(context.operation, rule)} raised {describe(error)}, for {title!r}"
            ) from error
        if returned is not None:
            values = _check_results(rule, context, returned)
            func.ReturnOp(values, loc=trace.location())
        return returned is not None

    def build() -> bool:
        types = [trace.mlir_type(t.shape, t.dtype) for t in operands]
        main = add_main(trace, context.operation, types)
        block = main.add_entry_block()
        filled = trace.run_inside(block, fill, isolated=True)
        if filled:
            set_type(main, block)
        return filled

    if not trace.run(build):
        return None
    embed_captured(trace.module, len(operands), [c.data for c in trace.captured.values()])
    return trace


def _check_results(rule: Rule, context: LoweringContext, returned: object) -> list[ir.Value]:
    """Returns the values of a rule's results; raises `ProgramError` if their types differ from the
    operation's.
    """
    leaves = pytrees.flatten(returned)[0]
    expected = ", ".join(map(str, context.result_types))
    try:
        tracers = [strong(as_tracer(leaf, "a result")) for leaf in leaves]
    except PlugrtError as error:
        raise ProgramError(
            f"{_who(context.operation, rule)} returned {returned!r:.60}; the operation gives "
            f"{expected}: {error}"
        ) from error
    found = tuple(TensorType(x.shape, x.dtype) for x in tracers)
    if found != context.result_types:
        raise ProgramError(
            f"{_who(context.operation, rule)} returned {', '.join(map(str, found)) or 'nothing'}; "
            f"the operation gives {expected}"
        )
    return [tracer.value for tracer in tracers]


def lower_operations(
    module: ir.Module, title: str, rules: Rules, uses_chlo: bool
) -> Mapping[int, HostCallback]:
    """Lowers a module in place; returns the Python functions of its rules, by number.

    plugrt's own operations go first, then composites and CHLO's, then StableHLO's, to which the
    remaining CHLO operations have been converted by then. Operations that a lowering emits are
    lowered by later lowerings, and never by itself again.
    """
    lowering = Lowering(module, title, rules)
    lowering.lower_platform_operations()
    lowering.lower(lambda name: not name.startswith("stablehlo."))
    if uses_chlo or lowering.uses_chlo:
        legalize_chlo(module)
        lowering.uses_chlo = False
    lowering.lower(lambda name: name.startswith("stablehlo."))
    lowering.lower_platform_operations()
    if lowering.uses_chlo:
        legalize_chlo(module)
    return lowering.callbacks
