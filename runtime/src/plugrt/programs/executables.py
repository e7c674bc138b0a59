"""Executables: recognises and loads saved ones; `leave_tokens_out` hides their tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from plugrt.errors import ArgumentError, PjrtError, Unimplemented
from plugrt.execution.executables.bounded_executable import WrappedExecutable
from plugrt.execution.executables.custom_call_targets import add_handlers
from plugrt.interface import (
    Client,
    CompileOptions,
    Device,
    DeviceAssignment,
    Executable,
    ExecuteOptions,
    LoadedExecutable,
    Program,
    Shards,
    TensorType,
)
from plugrt.wire import hlo_proto

EXECUTABLE = "executable"
"""The format of a `Program` that is already compiled."""
_MAKERS = {
    b"plugrt executable ": "a PJRT library",
    b"plugrt-sdk executable ": "a backend in Python",
    b"PLUGRTCPU": "the plugin 'cpu'",
}
"""The first bytes of a serialised executable, by kind of client."""
_PLATFORM = re.compile(rb'"platform": "([\w.-]{1,40})"')


def find_maker(code: bytes) -> str | None:
    """Returns the kind of client that made these bytes; None for anything else."""
    return next((maker for magic, maker in _MAKERS.items() if code.startswith(magic)), None)


def load_executable(program: Program, device: Device) -> LoadedExecutable:
    """Returns a saved executable, loaded on one device.

    Raises the backend's `PjrtError`, with the kind of file, if the executable is damaged or of
    another backend, and `Unimplemented` for a program on several devices.
    """
    client = device.client
    add_handlers(client, program)
    try:
        loaded = client.deserialize_executable(program.code)
        executable = loaded.executable
        count = executable.num_replicas * executable.num_partitions
        if count > 1:
            raise Unimplemented(
                f"it runs on {count} devices, and does not state the shardings of its arguments; "
                "plugrt.serialize_executable saves them, too"
            )
        if [*loaded.addressable_devices] != [device]:
            options = CompileOptions(device_assignment=DeviceAssignment(((device.id,),)))
            loaded = client.deserialize_executable(program.code, options)
    except PjrtError as error:
        raise type(error)(_explain(program, client, error)) from error
    return loaded


def _explain(program: Program, client: Client, error: PjrtError) -> str:
    maker, found = find_maker(program.code), _PLATFORM.search(program.code[:4096])
    platform = found[1].decode() if found else "cpu"
    where = (
        "with the backend that compiled it"
        if platform == client.platform
        else f"where such devices are (backend={platform!r}, or plugrt run --platform {platform})"
    )
    return (
        f"{program.name!r} is an executable that {maker} compiled for {platform!r}; "
        f"{client.backend_name} cannot load it: {error.message}. Fix: load it {where}, in the "
        "versions that wrote it; or compile the program again"
    )


def refuse_topology(program: Program) -> ArgumentError:
    """Returns the error for an executable that is passed with a topology."""
    return ArgumentError(
        f"{program.name!r} is an executable, compiled already: it is not compiled for a topology"
    )


def leave_tokens_out(loaded: LoadedExecutable, inputs: Sequence[TensorType]) -> LoadedExecutable:
    """Returns an executable whose arguments and results are the program's arrays, without tokens.

    Each launch begins a chain of tokens and drops the returned ones. The effects of one launch are
    in the program's order; launches on one device are in the order of their calls. Returns
    ``loaded`` itself if the program has no tokens. ``inputs`` are the types of its parameters.
    """
    outputs = loaded.executable.output_types
    if not any(kind.is_token for kind in (*inputs, *outputs)):
        return loaded
    return _TokenlessExecutable(loaded, inputs, outputs)


class _TokenlessExecutable(WrappedExecutable):
    """An executable for one device without tokens as arguments and results."""

    __slots__ = ("_arrays", "_tokens")

    def __init__(
        self,
        loaded: LoadedExecutable,
        inputs: Sequence[TensorType],
        outputs: Sequence[TensorType],
    ) -> None:
        super().__init__(loaded)
        self._tokens = [i for i, kind in enumerate(inputs) if kind.is_token]
        self._arrays = [i for i, kind in enumerate(outputs) if not kind.is_token]

    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        given = list(arguments)
        [device] = self.addressable_devices
        for i in self._tokens:
            [token] = self.client.shards_from_host([np.zeros(0, np.bool_)], device)
            given.insert(i, token)
        results = self._loaded.execute(given, options)
        return [results[i] for i in self._arrays]


def parameter_types(executable: Executable) -> tuple[TensorType, ...] | None:
    """Returns the types of the parameters, None if the backend does not return its program.

    Also None for a program in another format than HLO, one with tuple parameters, and a partitioned
    one, whose parameters are shards.
    """
    return local_parameter_types(executable) if executable.num_partitions == 1 else None


def local_parameter_types(executable: Executable) -> tuple[TensorType, ...] | None:
    """Returns the parameter types for one device, read as by `parameter_types`."""
    try:
        program = executable.optimized_program()
    except Unimplemented:
        return None
    try:
        return hlo_proto.parameter_types(hlo_proto.read_module(program))
    except (Unimplemented, ValueError, KeyError):
        return None  # unknown messages: the backend checks the arguments
