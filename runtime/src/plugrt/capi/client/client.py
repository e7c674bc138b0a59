"""`Client`: a started PJRT library."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from plugrt import interface
from plugrt.capi.abi import c_values
from plugrt.capi.abi._abi import ffi
from plugrt.capi.client import interpreter_exit
from plugrt.capi.devices.devices import ClientBase, Device, Memory
from plugrt.capi.library.client_handle import ClientHandle
from plugrt.capi.library.stream_copies import StreamCopies
from plugrt.capi.loading.elf import build_id
from plugrt.capi.loading.library import Library
from plugrt.capi.programs.compile_defaults import CompileDefaults
from plugrt.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotAnArray,
    PjrtError,
    PluginBroken,
    Unimplemented,
)
from plugrt.frames.argument_errors import PYTHON_ERRORS, refuse_call, with_argument_errors
from plugrt.interface import HostBufferSemantics, OptionValue, Shards
from plugrt.interface.checks import require_rank
from plugrt.native.finalizers import finish_pending

if TYPE_CHECKING:
    import numpy.typing as npt

    from plugrt.capi.abi._abi import CData
    from plugrt.capi.buffers.buffer import Buffer
    from plugrt.capi.buffers.host_put import ClosedTransfers, Transfers
    from plugrt.capi.client.topology import Topology
    from plugrt.capi.programs.executable import Executable
    from plugrt.capi.programs.loaded_executable import LoadedExecutable
    from plugrt.interface import (
        Capabilities,
        CompileOptions,
        DeviceAssignment,
        Handler,
        HandlerStages,
        Layout,
        Program,
    )

_LONGEST_NAME = 256
"""The maximum length of a platform's name in characters; known ones have under 20."""


