"""Small StableHLO programs that take parts out of a buffer, or put parts together, on a device."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from plugrt.execution.caches import BoundedCache
from plugrt.execution.compile import compile_program, dump
from plugrt.execution.regions import Region, first_split, shape_of, within
from plugrt.interface import (
    Buffer,
    CompileOptions,
    Device,
    DeviceAssignment,
    LoadedExecutable,
    Program,
    TensorType,
)
from plugrt.stablehlo.element_names import tensor_name

_loaded: BoundedCache[tuple[Device, bytes], LoadedExecutable] = BoundedCache(512)


class PartProgram:
    """A program of this module that is loaded on one device."""

    __slots__ = ("_client", "_executable")

    def __init__(self, device: Device, text: str, name: str, inputs: Sequence[TensorType]) -> None:
        """Compiles it, or finds it compiled. Raises the backend's `PjrtError`."""
        self._client = device.client
        code = text.encode()

        def load() -> LoadedExecutable:
            dump(name, text)
            options = CompileOptions(device_assignment=DeviceAssignment(((device.id,),)))
            return compile_program(device.client, Program(code, name=name), options, inputs)

        self._executable = _loaded.made((device, code), load)

    def __call__(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Launches it on buffers of its device and returns the results."""
        client = self._client
        results = self._executable.launcher([client.shards((buffer,)) for buffer in buffers])
        return [shards[0] for shards in results]


def slice_program(
    device: Device,
    held: Region,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    wanted: Sequence[tuple[Region, tuple[int, ...]]],
) -> PartProgram:
    """Returns what takes regions out of a buffer of ``shape`` that holds the region ``held``.

    ``wanted`` names each region with the shape that its buffer shall have. Raises
    `UnsupportedDtype` for a dtype that StableHLO lacks.
    """
    body = _Body(dtype)
    part = body.reshape("%0", shape, shape_of(held))
    results = [
        body.reshape(body.slice(part, held, region), shape_of(region), given)
        for region, given in wanted
    ]
    text = body.module("slice_parts", [shape], results, [given for _, given in wanted])
    return PartProgram(device, text, "slice_parts", [TensorType(shape, dtype)])


def concatenate_program(
    device: Device,
    parts: Sequence[tuple[Region, tuple[int, ...]]],
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
) -> PartProgram:
    """Returns what makes one buffer of ``shape`` of parts that lie on a grid.

    ``parts`` names the region of each with the shape of its buffer. Raises `UnsupportedDtype` for
    a dtype that StableHLO lacks.
    """
    body = _Body(dtype)
    named = [
        (region, body.reshape(f"%{i}", given, shape_of(region)))
        for i, (region, given) in enumerate(parts)
    ]
    whole, result = body.concatenate(named)
    shapes = [given for _, given in parts]
    text = body.module("concatenate_parts", shapes, [body.reshape(result, whole, shape)], [shape])
    inputs = [TensorType(given, dtype) for given in shapes]
    return PartProgram(device, text, "concatenate_parts", inputs)


class _Body:
    """The lines of a program; the methods add one and return the name of its result."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._lines: list[str] = []
        self._names: Iterator[str] = (f"%v{i}" for i in itertools.count())

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

    def slice(self, x: str, held: Region, region: Region) -> str:
        bounds = ", ".join(f"{start}:{stop}" for start, stop in within(region, held))
        types = f"({self._type(shape_of(held))}) -> {self._type(shape_of(region))}"
        return self._add(f"slice {x} [{bounds}] : {types}")

    def concatenate(self, parts: Sequence[tuple[Region, str]]) -> tuple[tuple[int, ...], str]:
        """Puts parts on a grid together, one dimension after the other; the shape comes first."""
        dimension = first_split([region for region, _ in parts])
        if dimension is None:
            [(region, name)] = parts
            return shape_of(region), name
        groups: dict[int, list[tuple[Region, str]]] = {}
        for region, name in parts:
            groups.setdefault(region[dimension][0], []).append((region, name))
        made = [self.concatenate(groups[start]) for start in sorted(groups)]
        shape = [*made[0][0]]
        shape[dimension] = sum(s[dimension] for s, _ in made)
        names = ", ".join(name for _, name in made)
        types = ", ".join(self._type(s) for s, _ in made)
        operation = f"concatenate {names}, dim = {dimension} : ({types}) -> {self._type(shape)}"
        return tuple(shape), self._add(operation)

    def module(
        self,
        name: str,
        inputs: Sequence[Sequence[int]],
        results: Sequence[str],
        outputs: Sequence[Sequence[int]],
    ) -> str:
        """Returns the program; its parameters are ``%0``, ``%1``…"""
        parameters = ", ".join(f"%{i}: {self._type(shape)}" for i, shape in enumerate(inputs))
        types = ", ".join(map(self._type, outputs))
        lines = "\n".join([*self._lines, f"    return {', '.join(results)} : {types}"])
        return (
            f"module @{name} {{\n  func.func public @main({parameters}) -> ({types}) {{\n"
            f"{lines}\n  }}\n}}\n"
        )
