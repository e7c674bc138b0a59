"""Functions of one module put into another: `insert_functions`."""

from __future__ import annotations

from typing import Any

from plugrt.stablehlo.attributes import symbol_of
from plugrt.stablehlo.bindings import ir, register_shardy


def insert_functions(target: ir.Module, code: bytes, title: str, number: int) -> tuple[Any, int]:
    """Adds the functions of a module, in bytecode, to another one, and returns its ``main``.

    They are private there; ``main`` is called after ``title``. Their names end with numbers above
    ``number``, so that they are free if no name there ends with a higher one; the second result is
    the highest.
    """
    # Each trace has a context of its own; bytecode goes from one to the other.
    if b"sdy" in code:  # names of dialects stand in bytecode as they are
        register_shardy(target.context)
    module = ir.Module.parse(code, target.context)
    symbols = ir.SymbolTable(module.operation)
    functions = [*module.body.operations]
    names = [str(symbol_of(function)) for function in functions]
    main = names.index("main")
    names[main] = _identifier(title)
    for i, function in enumerate(functions):  # first to names that no function here has
        _rename(module, symbols, function, f"{i}.renamed")
    for function, old in zip(functions, names, strict=True):
        number += 1
        _rename(module, symbols, function, f"{old.rstrip('_0123456789')}_{number}")
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    for function in functions:
        # They are one for each argument and result, some of which dead code takes with it.
        for attributes in ("arg_attrs", "res_attrs"):
            if attributes in function.attributes:
                del function.attributes[attributes]
        target.body.append(function)
    return functions[main], number


def _rename(module: ir.Module, symbols: ir.SymbolTable, function: Any, new: str) -> None:
    ir.SymbolTable.replace_all_symbol_uses(str(symbol_of(function)), new, module.operation)
    symbols.set_symbol_name(function, new)


def _identifier(title: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in title)
