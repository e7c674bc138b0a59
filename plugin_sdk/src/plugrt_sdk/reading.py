"""`read_module` and `result_types`: a program as a backend's author reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plugrt.argument_errors import with_argument_errors
from plugrt.interface import Program, TensorType
from plugrt.programs.loading import parse_program

if TYPE_CHECKING:
    from plugrt.stablehlo.bindings import ir


@with_argument_errors
def read_module(program: Program) -> ir.Module:
    """Returns the StableHLO module of a program: jaxlib's ``jaxlib.mlir.ir.Module``.

    ``program.code`` is StableHLO text, MLIR bytecode or a portable artifact, which is rewritten to
    the StableHLO of the installed jaxlib. The module has a context of its own, to be entered where
    attributes or types are made (``with module.context:``); it is yours to walk and to rewrite.
    Hold it as long as you use parts of it: an operation does not keep its module alive.

    Raises `plugrt.errors.ProgramError` for what is no module, or has no function ``main`` with
    arrays of static shape, `plugrt.errors.MissingTraceExtra` without jaxlib.

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
