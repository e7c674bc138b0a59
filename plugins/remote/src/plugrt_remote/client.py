"""`RemoteClient`: the devices of a server as a client of plugrt."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.capi.abi.element_types import ELEMENT_TYPES
from plugrt.errors import (
    ArgumentTypeError,
    InvalidArgument,
    NotAnArray,
    NotFound,
    PjrtError,
    ResourceExhausted,
    UnsupportedDtype,
)
from plugrt.execution.executables.custom_call_targets import named_targets
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import (
    Buffer,
    Capabilities,
    CompileOptions,
    Device,
    Handler,
    HandlerStages,
    HostBufferSemantics,
    HostCallback,
    Layout,
    Memory,
    OptionValue,
    Program,
    TensorType,
    require_buffers,
)
from plugrt_remote import wire
from plugrt_remote.arrays import RemoteBuffer, RemoteShards
from plugrt_remote.called_functions import HeldHandler
from plugrt_remote.connection import Connection
from plugrt_remote.devices import ConnectedClient, RemoteDevice, RemoteMemory
from plugrt_remote.executables import RemoteLoadedExecutable
from plugrt_remote.values import pack
from plugrt_remote.wire import Op, frame

NOT_REMOTE = {
    **dict.fromkeys(
        ("zero_copy_put", "zero_copy_get", "dlpack", "unsafe_pointer", "strided_put"), False
    ),
    **dict.fromkeys(("layouts", "layout_put", "topology", "executable_serialization"), False),
    "copies_between_processes": False,
}
"""Capabilities that assume one address space, and those that the protocol lacks."""


class RemoteClient(ConnectedClient):
    """The devices of the server at an address. Raises `Unavailable` if none answers."""

    process_index = 0

    def __init__(self, address: str) -> None:
        self.connection = Connection(address)
        try:
            self._facts: Mapping[str, Any] = self.connection.greet()
        except BaseException:
            self.connection.close()
            raise
        stated = {f.name for f in fields(Capabilities)} & self._facts["capabilities"].keys()
        found = {name: self._facts["capabilities"][name] for name in stated} | NOT_REMOTE
        found = {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()}
        found["custom_calls"] = found["host_callbacks"]  # both run in this process
        found |= {"dtypes": frozenset(found["dtypes"]), "asynchronous_dispatch": True}
        found["late_errors"] = True
        self._capabilities = Capabilities(**found)
        memories: dict[int, RemoteMemory] = {}
        self._devices = [RemoteDevice(self, d, memories) for d in self._facts["devices"]]
        self._memories = frozenset(memories.values())
        self._handlers: dict[str, HeldHandler] = {}

    @property
    def platform(self) -> str:
        return str(self._facts["platform"])

    @property
    def platform_version(self) -> str:
        return str(self._facts["platform_version"])

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def compiler_identity(self) -> str | None:
        identity: str | None = self._facts["compiler_identity"]
        return identity

    @property
    def attributes(self) -> Mapping[str, OptionValue]:
        attributes: Mapping[str, OptionValue] = self._facts["attributes"]
        return attributes

    @property
    def is_lost(self) -> bool:
        self.connection.poll()  # receives the end of the connection, if it has arrived
        return self.connection.lost is not None and not self.connection.closed

    def on_lost(self, callback: Callable[[PjrtError], object]) -> None:
        super().on_lost(callback)
        self.connection.on_lost(callback)

    def _require_open(self) -> None:
        if self.connection.lost is not None:
            self.connection.refuse()

    @with_argument_errors
    def compile(self, program: Program, options: CompileOptions) -> RemoteLoadedExecutable:
        """Compiles a program on the server; sends its code only if no client has sent it before.

        The program's Python functions run in this process, and may not use the server's devices.
        """
        self._require_open()
        callbacks = program.callbacks
        named = named_targets(program, [*self._handlers]) if self._handlers else []
        handlers = [self._handlers[name] for name in named]
        if (callbacks or named) and not (
            self._capabilities.host_callbacks and program.format == "mlir"
        ):
            self._unimplemented(
                f"calling Python functions from a program of the format {program.format!r:.40} "
                "(host_callbacks)"
            )
        formats = self._capabilities.program_formats
        if program.format not in formats or not program.code:
            raise InvalidArgument(
                f"{self.backend_name} compiles programs in the formats {formats}; got "
                f"{len(program.code)} bytes of {program.format!r:.40}"
            )
        connection, number = self.connection, self.connection.numbers()
        body = wire.COMPILE.pack(0, number, hashlib.sha256(program.code).digest())
        body = body[wire.NUMBER.size :] + pack(
            [
                program.format,
                program.name,
                _plain_options(options),
                _describe(callbacks),
                dict(zip(named, [held.number for held in handlers], strict=True)),
            ]
        )
        if callbacks or named:
            connection.functions.add(callbacks)
            connection.functions.add_handlers(handlers)
            connection.start_threads()
        facts = connection.ask(Op.COMPILE, body).result
        if facts is None:  # the server has not seen the code
            facts = connection.ask(Op.COMPILE, body, program.code).result
        devices = tuple(self._devices_by_id[i] for i in facts["devices"])
        return RemoteLoadedExecutable(self, number, facts, devices, handlers)

    def register_handler(self, target: str, handler: Handler | int | HandlerStages) -> None:
        """Makes programs that this client compiles later call the function in this process."""
        self._require_open()
        if not self._capabilities.custom_calls:
            self._unimplemented("register_handler")
        if isinstance(handler, HandlerStages):
            self._unimplemented(f"the stages of the handler of {target!r} before 'execute'")
        if not isinstance(target, str) or not (callable(handler) or type(handler) is int):
            raise ArgumentTypeError(
                "register_handler takes a name and a function, or its address; got "
                f"{target!r:.60} and {handler!r:.60}"
            )
        if isinstance(handler, int):
            from plugrt.capi.extensions.ffi_frames import call_c_handler

            handler = call_c_handler(target, handler)
        self._handlers[target] = HeldHandler(handler, self.connection.numbers())

    def register_handler_type(self, name: str, type_id: int, type_info: int | None = None) -> None:
        """Registers the type in this process, where handlers run."""
        self._require_open()
        if not self._capabilities.custom_calls:
            self._unimplemented("register_handler_type")
        from plugrt.capi.extensions.ffi_types import register_type_at

        register_type_at(name, type_id, type_info)

    def unregister_handler(self, target: str) -> None:
        if self._handlers.pop(target, None) is None:
            raise NotFound(f"{self.backend_name} has no handler of {target!r:.60}")

    @property
    def _devices_by_id(self) -> dict[int, RemoteDevice]:
        return {device.id: device for device in self._devices}

    @with_argument_errors
    def buffer_from_host(
        self,
        array: npt.NDArray[Any],
        device: Device,
        memory: Memory | None = None,
        semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
        layout: Layout | None = None,
    ) -> RemoteBuffer:
        if not isinstance(array, np.ndarray | np.generic):
            raise NotAnArray(f"{self.backend_name}: {array!r:.60} is not a NumPy array")
        if layout is not None:
            self._unimplemented("putting an array in a layout (layout_put)")
        HostBufferSemantics(semantics)
        self._require_open()
        ours = self.require_device(device)
        place = ours.default_memory() if memory is None else self.require_memory(memory)
        if ours not in place.addressable_by_devices():
            raise InvalidArgument(f"{place!r} is not a memory of {ours!r}")
        host = np.asarray(array)
        if not host.dtype.isnative:
            host = host.astype(host.dtype.newbyteorder("="))
        type = TensorType(host.shape, np.dtype(host.dtype))
        self._require_dtype(type.dtype)
        kind = None if place is ours.default_memory() else place.kind
        connection = self.connection
        number = connection.numbers()
        made = RemoteShards(connection, number, type, (ours,), kind)
        made.deleted = True  # the server has no array to free until `post` below
        segment = 0
        payload: Any = None
        pool, nbytes = connection.segments, self._require_size(type)
        taken = None if pool is None else pool.take(nbytes)
        if pool is not None and taken is not None:
            flat = np.frombuffer(taken[1], host.dtype, host.size)
            np.copyto(flat.reshape(host.shape), host)
            pool.lend(taken)
            segment = taken[0]
        elif host.nbytes:
            payload = np.ascontiguousarray(host).reshape(-1).view(np.uint8)
        body = wire.PUT.pack(
            number, ours.id, -1 if kind is None else place.id, ELEMENT_TYPES[type.dtype],
            host.ndim, segment,
        )  # fmt: skip
        body += struct.pack(f"<{host.ndim}q", *host.shape)
        made.deleted = False
        connection.post(frame(Op.PUT, body, 0 if payload is None else len(payload)), payload)
        return RemoteBuffer(made, 0)

    def _require_dtype(self, dtype: np.dtype[Any]) -> None:
        dtypes = self._capabilities.dtypes
        if dtype not in ELEMENT_TYPES or (dtypes and dtype.name not in dtypes):
            raise UnsupportedDtype(
                f"{self.backend_name} has no arrays of dtype {dtype}; it has {sorted(dtypes)}"
            )

    def _require_size(self, type: TensorType) -> int:
        nbytes = type.nbytes
        if nbytes > wire.MAX_PAYLOAD:
            raise ResourceExhausted(
                f"an array {type} of {nbytes} bytes cannot be sent to {self.backend_name}; the "
                f"limit is {wire.MAX_PAYLOAD}"
            )
        return nbytes

    def shards(self, buffers: Sequence[Buffer]) -> RemoteShards:
        if type(buffers) is RemoteShards and buffers.connection is self.connection:
            return buffers
        found = require_buffers(buffers)
        parts = tuple(b for b in found if isinstance(b, RemoteBuffer))
        connection = self.connection
        if not parts or len(parts) != len(found):
            raise InvalidArgument(f"{found!r:.60} are not buffers of {self.backend_name}")
        first = parts[0].shards
        for part in parts:
            if part.shards.connection is not connection:
                raise InvalidArgument(f"{part!r:.60} is of another client than {self.backend_name}")
            if (part.shape, part.dtype) != (first.type.shape, first.type.dtype):
                raise InvalidArgument(
                    f"the parts of an array have one type; got {first.type} and {part.shards.type}"
                )
        whole = len(first.devices) == len(parts)
        if whole and all(p.shards is first and p.index == i for i, p in enumerate(parts)):
            return first
        body = [wire.PART.pack(part.shards.require(part.index), part.index) for part in parts]
        number = connection.numbers()
        devices = tuple(part.device for part in parts)
        joined = RemoteShards(connection, number, first.type, devices, first.kind, parts)
        connection.post(frame(Op.JOIN, wire.JOIN.pack(number, len(parts)) + b"".join(body)))
        return joined

    def stats(self) -> Mapping[str, int]:
        """Returns the server's numbers of ``sessions``, ``programs`` and ``compilations``, and this
        session's numbers of ``arrays`` and ``segments``."""
        found = self.connection.ask(Op.STATS, wire.STATS.pack(0, -1)[wire.NUMBER.size :]).result
        stats: Mapping[str, int] = found
        return stats

    def status(self) -> Mapping[str, Any]:
        """Returns the server's numbers of ``programs`` and ``compilations``, and in ``sessions`` a
        dict for each other session: its ``process`` id (0 on another machine), the ``seconds``
        since its start, the numbers of its ``arrays``, ``segments``, ``programs`` and ``launches``,
        and the ``bytes`` of its arrays on devices."""
        status: Mapping[str, Any] = self.connection.ask(Op.STATUS, b"").result
        return status

    def close(self) -> None:
        self.connection.close()


def _describe(callbacks: Mapping[int, HostCallback]) -> list[list[Any]]:
    """Returns the number, title, ``of_parts`` and ``partitioned`` of each function."""
    return [
        [number, str(getattr(function, "title", function))[:500],
         bool(getattr(function, "of_parts", False)), bool(getattr(function, "partitioned", False))]
        for number, function in callbacks.items()
    ]  # fmt: skip


def _plain_options(options: CompileOptions) -> dict[str, Any]:
    plain = {name: getattr(options, name) for name in CompileOptions.__slots__}
    assignment = options.device_assignment
    plain["device_assignment"] = None if assignment is None else assignment.device_ids
    return {k: int(v) if isinstance(v, np.integer) else v for k, v in plain.items()}
