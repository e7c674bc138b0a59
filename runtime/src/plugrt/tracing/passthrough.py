"""`passthrough_module`: a traced function that computes nothing, as a program all the same."""

from __future__ import annotations

from plugrt.interface import TensorType
from plugrt.stablehlo.bindings import func, ir, new_context
from plugrt.stablehlo.modules import rename
from plugrt.stablehlo.types import tensor_type
from plugrt.tracing.captures import captured_value, host_value
from plugrt.tracing.staged import Staged


def passthrough_module(staged: Staged) -> ir.Module:
    """Returns a module whose results are its parameters and constants.

    Calls of such a function need no program; this one is for those who look at it or save it. Its
    parameters are the arguments that are results, its constants the known results, and what the
    function closed over, which is read.
    """
    plan = staged.plan
    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        rename(module, f"jit_{plan.name}")
        types = [_type_of(staged.parameters[i].type) for i in plan.passed]
        results = [_type_of(t) for t in staged.output_types]
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ir.FunctionType.get(types, results))
        block = main.add_entry_block()
        with ir.InsertionPoint(block):
            known: dict[tuple[str, int], object] = {
                ("argument", i): value
                for i, value in zip(plan.passed, block.arguments, strict=True)
            }
            for i, data in enumerate(plan.literals):
                known["literal", i] = host_value(data)
            for i, source in enumerate(plan.constants):
                known["constant", i] = captured_value(source)
            func.ReturnOp([known[source] for source in plan.sources])
    return module


def _type_of(tensor: TensorType) -> ir.Type:
    return tensor_type(tensor.shape, tensor.dtype)
