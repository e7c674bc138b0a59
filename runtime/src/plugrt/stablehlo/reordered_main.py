"""`reorder_main`: changes the order of the parameters and results of ``main``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plugrt.interface import TensorType
from plugrt.stablehlo.attributes import symbol_of
from plugrt.stablehlo.bindings import func, ir
from plugrt.stablehlo.entry_attributes import ALIAS
from plugrt.stablehlo.types import tensor_type

_CALLED = "_plugrt_packed_main"


def reorder_main(
    module: ir.Module,
    types: Sequence[TensorType],
    operands: Sequence[int],
    results: Sequence[int],
    aliases: Mapping[int, int],
) -> None:
    """Gives a module a new ``main`` with parameters of these types, which calls the old one.

    ``operands`` has the number of the new parameter for each old one, ``results`` the number of the
    old result for each new one. ``aliases`` maps the number of a parameter to the number of the
    result that gets its memory. Drops the old function's attributes, and so its donations.
    """
    with module.context, ir.Location.unknown():
        main = next(op for op in module.body.operations if symbol_of(op.operation) == "main")
        given = [*main.attributes["function_type"].value.results]
        for name in ("arg_attrs", "res_attrs"):
            if name in main.attributes:
                del main.attributes[name]
        main.attributes["sym_name"] = ir.StringAttr.get(_CALLED)
        main.attributes["sym_visibility"] = ir.StringAttr.get("private")
        takes = [tensor_type(t.shape, t.dtype) for t in types]
        new = func.FuncOp(
            "main",
            ir.FunctionType.get(takes, [given[i] for i in results]),
            ip=ir.InsertionPoint.at_block_begin(module.body),
        )
        new.attributes["sym_visibility"] = ir.StringAttr.get("public")
        number = ir.IntegerType.get_signless(32)
        new.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [
                ir.DictAttr.get(
                    {ALIAS: ir.IntegerAttr.get(number, aliases[i])} if i in aliases else {}
                )
                for i in range(len(types))
            ]
        )
        block = new.add_entry_block()
        with ir.InsertionPoint(block):
            arguments = [block.arguments[i] for i in operands]
            call = func.CallOp(given, ir.FlatSymbolRefAttr.get(_CALLED), arguments)
            func.ReturnOp([call.results[i] for i in results])
