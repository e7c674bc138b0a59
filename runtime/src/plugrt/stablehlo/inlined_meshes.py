"""`inline_meshes`: writes meshes into a module's shardings, so that it can be inserted elsewhere.

`drop_dead_shardings` removes shardings of values without uses, `drop_shardings` all shardings of a
module for one partition.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plugrt.errors import Unimplemented
from plugrt.stablehlo.attributes import attribute_names, symbol_of
from plugrt.stablehlo.bindings import ir, shardy
from plugrt.stablehlo.dead_code import remove_dead_code
from plugrt.stablehlo.modules import bytecode, parse
from plugrt.stablehlo.passes import drop_uncalled
from plugrt.stablehlo.regions import callee, operations_within, returned_values

_MANUAL = "sdy.manual_computation"
_REFERENCE = re.compile(r"@(\w+)")
_OF_FUNCTIONS = ("arg_attrs", "res_attrs")

Dimensions = tuple[tuple[str, ...], ...]
"""For each dimension of an array the axes that divide it."""


@dataclass(frozen=True, slots=True)
class InlinedMeshes:
    """A module without meshes of its own, and the shardings that it states."""

    code: bytes
    """The module, as bytecode."""
    axes: Mapping[str, int]
    """The names and sizes of the first mesh's axes."""
    arguments: Sequence[Dimensions | None]
    """The sharding that all users of each parameter of ``main`` state, or None."""
    results: Sequence[Dimensions | None]
    """The sharding that the operation of each result states; None if it states none."""


def drop_dead_shardings(code: bytes, name: str) -> bytes:
    """Returns a module, in bytecode, without dead code and meshes used only by dead code."""
    if b"sdy" not in code:
        return code
    module = parse(code, name)
    functions = {symbol_of(op): op for op in module.body.operations}
    main = functions.pop("main")
    for (
        function
    ) in functions.values():  # for each argument and result, also of functions that are removed
        _drop_attributes(function.operation)
    with module.context, ir.Location.unknown():
        remove_dead_code(module, main.operation.regions[0].blocks[0], unswept=True)
    drop_uncalled(module)
    used = {
        mesh
        for operation in operations_within(module.operation)
        for each in attribute_names(operation)
        if each in _OF_FUNCTIONS or _is_of_shardy(operation, each)
        for mesh in _REFERENCE.findall(str(operation.attributes[each]))
    }
    for symbol, operation in _meshes(module).items():
        if symbol not in used:
            operation.erase()
    return bytecode(module)


def names_mesh(operation: ir.Operation) -> bool:
    """Whether an operation has a sharding over a mesh that `inline_meshes` wrote into it."""
    return any(
        _is_of_shardy(operation, each) and 'mesh<["' in str(operation.attributes[each])
        for each in attribute_names(operation)
    )


def inline_meshes(code: bytes, name: str) -> InlinedMeshes | None:
    """Returns a module, in bytecode, with each reference to a mesh replaced by the mesh.

    None for a module that is not over a mesh of several devices. Raises `Unimplemented` for one
    over meshes of different numbers of devices.
    """
    if b"sdy" not in code:
        return None
    module = parse(code, name)
    meshes = _meshes(module)
    several = _find_divided_axes(meshes, name)
    if not several:
        return None
    first = next(iter(several))
    functions = {symbol_of(op): op for op in module.body.operations}
    read = _EntryReader(functions, first)
    main = functions["main"].operation
    [block] = main.regions[0].blocks
    arguments = [
        read.first_of(value) or read.stated(main, "arg_attrs", i)
        for i, value in enumerate(block.arguments)
    ]
    results = [
        read.last_of(value) or read.stated(main, "res_attrs", i)
        for i, value in enumerate(returned_values(block))
    ]
    texts = {str(symbol): str(mesh.attributes["mesh"]).removeprefix("#sdy.")
             for symbol, mesh in meshes.items()}  # fmt: skip
    for operation in operations_within(module.operation):
        _inline(operation, texts)
    for mesh in meshes.values():
        mesh.erase()
    return InlinedMeshes(bytecode(module), several[first], arguments, results)


def manual_device_count(code: bytes, name: str) -> int:
    """Returns the number of devices of a module's manual computations; 1 if it has none.

    Those (``sdy.manual_computation``, of a `shard_map`) run on no other number. Raises
    `Unimplemented` as `inline_meshes`.
    """
    if b"manual_computation" not in code:  # bytecode stores the dialect's name separately
        return 1
    module = parse(code, name)
    if all(operation.name != _MANUAL for operation in operations_within(module.operation)):
        return 1
    several = _find_divided_axes(_meshes(module), name)
    return next((math.prod(axes.values()) for axes in several.values()), 1)


def _meshes(module: ir.Module) -> dict[str | None, ir.Operation]:
    return {symbol_of(op): op.operation for op in module.body.operations
            if op.operation.name == "sdy.mesh"}  # fmt: skip


def _find_divided_axes(
    meshes: Mapping[str | None, ir.Operation], name: str
) -> dict[str, dict[str, int]]:
    """Returns the axes of those meshes that have several devices."""
    axes = {str(symbol): _read_axes(mesh) for symbol, mesh in meshes.items()}
    several = {symbol: own for symbol, own in axes.items() if math.prod(own.values()) > 1}
    counts = {math.prod(own.values()) for own in several.values()}
    if len(counts) > 1:
        raise Unimplemented(
            f"{name!r} is over meshes of {' and of '.join(map(str, sorted(counts)))} devices; a "
            "program runs on one number of them"
        )
    return several


