"""StableHLO programs on buffers: slices, concatenations and other layouts, for transfers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from plugrt.base.bounded_cache import BoundedCache
from plugrt.execution.compilation.compiler import compile_program
from plugrt.execution.shardings.index_boxes import Box, box_shape, first_split, relative_box
from plugrt.interface import (
    Buffer,
    CompileOptions,
    Device,
    DeviceAssignment,
    Layout,
    LoadedExecutable,
    Program,
    TensorType,
)
from plugrt.stablehlo.element_names import tensor_name


@dataclass(frozen=True, slots=True)
class PartProgram:
    """A program of this module: its text, and the types of its parameters."""

    name: str
    code: bytes
    inputs: tuple[TensorType, ...]


_loaded: BoundedCache[tuple[tuple[Device, ...], bytes], LoadedExecutable] = BoundedCache(512)


class LoadedPartProgram:
    """A `PartProgram` compiled for devices of one client; each runs it on its own data."""

    __slots__ = ("_client", "_executable", "devices")

    def __init__(self, program: PartProgram, devices: Sequence[Device]) -> None:
        """Compiles it unless it is cached. Raises the backend's `PjrtError`."""
        self.devices = tuple(devices)
        self._client = self.devices[0].client

        def load() -> LoadedExecutable:
            rows = tuple((device.id,) for device in self.devices)
            options = CompileOptions(len(rows), device_assignment=DeviceAssignment(rows))
            code = Program(program.code, name=program.name)
            return compile_program(self._client, code, options, program.inputs)

        self._executable = _loaded.get_or_make((self.devices, program.code), load)

    def __call__(self, arguments: Sequence[Sequence[Buffer]]) -> list[Buffer]:
        """Launches it on each device's arguments; returns all results, ordered by device."""
        shards = [self._client.shards(buffers) for buffers in zip(*arguments, strict=True)]
        results = self._executable.execute(shards)
        return [buffers[i] for i in range(len(self.devices)) for buffers in results]


def slice_program(
    held: Box,
    shape: tuple[int, ...],
    dtype: np.dtype[np.generic],
    wanted: Sequence[tuple[Box, tuple[int, ...]]],
) -> PartProgram:
    """Returns a program that slices boxes out of a buffer of ``shape`` holding box ``held``.

    ``wanted`` names each box with the shape that its buffer shall have. Raises
    `UnsupportedDtype` for a dtype that StableHLO lacks.
    """
    body = _Body(dtype)
    part = body.reshape("%0", shape, box_shape(held))
    results = [
        body.reshape(body.slice(part, held, box), box_shape(box), given) for box, given in wanted
    ]
    return body.program("slice_parts", [shape], results, [given for _, given in wanted])


def concatenate_program(
    parts: Sequence[tuple[Box, tuple[int, ...]]],
    dtype: np.dtype[np.generic],
    shape: tuple[int, ...],
) -> PartProgram:
    """Returns a program that concatenates parts on a grid to one buffer of ``shape``.

    ``parts`` has the box of each part, and the shape of its buffer. Raises `UnsupportedDtype` for a
    dtype that StableHLO lacks.
    """
    body = _Body(dtype)
    if len(parts) > 1:
        body.widen()
    named = [
        (box, body.reshape(body.parameter(i, given), given, box_shape(box)))
        for i, (box, given) in enumerate(parts)
    ]
    whole, name = body.concatenate(named)
    shapes = [given for _, given in parts]
    result = body.result(body.reshape(name, whole, shape), shape)
    return body.program("concatenate_parts", shapes, [result], [shape])


def layout_program(held: TensorType, target: Layout | None) -> PartProgram:
    """Returns a program that copies a buffer into another layout; None is the default one.

    Raises `UnsupportedDtype` for a dtype that StableHLO lacks.
    """
    name = tensor_name(held.shape, held.dtype)
    taken, given = (_layout_mode(layout) for layout in (held.layout, target))
    text = (
        f"module @change_layout {{\n  func.func public @main(%0: {name}{taken}) -> "
        f"({name}{given}) {{\n    return %0 : {name}\n  }}\n}}\n"
    )
    return PartProgram("change_layout", text.encode(), (held,))


def _layout_mode(layout: Layout | None) -> str:
    return f' {{mhlo.layout_mode = "{layout.text}"}}' if layout else ""


