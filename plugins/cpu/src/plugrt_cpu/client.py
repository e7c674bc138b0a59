"""`CpuClient`: jaxlib's CPU client behind plugrt's interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from plugrt import interface
from plugrt.errors import ArgumentTypeError, FailedPrecondition, InvalidArgument
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Buffer, Device, Layout, Memory, OptionValue, TensorType
from plugrt.lifetime.forks import in_child
from plugrt_cpu import adapter
from plugrt_cpu.buffer import CpuBuffer, gives_views
from plugrt_cpu.device import CpuDevice, CpuMemory, require_device
from plugrt_cpu.distributed.process_copies import ProcessCopies, not_set_up
from plugrt_cpu.errors import JAXLIB_ERRORS, translate
from plugrt_cpu.fork import keep_after_fork
from plugrt_cpu.host_puts import PuttingClient
from plugrt_cpu.jaxlib_import import jaxlib_version
from plugrt_cpu.shards import CpuShards, await_all
from plugrt_cpu.tracebacks import collecting
from plugrt_cpu.types import type_in_layout

if TYPE_CHECKING:
    from plugrt.interface import (
        Capabilities,
        CompileOptions,
        Handler,
        HandlerStages,
        HeldForm,
        Program,
    )
    from plugrt_cpu.loaded_executable import CpuLoadedExecutable

_new = object.__new__


class CpuClient(PuttingClient):
    """The virtual devices of this machine's CPU. Make one with `plugrt_cpu.create_client.start`."""

    platform = "cpu"
    process_index = 0

    def __init__(self, raw: Any, asynchronous: bool, copies: ProcessCopies | None = None) -> None:
        """``copies`` are the copies to devices of other processes, None if they are not set up."""
        super().__init__(raw)
        self._copies = copies
        self._asynchronous = asynchronous
        self.process_index = int(raw.process_index())
        devices, memories = [], 0
        for device in sorted(raw.devices(), key=lambda d: d.id):
            devices.append(CpuDevice(self, device, memories))
            memories += len(devices[-1].memories())
        self._devices = tuple(devices)
        self.by_id = {device.id: device for device in devices}
        keep_after_fork(self)
        self._processes = self.process_count

    def begin_profile(self, options: Mapping[str, Any]) -> Callable[[], bytes]:
        """Starts jaxlib's profiler; the returned function stops it and returns the ``XSpace``.

        ``options`` are attributes of jaxlib's ``ProfileOptions``. Raises `FailedPrecondition`
        during another recording of jaxlib's.
        """
        try:
            stop = adapter.begin_profile(options)
        except JAXLIB_ERRORS as error:
            raise translate(error) from error
        if stop is None:
            raise FailedPrecondition(
                "jaxlib's profiler, of which a process has one, records another trace: that of "
                "jax.profiler.start_trace(), say, which jax.profiler.stop_trace() ends"
            )

        def collect() -> bytes:
            try:
                return stop()
            except JAXLIB_ERRORS as error:
                raise translate(error) from error

        return collect

    @property
    def platform_version(self) -> str:
        return f"jaxlib {jaxlib_version()}"

    @cached_property
    def capabilities(self) -> Capabilities:
        # Imported here, since it imports StableHLO's bindings.
        from plugrt_cpu.capabilities import capabilities

        return capabilities(self._asynchronous, self._processes, self._copies is not None)

    # Kept, since each compilation reads it: if a signal handler raises AttributeError within a
    # property, Python calls `__getattr__`, whose error replaces it.
    @cached_property
    def attributes(self) -> Mapping[str, OptionValue]:
        stated = self.capabilities
        return {
            "jaxlib_version": jaxlib_version(),
            "stablehlo_current_version": list(stated.stablehlo_current_version or ()),
            "stablehlo_minimum_version": list(stated.stablehlo_minimum_version or ()),
        }

    def devices(self) -> Sequence[CpuDevice]:
        return self._devices

    @with_argument_errors
    def compile(self, program: Program, options: CompileOptions) -> CpuLoadedExecutable:
        """Compiles StableHLO (format ``mlir``) or a serialised ``HloModuleProto`` (``hlo``)."""
        # Imported late: a process without programs starts in a fifth less time.
        from plugrt_cpu.compiling import compile_program

        return compile_program(self, program, options)

    @with_argument_errors
    def deserialize_executable(
        self, serialized: bytes, options: CompileOptions | None = None
    ) -> CpuLoadedExecutable:
        """Loads the bytes of `CpuExecutable.serialize`; ``options`` may name other devices."""
        from plugrt_cpu.compiling import load_serialized

        return load_serialized(self, serialized, options)

    @with_argument_errors
    def register_handler(self, target: str, handler: Handler | int | HandlerStages) -> None:
        """Registers a handler with jaxlib: for all its CPU clients, including JAX's.

        The handler of `HOST_CALLBACK`, with Python functions of another host, stays in the client:
        jaxlib calls them by functions of its own, and each host has its own handler.
        """
        self.require_open()
        if target == interface.HOST_CALLBACK and not isinstance(handler, interface.HandlerStages):
            from plugrt.capi.extensions.ffi_frames import call_c_handler

            self.callback_handler = (
                call_c_handler(target, handler) if isinstance(handler, int) else handler
            )
            return
        if not isinstance(handler, int | interface.HandlerStages):
            # Imported here, since it imports cffi.
            from plugrt.capi.extensions.ffi import address_of, make_c_handler

            handler = address_of(make_c_handler(target, handler))
        try:
            adapter.register_custom_call(target, handler)
        except JAXLIB_ERRORS as error:
            raise translate(error) from error

    @with_argument_errors
    def register_handler_type(self, name: str, type_id: int, type_info: int | None = None) -> None:
        """Registers a type of handlers' states with jaxlib, for all its CPU clients."""
        self.require_open()
        try:
            adapter.register_custom_type(name, type_id, type_info)
        except JAXLIB_ERRORS as error:
            raise translate(error) from error

    @with_argument_errors
    def shards(self, buffers: Sequence[Buffer]) -> CpuShards:
        """Returns the buffers of one array in the form that launches accept fastest."""
        if len(buffers) == 1 and type(only := buffers[0]) is CpuBuffer:
            return CpuShards(only.raw, only.type, only.place)
        # Workaround for jaxlib-no-device: jaxlib 0.10.2 ends the process on a GSPMDSharding over no
        # device, with "Check failed: devices_->Len()" on stderr; no public report of it was found.
        if not buffers:
            raise InvalidArgument("an array has at least one buffer; got none")
        devices = tuple(require_device(self, b.device) for b in buffers)
        return CpuShards.from_buffers(buffers, self.place(devices, buffers[0].memory.kind))

    @with_argument_errors
    def copy_between_processes(
        self,
        type: TensorType,
        copies: Sequence[tuple[Device, Device]],
        buffers: Sequence[Buffer],
        memory_kind: str | None = None,
    ) -> list[CpuBuffer]:
        """Copies by jaxlib's transfer server, which listens at the address of the setting."""
        self.require_open()
        if self._copies is None:
            raise not_set_up(type, copies)
        pairs = [(require_device(self, a), require_device(self, b)) for a, b in copies]
        held = [buffer for buffer in buffers if isinstance(buffer, CpuBuffer)]
        if len(held) != sum(a.is_addressable for a, _ in pairs) or len(held) != len(buffers):
            raise InvalidArgument(
                f"copies from {[a for a, _ in pairs]} take a buffer of this client for each that "
                f"begins in this process; got {[*buffers]}"
            )
        return self._copies.copy(type, pairs, held, memory_kind)

    def held_form(self, type: TensorType, memory: Memory) -> HeldForm:
        if not isinstance(type, TensorType) or not isinstance(memory, CpuMemory):
            raise ArgumentTypeError(
                f"held_form takes a TensorType and a memory of this client; got {type!r:.60} and "
                f"{memory!r:.60}"
            )
        tensor_type, place = type_in_layout(type.shape, type.dtype, type.layout), memory.place

        def open_raw(raw: Any) -> CpuShards:
            shards = _new(CpuShards)  # like calling the class, without a call of its __init__
            shards.raw = raw
            shards.type = tensor_type
            shards.place = place
            return shards

        return interface.HeldForm(
            open=open_raw,
            held_class=adapter.RawArray,
            view=memoryview if gives_views(tensor_type) else None,
            is_ready=adapter.is_ready,
            wait=adapter.wait,
            lock=adapter.memory_lock,
            unless=(collecting, in_child),
        )

    def await_shards(self, shards: Sequence[Any]) -> bool:
        """Waits for several arrays in one call; returns False if one must be checked by itself."""
        return not in_child and await_all(shards)

    @property
    def waiter(self) -> Any:
        """A ``core.ShardsWait``, by which the compiled core waits for one array."""
        return await_all

    @with_argument_errors
    def default_layout(self, type: TensorType) -> Layout:
        """Returns row-major order, the order of all of XLA's CPU arrays."""
        return Layout.row_major(len(type.shape))

    def close(self) -> None:
        """Drops jaxlib's client, which is destroyed with its last buffer or executable."""
        self._raw = None
