"""Checks that sizes fit where an export has the same dimension variable several times."""

from __future__ import annotations

from collections.abc import Sequence

from plugrt.programs.exported import ExportedAval


def explain_sizes(
    names: Sequence[str], expected: Sequence[ExportedAval], shapes: Sequence[tuple[int, ...]]
) -> list[str]:
    """Returns a line for each dimension whose variable had another size before.

    Expressions such as ``2*a`` are left to the assertions in the module. Without this check the
    module's operations, whose shapes do not fit either, may be what is reported.
    """
    found: dict[str, tuple[int, str]] = {}
    wrong = []
    for name, aval, shape in zip(names, expected, shapes, strict=True):
        for i, (variable, size) in enumerate(zip(aval.shape, shape, strict=True)):
            if not isinstance(variable, str) or not variable.isidentifier():
                continue
            before, where = found.setdefault(variable, (size, f"{name}.shape[{i}]"))
            if before != size:
                wrong.append(
                    f"  {name}.shape[{i}]: {variable} is {size} here, and {before} in {where}"
                )
    return wrong
