"""`read_module`, `result_types`, `read_aliases`: a program as a backend's author reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Program, TensorType
from plugrt.programs.parsing import parse_program

if TYPE_CHECKING:
    from plugrt.stablehlo.bindings import ir


@with_argument_errors
def read_module(program: Program) -> ir.Module:
    """Returns the StableHLO module of a program: jaxlib's ``jaxlib.mlir.ir.Module``.

    ``program.code`` is StableHLO text, MLIR bytecode or a portable artifact, which is rewritten to
    the StableHLO of the installed jaxlib. The module has a context of its own, to be entered where
    attributes or types are made (``with module.context:``); it is yours to walk and to rewrite.
    Hold it as long as you use parts of it: an operation does not keep its module alive.

    Raises `plugrt.errors.ProgramError` for code that is no module, or has no function ``main`` with
    arrays of static shape, and `plugrt.errors.MissingTraceExtra` without jaxlib.

    >>> text = b"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    >>> [op.operation.name for op in read_module(Program(text)).body.operations]
    ['func.func']
    """
    module, _, _ = parse_program(program)
    return module


@with_argument_errors
def result_types(program: Program) -> Sequence[TensorType]:
    """Returns the shape and dtype of each result of a program's ``main``; errors as `read_module`.

    >>> text = b"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    >>> [str(kind) for kind in result_types(Program(text))]
    ['float32[2]']
    """
    _, _, results = parse_program(program)
    return results


@with_argument_errors
def read_aliases(program: Program) -> Mapping[int, int | None]:
    """Returns the parameters that a program donates, each with the result that reuses its memory.

    The result is None where the program leaves it to the backend: attributes ``tf.aliasing_output``
    and ``jax.buffer_donor`` of ``main``. Errors as `read_module`.

    >>> text = b'''func.func @main(%x: tensor<f32> {tf.aliasing_output = 0 : i32}) -> tensor<f32> {
    ...   return %x : tensor<f32> }'''
    >>> read_aliases(Program(text))
    {0: 0}
    """
    from plugrt.stablehlo.bindings import ir

    module, inputs, _ = parse_program(program)
    found: dict[int, int | None] = {}
    for number, attributes in enumerate(attributes_of(module, "arg_attrs", len(inputs))):
        if "tf.aliasing_output" in attributes:
            found[number] = ir.IntegerAttr(attributes["tf.aliasing_output"]).value
        elif "jax.buffer_donor" in attributes:
            found[number] = None
    return found


def attributes_of(module: ir.Module, side: str, count: int) -> Sequence[Any]:
    """Returns the attributes of each argument (or result) of ``main``."""
    main = next(
        op
        for op in module.body.operations
        if op.operation.name == "func.func" and op.attributes["sym_name"].value == "main"
    )
    return list(main.attributes[side]) if side in main.attributes else [{}] * count
