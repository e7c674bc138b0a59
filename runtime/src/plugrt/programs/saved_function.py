"""Compiled functions as bytes: the executable, and how calls map to it.

After the header come the captured arrays of the function, and the backend's own bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import InvalidArgument, PjrtError
from plugrt.execution.arrays.arguments import ParameterType
from plugrt.execution.arrays.aval import intern_aval
from plugrt.execution.compilation.ir_dumps import dump_executable
from plugrt.execution.executables.custom_call_targets import add_handlers
from plugrt.execution.executables.tracked_executable import refuse_to_save
from plugrt.execution.launches.compiled import SavableCall
from plugrt.execution.launches.loaded_program import LoadedProgram
from plugrt.execution.placement.launch_layouts import require_chosen
from plugrt.execution.placement.placement import Launch
from plugrt.execution.placement.plan import Plan, is_tuple_program
from plugrt.execution.transfers.sharded_transfer import put_sharded
from plugrt.interface import (
    Client,
    Device,
    Executable,
    LoadedExecutable,
    Program,
    TensorType,
)
from plugrt.native.known_dtypes import buffer_type, is_key_dtype
from plugrt.plugins.selection.backends import process_backends
from plugrt.programs.executables import EXECUTABLE, local_parameter_types
from plugrt.programs.saved_header import (
    SavedHeader,
    SavedLaunch,
    SavedType,
    decode_layout,
    decode_sharding,
    encode_layout,
    encode_sharding,
)
from plugrt.wire.checked_fields import built, require
from plugrt.wire.sealed_bytes import SealedFormat

FUNCTION = "compiled function"
"""The format of a `Program` that is a compiled function, as `save` writes it."""
SAVED = SealedFormat(
    b"plugrt compiled function",
    6,
    SavedHeader,
    "compiled function that plugrt.serialize_executable saved",
)


@dataclass(frozen=True, slots=True)
class SavedFunction:
    """A compiled function: its program, and the types of its arguments and results."""

    program: LoadedProgram
    types: Sequence[ParameterType]
    executable: bytes = b""
    """The executable as the backend serialised it, if the function was loaded."""

    @staticmethod
    def of(call: SavableCall) -> SavedFunction:
        """Returns the parts of a compiled function to save; `ArgumentError` for symbolic shapes."""
        call._require_one()
        assert call._types is not None  # the shapes are not symbolic
        return SavedFunction(call._program, call._types)


def save(function: SavedFunction) -> bytes:
    """Returns a compiled function as bytes.

    Raises `Unimplemented` for one that calls Python, and for a backend that saves no executables.
    """
    program = function.program
    plan, launch = program.plan, program.launch
    refuse_to_save(program.executable)
    arrays: list[Any] = [*program.constants, *plan.literals]
    executable = program.executable.executable.serialize() if program.executable else b""
    body = b"".join(np.ascontiguousarray(_as_host(x)).tobytes() for x in arrays) + executable
    header = SavedHeader(
        name=plan.name,
        backend=_backend_name(launch.client),
        kept=plan.kept,
        sources=plan.sources,
        fed=plan.fed,
        donated=tuple(sorted(plan.donated)),
        argument_names=plan.argument_names,
        acts=plan.acts,
        types=tuple(SavedType.of(*t) for t in function.types),
        parameters=tuple(SavedType.of(*t) for t in program.types),
        outputs=tuple(SavedType.of(s.shape, s.dtype, s.weak) for s in program.outputs),
        arrays=tuple(SavedType.of(x.shape, x.dtype) for x in arrays),
        literals=len(plan.literals),
        launch=_encode_launch(launch, plan.name),
        executable=program.executable is not None,
    )
    return SAVED.write(header, body)


def is_saved_function(code: bytes) -> bool:
    """Whether bytes are a compiled function, of this or another version of plugrt."""
    return code.startswith(SAVED.title)


def load(saved: bytes, devices: Sequence[Device]) -> SavedFunction:
    """Returns the function in these bytes of `save`, for the first of these devices.

    Raises `InvalidArgument` for other bytes and for too few devices, `DataLoss` for damaged ones,
    and the backend's `PjrtError` for an executable that is not its own.
    """
    header, body = SAVED.read(saved)
    size = sum(part.nbytes for part in header.arrays)
    require(size <= len(body), f"arrays of {size} bytes in {len(body)}")
    launch = _decode_launch(header, devices)
    arrays = [*_split(body, header.arrays)]
    first_literal = len(arrays) - header.literals
    content = bytes(body[size:])
    require(bool(content) == header.executable, f"an executable of {len(content)} bytes")
    plan = Plan(
        name=header.name,
        kept=header.kept,
        sources=header.sources,
        fed=header.fed,
        literals=tuple(arrays[first_literal:]),
        donated=header.donated,
        argument_names=header.argument_names,
        acts=header.acts,
    )
    executable = None
    if header.executable:
        executable = _load_executable(content, launch, header, len(plan.kept) + plan.fed)
        _check_executable(header, launch, executable.executable)
        dump_executable(plan.name, executable.executable)
    _check_types(header, launch, executable.executable if executable else None)
    constants = [put_sharded(x, launch.everywhere) for x in arrays[:first_literal]]
    plan = replace(plan, constants=tuple(constants))
    outputs = [
        intern_aval(
            part.shape, part.element, sharding, launch.committed, part.weak,
            require_chosen(launch.out_layout(i)),
        )
        for i, (part, sharding) in enumerate(
            zip(header.outputs, launch.out_shardings, strict=True)
        )
    ]  # fmt: skip
    parameters = _read_types(header.parameters)
    program = LoadedProgram(plan, parameters, launch, executable, constants, outputs)
    return SavedFunction(program, _read_types(header.types), content)


def _as_host(x: Any) -> npt.NDArray[np.generic]:
    return np.asarray(x._words() if is_key_dtype(x.dtype) else x)


def _read_types(stated: Sequence[SavedType]) -> list[ParameterType]:
    return [(part.shape, part.element, part.weak) for part in stated]


def _split(body: memoryview, parts: Sequence[SavedType]) -> Iterator[npt.NDArray[np.generic]]:
    at = 0
    for part in parts:
        array = np.empty(*part.buffer)
        array.reshape(-1).view(np.uint8)[:] = np.frombuffer(body[at : at + array.nbytes], np.uint8)
        at += array.nbytes
        yield array


def _backend_name(client: Client) -> str:
    """Returns the name that selects a backend."""
    return process_backends().platforms_of(client)[0]


def _load_executable(
    content: bytes, launch: Launch, header: SavedHeader, count: int
) -> LoadedExecutable:
    """Loads an executable of ``count`` parameters which XLA does not describe as one tuple."""
    client = launch.client
    tupled = is_tuple_program(client, count)
    options = launch.compile_options(parameter_is_tupled=tupled)
    add_handlers(client, Program(content, EXECUTABLE, header.name))
    try:
        return client.deserialize_executable(content, options)
    except PjrtError as error:
        made_by = header.backend
        if made_by == _backend_name(client):
            raise
        raise type(error)(
            f"{header.name!r} was compiled by the backend {made_by!r}, and {client.backend_name} "
            f"cannot load it: {error.message}. Fix: load it with backend={made_by!r}, or compile "
            "the function again"
        ) from error


def _check_types(header: SavedHeader, launch: Launch, executable: Executable | None) -> None:
    """Raises `DataLoss` if a type in the header contradicts the executable."""
    constants = len(header.arrays) - header.literals
    for whole, part, sharding in zip(
        header.types, header.parameters, launch.in_shardings, strict=True
    ):
        shape = sharding.shard_shape(whole.shape) if launch.of_parts else whole.shape
        _require_type("parameter", (shape, whole.element), part.buffer)
        require(whole.weak == part.weak, "an argument and its parameter are not both weak")
    arrays = [part.buffer for part in header.arrays]
    known = {
        "argument": [part.buffer for part in header.parameters],
        "constant": arrays[:constants],
        "literal": arrays[constants:],
        "result": [*map(_as_pair, executable.output_types)] if executable else [],
    }
    shown = zip(header.sources, header.outputs, launch.out_shardings, strict=True)
    for (origin, i), output, sharding in shown:
        found = known[origin]
        require(i < len(found), f"{origin} {i} of {len(found)}")
        in_part = origin == "result" or launch.of_parts
        shape = sharding.shard_shape(output.shape) if in_part else output.shape
        _require_type("result", (shape, output.element), found[i])


def _check_executable(header: SavedHeader, launch: Launch, executable: Executable) -> None:
    """Raises `DataLoss` if a header's description of an executable contradicts the executable."""
    stated = launch.replicas, launch.partitions
    counts = executable.num_replicas, executable.num_partitions
    require(stated == counts, f"replicas and partitions {stated} of an executable for {counts}")
    if (parameters := local_parameter_types(executable)) is None:
        return
    count = len(header.kept) + header.fed
    require(len(parameters) == count, f"{count} of {len(parameters)} parameters")
    given = [(header.types[i], launch.in_shardings[i]) for i in header.kept]
    given += [(part, launch.everywhere) for part in header.arrays[: header.fed]]
    for (part, sharding), found in zip(given, parameters, strict=True):
        _require_type(
            "parameter", (sharding.shard_shape(part.shape), part.element), _as_pair(found)
        )


