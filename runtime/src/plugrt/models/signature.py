"""`Signature`: the contents of a model's ``model.json``, and expressions of its dimensions."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from plugrt.errors import ArgumentMismatch
from plugrt.interface import TensorType
from plugrt.wire.checked_fields import Count, Size, require

Sizes = Mapping[str, int]
"""The size of each dimension variable."""

_FILE = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)*", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MOST_TEXT = 200
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max,
    "min": min,
}


def is_variable(dimension: int | str) -> bool:
    """Whether a dimension is one variable alone, whose size a call gives."""
    return isinstance(dimension, str) and _VARIABLE.fullmatch(dimension) is not None


def evaluate(dimension: int | str, sizes: Sizes) -> int:
    """Returns the size of a dimension, such as ``2*a + b`` in JAX's text or PyTorch's.

    Raises `ValueError` for other text and for a variable without a size.
    """
    if isinstance(dimension, int):
        return dimension
    try:
        if len(dimension) > _MOST_TEXT:
            raise ValueError(dimension)
        return _evaluate(ast.parse(dimension.strip(), mode="eval").body, sizes)
    except (ValueError, SyntaxError, KeyError, ZeroDivisionError, RecursionError) as error:
        raise ValueError(
            f"the dimension {dimension!r:.60} has no size for {dict(sizes)}"
        ) from error


def _evaluate(node: Any, sizes: Sizes) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return sizes[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, sizes)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_evaluate(left, sizes), _evaluate(right, sizes))
        case ast.Call(func=ast.Name(id=name), args=[left, right]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](_evaluate(left, sizes), _evaluate(right, sizes))
    raise ValueError(ast.dump(node)[:60])


@dataclass(frozen=True, slots=True)
class ModelValue:
    """An input, a weight or an output: its name, shape and dtype.

    A dimension may be a variable, or an expression of variables as text.
    """

    name: str
    shape: tuple[Size | str, ...]
    dtype: np.dtype[np.generic]

    def at(self, sizes: Sizes) -> TensorType:
        """Returns the type for these sizes; `ValueError` as `evaluate`."""
        return TensorType(tuple(evaluate(n, sizes) for n in self.shape), self.dtype)

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype.name}[{','.join(map(str, self.shape))}]"


def find_variables(values: Sequence[ModelValue]) -> tuple[str, ...]:
    """Returns the dimension variables that are dimensions by themselves."""
    found = (n for value in values for n in value.shape if is_variable(n))
    return tuple(dict.fromkeys(str(n) for n in found))


@dataclass(frozen=True, slots=True)
class ModelProgram:
    """A program of StableHLO for one bucket: the sizes of the dimension variables."""

    file: str
    platforms: tuple[str, ...]
    """The platforms that it is for; empty for all."""
    bucket: dict[str, Size]


@dataclass(frozen=True, slots=True)
class ModelExecutable:
    """A saved executable: the index of its program, and the name of its backend."""

    file: str
    program: Count
    backend: str
    version: str


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The size and the SHA-256 of a file of the model."""

    size: Size
    sha256: str


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs, weights, outputs and files of a model.

    A program's parameters are the inputs, then the weights; its results are the outputs.
    """

    name: str
    inputs: tuple[ModelValue, ...]
    """Sorted by name; those that outputs feed come last."""
    weights: tuple[ModelValue, ...]
    outputs: tuple[ModelValue, ...]
    """Sorted by name; those that feed inputs come last."""
    feeds: dict[str, str]
    """The name of an output to the name of the input of the next call."""
    padded: tuple[str, ...]
    """The dimension variables whose sizes are padded to a bucket."""
    programs: tuple[ModelProgram, ...]
    executables: tuple[ModelExecutable, ...]
    files: dict[str, ModelFile]

    def __post_init__(self) -> None:
        for what, values in (
            ("inputs and weights", (*self.inputs, *self.weights)),
            ("outputs", self.outputs),
        ):
            names = [value.name for value in values]
            require(
                len(set(names)) == len(names) and all(names), f"the names of {what} {names[:8]}"
            )
        self._check_feeds()
        programs, executables = self.programs, self.executables
        stated = [*(each.file for each in programs), *(each.file for each in executables)]
        for file in (*self.files, *stated):
            require(
                _FILE.fullmatch(file) is not None and file in self.files, f"the file {file!r:.60}"
            )
        require(len(self.programs) > 0, "it has no program")
        require({*self.padded} <= {*self.variables}, f"it pads {self.padded[:8]}")
        for program in self.programs:
            require(
                program.bucket.keys() == {*self.variables}
                and all(n > 0 for n in program.bucket.values()),
                f"the bucket {program.bucket!s:.80} of the variables {[*self.variables][:8]}",
            )
            for value in (*self.inputs, *self.weights, *self.outputs):
                try:
                    shape = value.at(program.bucket).shape
                except ValueError as error:
                    require(False, str(error))
                require(all(0 <= n < 2**62 for n in shape), f"{value!s:.80} is {shape!s:.80}")
        for executable in self.executables:
            require(
                executable.program < len(self.programs),
                f"an executable of program {executable.program} of {len(self.programs)}",
            )

    def _check_feeds(self) -> None:
        outputs = {value.name: value for value in self.outputs}
        inputs = {value.name: value for value in self.inputs}
        require(
            len({*self.feeds.values()}) == len(self.feeds), f"it feeds {self.feeds!s:.80} twice"
        )
        for source, target in self.feeds.items():
            found, wanted = outputs.get(source), inputs.get(target)
            require(
                found is not None
                and wanted is not None
                and found.dtype == wanted.dtype
                and found.shape == wanted.shape
                and all(isinstance(n, int) for n in found.shape),
                f"the output {source!r:.60} feeds the input {target!r:.60}",
            )
        for what, named, last in (
            ("inputs", inputs, self.feeds.values()), ("outputs", outputs, self.feeds),
        ):  # fmt: skip
            order = [*sorted(named.keys() - {*last}), *sorted(last)]
            require([*named] == order, f"the order of the {what} is {[*named][:8]}")

    @property
    def states(self) -> tuple[str, ...]:
        """The names of the inputs that outputs feed."""
        return tuple(self.feeds.values())

    @property
    def variables(self) -> tuple[str, ...]:
        """The dimension variables: each is a dimension of an input by itself."""
        return find_variables(self.inputs)

    def sizes_of(self, inputs: Sequence[ModelValue], shapes: Sequence[Sequence[int]]) -> Sizes:
        """Returns the sizes of the variables in a call; `ArgumentMismatch` for wrong shapes."""
        sizes: dict[str, int] = {}
        wrong = []
        for value, shape in zip(inputs, shapes, strict=True):
            if len(value.shape) == len(shape):
                for stated, n in zip(value.shape, shape, strict=True):
                    if is_variable(stated):
                        sizes.setdefault(str(stated), n)
        for value, shape in zip(inputs, shapes, strict=True):
            try:
                fits = value.at(sizes).shape == tuple(shape)
            except ValueError:  # a variable has no size: another input has the wrong rank
                fits = False
            if not fits:
                wrong.append(f"  {value} was given {list(shape)}, where {sizes or 'no variables'}")
        if wrong:
            raise ArgumentMismatch(
                f"model {self.name!r} was called with other shapes:\n" + "\n".join(wrong[:5])
            )
        return sizes

    def choose(self, sizes: Sizes, programs: Sequence[int]) -> int:
        """Returns the index of the program with the smallest bucket that holds these sizes.

        Raises `ArgumentMismatch` if there is none among ``programs``.
        """
        fitting = [
            i
            for i in programs
            if all(
                self.programs[i].bucket[name] == n
                or (name in self.padded and n < self.programs[i].bucket[name])
                for name, n in sizes.items()
            )
        ]
        if not fitting:
            buckets = ", ".join(str(self.programs[i].bucket) for i in programs)
            exact = [name for name in self.variables if name not in self.padded]
            raise ArgumentMismatch(
                f"model {self.name!r} was called with the sizes {dict(sizes)}; it has the buckets "
                f"{buckets}" + (f", and does not pad {', '.join(exact)}" if exact else "")
            )
        return min(fitting, key=lambda i: prod(self.programs[i].bucket.values()))
