"""`CpuClient`: jaxlib's CPU client behind plugrt's interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.aligned_arrays import LARGE_BYTES, copy_aligned
from plugrt.argument_errors import PYTHON_ERRORS, refuse_call, with_argument_errors
from plugrt.errors import ArgumentTypeError, FailedPrecondition, InvalidArgument
from plugrt.interface import (
    Buffer,
    Capabilities,
    CompileOptions,
    Device,
    DeviceAssignment,
    Handler,
    HandlerStages,
    HostBufferSemantics,
    Layout,
    Memory,
    OptionValue,
    Program,
    ReadSteps,
    TensorType,
)
from plugrt.interface_checks import check_parts, require_rank
from plugrt_cpu import adapter, dlpack, lapack, serialization
from plugrt_cpu import compile_options as compile_options
from plugrt_cpu.buffer import BorrowingBuffer, CpuBuffer, gives_views
from plugrt_cpu.capabilities import capabilities
from plugrt_cpu.device import ClientBase, CpuDevice, CpuMemory, Place, require_device
from plugrt_cpu.errors import JAXLIB_ERRORS, translate
from plugrt_cpu.executable import CpuExecutable
from plugrt_cpu.fork import keep_after_fork
from plugrt_cpu.interrupts import run_uninterrupted
from plugrt_cpu.jaxlib_import import jaxlib_version
from plugrt_cpu.loaded_executable import CpuLoadedExecutable
from plugrt_cpu.many_device_executable import ManyDeviceExecutable
from plugrt_cpu.process_copies import ProcessCopies, not_set_up
from plugrt_cpu.programs import read_stablehlo, require_one_dimension
from plugrt_cpu.shards import CpuShards, await_all
from plugrt_cpu.tracebacks import collecting
from plugrt_cpu.types import (
    BUFFER_PROTOCOL_DTYPES,
    DTYPES,
    SUB_BYTE_DTYPES,
    array_type,
    to_plain_array,
    type_in_layout,
)

_new = object.__new__

_SEMANTICS = {
    HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL: adapter.ONLY_DURING_CALL,
    HostBufferSemantics.IMMUTABLE_UNTIL_TRANSFER_COMPLETES: adapter.UNTIL_TRANSFER_COMPLETES,
    HostBufferSemantics.IMMUTABLE_ZERO_COPY: adapter.ZERO_COPY,
    # jaxlib has no such mode; never writing to the memory is within what the caller allows.
    HostBufferSemantics.MUTABLE_ZERO_COPY: adapter.ZERO_COPY,
}


class CpuClient(ClientBase):
    """The virtual devices of this machine's CPU. Make one with `plugrt_cpu.create_client.start`."""

    def __init__(self, raw: Any, asynchronous: bool, copies: ProcessCopies | None = None) -> None:
        """``copies``: how arrays get to devices of other processes, where that is set up."""
        super().__init__(raw)
        self._copies = copies
        self._asynchronous = asynchronous
        self._process_index = int(raw.process_index())
        devices, memories = [], 0
        for device in sorted(raw.devices(), key=lambda d: d.id):
            devices.append(CpuDevice(self, device, memories))
            memories += len(devices[-1].memories())
        self._devices = tuple(devices)
        self._by_id = {device.id: device for device in devices}
        keep_after_fork(self)
        self._processes = self.process_count

    def begin_profile(self, options: Mapping[str, Any]) -> Callable[[], bytes]:
        """Begins jaxlib's recording; what it returns ends it and returns the ``XSpace``.

        ``options`` are attributes of jaxlib's ``ProfileOptions``. Raises `FailedPrecondition` while
        another recording of jaxlib's runs.
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
    def platform(self) -> str:
        return "cpu"

    @property
    def platform_version(self) -> str:
        return f"jaxlib {jaxlib_version()}"

    @property
    def capabilities(self) -> Capabilities:
        # Computed when asked for: it imports StableHLO's bindings.
        return capabilities(self._asynchronous, self._processes, self._copies is not None)

    @property
    def process_index(self) -> int:
        return self._process_index

    @property
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
        """Compiles StableHLO (format ``mlir``) or a serialised ``HloModuleProto`` (``hlo``).

        XLA reports a text that it cannot parse as `Unknown`, with line and column in the message.
        """
        raw_client = self.require_open()
        assignment = self._assignment(options)
        require_one_dimension(program, assignment)
        raw_options = compile_options.to_jaxlib(options, assignment)
        devices = self._find_devices(assignment)
        if len(devices) > 1:
            adapter.prepare_several_devices()
        lapack.register_if_called(program.code)
        try:
            code: Any = read_stablehlo(program)
            functions: dict[str, Any] = {}
            if program.callbacks:
                # Not before: it imports StableHLO's bindings.
                from plugrt_cpu.host_callbacks import bind_callbacks

                code, called = bind_callbacks(code, program.name, program.callbacks)
                functions["host_callbacks"] = called
            raw = run_uninterrupted(
                lambda: raw_client.compile_and_load(
                    code, adapter.device_list([d.raw for d in devices]), raw_options, **functions
                )
            )
        except JAXLIB_ERRORS as error:
            raise translate(error) from error
        return self._load(raw, program, assignment, raw_options)

    @with_argument_errors
    def register_handler(self, target: str, handler: Handler | int | HandlerStages) -> None:
        """Registers a handler with jaxlib: for all its CPU clients, JAX's among them."""
        self.require_open()
        if not isinstance(handler, int | HandlerStages):
            # Not before: cffi is imported for it.
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
    def deserialize_executable(
        self, serialized: bytes, options: CompileOptions | None = None
    ) -> CpuLoadedExecutable:
        """Loads what `CpuExecutable.serialize` gave; ``options`` may name other devices."""
        raw_client = self.require_open()
        # Not bytes() of anything: of an integer they are as many zeros.
        packed = serialization.unpack(bytes(memoryview(serialized)))
        assignment = packed.assignment
        if options is not None and options.device_assignment is not None:
            assignment = options.device_assignment
        raw_options = compile_options.place(compile_options.parse(packed.options), assignment)
        devices = self._find_devices(assignment)
        if len(devices) > 1:
            adapter.prepare_several_devices()
        lapack.register_if_called(packed.payload)
        try:
            raw = raw_client.deserialize_executable(
                packed.payload, adapter.device_list([d.raw for d in devices]), raw_options
            )
        except JAXLIB_ERRORS as error:
            raise translate(error) from error
        program = Program(b"", name=packed.name)
        return self._load(raw, program, assignment, raw_options, packed.payload)

    def buffer_from_host(
        self,
        array: npt.NDArray[Any],
        device: Device,
        memory: Memory | None = None,
        semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
        layout: Layout | None = None,
    ) -> CpuBuffer:
        """Puts an array; zero-copy semantics alias a row-major source at a multiple of 64 bytes.

        A big-endian source is converted, since devices are little-endian. jaxlib puts row-major
        arrays only: for another ``layout`` this is `Unimplemented`.
        """
        target = require_device(self, device)
        if memory is None:
            place = target.place
        elif isinstance(memory, CpuMemory) and memory.device is device:
            place = memory.place
        else:
            raise InvalidArgument(f"{memory!r} is not a memory of {device!r}")
        try:
            if layout is not None:
                self._require_row_major(layout, array)
            if type(semantics) is not HostBufferSemantics:
                semantics = HostBufferSemantics(semantics)
            how = _SEMANTICS[semantics]
            raw, tensor_type = self._put(array, place, target.raw, how)
        except PYTHON_ERRORS as error:
            refuse_call(
                self.buffer_from_host, error, array=array, semantics=semantics, layout=layout
            )
        borrows = how is adapter.ZERO_COPY or tensor_type.nbytes >= LARGE_BYTES
        return (BorrowingBuffer if borrows else CpuBuffer)(raw, tensor_type, place)

    def _require_row_major(self, layout: Layout, array: npt.NDArray[Any]) -> None:
        require_rank(layout, np.shape(array))
        if not layout.is_row_major:
            self._unimplemented("a put in another layout than row-major")

    def shards_from_host(self, arrays: Sequence[npt.NDArray[Any]], device: Device) -> list[Any]:
        target = require_device(self, device)
        place, raw_device, copy = target.place, target.raw, adapter.ONLY_DURING_CALL
        try:
            return [self._put(array, place, raw_device, copy)[0] for array in arrays]
        except PYTHON_ERRORS as error:
            refuse_call(self.shards_from_host, error, arrays=arrays)

    @with_argument_errors
    def buffers_from_host(
        self,
        arrays: Sequence[npt.NDArray[Any]],
        devices: Sequence[Device],
        memory_kind: str | None = None,
        semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
    ) -> CpuShards:
        """Puts the parts of an array: one of jaxlib's arrays for each, joined when it is needed.

        jaxlib 0.10 can put all of them as one array, which takes a fifth of the time for small
        ones. But to read or to launch on one device after the other that array has to be split,
        which takes the time again, and imports JAX where it is installed (see `adapter.split`).
        """
        check_parts(arrays, devices)
        targets = tuple([require_device(self, device) for device in devices])
        memories = [
            d.default_memory() if memory_kind is None else d.memory(memory_kind) for d in targets
        ]
        how = _SEMANTICS[HostBufferSemantics(semantics)]
        whole = self.place(targets, memories[0].kind)
        made = [
            self._put(array, memory.place, memory.device.raw, how)
            for array, memory in zip(arrays, memories)  # noqa: B905  # hot
        ]
        parts, types = zip(*made, strict=True)
        if types.count(types[0]) != len(types):
            raise InvalidArgument(f"the parts of an array have types {[*map(str, types)]}")
        return CpuShards.from_parts(parts, types[0], whole)

    def _put(
        self, array: npt.NDArray[Any], place: Place, raw_device: Any, semantics: Any
    ) -> tuple[Any, TensorType]:
        """Returns jaxlib's array of a host array on one device, and its type.

        What is large is copied by NumPy, which is faster (see `LARGE_BYTES`), and jaxlib borrows
        the copy. jaxlib never writes to what it borrows: a launch that takes it as a donation
        copies it, and leaves it to whoever still looks at it.
        """
        if type(array) is not np.ndarray or array.dtype not in DTYPES:
            array = to_plain_array(array)
        if self._raw is None:
            self.require_open()
        tensor_type, aval = array_type(array.shape, array.dtype)
        if (
            array.nbytes >= LARGE_BYTES
            and semantics is adapter.ONLY_DURING_CALL
            and array.dtype not in SUB_BYTE_DTYPES  # these jaxlib packs
        ):
            adapter.collect_garbage()  # the memory of arrays that have ended, before more is taken
            array, semantics = copy_aligned(array), adapter.ZERO_COPY
        try:
            raw = adapter.put(array, aval, place.sharding, raw_device, semantics)
        except JAXLIB_ERRORS as error:
            raise translate(error) from error
        return raw, tensor_type

    @with_argument_errors
    def buffer_from_dlpack(self, capsule: Any, device: Device) -> CpuBuffer:
        """Takes a capsule of CPU memory over; memory not at a multiple of 64 bytes is copied."""
        target = require_device(self, device)
        self.require_open()
        shape, dtype = dlpack.describe(capsule)
        if dtype in BUFFER_PROTOCOL_DTYPES:
            array = np.from_dlpack(dlpack.CapsuleHolder(capsule))
            return self.buffer_from_host(
                array, target, None, HostBufferSemantics.IMMUTABLE_ZERO_COPY
            )
        try:
            raw = adapter.from_dlpack(capsule, target.raw)
        except JAXLIB_ERRORS as error:
            raise translate(error) from error
        return CpuBuffer(raw, array_type(shape, dtype)[0], target.place)

    @with_argument_errors
    def shards(self, buffers: Sequence[Buffer]) -> CpuShards:
        """Returns the buffers of one array as launches take them fastest."""
        if len(buffers) == 1 and (
            type(only := buffers[0]) is CpuBuffer or type(only) is BorrowingBuffer
        ):
            return CpuShards(only.raw, only.type, only.place)
        # jaxlib 0.10.2 ends the process on a GSPMDSharding over no device, with "Check failed:
        # devices_->Len()" on stderr; no public report of it was found.
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
        """Copies by jaxlib's transfer server, which listens where the setting says."""
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

    def opener(self, type: TensorType, memory: Memory) -> Callable[[Any], CpuShards]:
        if not isinstance(type, TensorType) or not isinstance(memory, CpuMemory):
            raise ArgumentTypeError(
                f"opener takes a TensorType and a memory of this client; got {type!r:.60} and "
                f"{memory!r:.60}"
            )
        tensor_type, place = type_in_layout(type.shape, type.dtype, type.layout), memory.place

        def open_raw(raw: Any) -> CpuShards:
            shards = _new(CpuShards)  # as calling the class, without the call of its __init__
            shards.raw = raw
            shards.type = tensor_type
            shards.place = place
            return shards

        return open_raw

    def read_steps(self, type: TensorType, memory: Memory) -> ReadSteps | None:
        """As `read` of `plugrt_cpu.buffer`, for what it reads through a memoryview."""
        tensor_type = type_in_layout(type.shape, type.dtype, type.layout)
        if not gives_views(tensor_type):
            return None
        return ReadSteps(
            held_class=adapter.RawArray,
            is_ready=adapter.is_ready,
            wait=adapter.wait,
            view=memoryview,
            lock=adapter.memory_lock,
            unless=(collecting, adapter.in_child),
        )

    def await_shards(self, shards: Sequence[Any]) -> bool:
        """Waits for several arrays, in one call; False where one has to be looked at by itself."""
        return await_all(shards)

    @with_argument_errors
    def default_layout(self, type: TensorType) -> Layout:
        """Returns row-major order, as all of XLA's CPU arrays have it."""
        return Layout.row_major(len(type.shape))

    def close(self) -> None:
        """Drops jaxlib's client, which is destroyed with its last buffer or executable."""
        self._raw = None

    def _assignment(self, options: CompileOptions) -> DeviceAssignment:
        replicas, partitions = options.num_replicas, options.num_partitions
        if options.device_assignment is not None:
            return options.device_assignment
        if options.encoded is not None:
            found = compile_options.read_assignment(options.encoded)
            if isinstance(found, DeviceAssignment):
                return found
            replicas, partitions = found
        return self.default_device_assignment(replicas, partitions)

    def _find_devices(self, assignment: DeviceAssignment) -> tuple[CpuDevice, ...]:
        try:
            return tuple(self._by_id[device_id] for device_id in assignment.flat)
        except KeyError:
            raise InvalidArgument(
                f"the program is for devices {assignment.flat}; this client has "
                f"{sorted(self._by_id)}"
            ) from None

    def _load(
        self,
        raw: Any,
        program: Program,
        assignment: DeviceAssignment,
        raw_options: Any,
        payload: bytes | None = None,
    ) -> CpuLoadedExecutable:
        encoded = raw_options.SerializeAsString()
        devices = self._find_devices(assignment)
        executable = CpuExecutable(
            raw,
            program.name,
            assignment,
            encoded,
            payload,
            memory_kind=devices[0].default_memory().kind,
            calls_python=bool(program.callbacks),
        )
        executable_class = CpuLoadedExecutable if len(devices) == 1 else ManyDeviceExecutable
        return executable_class(self, executable, devices)
