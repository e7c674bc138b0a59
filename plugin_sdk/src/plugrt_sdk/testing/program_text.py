"""`ProgramText`: a StableHLO program that is written operation by operation, with its arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from plugrt.stablehlo.element_names import tensor_name

Value = tuple[str, str]
"""A value's name and its type."""


def named_dtype(name: str) -> np.dtype[Any]:
    """Returns the dtype of a name, ml_dtypes' included."""
    return np.dtype(getattr(ml_dtypes, name, name))


class ProgramText:
    """A program whose ``main`` returns the result of each operation that was added."""

    def __init__(self) -> None:
        self.arguments: list[np.ndarray[Any, Any]] = []
        self._lines: list[str] = []
        self._parameters: list[str] = []
        self._functions: list[str] = []
        self.results: list[Value] = []
        """What ``main`` returns."""
        self._count = 0

    def argument(self, array: Any) -> Value:
        """Adds a parameter."""
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        value = f"%a{len(self.arguments)}", tensor_name(array.shape, array.dtype)
        self.arguments.append(array)
        self._parameters.append(f"{value[0]}: {value[1]}")
        return value

    def constant(self, literal: str, kind: str) -> Value:
        """Adds a constant, which is no result."""
        return self._add(f"stablehlo.constant dense<{literal}> : {kind}", [kind])[0]

    def apply(
        self,
        name: str,
        operands: Sequence[Value],
        results: Sequence[str],
        attributes: str = "",
        regions: Sequence[str] = (),
        *,
        returned: bool = True,
    ) -> list[Value]:
        """Adds ``stablehlo.NAME`` with result types; ``main`` returns its result."""
        made = self._add(operation_text(name, operands, results, attributes, regions), results)
        if returned:
            self.results += made
        return made

    def function(self, text: str) -> None:
        """Adds a function beside ``main``, which operations call by its name."""
        self._functions.append(text)

    def _add(self, line: str, results: Sequence[str]) -> list[Value]:
        name = f"%v{self._count}"
        self._count += 1
        left = f"{name}:{len(results)}" if len(results) > 1 else name
        self._lines.append(f"{left} = {line}")
        if len(results) == 1:
            return [(name, results[0])]
        return [(f"{name}#{i}", kind) for i, kind in enumerate(results)]

    def without(self, words: Sequence[str]) -> ProgramText:
        """Returns the program without operations whose text has one of the words, and their
        users."""
        left = ProgramText()
        left._functions = self._functions
        gone: set[str] = set()
        for parameter, array in zip(self._parameters, self.arguments, strict=True):
            if any(word in parameter for word in words):
                gone.add(parameter.partition(":")[0])
            else:
                left._parameters.append(parameter)
                left.arguments.append(array)
        for line in self._lines:
            used = set(re.findall(r"%[av]\d+", line.partition(" = ")[2]))
            if used & gone or any(word in line for word in words):
                gone.add(line.partition(" = ")[0].partition(":")[0])
            else:
                left._lines.append(line)
        left.results = [r for r in self.results if r[0].partition("#")[0] not in gone]
        return left

    def text(self) -> str:
        """Returns the module."""
        names = ", ".join(v for v, _ in self.results)
        types = ", ".join(t for _, t in self.results)
        return (
            "\n  ".join(
                [
                    f"func.func public @main({', '.join(self._parameters)}) -> ({types}) {{",
                    *self._lines,
                    f"func.return {names} : {types}",
                ]
            )
            + "\n}\n"
            + "".join(f"{each}\n" for each in self._functions)
        )


def operation_text(
    name: str,
    operands: Sequence[Value],
    results: Sequence[str],
    attributes: str = "",
    regions: Sequence[str] = (),
) -> str:
    """Returns the text of ``stablehlo.NAME`` with result types, in the form that all have."""
    values = ", ".join(v for v, _ in operands)
    held = f" ({', '.join('{' + r + '}' for r in regions)})" if regions else ""
    return (
        f'"stablehlo.{name}"({values}){held} {{{attributes}}} : '
        f"({', '.join(t for _, t in operands)}) -> ({', '.join(results)})"
    )


def typed(shape: Sequence[int], dtype: Any) -> str:
    """Returns the spelling of a type."""
    return tensor_name(tuple(shape), named_dtype(dtype) if isinstance(dtype, str) else dtype)


def body(operation: str, dtype: str) -> str:
    """Returns a region of one operation on two scalars."""
    t = typed((), dtype)
    return (
        f"^bb0(%x: {t}, %y: {t}): %r = stablehlo.{operation} %x, %y : {t} stablehlo.return %r : {t}"
    )


def i64s(*values: int) -> str:
    """Returns the spelling of a list of numbers, as of dimensions."""
    return f"array<i64{': ' if values else ''}{', '.join(map(str, values))}>"
