"""Draws a StableHLO module: its operations and functions as a Graphviz graph."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from plugrt.stablehlo.attributes import attribute_names, constant_literal, find_attribute
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.diagnostics import file_and_line, name_at
from plugrt.stablehlo.dot import DotWriter

_REGIONS = {
    "stablehlo.while": ("cond", "body"),
    "stablehlo.if": ("true branch", "false branch"),
}
"""The names of the regions of an operation; others are numbered."""
_FUNCTION, _CALL = "func.func", "func.call"
_HIDDEN = {"sym_name", "sym_visibility", "function_type", "arg_attrs", "res_attrs"}
_MOST_ELEMENTS = 8
"""Constants of more elements are summarised."""
_WORD = re.compile(r"#stablehlo<\w+ (\w+)>")
"""``#stablehlo<comparison_direction LT>``: the last word is shown."""
_LIST = re.compile(r"array<\w+(?:: )?([^>]*)>")

Steps = Iterator["Steps"]
"""A generator that yields the walks of nested blocks: no recursion, so no limit to nesting."""


def module_graph(module: ir.Module, name: str) -> str:
    """Returns DOT text: a node per operation, a cluster per function and region.

    A node has the operation's name, attributes, result types and source line. Numbers on edges are
    the operands' (and, after ``#``, the results'); dashed edges lead from the results of a region
    or a function to the operation that uses them.
    """
    return _ModuleGraph(name).draw(module)


class _ModuleGraph:
    def __init__(self, name: str) -> None:
        self._dot = DotWriter(name)
        self._values: dict[ir.Value, tuple[str, str]] = {}
        """Each value's node, and its number among the node's results."""
        self._returns: dict[str, str] = {}
        """The node of each function's return."""
        self._calls: list[tuple[str, str]] = []
        """Functions called, and the nodes of the calls."""

    def draw(self, module: ir.Module) -> str:
        walks = [self._block(module.body, lambda node: None)]
        while walks:
            deeper = next(walks[-1], None)
            if deeper is None:
                walks.pop()
            else:
                walks.append(deeper)
        for function, call in self._calls:
            if function in self._returns:
                self._dot.edge(self._returns[function], call, returned=True)
        return self._dot.text()

    def _block(self, block: ir.Block, returns: Any) -> Steps:
        """Draws a block; ``returns`` is called with the node of its terminator."""
        for i, argument in enumerate(block.arguments):
            lines = (name_at(argument.location) or f"argument {i}", str(argument.type))
            self._values[argument] = self._dot.node(lines, role="parameter"), ""
        for view in block.operations:
            operation = view.operation
            if operation.name == _FUNCTION:
                yield self._function(operation)
                continue
            ends = operation.name.rpartition(".")[2] == "return"
            node = self._operation(operation, "result" if ends else "operation")
            if ends:
                returns(node)
            for i, region in enumerate(operation.regions):
                names = _REGIONS.get(operation.name, ())
                title = names[i] if i < len(names) else f"region {i}"
                yield self._region(region, f"{operation.name}: {title}", node)

    def _region(self, region: ir.Region, title: str, user: str) -> Steps:
        self._dot.open_cluster(title)
        for block in region.blocks:
            yield self._block(block, lambda node: self._dot.edge(node, user, returned=True))
        self._dot.close_cluster()

    def _function(self, operation: ir.Operation) -> Steps:
        name = ir.StringAttr(operation.attributes["sym_name"]).value
        self._dot.open_cluster(f"@{name}")
        for block in operation.regions[0].blocks:
            yield self._block(block, lambda node: self._returns.setdefault(name, node))
        self._dot.close_cluster()

    def _operation(self, operation: ir.Operation, role: str) -> str:
        where = file_and_line(operation.location)
        lines = [operation.name, *_attributes(operation)]
        lines += [", ".join(str(result.type) for result in operation.results)]
        lines += [f"{os.path.basename(where[0])}:{where[1]}" if where else ""]
        if operation.name.endswith(".constant"):
            role = "constant"
        node = self._dot.node(lines, role=role, tooltip=":".join(where) if where else "")
        many = len(operation.results) > 1
        for i, result in enumerate(operation.results):
            self._values[result] = node, f"#{i}" if many else ""
        operands = list(operation.operands)
        for i, operand in enumerate(operands):
            source, which = self._values[operand]
            number = str(i) if len(operands) > 1 else ""
            self._dot.edge(source, node, f"{number} {which}".strip())
        if operation.name == _CALL:
            callee = ir.FlatSymbolRefAttr(operation.attributes["callee"]).value
            self._calls.append((callee, node))
        return node


def _attributes(operation: ir.Operation) -> list[str]:
    return [
        f"{name} = {_attribute(find_attribute(operation, name), operation)}"
        for name in attribute_names(operation)
        if name not in _HIDDEN
    ]


def _attribute(attribute: ir.Attribute | None, operation: ir.Operation) -> str:
    """Returns an attribute's text; omits large constants, which are slow to print."""
    if attribute is None:  # the value of a complex constant, most likely
        return f"dense<{constant_literal(operation, _MOST_ELEMENTS) or '...'}>"
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat and len(attribute) > _MOST_ELEMENTS:
            return f"{len(attribute)} elements"
    elif type(attribute).__name__.startswith("DenseResource"):
        return "elements held apart"
    shown = _WORD.sub(r"\1", _LIST.sub(r"[\1]", str(attribute)))
    return shown.partition(" : ")[0] if isinstance(attribute, ir.DenseElementsAttr) else shown
