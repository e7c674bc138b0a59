"""Compiled functions as bytes: the executable, and how calls map to it.

The bytes are a line with the format's name, a line of JSON, the arrays that the function closed
over, and the backend's own bytes. A checksum tells damage; it is no signature.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from plugrt.errors import DataLoss, FailedPrecondition, InvalidArgument
from plugrt.execution.arguments import ParameterType
from plugrt.execution.compiled import SavableCall
from plugrt.execution.ir_dumps import dump_executable
from plugrt.execution.launch_layouts import settled
from plugrt.execution.loaded_program import LoadedProgram
from plugrt.execution.placement import Launch
from plugrt.execution.plan import Plan
from plugrt.execution.sharded_transfer import put_sharded
from plugrt.execution.signature import intern_signature
from plugrt.execution.tracked_executable import refuse_to_save
from plugrt.execution.tuple_arguments import takes_one_tuple
from plugrt.files import parse_json
from plugrt.interface import Device, LoadedExecutable
from plugrt.programs.saved_shardings import (
    decode_layout,
    decode_sharding,
    encode_layout,
    encode_sharding,
)

FUNCTION = "compiled function"
"""The format of a `Program` that is a compiled function, as `save` writes it."""
_FORMAT = b"plugrt compiled function "
MAGIC = _FORMAT + b"2\n"


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

    @staticmethod
    def of(call: SavableCall) -> SavedFunction:
        """Returns what is saved of a compiled function; `ArgumentError` for symbolic shapes."""
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
        "launch": _encode_launch(launch, plan.name),
        "executable": program.executable is not None,
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    return MAGIC + json.dumps(header).encode() + b"\n" + body


def is_saved_function(code: bytes) -> bool:
    """Whether bytes are a compiled function, of this or another version of plugrt."""
    return code.startswith(_FORMAT)


def load(saved: bytes, devices: Sequence[Device]) -> SavedFunction:
    """Returns what `save` was given, on the first of these devices.

    Raises `InvalidArgument` for other bytes and for too few devices, `DataLoss` for damaged ones,
    and the backend's `PjrtError` for an executable that is not its own.
    """
    header, body = _read(saved)
    launch = _decode_launch(header["launch"], header["name"], devices)
    arrays = [*_split(body, [*map(_Part.decode, header["arrays"])])]
    size = sum(x.nbytes for x in arrays)
    first_literal = len(arrays) - header["literals"]
    content = bytes(body[size:])
    executable = (
        _load_executable(content, launch, len(header["kept"]) + header["fed"])
        if header["executable"]
        else None
    )
    if executable:
        dump_executable(header["name"], executable.executable)
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
        intern_signature(
            part.shape, part.dtype, sharding, launch.committed, part.weak, settled(layout)
        )
        for part, sharding, layout in zip(
            map(_Part.decode, header["outputs"]),
            launch.out_shardings,
            map(launch.out_layout, range(len(plan.sources))),
            strict=True,
        )
    ]
    program = LoadedProgram(plan, parameters, launch, executable, constants, outputs)
    return SavedFunction(program, _read_types(header["types"]), content)


def _read_types(stated: Sequence[Any]) -> list[ParameterType]:
    return [(part.shape, part.dtype, part.weak) for part in map(_Part.decode, stated)]


def _read(saved: bytes) -> tuple[dict[str, Any], memoryview]:
    if saved.startswith(_FORMAT) and not saved.startswith(MAGIC):
        version = saved[len(_FORMAT) :].split(b"\n")[0][:20].decode(errors="replace")
        raise FailedPrecondition(
            "this compiled function was saved by another version of plugrt, in the format "
            f"{version!r}; compile the function again"
        )
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


def _load_executable(content: bytes, launch: Launch, count: int) -> LoadedExecutable:
    """Loads an executable of ``count`` parameters, which XLA does not say to be one tuple."""
    options = launch.compile_options()
    tupled = takes_one_tuple(launch.client, count)
    return launch.client.deserialize_executable(
        content, replace(options, parameter_is_tupled=tupled)
    )


def _encode_launch(launch: Launch, name: str) -> dict[str, Any]:
    return {
        "replicas": launch.replicas,
        "partitions": launch.partitions,
        "devices": [device.id for device in launch.devices],
        "of_parts": launch.of_parts,
        "committed": launch.committed,
        "in": [encode_sharding(s, launch.devices, name) for s in launch.in_shardings],
        "out": [encode_sharding(s, launch.devices, name) for s in launch.out_shardings],
        "whole": launch.whole and encode_sharding(launch.whole, launch.devices, name),
        "in_layouts": [*map(encode_layout, launch.in_layouts)],
        "out_layouts": [*map(encode_layout, launch.out_layouts)],
    }


def _decode_launch(stated: dict[str, Any], name: str, devices: Sequence[Device]) -> Launch:
    taken = _choose_devices(stated["devices"], name, devices)
    return Launch(
        stated["replicas"],
        stated["partitions"],
        taken,
        tuple(decode_sharding(s, taken) for s in stated["in"]),
        tuple(decode_sharding(s, taken) for s in stated["out"]),
        stated["committed"],
        stated["of_parts"],
        in_layouts=tuple(map(decode_layout, stated["in_layouts"])),
        out_layouts=tuple(map(decode_layout, stated["out_layouts"])),
        whole=decode_sharding(stated["whole"], taken) if stated["whole"] else None,
    )


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
