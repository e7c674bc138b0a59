"""Executables: saved ones are recognised and loaded; `leave_tokens_out` wraps those with tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from plugrt.errors import ArgumentError, PjrtError, Unimplemented
from plugrt.execution.executables.wrapped_executable import WrappedExecutable
from plugrt.interface import (
    Client,
    CompileOptions,
    Device,
    DeviceAssignment,
    ExecuteOptions,
    LoadedExecutable,
    Program,
    Shards,
    TensorType,
)

EXECUTABLE = "executable"
"""The format of a `Program` that is compiled already."""
_MAKERS = {
    b"plugrt executable ": "a PJRT library",
    b"plugrt-sdk executable ": "a backend in Python",
    b"PLUGRTCPU": "the plugin 'cpu'",
}
"""What ``Executable.serialize`` of each kind of client begins with."""
_PLATFORM = re.compile(rb'"platform": "([\w.-]{1,40})"')


def find_maker(code: bytes) -> str | None:
    """Returns whose executable these bytes are; None for anything else."""
    return next((maker for magic, maker in _MAKERS.items() if code.startswith(magic)), None)


def load_executable(program: Program, device: Device) -> LoadedExecutable:
    """Returns a saved executable, loaded on one device.

    Raises the backend's `PjrtError`, which says what the file is, where it is another one's or
    damaged, and `Unimplemented` for a program on several devices.
    """
    client = device.client
    try:
        loaded = client.deserialize_executable(program.code)
        executable = loaded.executable
        count = executable.num_replicas * executable.num_partitions
        if count > 1:
            raise Unimplemented(
                f"it runs on {count} devices, and does not say how its arguments lie on them; "
                "plugrt.serialize_executable saves what does"
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
    """Returns the error for an executable that is to be compiled for a topology."""
    return ArgumentError(
        f"{program.name!r} is an executable, compiled already: it is not compiled for a topology"
    )


def leave_tokens_out(loaded: LoadedExecutable, inputs: Sequence[TensorType]) -> LoadedExecutable:
    """Returns an executable that takes and returns the arrays of a program, in their order.

    Each launch begins a chain of tokens, and drops those that it returns: what one launch does is
    in the program's order, and launches are in that of their calls, on one device. Itself where the
    program has no tokens. ``inputs`` are the types of its parameters.
    """
    outputs = loaded.executable.output_types
    if not any(kind.is_token for kind in (*inputs, *outputs)):
        return loaded
    return _TokenlessExecutable(loaded, inputs, outputs)


class _TokenlessExecutable(WrappedExecutable):
    """An executable of one device whose tokens are neither arguments nor results."""

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