_WIDER: dict[str, np.dtype[np.generic]] = {
    **dict.fromkeys(("int2", "int4"), np.dtype(np.int8)),
    **dict.fromkeys(("uint2", "uint4"), np.dtype(np.uint8)),
    "float4_e2m1fn": np.dtype(np.float32),
}
"""Dtypes of less than a byte, each with a wider one that has all its values."""


class _Body:
    """The lines of a program; the methods add one and return the name of its result."""

    def __init__(self, dtype: np.dtype[np.generic]) -> None:
        self._dtype = self._outer = dtype
        self._lines: list[str] = []
        self._names: Iterator[str] = (f"%v{i}" for i in itertools.count())

    def widen(self) -> None:
        """Makes the operations compute in a dtype of whole bytes, if the program's has fewer bits.

        XLA's CPU compiler ends the process for some concatenations of smaller types: "ir_array.cc
        Check failed: bit_offset != nullptr" in jaxlib 0.10.2, for two ``tensor<1x2xui2>``.
        """
        # Workaround for xla-two-bit-join
        self._dtype = _WIDER.get(self._outer.name, self._outer)

    def parameter(self, i: int, shape: Sequence[int]) -> str:
        """Returns a parameter converted to the dtype of the operations."""
        return self._convert(f"%{i}", shape, self._outer, self._dtype)

    def result(self, x: str, shape: Sequence[int]) -> str:
        """Returns a result converted to the dtype of the program."""
        return self._convert(x, shape, self._dtype, self._outer)

    def _convert(
        self,
        x: str,
        shape: Sequence[int],
        given: np.dtype[np.generic],
        wanted: np.dtype[np.generic],
    ) -> str:
        if given == wanted:
            return x
        types = f"({tensor_name(shape, given)}) -> {tensor_name(shape, wanted)}"
        return self._add(f"convert {x} : {types}")

    def _type(self, shape: Sequence[int]) -> str:
        return tensor_name(shape, self._dtype)

    def _add(self, operation: str) -> str:
        name = next(self._names)
        self._lines.append(f"    {name} = stablehlo.{operation}")
        return name

    def reshape(self, x: str, given: Sequence[int], shape: Sequence[int]) -> str:
        if tuple(given) == tuple(shape):
            return x
        return self._add(f"reshape {x} : ({self._type(given)}) -> {self._type(shape)}")

    def slice(self, x: str, held: Box, box: Box) -> str:
        bounds = ", ".join(f"{start}:{stop}" for start, stop in relative_box(box, held))
        types = f"({self._type(box_shape(held))}) -> {self._type(box_shape(box))}"
        return self._add(f"slice {x} [{bounds}] : {types}")

    def concatenate(self, parts: Sequence[tuple[Box, str]]) -> tuple[tuple[int, ...], str]:
        """Joins parts on a grid, one dimension after the other; returns the shape and the name."""
        dimension = first_split([box for box, _ in parts])
        if dimension is None:
            [(box, name)] = parts
            return box_shape(box), name
        groups: dict[int, list[tuple[Box, str]]] = {}
        for box, name in parts:
            groups.setdefault(box[dimension][0], []).append((box, name))
        made = [self.concatenate(groups[start]) for start in sorted(groups)]
        shape = [*made[0][0]]
        shape[dimension] = sum(s[dimension] for s, _ in made)
        names = ", ".join(name for _, name in made)
        types = ", ".join(self._type(s) for s, _ in made)
        operation = f"concatenate {names}, dim = {dimension} : ({types}) -> {self._type(shape)}"
        return tuple(shape), self._add(operation)

    def program(
        self,
        name: str,
        inputs: Sequence[tuple[int, ...]],
        results: Sequence[str],
        outputs: Sequence[tuple[int, ...]],
    ) -> PartProgram:
        """Returns the program; its parameters are ``%0``, ``%1``…"""
        parameters = ", ".join(
            f"%{i}: {tensor_name(shape, self._outer)}" for i, shape in enumerate(inputs)
        )
        types = ", ".join(tensor_name(shape, self._outer) for shape in outputs)
        lines = "\n".join([*self._lines, f"    return {', '.join(results)} : {types}"])
        text = (
            f"module @{name} {{\n  func.func public @main({parameters}) -> ({types}) {{\n"
            f"{lines}\n  }}\n}}\n"
        )
        taken = tuple(TensorType(shape, self._outer) for shape in inputs)
        return PartProgram(name, text.encode(), taken)
