"""Refines modules of ``jax.export`` to given shapes and one platform.

Such a module computes with the sizes of its arguments' dimensions if the export is symbolic, and
its first argument is the number of the platform if it is for several. As JAX does, a new ``main``
with known types calls the old one, and jaxlib's StableHLO passes propagate the sizes, check the
assertions about them that JAX left in the module, and drop the other platforms' branches. The new
``main`` creates and drops the tokens that order effects: each launch has its own chain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt.errors import ProgramError, ShapeError
from plugrt.interface import TensorType
from plugrt.lifetime.uninterrupted_imports import import_native
from plugrt.stablehlo.attributes import symbol_of
from plugrt.stablehlo.bindings import func, hlo, ir
from plugrt.stablehlo.entry_attributes import move_attributes
from plugrt.stablehlo.modules import bytecode, parse
from plugrt.stablehlo.types import is_token, tensor_type

_CALLED = "_plugrt_exported_main"
_SHARDY = b"sdy"


def refine(
    module: ir.Module, types: Sequence[TensorType], platform: int | None, name: str
) -> ir.Module:
    """Returns the module for arrays of these types and the platform with that number.

    ``platform`` is None for modules without that argument. Changes ``module``. Raises `ShapeError`
    for shapes that the module refuses, and `ProgramError` for one that JAX did not write in this
    form.
    """
    with module.context, ir.Location.unknown():
        _wrap_main(module, types, platform, name)
    code = bytecode(module)
    # A private name of jaxlib's.
    private: Any = import_native("jaxlib._jax")[0]
    try:
        refined = private.mlir.refine_polymorphic_shapes(
            code,
            enable_shape_assertions=True,
            validate_static_shapes=True,
            enable_shardy=_SHARDY in code,
        )
    except (
        RuntimeError
    ) as error:  # JaxRuntimeError, whose module depends on whether JAX is installed
        raise ShapeError(f"{name}: {_explain(str(error))}") from error
    return parse(refined, name)


def _wrap_main(
    module: ir.Module, types: Sequence[TensorType], platform: int | None, name: str
) -> None:
    main = next(op for op in module.body.operations if symbol_of(op.operation) == "main")
    signature = main.attributes["function_type"].value
    inputs, results = [*signature.inputs], [*signature.results]
    leading = 0 if platform is None else 1
    tokens, returned = sum(map(is_token, inputs)), sum(map(is_token, results))
    if len(inputs) != leading + tokens + len(types):
        raise ProgramError(
            f"{name} is damaged: its module takes {len(inputs)} arguments where it states "
            f"{len(types)}, with {leading} for the platform and {tokens} tokens"
        )
    main.attributes["sym_name"] = ir.StringAttr.get(_CALLED)
    main.attributes["sym_visibility"] = ir.StringAttr.get("private")
    new = func.FuncOp(
        "main",
        ir.FunctionType.get([tensor_type(t.shape, t.dtype) for t in types], results[returned:]),
        ip=ir.InsertionPoint.at_block_begin(module.body),
    )
    new.attributes["sym_visibility"] = ir.StringAttr.get("public")
    move_attributes(main, new, leading + tokens, returned)
    block = new.add_entry_block()
    with ir.InsertionPoint(block):
        operands = [] if platform is None else [_constant(platform, inputs[0], name)]
        operands += [hlo.create_token() for _ in range(tokens)]
        for argument, wanted in zip(block.arguments, inputs[leading + tokens :], strict=True):
            operands.append(_convert(argument, wanted, name))
        call = func.CallOp(results, ir.FlatSymbolRefAttr.get(_CALLED), operands)
        func.ReturnOp([*call.results][returned:])


def _constant(platform: int, wanted: ir.Type, name: str) -> ir.Value:
    for dtype in (np.int32, np.int64):
        value = hlo.constant(ir.DenseElementsAttr.get(np.array(platform, dtype)))
        if value.type == wanted:
            return value
    raise ProgramError(f"{name} is damaged: its module takes the platform's number as {wanted}")


def _convert(argument: ir.Value, wanted: ir.Type, name: str) -> ir.Value:
    """Converts an argument to the type of the old ``main``, even if it has that type.

    The passes change the type of the value's user, which must not be a function's return.
    https://github.com/jax-ml/jax/blob/main/jax/_src/export/_export.py (b/287386268)
    """
    if argument.type == wanted:
        return argument
    given, takes = argument.type, ir.RankedTensorType(wanted)
    same = given.rank == takes.rank and given.element_type == takes.element_type
    if not same or any(
        not takes.is_dynamic_dim(i) and takes.get_dim_size(i) != given.get_dim_size(i)
        for i in range(given.rank)
    ):
        raise ProgramError(f"{name} is damaged: it states {given}, and its module has {takes}")
    return hlo.convert(wanted, argument)


def _explain(said: str) -> str:
    """Returns the part of jaxlib's message that is about the shapes.

    JAX's assertions begin with the words searched for here; other errors come from operations that
    the sizes do not fit, before an assertion could fail.
    """
    found = re.search(r"error: (?:loc\([^)]*\): )?(.*)", said)
    text = (found[1] if found else said).partition(" Please see https")[0].rstrip(" ,.")
    if text.startswith("Input shapes"):
        return text
    return f"its operations do not fit these sizes ({text})"
