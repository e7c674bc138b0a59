"""`BackendExecutable` and `BackendLoadedExecutable`: what a backend compiled, and its launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plugrt.errors import FailedPrecondition, Internal, InvalidArgument
from plugrt.interface import (
    CompileOptions,
    Device,
    Executable,
    ExecuteOptions,
    LoadedExecutable,
    Shards,
    TensorType,
)
from plugrt_sdk.backend import Handle, Launch
from plugrt_sdk.buffer import BackendBuffer

if TYPE_CHECKING:
    from plugrt_sdk.client import BackendClient, BackendDevice


class BackendExecutable(Executable):
    """What is known of a compiled program."""

    __slots__ = ("_name", "_options", "input_types", "output_types")

    def __init__(
        self,
        name: str,
        options: CompileOptions,
        inputs: tuple[TensorType, ...],
        outputs: tuple[TensorType, ...],
    ) -> None:
        self._name = name
        self._options = options
        self.input_types = inputs
        self.output_types: tuple[TensorType, ...] = outputs

    @property
    def name(self) -> str:
        return self._name

    @property
    def num_replicas(self) -> int:
        return self._options.num_replicas

    @property
    def num_partitions(self) -> int:
        return self._options.num_partitions


class BackendLoadedExecutable(LoadedExecutable):
    """A launchable program: checks arguments, calls the author's function, owns the results."""

    __slots__ = ("_client", "_deleted", "_devices", "_executable", "_launch")

    def __init__(
        self,
        client: BackendClient,
        executable: BackendExecutable,
        devices: Sequence[BackendDevice],
        launch: Launch,
    ) -> None:
        self._client = client
        self._executable = executable
        self._devices = tuple(devices)
        self._launch = launch
        self._deleted = False

    @property
    def client(self) -> BackendClient:
        return self._client

    @property
    def executable(self) -> BackendExecutable:
        return self._executable

    @property
    def addressable_devices(self) -> Sequence[Device]:
        return self._devices

    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        if self._deleted:
            raise FailedPrecondition(f"the program {self._executable.name!r} was deleted")
        self._client.require_open()
        results = self._launch(self._handles(arguments))
        expected = self._executable.output_types
        if len(results) != len(expected) or any(len(r) != len(self._devices) for r in results):
            raise Internal(
                f"{self._client.backend_name}: the launch of {self._executable.name!r} returned "
                f"{[len(r) for r in results]} handles; its {len(expected)} results need "
                f"{len(self._devices)} each"
            )
        return [
            tuple(
                BackendBuffer(self._client, handle, kind, device)
                for handle, device in zip(handles, self._devices, strict=True)
            )
            for handles, kind in zip(results, expected, strict=True)
        ]

    def _handles(self, arguments: Sequence[Shards]) -> list[list[Handle]]:
        expected, name = self._executable.input_types, self._executable.name
        if len(arguments) != len(expected):
            raise InvalidArgument(
                f"the program {name!r} takes {len(expected)} arguments; {len(arguments)} were given"
            )
        handles = []
        for i, (shards, wanted) in enumerate(zip(arguments, expected, strict=True)):
            what = f"argument {i} of {name!r}"
            if len(shards) != len(self._devices):
                raise InvalidArgument(
                    f"{what} has {len(shards)} buffers for {len(self._devices)} devices"
                )
            buffers = [
                self._client.our_buffer(buffer, device, what)
                for buffer, device in zip(shards, self._devices, strict=True)
            ]
            for buffer in buffers:
                if buffer.type != wanted:
                    raise InvalidArgument(f"{what} must be {wanted}; {buffer.type} was given")
            handles.append([buffer.handle for buffer in buffers])
        return handles

    def delete(self) -> None:
        self._deleted = True

    def is_deleted(self) -> bool:
        return self._deleted
