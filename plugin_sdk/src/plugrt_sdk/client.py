"""`BackendClient`: a `plugrt.interface.Client` over a `Backend`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.argument_errors import with_argument_errors
from plugrt.errors import ArgumentTypeError, InvalidArgument, NotAnArray
from plugrt.interface import (
    Capabilities,
    Client,
    CompileOptions,
    Device,
    HostBufferSemantics,
    Memory,
    Program,
    TensorType,
)
from plugrt.programs.loading import parse_program
from plugrt_sdk.backend import Backend
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.device import BackendDevice
from plugrt_sdk.executable import BackendExecutable, BackendLoadedExecutable
from plugrt_sdk.session import Session


class BackendClient(Client):
    """The client of a `Backend`. Launches are synchronous: errors raise where they happen."""

    def __init__(self, backend: Backend) -> None:
        if not isinstance(backend, Backend):
            raise ArgumentTypeError(
                f"BackendClient takes a Backend; found {backend!r:.60} of type "
                f"{type(backend).__qualname__}"
            )
        if not backend.platform:
            raise InvalidArgument(f"{type(backend).__qualname__} must set the attribute 'platform'")
        self.backend = backend
        """The author's object."""
        self._session = Session(backend, self)
        several = len(self._session.devices) > 1
        self._capabilities = Capabilities(
            device_to_device_copy=True,
            multiple_devices=several,
            collectives=several,
            partitions=several and type(backend).device_types is not Backend.device_types,
            strided_put=True,
            stablehlo_current_version=backend.stablehlo_version,
        )

    @property
    def platform(self) -> str:
        return self.backend.platform

    @property
    def platform_version(self) -> str:
        return self.backend.version

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    def devices(self) -> Sequence[BackendDevice]:
        return self._session.devices

    def buffer_from_host(
        self,
        array: npt.NDArray[Any],
        device: Device,
        memory: Memory | None = None,
        semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
    ) -> BackendBuffer:
        if not isinstance(array, np.ndarray | np.generic):
            raise NotAnArray(f"{self.backend_name}: {array!r:.60} is not a NumPy array")
        ours = self._session.require_device(device)
        if memory is not None and memory is not ours.default_memory():
            raise InvalidArgument(f"{ours!r} has one memory, {ours.default_memory()!r}")
        host = np.ascontiguousarray(array).reshape(array.shape)
        host.flags.writeable = False
        tensor_type = TensorType(host.shape, host.dtype)
        try:
            handle = self.backend.put(host, ours.id)
        except MemoryError as error:
            raise self._session.exhausted(f"an array {tensor_type}", error) from None
        return BackendBuffer(self._session, handle, tensor_type, ours)

    @with_argument_errors
    def compile(self, program: Program, options: CompileOptions) -> BackendLoadedExecutable:
        self._session.require_open()
        assignment = options.device_assignment or self.default_device_assignment(
            options.num_replicas, options.num_partitions
        )
        devices = [self._session.require_device(self.lookup_device(i)) for i in assignment.flat]
        inputs: Sequence[TensorType]
        outputs: Sequence[TensorType]
        _, inputs, outputs = parse_program(program)
        if options.num_partitions > 1:
            inputs, outputs = self.backend.device_types(program, options) or (inputs, outputs)
        launch = self.backend.compile(program, options)
        executable = BackendExecutable(program.name, options, tuple(inputs), tuple(outputs))
        return BackendLoadedExecutable(self._session, executable, devices, launch)

    def close(self) -> None:
        self._session.close()