class Client(ClientBase):
    """A ``PJRT_Client``.

    `close` drops this reference; the C client is destroyed with its last buffer or executable.
    """

    # Methods import the modules for buffers and programs: a process without these starts sooner.

    def __init__(
        self,
        library: Library,
        pointer: CData,
        name: str,
        keep: Sequence[object] = (),
        copies: StreamCopies | None = None,
    ) -> None:
        handle = ClientHandle(library, pointer)
        handle.keep.extend(keep)
        interpreter_exit.destroy_at_exit(handle)
        super().__init__(library, handle, name)
        self._copies = copies
        self._platform = self._find_platform()
        self._platform_version = ""
        with suppress(Unimplemented):
            self._platform_version = library.text(self._call("PlatformVersion"), "platform_version")
        self._compile_defaults = CompileDefaults(self._platform)
        self._process_index = 0
        with suppress(Unimplemented):
            self._process_index = int(self._call("ProcessIndex").process_index)
        self._by_pointer = {p: Device(self, p) for p in self._find_devices()}
        self._devices = tuple(sorted(self._by_pointer.values(), key=lambda d: d.id))
        self._check_devices()

    def _call(self, what: str, **inputs: object) -> CData:
        handle = self.handle()
        return handle.library.call(f"Client_{what}", client=handle.pointer, **inputs)

    def _find_platform(self) -> str:
        args = self._call("PlatformName")
        name = self.library.text(args, "platform_name")
        if not name or len(name) > _LONGEST_NAME or not name.isprintable():
            raise self.library.invalid(args, f"the platform's name is {name[:_LONGEST_NAME]!r}")
        return name

    def _find_devices(self) -> list[CData]:
        args = self._call("Devices")
        return self.library.distinct_devices(args, "devices", "num_devices")

    def _check_devices(self) -> None:
        """Raises `PluginBroken` for devices that contradict each other or the client."""
        here = [d for d in self._devices if d.process_index == self._process_index]
        if here and not any(device.is_addressable for device in here):
            raise PluginBroken(
                f"{self.library.owner} says that this is process {self._process_index}, and that "
                f"this process can use none of its {len(here)} devices {[d.id for d in here]} "
                "(PJRT_Device_IsAddressable)"
            )
        for device in self._devices:
            if device.is_addressable and device.process_index != self._process_index:
                raise PluginBroken(
                    f"{self.library.owner} says that this is process {self._process_index}, and "
                    f"that its addressable device {device.id} is of process {device.process_index}"
                )
        for one, next_one in pairwise(self._devices):
            if one.id == next_one.id:
                raise PluginBroken(
                    f"{self.library.owner} lists two devices with the id {one.id}: "
                    f"{one.debug_string or one.kind!r} and "
                    f"{next_one.debug_string or next_one.kind!r}"
                )

    def begin_profile(self, options: Mapping[str, object]) -> Callable[[], bytes]:
        """Begins the library's recording; the returned function ends it and returns the ``XSpace``.

        ``options`` are passed to `encode_options`. Raises `Unimplemented` for a library without the
        extension Profiler.
        """
        from plugrt.capi.extensions.profiler import Profiler, encode_options

        profiler = Profiler(self.library, encode_options(options))
        profiler.start()

        def collect() -> bytes:
            profiler.stop()
            return profiler.collect()

        return collect

    @property
    def platform(self) -> str:
        return self._platform

    @property
    def platform_version(self) -> str:
        return self._platform_version

    @cached_property
    def compiler_identity(self) -> str | None:
        """The library's build ID, size and time, and its PJRT version; None without a file."""
        if not os.path.isfile(self.library.path):
            return None
        stated = os.stat(self.library.path)
        facts = [build_id(self.library.path), stated.st_size, stated.st_mtime_ns]
        return f"{facts} PJRT {self.library.version} {sorted(self.attributes.items())}"

    @property
    def process_index(self) -> int:
        return self._process_index

    @cached_property
    def attributes(self) -> Mapping[str, OptionValue]:
        return self.library.attributes()

    @cached_property
    def capabilities(self) -> Capabilities:
        from plugrt.capi.devices.capabilities import find_capabilities

        return find_capabilities(self, self._keeps_layouts, self._copies is not None)

    @cached_property
    def can_queue_nested_launches(self) -> bool:
        from plugrt.capi.devices.capabilities import can_queue_nested_launches

        return can_queue_nested_launches(self)

    def devices(self) -> Sequence[Device]:
        return self._devices

    def memories(self) -> Sequence[Memory]:
        """All memories that this process can address, in id order."""
        args = self._call("AddressableMemories")
        found = self.library.handles(args, "addressable_memories", "num_addressable_memories")
        return sorted((self.memory_at(p) for p in found), key=lambda m: m.id)

    @with_argument_errors
    def lookup_local_device(self, local_hardware_id: int) -> Device:
        """Returns the device of this process with that number on its machine."""
        args = self._call("LookupAddressableDevice", local_hardware_id=local_hardware_id)
        return self.device_at(args.addressable_device, args)

    def default_device_assignment(self, num_replicas: int, num_partitions: int) -> DeviceAssignment:
        chosen = super().default_device_assignment(num_replicas, num_partitions)
        count = len(chosen.flat)
        ids = ffi.new("int[]", count)
        try:
            args = self._call(
                "DefaultDeviceAssignment",
                num_replicas=num_replicas,
                num_partitions=num_partitions,
                default_assignment_size=count,
                default_assignment=ids,
            )
        except Unimplemented:
            return chosen
        flat = list(ids)
        rows = (flat[i : i + num_partitions] for i in range(0, count, num_partitions))
        try:
            return interface.DeviceAssignment(tuple(map(tuple, rows)))
        except InvalidArgument as error:
            raise self.library.invalid(args, f"it gave {flat}: {error.message}") from None

    def _encode(self, options: CompileOptions) -> tuple[CData, int]:
        from plugrt.capi.abi import proto_wire

        chooses = lambda: self.capabilities.auto_partitioning  # noqa: E731  # if that is asked
        return c_values.chars(proto_wire.encode_checked_options(options, chooses))

    @with_argument_errors
    def compile(self, program: Program, options: CompileOptions) -> LoadedExecutable:
        from plugrt.capi.buffers.donated_arguments import can_donate
        from plugrt.capi.extensions import ffi_registration, ffi_staging
        from plugrt.capi.programs.executable import Known, program_struct
        from plugrt.capi.programs.loaded_executable import LoadedExecutable

        finish_pending()
        if self._copies is not None and ffi_staging.is_calling():
            # Workaround for cuda-compile-waits
            # Seen on an H200 with jax-cuda13-pjrt 0.11.2.
            raise FailedPrecondition(
                f"{program.name!r} would be compiled for {self.backend_name} in a Python function "
                "that a program there is calling: its compiler may wait until no program runs, for "
                "ever. Fix: call or compile it once before the program that calls the function"
            )
        if program.callbacks:
            if not self.capabilities.host_callbacks:
                self._unimplemented("a program that calls Python functions")
            from plugrt.callbacks.host_callbacks import refuse_partitioned

            refuse_partitioned(self, program, options)
            ffi_registration.register_host_callbacks(
                self.library, program.callbacks, self.platform, self._copies
            )
        code, _keep = program_struct(program)

        def compile_with(options: CompileOptions) -> CData:
            encoded, size = self._encode(options)
            return self._call(
                "Compile", program=code, compile_options=encoded, compile_options_size=size
            )

        args = self._compile_defaults.compile(options, compile_with)
        known = None
        if options.encoded is None:
            known = Known(program.name, options.num_replicas, options.num_partitions)
        return LoadedExecutable(
            self, args.executable, can_donate(program), program.may_name_layouts, known
        )

    @with_argument_errors
    def register_handler(self, target: str, handler: Handler | int | HandlerStages) -> None:
        from plugrt.capi.extensions import ffi_registration

        if not self.capabilities.custom_calls:
            self._unimplemented("register_handler")
        if (
            not isinstance(handler, int | interface.HandlerStages)
            and not self.capabilities.host_callbacks
        ):
            raise Unimplemented(
                f"{self.backend_name} cannot call the Python function of {target!r}: it does not "
                "say that the host can address its arrays, and its plugin does not say how they "
                "are copied. Fix: register a function in C, which gets the device's addresses, or "
                "use a plugin that has `LibraryPlugin.stream_copies`"
            )
        ffi_registration.register(self.library, target, handler, self.platform, self._copies)

    @with_argument_errors
    def register_handler_type(self, name: str, type_id: int, type_info: int | None = None) -> None:
        if not self.capabilities.custom_calls:
            self._unimplemented("register_handler_type")
        from plugrt.capi.extensions import ffi_registration

        ffi_registration.register_type(self.library, name, type_id, type_info, self.platform)

    @with_argument_errors
    def load(self, executable: Executable, options: CompileOptions) -> LoadedExecutable:
        """Loads an executable that was compiled for a topology (PJRT 0.95 and later)."""
        from plugrt.capi.programs.loaded_executable import LoadedExecutable

        encoded, size = self._encode(options)
        args = self._call(
            "Load",
            executable=executable.pointer,
            compile_options=encoded,
            compile_options_size=size,
        )
        return LoadedExecutable(self, args.loaded_executable, True)

    @contextmanager
    def dma_mapped(self, array: npt.NDArray[np.generic]) -> Iterator[None]:
        """Lets the devices access the array's memory directly within the block (PJRT 0.67)."""
        if not isinstance(array, np.ndarray):
            raise NotAnArray(f"dma_mapped takes a NumPy array; got {array!r:.60}")
        address = ffi.cast("void*", array.ctypes.data)
        self._call("DmaMap", data=address, size=array.nbytes)
        try:
            yield
        finally:
            self._call("DmaUnmap", data=address)

    @with_argument_errors
    def deserialize_executable(
        self, serialized: bytes, options: CompileOptions | None = None
    ) -> LoadedExecutable:
        from plugrt.capi.library import serialized_envelope
        from plugrt.capi.programs.loaded_executable import LoadedExecutable

        opened = serialized_envelope.decode_envelope(serialized)
        differences = serialized_envelope.check_platform(opened, self.origin)
        if differences:
            reason = self._why_incompatible(opened.abi, "; ".join(differences))
            if reason is not None:
                raise serialized_envelope.make_version_error(reason, self.library)
        content, size = c_values.chars(opened.payload)
        inputs: dict[str, object] = {}
        if options is not None:
            encoded, encoded_size = self._encode(options)
            inputs["overridden_serialized_compile_options"] = encoded
            inputs["overridden_serialized_compile_options_size"] = encoded_size
        handle = self.handle()
        try:
            args = self.library.call(
                "Executable_DeserializeAndLoad",
                client=handle.pointer,
                serialized_executable=content,
                serialized_executable_size=size,
                **inputs,
            )
        except PjrtError as error:
            told = self._add_abi(error, opened.abi)
            if told is error:
                raise
            raise told from error
        return LoadedExecutable(self, args.loaded_executable, True)

    def _why_incompatible(self, abi: bytes | None, unknown: str | None) -> str | None:
        """Returns why an executable cannot be loaded, ``unknown`` if the library cannot tell."""
        from plugrt.capi.extensions.abi_version import why_incompatible

        if abi is None:
            return unknown
        try:
            return why_incompatible(self.library, self.handle().pointer, abi)
        except Unimplemented:
            return unknown

    def _add_abi(self, error: PjrtError, abi: bytes | None) -> PjrtError:
        """Adds the library's statement about an executable's ABI version to the error of a load.

        The library is asked only after a failure, and its statement may not be the reason:
        jax-cuda13-pjrt 0.11.2 states that its own executables, which it loads, need a newer cuDNN
        than it has.
        """
        # Workaround for cuda-abi-version
        with suppress(PjrtError):  # the first error is the one to raise
            if reason := self._why_incompatible(abi, None):
                return type(error)(f"{error.message} (of its version the library says: {reason})")
        return error

    def buffer_from_host(
        self,
        array: npt.NDArray[np.generic],
        device: interface.Device,
        memory: interface.Memory | None = None,
        semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
        layout: Layout | None = None,
    ) -> Buffer:
        finish_pending()
        try:
            if layout is None:
                return self._transfers.put(array, device, memory, semantics)
            wanted = self._find_other_layout(array, layout)
            if wanted is not None and not self._keeps_layouts:
                self._unimplemented("a put in another layout than the default")
            return self._transfers.put(array, device, memory, semantics, wanted)
        except PYTHON_ERRORS as error:
            refuse_call(
                self.buffer_from_host, error,
                array=array, device=device, memory=memory, semantics=semantics, layout=layout,
            )  # fmt: skip

    def compile_put(
        self, shape: tuple[int, ...], dtype: np.dtype[np.generic], device: Device, number: bool
    ) -> object:
        """Returns the core's put of arrays or numbers: see `Transfers.compile_put`."""
        return self._transfers.compile_put(shape, dtype, device, number)

    def compile_copy(
        self, shape: tuple[int, ...], dtype: np.dtype[np.generic], device: Device
    ) -> object:
        """Returns the core's copy of arrays to a device; None if Python must copy."""
        if self._handle is None:
            return None
        from plugrt.capi.buffers.buffer_spec import BufferSpec
        from plugrt.capi.buffers.native_transfers import compile_copy

        return compile_copy(BufferSpec(self._handle, shape, dtype, device))

    def await_shards(self, shards: Sequence[Shards]) -> bool:
        """Waits for several arrays, in the core; returns False if Python must wait for each."""
        handle = self._handle  # another thread may close the client
        made = handle.core if handle is not None else None
        return made is not None and bool(made.wait(shards))

    @cached_property
    def _transfers(self) -> Transfers | ClosedTransfers:
        from plugrt.capi.buffers.host_put import ClosedTransfers, Transfers

        handle = self._handle
        return ClosedTransfers(self.name) if handle is None else Transfers(self, handle)

    @cached_property
    def _keeps_layouts(self) -> bool:
        from plugrt.capi.buffers.host_put import can_keep_layouts

        devices = self.addressable_devices() if "Layouts" in self.library.extensions else []
        return bool(devices) and can_keep_layouts(self._transfers, devices[0])

    def _find_other_layout(self, array: npt.NDArray[np.generic], layout: Layout) -> Layout | None:
        """Returns the layout requested for an array, None for the default."""
        if "Layouts" not in self.library.extensions:
            self._unimplemented("layouts: the library lacks the extension Layouts, which")
        usual = self.default_layout(interface.TensorType(array.shape, array.dtype))
        require_rank(layout, array.shape)
        if layout.is_met_by(usual):
            return None
        return interface.Layout(
            layout.major_to_minor, layout.tiling or (), layout.sub_byte_element_size_in_bits
        )

    @with_argument_errors
    def shards(self, buffers: Sequence[interface.Buffer]) -> Shards:
        from plugrt.capi.buffers.buffer import Buffer

        if len(buffers) == 1 and isinstance(buffers[0], Buffer):
            return buffers[0]
        return interface.require_buffers(buffers)

    @with_argument_errors
    def buffer_from_dlpack(
        self, capsule: object, device: interface.Device, stream: int | None = None
    ) -> interface.Buffer:
        if not isinstance(device, Device) or device.client is not self:
            raise InvalidArgument(f"{device!r} is not a device of {self!r}")
        from plugrt.capi.buffers.dlpack_import import import_capsule

        return import_capsule(self.handle(), capsule, device, stream)

    @with_argument_errors
    def default_layout(self, type: interface.TensorType) -> Layout:
        from plugrt.capi.extensions import layouts

        return layouts.default_layout(self.handle(), type)

    def topology(self) -> Topology:
        from plugrt.capi.client.topology import Topology

        return Topology(self.library, self._call("TopologyDescription").topology, self.handle())

    def close(self) -> None:
        finish_pending()
        handle, self._handle = self._handle, None
        self.copy_specs = None
        if handle is not None:
            handle.sweep()
            if handle.core is not None:
                handle.core.closed = True
        self.__dict__.pop("_transfers", None)

    def __repr__(self) -> str:
        return f"<{self.name} client of {self.library.path}>"