def _read_axes(mesh: ir.Operation) -> dict[str, int]:
    sdy = shardy()
    axes = map(sdy.MeshAxisAttr, sdy.MeshAttr(mesh.attributes["mesh"]).axes)
    return {axis.name: axis.size for axis in axes}


def _inline(operation: ir.Operation, meshes: Mapping[str, str]) -> None:
    """Replaces the names of meshes in an operation's Shardy attributes by the meshes.

    Removes such attributes of functions, since calls in another module have none.
    """
    if operation.name == "func.func":
        _drop_attributes(operation)
    for each in attribute_names(operation):
        if not _is_of_shardy(operation, each):
            continue
        text = str(operation.attributes[each])
        if text.startswith("#sdy.") and "@" in text:
            text = _REFERENCE.sub(lambda found: meshes[found[1]], text)
            operation.attributes[each] = ir.Attribute.parse(text, operation.context)


def _drop_attributes(function: ir.Operation) -> None:
    for each in {*_OF_FUNCTIONS} & {*attribute_names(function)}:
        del function.attributes[each]


def _is_of_shardy(operation: ir.Operation, attribute: str) -> bool:
    return attribute.startswith("sdy.") or operation.name.startswith("sdy.")


class _EntryReader:
    """Finds the shardings that ``main``'s first and last operations state for its values."""

    def __init__(self, functions: Mapping[str | None, Any], mesh: str) -> None:
        self._functions, self._mesh = functions, mesh

    def first_of(self, value: ir.Value) -> Dimensions | None:
        """Returns the sharding that all users of a parameter state."""
        found = {*self._uses_of(value)}
        return found.pop() if len(found) == 1 else None

    def _uses_of(self, value: ir.Value) -> Iterator[Dimensions | None]:
        for use in value.uses:
            operation, number = use.owner, use.operand_number
            if operation.name == "func.call":
                yield from self._uses_of(self._body(operation).arguments[number])
            else:
                yield self._read(operation, "in_shardings", number)

    def last_of(self, value: ir.Value) -> Dimensions | None:
        """Returns the ``out_shardings`` entry of the operation that made a value.

        For the result of a call, follows it into the called function. Returns None for an argument.
        """
        if isinstance(value.owner, ir.Block):
            return None
        operation, number = value.owner, ir.OpResult(value).result_number
        if operation.name == "func.call":
            return self.last_of(returned_values(self._body(operation))[number])
        return self._read(operation, "out_shardings", number)

    def stated(self, main: ir.Operation, side: str, number: int) -> Dimensions | None:
        """Returns the sharding that ``main`` itself states for a parameter or a result."""
        if side not in main.attributes:
            return None
        for each in main.attributes[side][number]:
            if each.name == "sdy.sharding":
                return self._axes(each.attr)
        return None

    def _body(self, call: object) -> ir.Block:
        [block] = self._functions[callee(call)].operation.regions[0].blocks
        return block

    def _read(self, operation: Any, side: str, number: int) -> Dimensions | None:
        sdy = shardy()
        if operation.name == "sdy.sharding_constraint":
            attribute = operation.attributes["sharding"]
        elif operation.name == _MANUAL:
            attribute = sdy.TensorShardingPerValueAttr(operation.attributes[side]).shardings[number]
        else:
            return None
        return self._axes(attribute)

    def _axes(self, attribute: ir.Attribute) -> Dimensions | None:
        """Returns the axes of each dimension; None for open dimensions, sub-axes, another mesh."""
        sdy = shardy()
        sharding = sdy.TensorShardingAttr(attribute)
        mesh = sharding.mesh_or_ref
        if not isinstance(mesh, ir.FlatSymbolRefAttr) or mesh.value != self._mesh:
            return None
        dimensions = [*map(sdy.DimensionShardingAttr, sharding.dimension_shardings)]
        axes = [[*map(sdy.AxisRefAttr, dimension.axes)] for dimension in dimensions]
        whole = all(axis.sub_axis_info is None for own in axes for axis in own)
        if not whole or not all(dimension.is_closed for dimension in dimensions):
            return None
        return tuple(tuple(axis.name for axis in own) for own in axes)


def drop_shardings(code: bytes, name: str) -> bytes:
    """Returns a module, in bytecode, without Shardy's operations and attributes.

    They have no meaning for one partition, as in a module for which `inline_meshes` returns None.
    JAX sets some on custom calls even then. Raises `Unimplemented` for operations of Shardy's other
    than meshes and constraints.
    """
    if b"sdy" not in code:
        return code
    module = parse(code, name)
    for operation in [*operations_within(module.operation)]:
        attributes = operation.attributes
        if operation.name == "sdy.sharding_constraint":
            operation.results[0].replace_all_uses_with(operation.operands[0])
            operation.erase()
        elif operation.name == "sdy.mesh":
            operation.erase()
        elif operation.name.startswith("sdy."):
            raise Unimplemented(
                f"{name!r} has {operation.name}, which says how a program is partitioned; it is "
                "to run on one device"
            )
        elif operation.name == "func.func":  # each argument and result may have a sharding
            _drop_attributes(operation)
        else:
            for each in attribute_names(operation):
                if each.startswith("sdy."):
                    del attributes[each]
    return bytecode(module)