def _as_pair(kind: TensorType) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    return kind.shape, kind.dtype


def _require_type(
    what: str, stated: tuple[tuple[int, ...], Any], found: tuple[tuple[int, ...], np.dtype[Any]]
) -> None:
    """Raises `DataLoss` unless an array of a shape and a dtype has a buffer of this type."""
    shape, dtype = buffer_type(*stated)
    require(
        (shape, dtype) == found,
        f"a {what} {dtype.name}{list(shape)} is {found[1].name}{list(found[0])}",
    )


def _encode_launch(launch: Launch, name: str) -> SavedLaunch:
    return SavedLaunch(
        replicas=launch.replicas,
        partitions=launch.partitions,
        devices=tuple(device.id for device in launch.devices),
        of_parts=launch.of_parts,
        committed=launch.committed,
        arguments=tuple(encode_sharding(s, launch.devices, name) for s in launch.in_shardings),
        results=tuple(encode_sharding(s, launch.devices, name) for s in launch.out_shardings),
        whole=encode_sharding(launch.whole, launch.devices, name) if launch.whole else None,
        in_layouts=tuple(map(encode_layout, launch.in_layouts)),
        out_layouts=tuple(map(encode_layout, launch.out_layouts)),
    )


def _decode_launch(header: SavedHeader, devices: Sequence[Device]) -> Launch:
    stated = header.launch
    taken = _choose_devices(stated.devices, header.name, devices)
    shapes = [part.shape for part in header.types], [part.shape for part in header.outputs]
    launch = Launch(
        stated.replicas,
        stated.partitions,
        taken,
        tuple(decode_sharding(s, taken) for s in stated.arguments),
        tuple(decode_sharding(s, taken) for s in stated.results),
        stated.committed,
        stated.of_parts,
        in_layouts=tuple(map(decode_layout, stated.in_layouts, _buffer_shapes(header.types))),
        out_layouts=tuple(map(decode_layout, stated.out_layouts, _buffer_shapes(header.outputs))),
        whole=decode_sharding(stated.whole, taken) if stated.whole else None,
    )
    with built("a sharding"):
        for sharding, shape in zip(
            (*launch.in_shardings, *launch.out_shardings), itertools.chain(*shapes), strict=True
        ):
            sharding.check_shape(shape)
    return launch


def _buffer_shapes(parts: Sequence[SavedType]) -> list[tuple[int, ...]]:
    return [part.buffer[0] for part in parts]


def _choose_devices(ids: Sequence[int], name: str, devices: Sequence[Device]) -> tuple[Device, ...]:
    """Returns the devices with the ids of those compiled for, else the first ones."""
    if len(devices) < len(ids):
        raise InvalidArgument(
            f"{name!r} was compiled for {len(ids)} devices; there are {len(devices)}"
        )
    known = {device.id: device for device in devices}
    if known.keys() >= {*ids}:
        return tuple(known[i] for i in ids)
    return tuple(devices[: len(ids)])
