"""MLIR passes that run on modules before a backend gets them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrt.errors import Unimplemented
from plugrt.stablehlo.bindings import ir, passmanager, register_shardy
from plugrt.stablehlo.modules import bytecode, parse
from plugrt.stablehlo.regions import clone_block, operations_within
from plugrt.stablehlo.types import state_compare_types


def run_passes(module: ir.Module, pipeline: str) -> None:
    """Runs a textual pass pipeline on a module, in place."""
    with module.context:
        passmanager.PassManager.parse(f"builtin.module({pipeline})").run(module.operation)


def legalize_chlo(module: ir.Module) -> None:
    """Rewrites CHLO operations to StableHLO, since plugins get only StableHLO.

    Backends need not support CHLO: https://github.com/jax-ml/jax/issues/15608.
    """
    found = [op for op in operations_within(module.operation) if op.name.startswith("chlo.")]
    # CHLO functions of one float add no integer comparison; the walk costs 6 us an operation.
    compares = any(len(op.operands) != 1 or len(op.results) != 1 for op in found)
    lower_scans(module, [op for op in found if op.name == "chlo.scan"])
    run_passes(module, "func.func(chlo-legalize-to-stablehlo)")
    if compares:
        state_compare_types(module)


def propagate_shardings(module: ir.Module) -> None:
    """Runs Shardy's propagation in place: gives each value of a module a sharding.

    These are XLA's passes before partitioning. The resulting shardings contain meshes, not their
    symbols.
    """
    run_passes(module, "sdy-propagation-pipeline,sdy-inline-meshes")


def with_named_meshes(module: ir.Module) -> ir.Module:
    """Returns a copy of a module whose shardings refer to meshes by symbol: ``<@mesh, …>``."""
    register_shardy(module.context)
    copy = parse(bytecode(module), "the program")
    run_passes(copy, "sdy-lift-inlined-meshes")
    return copy


def drop_uncalled(module: ir.Module) -> None:
    """Removes the private functions that nothing in a module calls."""
    run_passes(module, "symbol-dce")


def strip_locations(code: bytes, name: str = "<program>") -> bytes:
    """Returns a module, in any form that `parse` reads, as bytecode without lines and names."""
    module = parse(code, name)
    run_passes(module, "strip-debuginfo")
    return bytecode(module)


def lower_scans(module: ir.Module, scans: Sequence[ir.Operation]) -> None:
    """Rewrites the scans of a module, given in program order, to ``stablehlo.while``, in place.

    jaxlib's pass (0.10.2) ignores ``is_reverse``, and slices by ``real_dynamic_slice``, which XLA
    does not compile.

    Raises `Unimplemented` for a scan over a dimension of unknown size.
    """
    # Workaround for chlo-scan
    with module.context:
        for scan in reversed(scans):  # nested ones first
            with scan.location, ir.InsertionPoint(scan):
                _lower(scan)


def _lower(scan: Any) -> None:
    first_init, _ = scan.attributes["operandSegmentSizes"]
    inputs, inits = [*scan.operands][:first_init], [*scan.operands][first_init:]
    first_carry, _ = scan.attributes["resultSegmentSizes"]
    outputs = [*scan.results][:first_carry]
    dimension = int(scan.attributes["dimension"].value)
    reverse = "is_reverse" in scan.attributes and scan.attributes["is_reverse"].value
    size = _size(scan, [v.type for v in (*inputs, *outputs)], dimension)
    index = ir.Type.parse("tensor<i64>")
    started = [_constant(0, index), *inits, *[_constant(0, v.type) for v in outputs]]
    if not size:  # a slice of one row would not be valid
        _put(scan, [*started[1 + len(inits) :], *inits])
        return
    kinds = [value.type for value in started]
    loop = ir.Operation.create("stablehlo.while", results=kinds, operands=started, regions=2)
    condition, body = (region.blocks.append(*kinds) for region in loop.regions)
    with ir.InsertionPoint(condition):
        comparison = ir.Attribute.parse("#stablehlo<comparison_direction LT>")
        below = _create(
            "stablehlo.compare", [condition.arguments[0], _constant(size, index)],
            ir.Type.parse("tensor<i1>"), comparison_direction=comparison,
        )  # fmt: skip
        _return([below])
    with ir.InsertionPoint(body):
        step, *carried = body.arguments
        place = step
        if reverse:
            place = _create("stablehlo.subtract", [_constant(size - 1, index), step], index)
        parts = [_read(value, place, dimension) for value in inputs]
        scanned = scan.regions[0].blocks[0]
        known = dict(zip(scanned.arguments, (*parts, *carried[: len(inits)]), strict=True))
        gave = clone_block(scanned, known)
        written = [
            _write(whole, part, place, dimension)
            for whole, part in zip(carried[len(inits) :], gave[: len(outputs)], strict=True)
        ]
        following = _create("stablehlo.add", [step, _constant(1, index)], index)
        _return([following, *gave[len(outputs) :], *written])
    results = [*loop.results][1:]
    _put(scan, results[len(inits) :] + results[: len(inits)])


def _put(scan: Any, values: Sequence[ir.Value]) -> None:
    for old, new in zip(scan.results, values, strict=True):
        old.replace_all_uses_with(new)
    scan.erase()


def _size(scan: Any, kinds: Sequence[ir.Type], dimension: int) -> int:
    if any(not kind.has_static_shape for kind in kinds):
        raise Unimplemented(
            f"chlo.scan of {kinds[0]}: its shape is not known; refine the program to static shapes"
        )
    if kinds:
        return int(kinds[0].shape[dimension])
    return int(scan.attributes["scan_dim_size"].value)


def _create(
    name: str, operands: Sequence[ir.Value], kind: ir.Type, **attributes: object
) -> ir.Value:
    made = ir.Operation.create(name, results=[kind], operands=operands, attributes=attributes)
    value: ir.Value = made.results[0]
    return value


def _return(values: Sequence[ir.Value]) -> None:
    ir.Operation.create("stablehlo.return", operands=values)


def _constant(number: int, kind: ir.Type) -> ir.Value:
    element = str(kind.element_type)
    text = str(number) if "i" in element else f"{number}.0"
    if element == "i1":
        text = "false"
    if element.startswith("complex"):  # the bindings have no class for such an attribute
        part = ir.RankedTensorType.get(kind.shape, ir.ComplexType(kind.element_type).element_type)
        return _create("stablehlo.convert", [_constant(number, part)], kind)
    value = ir.Attribute.parse(f"dense<{text}> : {kind}")
    return _create("stablehlo.constant", [], kind, value=value)


def _starts(rank: int, place: ir.Value, dimension: int) -> list[ir.Value]:
    return [place if d == dimension else _constant(0, place.type) for d in range(rank)]


def _read(value: ir.Value, place: ir.Value, dimension: int) -> ir.Value:
    sizes = [1 if d == dimension else n for d, n in enumerate(value.type.shape)]
    starts = _starts(len(sizes), place, dimension)
    row = _create(
        "stablehlo.dynamic_slice", [value, *starts],
        ir.RankedTensorType.get(sizes, value.type.element_type),
        slice_sizes=ir.DenseI64ArrayAttr.get(sizes),
    )  # fmt: skip
    rest = [n for d, n in enumerate(sizes) if d != dimension]
    return _create(
        "stablehlo.reshape", [row], ir.RankedTensorType.get(rest, value.type.element_type)
    )


def _write(whole: ir.Value, part: ir.Value, place: ir.Value, dimension: int) -> ir.Value:
    sizes = [1 if d == dimension else n for d, n in enumerate(whole.type.shape)]
    row = _create(
        "stablehlo.reshape", [part], ir.RankedTensorType.get(sizes, whole.type.element_type)
    )
    starts = _starts(len(sizes), place, dimension)
    return _create("stablehlo.dynamic_update_slice", [whole, row, *starts], whole.type)
