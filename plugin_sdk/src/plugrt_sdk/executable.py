"""`BackendExecutable` and `BackendLoadedExecutable`: a compiled program and its launches."""

from __future__ import annotations

from collections.abc import Sequence

from plugrt.argument_errors import PYTHON_ERRORS, refuse_call
from plugrt.errors import FailedPrecondition, Internal, InvalidArgument
from plugrt.interface import (
    Buffer,
    Client,
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
from plugrt_sdk.device import BackendDevice
from plugrt_sdk.session import Session


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

    __slots__ = ("_deleted", "_devices", "_executable", "_launch", "_session")

    def __init__(
        self,
        session: Session,
        executable: BackendExecutable,
        devices: Sequence[BackendDevice],
        launch: Launch,
    ) -> None:
        self._session = session
        self._executable = executable
        self._devices = tuple(devices)
        self._launch = launch
        self._deleted = False

    @property
    def client(self) -> Client:
        return self._session.client

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
        self._session.require_open()
        try:
            handles = self._handles(arguments)
        except PYTHON_ERRORS as error:
            refuse_call(self.execute, error, arguments=arguments)
        try:
            results = self._launch(handles)
        except MemoryError as error:
            what = f"the launch of {self._executable.name!r}"
            raise self._session.exhausted(what, error) from None
        expected = self._executable.output_types
        if len(results) != len(expected) or any(len(r) != len(self._devices) for r in results):
            raise Internal(
                f"{self._session.backend_name}: the launch of {self._executable.name!r} returned "
                f"{[len(r) for r in results]} handles; its {len(expected)} results need "
                f"{len(self._devices)} each"
            )
        return [
            tuple(
                BackendBuffer(self._session, handle, result_type, device)
                for handle, device in zip(handles, self._devices, strict=True)
            )
            for handles, result_type in zip(results, expected, strict=True)
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
                _require_buffer(buffer, device, what)
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


def _require_buffer(buffer: Buffer, device: BackendDevice, what: str) -> BackendBuffer:
    """Returns a buffer if it is a backend's and lies on ``device``."""
    if not isinstance(buffer, BackendBuffer):
        raise InvalidArgument(f"{what} must lie on {device!r}; got {buffer!r:.60}")
    if buffer.device is not device:
        raise InvalidArgument(f"{what} must lie on {device!r}; it lies on {buffer.device!r}")
    return buffer
