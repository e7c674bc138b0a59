"""Compiled functions as bytes: the executable, and how calls map to it.

The bytes are a line with the format's name, a line of JSON, the arrays that the function closed
over, and the backend's own bytes. A checksum tells damage; it is no signature.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from plugrt.errors import DataLoss, InvalidArgument, Unimplemented
from plugrt.execution.arguments import ParameterType
from plugrt.execution.effects import refuse_to_save
from plugrt.execution.loaded_program import LoadedProgram
from plugrt.execution.placement import Launch
from plugrt.execution.plan import Plan
from plugrt.execution.sharded_transfer import put_sharded
from plugrt.execution.sharding import PmapSharding, Sharding, SingleDeviceSharding
from plugrt.execution.signature import intern_signature
from plugrt.files import parse_json
from plugrt.interface import CompileOptions, Device, DeviceAssignment, LoadedExecutable

MAGIC = b"plugrt compiled function 1\n"


@dataclass(frozen=True, slots=True)
class _Part:
    """What the header says of an array or a result."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak: bool = False

    def encode(self) -> list[Any]:
        return [self.shape, self.dtype.name, self.weak]

    @staticmethod
    def decode(stated: Sequence[Any]) -> _Part:
        shape, name, weak = stated
        return _Part(tuple(shape), np.dtype(getattr(ml_dtypes, name, None) or name), weak)


@dataclass(frozen=True, slots=True)
class SavedFunction:
    """A compiled function: its program, and the types that calls of it take."""

    program: LoadedProgram
    types: Sequence[ParameterType]
    executable: bytes = b""
    """What the backend wrote, of one that was loaded."""


def save(function: SavedFunction) -> bytes:
    """Returns a compiled function as bytes.

    Raises `Unimplemented` for one that calls Python, whose arrays lie in layouts or are divided
    over a mesh, and for a backend that saves no executables.
    """
    program = function.program
    plan, launch = program.plan, program.launch
    refuse_to_save(program.executable)
    if launch.names_layouts:
        raise Unimplemented(f"{plan.name!r} has arguments or results in layouts; it is not saved")
    arrays = [*map(np.asarray, program.constants), *plan.literals]
    executable = program.executable.executable.serialize() if program.executable else b""
    body = b"".join(np.ascontiguousarray(x).tobytes() for x in arrays) + executable
    header = {
        "name": plan.name,
        "kept": plan.kept,
        "sources": plan.sources,
        "fed": plan.fed,
        "donated": plan.donated,
        "argument_names": plan.argument_names,
        "acts": plan.acts,
        "types": [_Part(*t).encode() for t in function.types],
        "parameters": [_Part(*t).encode() for t in program.types],
        "outputs": [_Part(s.shape, s.dtype, s.weak).encode() for s in program.outputs],
        "arrays": [_Part(x.shape, x.dtype).encode() for x in arrays],
        "literals": len(plan.literals),
        "replicas": launch.replicas,
        "partitions": launch.partitions,
        "of_parts": launch.of_parts,
        "committed": launch.committed,
        "in": [_encode_sharding(s, plan.name) for s in launch.in_shardings],
        "out": [_encode_sharding(s, plan.name) for s in launch.out_shardings],
        "executable": program.executable is not None,
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    return MAGIC + json.dumps(header).encode() + b"\n" + body


def load(saved: bytes, devices: Sequence[Device]) -> SavedFunction:
    """Returns what `save` was given, on the first of these devices.

    Raises `InvalidArgument` for other bytes and for too few devices, `DataLoss` for damaged ones,
    and the backend's `PjrtError` for an executable that is not its own.
    """
    header, body = _read(saved)
    count = header["replicas"] * header["partitions"]
    if len(devices) < count:
        raise InvalidArgument(
            f"{header['name']!r} was compiled for {count} devices; there are {len(devices)}"
        )
    devices = tuple(devices[:count])
    arrays = [*_split(body, [*map(_Part.decode, header["arrays"])])]
    size = sum(x.nbytes for x in arrays)
    first_literal = len(arrays) - header["literals"]
    content = bytes(body[size:])
    executable = _load_executable(content, header, devices)
    launch = Launch(
        header["replicas"],
        header["partitions"],
        devices,
        tuple(_decode_sharding(s, devices) for s in header["in"]),
        tuple(_decode_sharding(s, devices) for s in header["out"]),
        header["committed"],
        header["of_parts"],
    )
    constants = [put_sharded(x, launch.everywhere) for x in arrays[:first_literal]]
    plan = Plan(
        name=header["name"],
        kept=tuple(header["kept"]),
        sources=tuple((origin, i) for origin, i in header["sources"]),
        constants=tuple(constants),
        fed=header["fed"],
        literals=tuple(arrays[first_literal:]),
        donated=tuple(header["donated"]),
        argument_names=tuple(header["argument_names"]),
        acts=header["acts"],
    )
    parameters = _read_types(header["parameters"])
    outputs = [
        intern_signature(part.shape, part.dtype, sharding, launch.committed, part.weak)
        for part, sharding in zip(
            map(_Part.decode, header["outputs"]), launch.out_shardings, strict=True
        )
    ]
    program = LoadedProgram(plan, parameters, launch, executable, constants, outputs)
    return SavedFunction(program, _read_types(header["types"]), content)


def _read_types(stated: Sequence[Any]) -> list[ParameterType]:
    return [(part.shape, part.dtype, part.weak) for part in map(_Part.decode, stated)]


def _read(saved: bytes) -> tuple[dict[str, Any], memoryview]:
    if not saved.startswith(MAGIC):
        raise InvalidArgument(
            f"these {len(saved)} bytes are no compiled function that plugrt.serialize_executable "
            "saved; an executable alone is loaded by plugrt.compile"
        )
    line, _, body = saved[len(MAGIC) :].partition(b"\n")
    try:
        header = parse_json(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("sha256") != hashlib.sha256(body).hexdigest():
        raise DataLoss(f"this compiled function of {len(saved)} bytes is cut off or damaged")
    return header, memoryview(body)


def _split(body: memoryview, parts: Sequence[_Part]) -> Iterator[npt.NDArray[Any]]:
    at = 0
    for part in parts:
        array = np.empty(part.shape, part.dtype)
        array.reshape(-1).view(np.uint8)[:] = np.frombuffer(body[at : at + array.nbytes], np.uint8)
        at += array.nbytes
        yield array


def _load_executable(
    content: bytes, header: dict[str, Any], devices: tuple[Device, ...]
) -> LoadedExecutable | None:
    if not header["executable"]:
        return None
    ids, partitions = [device.id for device in devices], header["partitions"]
    rows = [tuple(ids[i : i + partitions]) for i in range(0, len(ids), partitions)]
    options = CompileOptions(
        num_replicas=header["replicas"],
        num_partitions=partitions,
        device_assignment=DeviceAssignment(tuple(rows)),
    )
    return devices[0].client.deserialize_executable(content, options)


def _encode_sharding(sharding: Sharding, name: str) -> list[Any]:
    if isinstance(sharding, SingleDeviceSharding):
        return ["device", sharding.memory_kind]
    if isinstance(sharding, PmapSharding):
        return ["devices", sharding.sharded_dim]
    raise Unimplemented(f"{name!r} has arguments or results in {sharding!r}; it is not saved")


def _decode_sharding(stated: Sequence[Any], devices: tuple[Device, ...]) -> Sharding:
    kind, detail = stated
    if kind == "device":
        return SingleDeviceSharding(devices[0], memory_kind=detail)
    return PmapSharding(devices, detail)
