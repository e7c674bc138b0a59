"""`BackendClient`: a `plugrt.interface.Client` over a `Backend`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from plugrt.callbacks.host_callbacks import CallbackTable, refuse_partitioned
from plugrt.errors import ArgumentTypeError, InvalidArgument, NotAnArray
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.frames.traceback_filter import hide_frames
from plugrt.interface import (
    HOST_CALLBACK,
    Capabilities,
    Client,
    CompileOptions,
    Device,
    Handler,
    HandlerStages,
    HostBufferSemantics,
    Layout,
    Memory,
    Program,
    TensorType,
)
from plugrt.native.finalizers import finish_pending
from plugrt_sdk.backend import Backend
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.capabilities import capabilities_of
from plugrt_sdk.compiled import Compiled
from plugrt_sdk.compiling import compile_program
from plugrt_sdk.device import BackendDevice
from plugrt_sdk.executable import BackendExecutable
from plugrt_sdk.held_arrays import import_capsule
from plugrt_sdk.layouts import lay_out
from plugrt_sdk.loaded_executable import BackendLoadedExecutable
from plugrt_sdk.putting import native_dtype, put_array, put_in_layout
from plugrt_sdk.serialization import deserialize
from plugrt_sdk.session import Session
from plugrt_sdk.topology import BackendTopology

# Not in `__init__`: JAX and pytest import parts of the package that do not need plugrt.
_FOLDER = Path(__file__).parent
hide_frames(f"{_FOLDER}/", but=[f"{_FOLDER / 'conformance'}/"])


class BackendClient(Client):
    """The client of a `Backend`.

    Optional methods that the backend does not override are missing in its `capabilities`, and the
    client raises `Unimplemented` for them. Errors of the author's methods raise where they happen,
    those of a `PendingEvent` where the array is used.
    """

    def __init__(self, backend: Backend) -> None:
        if not isinstance(backend, Backend):
            raise ArgumentTypeError(
                f"BackendClient takes a Backend; found {backend!r:.60} of type "
                f"{type(backend).__qualname__}"
            )
        if not isinstance(backend.platform, str) or not backend.platform:
            raise InvalidArgument(f"{type(backend).__qualname__} must set the attribute 'platform'")
        self.backend = backend
        """The author's object."""
        self._session = Session(backend, self)
        self._capabilities = capabilities_of(self._session)
        self._callbacks = CallbackTable()

    @property
    def platform(self) -> str:
        return self.backend.platform

    @property
    def platform_version(self) -> str:
        return self.backend.version

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def process_index(self) -> int:
        return self._session.process_index

    @property
    def compiler_identity(self) -> str | None:
        cls = type(self.backend)
        return f"{cls.__module__}.{cls.__qualname__} {self.backend.version}"

    def devices(self) -> Sequence[BackendDevice]:
        return self._session.devices

    @with_argument_errors
    def buffer_from_host(
        self,
        array: npt.NDArray[Any],
        device: Device,
        memory: Memory | None = None,
        semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
        layout: Layout | None = None,
    ) -> BackendBuffer:
        if not isinstance(array, np.ndarray | np.generic):
            raise NotAnArray(f"{self.backend_name}: {array!r:.60} is not a NumPy array")
        finish_pending()
        session = self._session
        ours = session.require_device(device)
        place = ours.default_memory() if memory is None else session.require_memory(memory)
        if place.device is not ours:
            raise InvalidArgument(f"{place!r} is not a memory of {ours!r}")
        tensor_type = TensorType(array.shape, native_dtype(array.dtype))
        session.require_dtype(tensor_type.dtype)
        if layout is not None:
            tensor_type = lay_out(tensor_type, layout, session.methods, self.backend_name)
        try:
            if tensor_type.layout is None:
                handle = put_array(session, array, place, HostBufferSemantics(semantics))
            else:
                handle = put_in_layout(session, array, place, tensor_type.layout)
        except MemoryError as error:
            raise session.explain_exhaustion(f"an array {tensor_type}", error) from None
        return BackendBuffer(session, handle, tensor_type, place)

    def buffer_from_dlpack(
        self, capsule: Any, device: Device, stream: int | None = None
    ) -> BackendBuffer:
        if not self._capabilities.dlpack:
            self._unimplemented("buffer_from_dlpack")
        return self.buffer_from_host(
            import_capsule(capsule), device, semantics=HostBufferSemantics.IMMUTABLE_ZERO_COPY
        )

    @with_argument_errors
    def compile(self, program: Program, options: CompileOptions) -> BackendLoadedExecutable:
        finish_pending()
        session = self._session
        session.require_open()
        session.require_counts(options)
        refuse_partitioned(self, program, options)
        if program.callbacks:
            self.register_handler(HOST_CALLBACK, self._callbacks)
            self._callbacks.add(program.callbacks)
        assignment = options.device_assignment or self.default_device_assignment(
            options.num_replicas, options.num_partitions
        )
        options = replace(options, device_assignment=assignment)
        kinds = [memory.kind for memory in session.devices[0].memories()]
        devices = self._devices_of(options)
        compiled = compile_program(self.backend, session.methods, program, options, kinds)
        return self._load(compiled, devices)

    @with_argument_errors
    def deserialize_executable(
        self, serialized: bytes, options: CompileOptions | None = None
    ) -> BackendLoadedExecutable:
        session = self._session
        session.require_open()
        if not self._capabilities.executable_serialization:
            self._unimplemented("deserialize_executable")
        kinds = [memory.kind for memory in session.devices[0].memories()]
        compiled = deserialize(self.backend, serialized, options, kinds)
        return self._load(compiled, self._devices_of(compiled.options))

    def register_handler(self, target: str, handler: Handler | int | HandlerStages) -> None:
        self._session.require_open()
        in_c = type(handler) is int or isinstance(handler, HandlerStages)
        if not isinstance(target, str) or not (callable(handler) or in_c):
            raise ArgumentTypeError(
                "register_handler takes a name and a function, or its address; got "
                f"{target!r:.60} and {handler!r:.60}"
            )
        if in_c and self._capabilities.custom_calls:
            # Imported late: it imports cffi.
            from plugrt.capi.extensions.ffi_frames import call_c_handler
            from plugrt.capi.extensions.ffi_stages import StagedHandler

            if isinstance(handler, HandlerStages):
                handler = StagedHandler(target, handler)
            else:
                handler = call_c_handler(target, cast("int", handler))
        self._session.has_handlers = True
        self.backend.register_handler(target, cast("Handler", handler))

    def unregister_handler(self, target: str) -> None:
        self._session.require_open()
        if "unregister_handler" not in self._session.methods:
            self._unimplemented("unregister_handler")
        self.backend.unregister_handler(target)

    @with_argument_errors
    def register_handler_type(self, name: str, type_id: int, type_info: int | None = None) -> None:
        """Makes the type known to all backends in Python of this process."""
        self._session.require_open()
        if not self._capabilities.custom_calls:
            self._unimplemented("register_handler_type (the backend's method register_handler)")
        from plugrt.capi.extensions.ffi_types import register_type_at

        register_type_at(name, type_id, type_info)

    @with_argument_errors
    def default_layout(self, type: TensorType) -> Layout:
        """Returns row-major order, unless a put or a program states another layout."""
        if not self._capabilities.layouts:
            self._unimplemented("default_layout (the backend's method put_in_layout)")
        return Layout.row_major(len(type.shape))

    def topology(self) -> BackendTopology:
        return BackendTopology(self.backend, "", {})

    def _devices_of(self, options: CompileOptions) -> list[BackendDevice]:
        """Returns the devices of this process that a launch runs on."""
        assert options.device_assignment is not None
        devices = [self.lookup_device(i) for i in options.device_assignment.flat]
        ours = [d for d in devices if d.process_index == self.process_index]
        return [self._session.require_device(device) for device in ours]

    def _load(
        self, compiled: Compiled, devices: Sequence[BackendDevice]
    ) -> BackendLoadedExecutable:
        executable = BackendExecutable(self.backend, self._session.methods, compiled)
        return BackendLoadedExecutable(self._session, executable, devices)

    def close(self) -> None:
        self._session.close()
