"""Layouts of a backend's arrays and programs: `read_layouts` for authors, and checks that refuse
unsupported layouts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from plugrt.errors import Unimplemented
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Layout, Program, TensorType
from plugrt.interface.checks import require_rank
from plugrt.interface.memory_layout import AutoLayout
from plugrt_sdk.reading import attributes_of, read_module

if TYPE_CHECKING:
    from plugrt.stablehlo.bindings import ir

ProgramLayouts = tuple[Sequence[Layout | AutoLayout | None], Sequence[Layout | AutoLayout | None]]
"""Of the parameters and of the results; None is the default, row-major."""


@with_argument_errors
def read_layouts(program: Program) -> ProgramLayouts:
    """Returns the layouts that a program states for its parameters and for its results.

    Reads the attributes ``mhlo.layout_mode`` of ``main``. None is the default layout and
    ``Layout.AUTO`` the compiler's choice; a result that is a transposed parameter keeps the
    parameter's order in memory.
    Raises `plugrt.errors.InvalidArgument` for a text that is no layout; other errors as for
    `read_module`.

    >>> text = b'''func.func @main(%x: tensor<2x3xf32> {mhlo.layout_mode = "{0,1}"})
    ...   -> tensor<2x3xf32> { return %x : tensor<2x3xf32> }'''
    >>> read_layouts(Program(text))[0][0].major_to_minor
    (1, 0)
    """
    return layouts_of(read_module(program))


def layouts_of(module: ir.Module, *, chooses: bool = True) -> ProgramLayouts:
    """Returns the layouts that a module's ``main`` states, and those that the compiler chooses."""
    main = next(
        op
        for op in module.body.operations
        if op.operation.name == "func.func" and op.attributes["sym_name"].value == "main"
    )
    sides = ("arg_attrs", len(main.type.inputs)), ("res_attrs", len(main.type.results))
    parameters, results = ([*map(_read, attributes_of(module, *side))] for side in sides)
    *_, end = main.entry_block.operations
    for i, value in enumerate(end.operands):
        if chooses and results[i] is Layout.AUTO:
            results[i] = _choose(value, parameters)
    return parameters, results


def _choose(
    value: ir.Value, parameters: Sequence[Layout | AutoLayout | None]
) -> Layout | AutoLayout:
    """Returns the order in memory of the parameter that a value transposes, or AUTO."""
    made = value.owner
    if getattr(made, "name", None) != "stablehlo.transpose":
        return Layout.AUTO
    [parameter] = made.operands
    if not hasattr(parameter, "arg_number"):  # another operation computes it
        return Layout.AUTO
    order, stated = [*made.attributes["permutation"]], parameters[parameter.arg_number]
    held = stated.major_to_minor if isinstance(stated, Layout) else range(len(order))
    return Layout(tuple(map(order.index, held)), ())


def _read(attributes: ir.DictAttr) -> Layout | AutoLayout | None:
    if "mhlo.layout_mode" not in attributes:
        return None
    text = attributes["mhlo.layout_mode"].value
    if text == "auto":
        return Layout.AUTO
    return None if text == "default" else Layout.from_text(text)


def lay_out(
    tensor_type: TensorType,
    layout: Layout | AutoLayout | None,
    methods: Collection[str],
    backend: str,
) -> TensorType:
    """Returns a type with a layout, None for row-major or if left to the compiler.

    ``methods`` are the methods that the backend overrides. Raises `Unimplemented` for a layout that
    it does not declare, or one with tiles, and `InvalidArgument` for one of another rank.
    """
    if layout is None or isinstance(layout, AutoLayout):
        return tensor_type
    require_rank(layout, tensor_type.shape)
    if layout.is_row_major:
        return tensor_type
    if "put_in_layout" not in methods:
        raise Unimplemented(
            f"{backend}: {tensor_type} in the layout {layout.text}; its arrays are row-major (it "
            "lacks the optional method put_in_layout)"
        )
    if layout.tiling:
        raise Unimplemented(f"{backend}: {tensor_type} in tiles, as the layout {layout.text} asks")
    return replace(tensor_type, layout=Layout(layout.major_to_minor, ()))


def layout_of(tensor_type: TensorType) -> Layout:
    """Returns the layout of an array of a type: row-major unless the type states another."""
    return tensor_type.layout or Layout.row_major(len(tensor_type.shape))
