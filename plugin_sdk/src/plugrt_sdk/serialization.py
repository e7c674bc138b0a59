"""Executables as bytes: the author's, after a header with their origin and how to launch them.

The header guards against accidents (another platform, another version, damage). It is no signature:
load only what you trust, as authors may keep code in their bytes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plugrt.errors import FailedPrecondition, InvalidArgument
from plugrt.interface import (
    TOKEN_TYPE,
    CompileOptions,
    DeviceAssignment,
    Layout,
    Program,
    TensorType,
)
from plugrt.programs.parsing import has_bindings, parse_program
from plugrt.wire.checked_fields import Count, Shape, built, require, require_bytes, require_indices
from plugrt.wire.sealed_bytes import SealedFormat
from plugrt_sdk import returns
from plugrt_sdk.backend import Backend
from plugrt_sdk.compiled import Compiled
from plugrt_sdk.compiling import require_launch


@dataclass(frozen=True, slots=True)
class _SavedType:
    """A `TensorType`; its layout as XLA writes it. Without a dtype it is a token."""

    dtype: np.dtype[Any] | None
    shape: Shape
    layout: str | None

    def __post_init__(self) -> None:
        if self.dtype is None:
            require(not self.shape and self.layout is None, f"a token of {self.shape}")
        else:
            require_bytes(self.shape, self.dtype, "an array")


@dataclass(frozen=True, slots=True)
class _SavedOptions:
    """The `CompileOptions` that a compiled program depends on, without their encoded form."""

    num_replicas: Count
    num_partitions: Count
    device_assignment: tuple[tuple[Count, ...], ...]
    use_spmd_partitioning: bool
    use_shardy_partitioner: bool
    allow_spmd_sharding_propagation_to_parameters: tuple[bool, ...]
    allow_spmd_sharding_propagation_to_output: tuple[bool, ...]
    use_auto_spmd_partitioning: bool
    auto_spmd_partitioning_mesh_shape: tuple[Count, ...]
    auto_spmd_partitioning_mesh_ids: tuple[Count, ...]
    parameter_is_tupled: bool
    env_overrides: dict[str, str | bool | int | float]

    @classmethod
    def of(cls, options: CompileOptions) -> _SavedOptions:
        found = {name: getattr(options, name) for name in cls.__slots__}
        assert options.device_assignment is not None
        return cls(**{**found, "device_assignment": options.device_assignment.device_ids})

    def read(self) -> CompileOptions:
        found = {name: getattr(self, name) for name in self.__slots__}
        with built("the options"):
            assignment = DeviceAssignment(self.device_assignment)
            return CompileOptions(**{**found, "device_assignment": assignment})


@dataclass(frozen=True, slots=True)
class _Header:
    """The header of the bytes; ``program`` and ``content`` are lengths in bytes."""

    platform: str
    version: str
    name: str
    program: Count
    content: Count
    options: _SavedOptions
    inputs: tuple[_SavedType, ...]
    outputs: tuple[_SavedType, ...]
    donated: tuple[Count, ...]
    memories: tuple[str, ...]

    def __post_init__(self) -> None:
        require_indices(self.donated, len(self.inputs), "donated")
        require(
            len(self.memories) == len(self.outputs),
            f"{len(self.memories)} memories of {len(self.outputs)} results",
        )


_SAVED = SealedFormat(b"plugrt-sdk executable", 2, _Header, "executable that plugrt-sdk serialised")


def serialize(backend: Backend, compiled: Compiled) -> bytes:
    """Returns a header, the program, and the bytes of `Backend.serialize`."""
    content = returns.require(backend, "serialize", backend.serialize(compiled), bytes, "bytes")
    program = compiled.program
    header = _Header(
        platform=backend.platform,
        version=backend.version,
        name=program.name,
        program=len(program.code),
        content=len(content),
        options=_SavedOptions.of(compiled.options),
        inputs=tuple(map(_encode_type, compiled.input_types)),
        outputs=tuple(map(_encode_type, compiled.output_types)),
        donated=tuple(sorted(compiled.donated)),
        memories=tuple(compiled.output_memory_kinds),
    )
    return _SAVED.write(header, program.code + content)


def deserialize(
    backend: Backend, serialized: bytes, given: CompileOptions | None, kinds: Collection[str]
) -> Compiled:
    """Returns the program that `serialize` saved, for the devices in ``given``, if it names any.

    ``kinds`` are the memory kinds of a device.

    Raises `InvalidArgument` for bytes from elsewhere or for another platform, `FailedPrecondition`
    for another version's, `DataLoss` for truncated or altered ones.
    """
    header, rest = _SAVED.read(serialized)
    _require_same(backend, header)
    parts = header.program, header.content
    require(sum(parts) == len(rest), f"a program and contents of {parts} bytes in {len(rest)}")
    require({*header.memories} <= {*kinds}, f"results in {header.memories!s:.60} of {kinds}")
    program = Program(bytes(rest[: header.program]), name=header.name)
    options = header.options.read()
    if given is not None and given.device_assignment is not None:
        options = replace(options, device_assignment=given.device_assignment)
    inputs, outputs = (tuple(map(_decode_type, s)) for s in (header.inputs, header.outputs))
    if options.num_partitions == 1 and has_bindings():
        with built("the program"):
            _, parameters, results = parse_program(program)
        for stated, found in ((inputs, parameters), (outputs, results)):
            require(
                [(t.shape, t.dtype) for t in stated] == [(t.shape, t.dtype) for t in found],
                f"types {[*map(str, stated)]!s:.60} of a program with {[*map(str, found)]!s:.60}",
            )
    launch = backend.deserialize(bytes(rest[header.program :]), program, options)
    return Compiled(
        program,
        options,
        require_launch(backend, "deserialize", launch),
        inputs,
        outputs,
        frozenset(header.donated),
        header.memories,
    )


def _require_same(backend: Backend, header: _Header) -> None:
    if header.platform != backend.platform:
        raise InvalidArgument(
            f"this executable is for the platform {header.platform!r}; this backend is "
            f"{backend.platform!r}. Compile the program for it instead"
        )
    if header.version != backend.version:
        raise FailedPrecondition(
            f"this executable was made by {backend.platform!r} of version {header.version!r}; "
            f"here is {backend.version!r}. Compile the program again"
        )


def _encode_type(kind: TensorType) -> _SavedType:
    dtype = None if kind.is_token else kind.dtype
    return _SavedType(dtype, kind.shape, kind.layout.text if kind.layout else None)


def _decode_type(stated: _SavedType) -> TensorType:
    if stated.dtype is None:
        return TOKEN_TYPE
    if stated.layout is None:
        return TensorType(stated.shape, stated.dtype)
    with built("a layout"):
        layout = Layout.from_text(stated.layout)
    order = layout.major_to_minor
    require(len(order) == len(stated.shape), f"a layout {stated.layout} of {stated.shape}")
    return TensorType(stated.shape, stated.dtype, layout)
