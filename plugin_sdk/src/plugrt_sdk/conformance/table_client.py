"""`TableClient`: a client of a PJRT library that only calls its function table.

plugrt's own client corrects and refuses many faults of a library; here checks call the library
directly. Objects that are made live until the process ends.
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.c_values import data, named_values
from plugrt.capi.abi.process_map import AddressMap
from plugrt.capi.abi.proto_wire import compile_options
from plugrt.capi.loading.extension_chain import read_chain
from plugrt.errors import InvalidArgument, PjrtError
from plugrt.interface import CompileOptions
from plugrt_sdk.conformance.expect import WARNINGS, Mismatch, expect
from plugrt_sdk.conformance.function_table import (
    call,
    initialized_table,
    is_error,
    new_args,
    require_slot,
    take_error,
)
from plugrt_sdk.conformance.guarded_memory import Guarded, Room
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.verdict import NotTried
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

FLOAT32, UNIMPLEMENTED = 11, 12
_SECONDS = 10.0
_DURING_CALL = 0
_DEFAULTS = CompileOptions()


class TableClient:
    """A started client; ``api`` is its table, ``handle`` the ``PJRT_Client*``."""

    def __init__(self, subject: PluginSubject) -> None:
        self._subject = subject
        self.api = initialized_table(subject)
        self._kept: list[Any] = []
        array, count, kept = named_values(subject.target.create_options(subject.plugin))
        self._kept += [array, kept]
        made = self.call(
            "Client_Create", create_options=array if count else ffi.NULL, num_options=count
        )
        self.handle = made.client

    @classmethod
    def of(cls, subject: PluginSubject) -> TableClient:
        """Returns the client of the checks of this process."""
        if not isinstance(subject.kept, TableClient):
            subject.kept = cls(subject)
        return subject.kept

    def keep(self, made: Any) -> Any:
        """Keeps an object alive as long as the client, and returns it."""
        self._kept.append(made)
        return made

    def args(self, name: str, tail: int = 0, **fields: Any) -> Any:
        """Returns the filled-in argument struct of a function, ``tail`` bytes longer than known.

        A newer host's struct is longer.
        """
        args, memory = new_args(name, tail)
        self._kept.append(memory)
        for field, value in fields.items():
            setattr(args, field, value)
        return args

    def call(self, name: str, **fields: Any) -> Any:
        """Calls a function that must succeed; returns its arguments with the fields that it set.

        A function that the library calls unimplemented is refused, which only `Check.refusable`
        checks allow; the check does not apply if the library's table is too old to have the
        function.
        """
        args = self.args(name, **fields)
        refused = self.try_args(name, args)
        if refused is not None:
            code, said = refused
            if code == UNIMPLEMENTED:
                self._subject.refuse(said)
            raise Mismatch(f"PJRT_{name} to succeed", f"code {code}: {said.partition(chr(10))[0]}")
        return args

    def refused(self, name: str, **fields: Any) -> tuple[int, str] | None:
        """Calls a function; returns the code and the message of its error, which is freed."""
        return self.try_args(name, self.args(name, **fields))

    def try_args(self, name: str, args: Any) -> tuple[int, str] | None:
        """Calls a function with arguments; returns the code and the message of its error."""
        require_slot(self.api, name)
        error = call(self.api, name, args)
        return take_error(self.api, error) if is_error(error) else None

    def call_extension(self, extension: str, name: str, **fields: Any) -> Any:
        """Calls a function of an extension that must succeed, like `call` for the table."""
        chain = read_chain(self.api.extension_start, "the table", AddressMap())
        if extension not in chain:
            self._subject.refuse(f"the library has no extension {extension}")
        args = self.args(name, **fields)
        function = getattr(ffi.cast(f"PJRT_{extension}_Extension*", chain[extension]), name)
        error = function(args)
        refused = take_error(self.api, error) if is_error(error) else None
        expect(refused is None, f"PJRT_{name} to succeed", refused)
        return args

    def devices(self) -> list[Any]:
        """The ``PJRT_Device*`` that this process can use."""
        found = self.call("Client_AddressableDevices", client=self.handle)
        return list(ffi.unpack(found.addressable_devices, found.num_addressable_devices))

    def memories(self) -> list[Any]:
        """The ``PJRT_Memory*`` that this process can use."""
        found = self.call("Client_AddressableMemories", client=self.handle)
        return list(ffi.unpack(found.addressable_memories, found.num_addressable_memories))

    def put_args(self, array: Any, device: Any = None) -> Any:
        """Returns arguments that put a float32 array on a device (by default the first)."""
        memory = self.keep(Guarded(np.ascontiguousarray(array).tobytes()))
        dims = self.keep(ffi.new("int64_t[]", array.shape)) if array.ndim else ffi.NULL
        return self.args(
            "Client_BufferFromHostBuffer", client=self.handle, data=memory.pointer, type=FLOAT32,
            dims=dims, num_dims=array.ndim, host_buffer_semantics=_DURING_CALL,
            device=self.devices()[0] if device is None else device,
        )  # fmt: skip

    def put(self, array: Any, device: Any = None) -> Any:
        """Puts a float32 array on a device (by default the first); returns the buffer."""
        args = self.put_args(array, device)
        failed = self.try_args("Client_BufferFromHostBuffer", args)
        expect(failed is None, "PJRT_Client_BufferFromHostBuffer to succeed", failed)
        self.finish(args.done_with_host_buffer)
        return args.buffer

    def is_ready(self, event: Any) -> bool:
        """Whether an event is ready; NULL counts as ready."""
        return event == ffi.NULL or bool(self.call("Event_IsReady", event=event).is_ready)

    def expect_ready(self, event: Any, what: str) -> None:
        """Waits until an event is ready, for at most ten seconds: a library may never set it."""
        until = time.monotonic() + _SECONDS
        while not self.is_ready(event) and time.monotonic() < until:
            time.sleep(0.002)
        expect(self.is_ready(event), f"{what} to become ready", f"it does not in {_SECONDS:g} s")

    def finish(self, event: Any) -> tuple[int, str] | None:
        """Waits for an event, which may be NULL, and destroys it; returns its error."""
        if event == ffi.NULL:
            return None
        found = self.refused("Event_Await", event=event)
        self.call("Event_Destroy", event=event)
        return found

    def read(self, buffer: Any, size: int, **fields: Any) -> bytes:
        """Returns the bytes of a buffer; the read must write nothing beside them."""
        room = Room(size)
        self.keep(room)
        read = self.call(
            "Buffer_ToHostBuffer", src=buffer, dst=room.pointer, dst_size=size, **fields
        )
        failed = self.finish(read.event)
        expect(failed is None, "the read to succeed", failed)
        return room.content()

    def get(self, buffer: Any, count: int) -> Any:
        """Returns the float32 numbers of a buffer."""
        return np.frombuffer(self.read(buffer, 4 * count), np.float32)

    @cached_property
    def launch_refusal(self) -> str:
        """The library's message if it refuses to launch a program that all libraries run, or ""."""
        with suppress(Mismatch, NotTried, PjrtError):  # other checks report it
            x = self.put(ONE)
            args, _ = self.execute_args(self.compile(programs.ADD.encode())[0], x, x)
            refused = self.try_args("LoadedExecutable_Execute", args)
            if refused and refused[0] == UNIMPLEMENTED:
                return refused[1].partition("\n")[0]
        return ""

    def program(self, text: bytes, form: bytes = b"mlir") -> Any:
        """Returns a ``PJRT_Program`` whose two strings do not end with NUL."""
        code, name = self.keep(Guarded(text)), self.keep(Guarded(form))
        program = self.keep(ffi.new("PJRT_Program*"))
        program.struct_size = ffi.sizeof("PJRT_Program")
        program.code, program.code_size = code.pointer, code.size
        program.format, program.format_size = name.pointer, name.size
        return program

    def compile_fields(self, program: Any, options: CompileOptions = _DEFAULTS) -> dict[str, Any]:
        """Returns the fields of ``PJRT_Client_Compile_Args``."""
        encoded = self.keep(Guarded(compile_options(options)))
        return {
            "client": self.handle, "program": program, "compile_options": encoded.pointer,
            "compile_options_size": encoded.size,
        }  # fmt: skip

    def compile(self, text: bytes, options: CompileOptions = _DEFAULTS) -> tuple[Any, Any]:
        """Compiles a program; returns its ``PJRT_LoadedExecutable*`` and ``PJRT_Executable*``."""
        made = self.call("Client_Compile", **self.compile_fields(self.program(text), options))
        loaded = made.executable
        found = self.call("LoadedExecutable_GetExecutable", loaded_executable=loaded)
        return loaded, found.executable

    def execute_args(self, loaded: Any, *buffers: Any, tail: int = 0) -> tuple[Any, Any]:
        """Returns the arguments of a launch with one result on a device, and the result's place."""
        options = self.keep(ffi.new("PJRT_ExecuteOptions*"))
        options.struct_size = ffi.sizeof("PJRT_ExecuteOptions")
        inner = self.keep(ffi.new("PJRT_Buffer*[]", list(buffers)))
        outputs = self.keep(ffi.new("PJRT_Buffer*[1]"))
        args = self.args(
            "LoadedExecutable_Execute", tail, executable=loaded, options=options,
            argument_lists=self.keep(ffi.new("PJRT_Buffer**[]", [inner])), num_devices=1,
            num_args=len(buffers), output_lists=self.keep(ffi.new("PJRT_Buffer**[]", [outputs])),
        )  # fmt: skip
        return args, outputs


def text_at(pointer: Any, size: int) -> bytes:
    """Copies bytes that a library returned; raises `InvalidReply` if the address is no memory."""
    return data(pointer, size)


_BLAME_NOT_THE_CALLER = (0, 1, 4, 7, 8, UNIMPLEMENTED, 14, 15, 16)
"""Codes that make a host retry, or continue without the feature: no error, cancelled, late, denied,
no room, unimplemented, unavailable, lost data, unauthenticated."""


def expect_mistake(error: tuple[int, str] | None, what: str) -> None:
    """Raises `Mismatch` unless a call returned an error that may blame the caller.

    Another code than INVALID_ARGUMENT is a warning.
    """
    wanted = f"{what} to be refused with INVALID_ARGUMENT"
    expect(error is not None, wanted, "no error")
    expect(error and error[0] not in _BLAME_NOT_THE_CALLER, wanted, error)
    if error and error[0] != InvalidArgument.code:
        WARNINGS.append(f"{what} gave code {error[0]}, not {InvalidArgument.code}")
