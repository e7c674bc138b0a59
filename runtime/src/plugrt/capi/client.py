"""`Client`: a started PJRT library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt import interface
from plugrt.capi import protos, values
from plugrt.capi._abi import ffi
from plugrt.capi.buffers import Buffer
from plugrt.capi.devices import Device, Memory
from plugrt.capi.executables import program_struct
from plugrt.capi.handle import ClientHandle
from plugrt.capi.library import Library
from plugrt.capi.loaded import LoadedExecutable
from plugrt.capi.transfers import Transfers
from plugrt.errors import FailedPrecondition, InvalidArgument
from plugrt.interface import (
    Capabilities,
    CompileOptions,
    DeviceAssignment,
    HostBufferSemantics,
    OptionValue,
    Program,
)


class Client(interface.Client):
    """A ``PJRT_Client``. Its children keep it alive; `close` lets go of this object's share."""

    def __init__(self, library: Library, pointer: Any, name: str) -> None:
        self.library = library
        self.name = name
        self._home: ClientHandle | None = ClientHandle(library, pointer)
        args = library.call("Client_PlatformName", client=pointer)
        self._platform = values.text(args.platform_name, args.platform_name_size)
        args = library.call("Client_PlatformVersion", client=pointer)
        self._platform_version = values.text(args.platform_version, args.platform_version_size)
        self._process_index = int(
            library.call("Client_ProcessIndex", client=pointer).process_index
        )
        self._attributes = library.attributes()
        self._memories: dict[Any, Memory] = {}
        args = library.call("Client_Devices", client=pointer)
        found = values.unpack(args.devices, args.num_devices)
        self._by_pointer = {p: Device(self, p) for p in found}
        self._devices = tuple(sorted(self._by_pointer.values(), key=lambda d: d.id))
        self._transfers = Transfers(self._home)

    def home(self) -> ClientHandle:
        """The handle, for a call; `FailedPrecondition` once the client is closed."""
        if self._home is None:
            raise FailedPrecondition(f"the client of {self.name!r} is closed")
        return self._home

    def device_at(self, pointer: Any) -> Device:
        """Returns the device of a ``PJRT_Device*``."""
        return self._by_pointer[pointer]

    def memory_at(self, pointer: Any) -> Memory:
        """Returns the memory of a ``PJRT_Memory*``."""
        if pointer not in self._memories:
            self._memories[pointer] = Memory(self, pointer)
        return self._memories[pointer]

    @property
    def platform(self) -> str:
        return self._platform

    @property
    def platform_version(self) -> str:
        return self._platform_version

    @property
    def process_index(self) -> int:
        return self._process_index

    @property
    def attributes(self) -> Mapping[str, OptionValue]:
        return self._attributes

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    def devices(self) -> Sequence[Device]:
        return self._devices

    def compile(self, program: Program, options: CompileOptions) -> LoadedExecutable:
        home = self.home()
        code, _keep = program_struct(program)
        encoded, size = values.chars(protos.compile_options(options))
        args = home.library.call(
            "Client_Compile",
            client=home.pointer,
            program=code,
            compile_options=encoded,
            compile_options_size=size,
        )
        return LoadedExecutable(self, args.executable, True)

    def buffer_from_host(
        self,
        array: npt.NDArray[Any],
        device: interface.Device,
        memory: interface.Memory | None = None,
        semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
    ) -> Buffer:
        return self._transfers.put(array, device, memory, semantics)

    def close(self) -> None:
        self._home = None
