"""The abstract backend interface: PJRT's object model, all that plugrt uses of a backend.

The classes and their division are those of the PJRT C API (``xla/pjrt/c/pjrt_c_api.h``): `Client`,
`Device`, `Memory`, `Topology`, `Executable`, `LoadedExecutable`, `Buffer`, `Event`. No jaxlib
type, no C pointer and no MLIR object crosses this file.

Two rules hold for every class here:

* Every method not marked optional must be implemented. A backend that leaves an optional method out
  raises `Unimplemented` (PJRT code 12) with its own name in the message, never `AttributeError`.
* Ownership is explicit: ``delete()`` and ``close()`` may be called twice; a client may be closed
  while buffers live; nothing relies on the order of the interpreter's teardown.
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from plugrt.errors import ArgumentTypeError, InvalidArgument, PjrtError, Unimplemented
from plugrt.interface.checks import (
    INTEGER,
    check_assignable,
    check_auto_mesh,
    check_counts,
    check_execute_options,
    check_overrides,
    check_parts,
    device_id_rows,
    is_iterable,
    require_callback,
    require_number,
    require_types,
)
from plugrt.interface.memory_layout import Layout
from plugrt.interface.names import OF_CLIENTS, OF_DEVICES, find_attribute

__all__ = [
    "HOST_CALLBACK",
    "TOKEN_TYPE",
    "VERSION",
    "Buffer",
    "Capabilities",
    "Client",
    "CompileOptions",
    "Device",
    "DeviceAssignment",
    "DeviceDescription",
    "Event",
    "Executable",
    "ExecuteOptions",
    "Handler",
    "HandlerStages",
    "HostBufferSemantics",
    "HostCallback",
    "LaunchSteps",
    "Layout",
    "LoadedExecutable",
    "Memory",
    "MemoryAnalysis",
    "OptionValue",
    "Program",
    "ReadSteps",
    "ReadyEvent",
    "Shards",
    "TensorType",
    "Topology",
    "require_buffers",
]

VERSION = (1, 0)
"""The version, (major, minor), of what plugins implement: the classes of this module,
`plugrt.plugins.Plugin`, the hooks, and `plugrt_sdk.Backend`.

The minor version grows with what is added, which plugins may leave out; the major version with what
would break a plugin that was written before. A plugin states the one that it is written for:
`plugrt.plugins.Plugin.interface_version`.
"""

OptionValue = str | bool | int | float | list[int]
"""What a create option or an attribute may hold (``PJRT_NamedValue``)."""

HOST_CALLBACK = "plugrt_host_callback"
"""The target of the custom calls that call Python; see `Program.callbacks`."""

HostCallback: TypeAlias = Callable[[Sequence[npt.NDArray[Any]]], Sequence[npt.NDArray[Any]]]
"""Gets the arguments, views that are valid during the call, and returns the results, row-major
arrays of the custom call's types. What it raises is a `PjrtError`, the error of the launch."""

Handler: TypeAlias = Callable[
    [Sequence[npt.NDArray[Any]], Sequence[npt.NDArray[Any]], Mapping[str, Any]], None
]
"""Gets (arguments, results, attributes): read-only views of the arguments, views of the results
to be filled in, and the attributes of the program's ``backend_config``. Tokens are left out."""


@dataclass(frozen=True)
class HandlerStages:
    """A handler in C by stage of XLA's FFI: addresses of functions of type ``XLA_FFI_Handler``.

    ``instantiate`` is called once for each custom call of an executable, with its attributes alone,
    and may make a state that the later stages find; ``prepare``, ``initialize`` and ``execute`` are
    called in this order at each launch. XLA's CPU backends call neither of the two in between.
    """

    execute: int
    instantiate: int | None = None
    prepare: int | None = None
    initialize: int | None = None


# --- value types -----------------------------------------------------------------------------


class HostBufferSemantics(enum.IntEnum):
    """What the caller promises about host memory that it hands to `Client.buffer_from_host`.

    The values are those of ``PJRT_HostBufferSemantics``.
    """

    IMMUTABLE_ONLY_DURING_CALL = 0
    """The source may change as soon as the call returns: the backend copies at once."""
    IMMUTABLE_UNTIL_TRANSFER_COMPLETES = 1
    """The source stays as it is until the buffer's transfer is done."""
    IMMUTABLE_ZERO_COPY = 2
    """The source never changes while the buffer lives, and the backend may alias it."""
    MUTABLE_ZERO_COPY = 3
    """As above, and the backend may write to it (a donated computation may reuse it)."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """The shape and dtype of one array on one device, and how it lies in the device's memory.

    ``layout`` None is the device's default for that shape and dtype (`Client.default_layout`); the
    types of a backend name a layout only where it is another one.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: Layout | None = None

    @property
    def nbytes(self) -> int:
        """Bytes on the host; sub-byte types take one byte an element, as ml_dtypes stores them."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def is_token(self) -> bool:
        """Whether it is the type of a token (`TOKEN_TYPE`)."""
        return self.dtype.kind == "V" and not self.dtype.itemsize

    def __str__(self) -> str:
        if self.is_token:
            return "token"
        order = self.layout.text if self.layout else ""
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]{order}"


TOKEN_TYPE = TensorType((), np.dtype("V"))
"""The type of a token: a parameter or result that orders a program's effects and holds nothing.

A buffer of it cannot be read. The first token of a chain is a buffer of the type ``bool[0]``, which
hosts can put on a device: backends that take tokens take it for one, as XLA's do.
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A program as a backend takes it.

    ``format`` is PJRT's: ``"mlir"`` (StableHLO as text, MLIR bytecode or portable artifact),
    ``"hlo"`` or ``"hlo_with_config"`` (serialised XLA protos).

    ``callbacks`` are the Python functions that the program calls, by number. The call of number n
    is a ``stablehlo.custom_call @plugrt_host_callback`` with ``api_version = 4`` and
    ``backend_config = {index = n : ui64}``; one that is ordered has a token as its first operand
    and its first result, which the function neither gets nor returns. The numbers are unique in
    the process. Whoever compiles the program keeps it for as long as launches may run.
    """

    code: bytes = field(repr=False)
    format: str = "mlir"
    name: str = "main"
    callbacks: Mapping[int, HostCallback] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        require_types(self, {"code": bytes, "format": str, "name": str, "callbacks": Mapping})

    @property
    def may_name_layouts(self) -> bool:
        """Whether arguments or results may lie otherwise than by default.

        StableHLO says so in a word, which stands in each of its forms; HLO always states layouts.
        """
        return self.format != "mlir" or b"layout_mode" in self.code


@dataclass(frozen=True, slots=True)
class DeviceAssignment:
    """Which device runs which replica and partition: ``device_ids[replica][partition]``."""

    device_ids: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "device_ids", device_id_rows(self.device_ids))

    @property
    def num_replicas(self) -> int:
        """The number of replicas (rows)."""
        return len(self.device_ids)

    @property
    def num_partitions(self) -> int:
        """The number of partitions of each replica (columns)."""
        return len(self.device_ids[0])

    @property
    def flat(self) -> tuple[int, ...]:
        """All device ids, replica-major: the order of `LoadedExecutable.addressable_devices`."""
        return tuple(i for row in self.device_ids for i in row)


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How to compile a `Program` (the parts of XLA's ``CompileOptionsProto`` that hosts use).

    ``device_assignment`` None means the client's default for the replica and partition counts.
    The two ``allow_spmd_sharding_propagation`` fields say of each parameter and each result whether
    the partitioner may choose how it is divided, where the program says nothing; one value counts
    for all, and none is as the partitioner likes. With ``use_auto_spmd_partitioning`` the compiler
    chooses freely over a mesh of that shape, whose devices are named by their partition numbers.
    ``env_overrides`` are XLA debug options by name. ``encoded`` is a whole serialised
    ``CompileOptionsProto`` for callers that need more; the other fields are then ignored.
    """

    num_replicas: int = 1
    num_partitions: int = 1
    device_assignment: DeviceAssignment | None = None
    use_spmd_partitioning: bool = False
    use_shardy_partitioner: bool = False
    allow_spmd_sharding_propagation_to_parameters: tuple[bool, ...] = ()
    allow_spmd_sharding_propagation_to_output: tuple[bool, ...] = ()
    use_auto_spmd_partitioning: bool = False
    auto_spmd_partitioning_mesh_shape: tuple[int, ...] = ()
    auto_spmd_partitioning_mesh_ids: tuple[int, ...] = ()
    parameter_is_tupled: bool = False
    env_overrides: Mapping[str, str | bool | int | float] = field(default_factory=dict)
    encoded: bytes | None = None

    def __post_init__(self) -> None:
        require_types(self, _OPTION_TYPES)
        check_overrides(self.env_overrides)
        a = self.device_assignment
        assigned = (a.num_replicas, a.num_partitions) if a else None
        check_counts(self.num_replicas, self.num_partitions, assigned)
        if self.use_auto_spmd_partitioning:
            check_auto_mesh(
                self.num_partitions,
                self.auto_spmd_partitioning_mesh_shape,
                self.auto_spmd_partitioning_mesh_ids,
            )


_OPTION_TYPES: Mapping[str, Any] = {
    "num_replicas": int | np.integer,
    "num_partitions": int | np.integer,
    "device_assignment": DeviceAssignment | None,
    "allow_spmd_sharding_propagation_to_parameters": tuple,
    "allow_spmd_sharding_propagation_to_output": tuple,
    "auto_spmd_partitioning_mesh_shape": tuple,
    "auto_spmd_partitioning_mesh_ids": tuple,
    "env_overrides": Mapping,
    "encoded": bytes | None,
}


@dataclass(frozen=True, slots=True)
class ExecuteOptions:
    """How to launch a `LoadedExecutable`.

    ``launch_id`` ties together the launches of one multi-process step.
    ``non_donatable_input_indices`` are arguments that must survive although the program donates
    them.
    """

    launch_id: int = 0
    non_donatable_input_indices: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require_types(self, {"launch_id": INTEGER, "non_donatable_input_indices": tuple | list})
        check_execute_options(self.launch_id, self.non_donatable_input_indices)


Lender = Callable[[], tuple[Any, Any] | None]
"""Returns an argument of launches, and its memory: see `LaunchSteps.lend`."""


@dataclass(frozen=True, slots=True)
class LaunchSteps:
    """`LoadedExecutable.launcher` as functions for the compiled core: no Python code runs between.

    ``take(launch(arguments), *take_arguments)``, of which there are at most two, is what the
    launcher returns for a list of arguments, which must all be of exactly ``argument_class``.
    While an object in ``unless`` is not empty, as after the executable was deleted, the launcher is
    called instead. ``explain(error, arguments)`` returns the exception to raise for one that
    ``launch`` or ``take`` raised.

    A launch takes the arguments numbered in ``donated``: of these, ``delete(argument)`` is called
    after it where ``is_deleted(argument)`` is not true. ``tidy()`` is called after each thousand
    launches, and gives back what the runtime keeps of them. With ``waits_for_uses``, a launch waits
    until others have begun that use what it takes, and they may wait for it: so a copy is taken of
    what anything else refers to.

    ``lend(numbers)`` returns, for each of these arguments, a function that returns a new argument
    and its memory, an object with a writable buffer of Python's protocol, or None; itself it is
    None where nothing is lent to them, as to those in ``donated``. A host value is written there,
    in row-major order, for one launch after the other, each time after ``is_ready(result)`` was
    true of all results of the last one.
    """

    launch: Callable[[list[Any]], Any]
    take: Callable[..., Sequence[Any]]
    take_arguments: tuple[Any, ...]
    argument_class: type
    unless: tuple[Sized, ...]
    explain: Callable[[Exception, list[Any]], Exception]
    donated: tuple[int, ...] = ()
    is_deleted: Callable[[Any], bool] | None = None
    delete: Callable[[Any], object] | None = None
    tidy: Callable[[], object] | None = None
    waits_for_uses: bool = False
    lend: Callable[[Sequence[int]], Sequence[Lender] | None] | None = None
    is_ready: Callable[[Any], bool] | None = None


@dataclass(frozen=True, slots=True)
class ReadSteps:
    """`Shards.to_host` as functions for the compiled core: no Python code runs between.

    For what arrays on one device hold, of exactly ``held_class``: where ``is_ready(held)`` is not
    true, ``wait(held)`` returns once it is; ``view(held)``, called under the `threading.Lock` or
    ``RLock`` that is ``lock``, is an object that has the contents as a buffer of Python's protocol,
    in row-major order; with `memoryview` for ``view`` the buffer is that of ``held``, and no
    memoryview is made. Whatever raises, or has another size, and while an object in ``unless`` is
    not empty, `to_host` is called instead, which explains errors.
    """

    held_class: type
    is_ready: Callable[[Any], bool]
    wait: Callable[[Any], object]
    view: Callable[[Any], Any]
    lock: Any
    unless: tuple[Sized, ...]


@dataclass(frozen=True, slots=True)
class MemoryAnalysis:
    """An executable's memory in bytes (``PJRT_Executable_GetCompiledMemoryStats``)."""

    generated_code_size_in_bytes: int = 0
    argument_size_in_bytes: int = 0
    output_size_in_bytes: int = 0
    alias_size_in_bytes: int = 0
    temp_size_in_bytes: int = 0
    host_generated_code_size_in_bytes: int = 0
    host_argument_size_in_bytes: int = 0
    host_output_size_in_bytes: int = 0
    host_alias_size_in_bytes: int = 0
    host_temp_size_in_bytes: int = 0
    peak_memory_in_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DeviceDescription:
    """A device as a topology knows it: there may be no such device on this machine."""

    id: int
    process_index: int
    kind: str
    debug_string: str = ""
    attributes: Mapping[str, OptionValue] = field(default_factory=dict)


def _capability(sentence: str, default: bool | None = False) -> Any:
    return field(default=default, metadata={"says": sentence})


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend declares that it can do; what is not declared must be refused cleanly.

    Each boolean carries in its metadata (key ``says``) the sentence that reports print for it, and
    so do two numbers. ``max_blocking_launches``: how many launches may be under way at once whose
    devices exchange data, or that call Python functions, and those after one of them; None for no
    bound. At the bound, plugrt waits for the oldest before it launches one more, unless such a
    function makes the launch. ``tuple_arguments_above``: programs of more parameters are compiled
    with ``CompileOptions.parameter_is_tupled``, None for no program; launches take them one by one
    all the same.
    """

    asynchronous_dispatch: bool = _capability("execute returns before the computation has finished")
    donation: bool = _capability("a donated argument's memory is reused for results")
    zero_copy_put: bool = _capability("aligned host memory can become a buffer without a copy")
    zero_copy_get: bool = _capability("a buffer can be read on the host without a copy")
    executable_serialization: bool = _capability("an executable can be saved and loaded again")
    cost_analysis: bool = _capability("an executable states its flops and bytes accessed")
    memory_analysis: bool = _capability("an executable states the memory that it needs")
    optimized_program: bool = _capability("the optimised program can be read back")
    fingerprint: bool = _capability("equal programs have equal fingerprints")
    multiple_devices: bool = _capability("one launch can run on several devices")
    partitions: bool = _capability("one program can be partitioned over devices (SPMD)")
    auto_partitioning: bool = _capability(
        "the compiler can choose how arguments are divided (AUTO)"
    )
    collectives: bool = _capability("devices of one launch can exchange data")
    memory_kinds: bool = _capability("a device has memories besides its default one")
    layouts: bool = _capability("arrays can lie in memory in an order of dimensions that is named")
    layout_put: bool = _capability("a host array can be put in such an order at once")
    device_to_device_copy: bool = _capability("a buffer can be copied to another device directly")
    copies_between_processes: bool = _capability(
        "a buffer can be copied directly to another process's device (where that is set up)"
    )
    memory_stats: bool = _capability("a device states how much of its memory is in use")
    dlpack: bool = _capability("buffers can be exchanged through DLPack")
    unsafe_pointer: bool = _capability("the address of a buffer's memory can be read")
    strided_put: bool = _capability("strided host arrays can be put without a host-side copy")
    topology: bool = _capability("programs can be compiled for devices that are not there")
    custom_calls: bool = _capability("handlers for custom calls can be registered")
    host_callbacks: bool = _capability("a program can call Python functions while it runs")
    max_blocking_launches: int | None = _capability(
        "launches at once that exchange data or call Python (plugrt waits for the oldest)", None
    )
    tuple_arguments_above: int | None = _capability(
        "parameters above which a program takes them as one tuple", None
    )
    program_formats: tuple[str, ...] = ("mlir",)
    stablehlo_current_version: tuple[int, int, int] | None = None
    stablehlo_minimum_version: tuple[int, int, int] | None = None
    dtypes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name, least in (("max_blocking_launches", 1), ("tuple_arguments_above", 0)):
            require_number(name, getattr(self, name), least)

    def sentences(self) -> dict[str, tuple[bool | int | None, str]]:
        """Returns field name to (what is declared, sentence), for the fields that have one."""
        return {
            f.name: (getattr(self, f.name), f.metadata["says"])
            for f in fields(self)
            if "says" in f.metadata
        }


# --- the abstract classes --------------------------------------------------------------------


class _BackendObject:
    """Mixin of the classes below, whose optional methods raise `Unimplemented`."""

    __slots__ = ()

    @property
    def backend_name(self) -> str:
        """The name of the backend for error messages: platform and class."""
        return f"{type(self).__module__.split('.')[0]}.{type(self).__name__}"

    def _unimplemented(self, what: str) -> NoReturn:
        raise Unimplemented(f"{what} is not implemented by the backend {self.backend_name}")


class Event(ABC):
    """The completion of asynchronous work; its error, if any, is raised here."""

    __slots__ = ()

    @abstractmethod
    def is_ready(self) -> bool:
        """Returns whether the work has ended, successfully or not. Never blocks."""

    @abstractmethod
    def wait(self) -> None:
        """Blocks until the work has ended; raises its `PjrtError` if it failed."""

    @abstractmethod
    def on_ready(self, callback: Callable[[PjrtError | None], None]) -> None:
        """Calls ``callback(error or None)`` exactly once, now or later, on any thread."""


class ReadyEvent(Event):
    """An event that is already complete, for synchronous backends."""

    __slots__ = ("_error",)

    def __init__(self, error: PjrtError | None = None) -> None:
        self._error = error

    def is_ready(self) -> bool:
        return True

    def wait(self) -> None:
        if self._error is not None:
            raise self._error

    def on_ready(self, callback: Callable[[PjrtError | None], None]) -> None:
        require_callback(callback)
        callback(self._error)


class Memory(_BackendObject, ABC):
    """A memory space, such as a device's own (kind ``device``) or pinned host memory."""

    __slots__ = ()

    @property
    @abstractmethod
    def id(self) -> int:
        """Unique among the memories of the client."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """``device``, ``pinned_host``, ``unpinned_host`` or a backend's own name."""

    @property
    @abstractmethod
    def client(self) -> Client:
        """The client that it belongs to."""

    @abstractmethod
    def addressable_by_devices(self) -> Sequence[Device]:
        """The devices that can read and write it."""

    def __repr__(self) -> str:
        return f"<{self.client.platform} memory {self.id} ({self.kind})>"


class Device(_BackendObject, ABC):
    """One device of a client, which has one object for each: devices compare by identity."""

    __slots__ = ()

    @property
    @abstractmethod
    def id(self) -> int:
        """Unique among all devices of the client, across processes."""

    @property
    @abstractmethod
    def client(self) -> Client:
        """The client that it belongs to."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """The vendor's name for this kind of device, such as ``NVIDIA H100``."""

    @property
    def platform(self) -> str:
        """The platform of the client, such as ``cpu``."""
        return self.client.platform

    @property
    def process_index(self) -> int:
        """The process that the device belongs to."""
        return 0

    @property
    def local_hardware_id(self) -> int:
        """The index of the device on its own machine."""
        return self.id

    @property
    def is_addressable(self) -> bool:
        """Whether this process can put, get and execute there."""
        return self.process_index == self.client.process_index

    @property
    def attributes(self) -> Mapping[str, OptionValue]:
        """Facts that the backend states of the device, such as ``coords``."""
        return {}

    @abstractmethod
    def memories(self) -> Sequence[Memory]:
        """The memories that the device can address."""

    @abstractmethod
    def default_memory(self) -> Memory:
        """The memory that buffers live in unless another is named."""

    def memory(self, kind: str) -> Memory:
        """Returns the device's memory of that kind; `InvalidArgument` lists them."""
        for memory in self.memories() if isinstance(kind, str) else ():
            if memory.kind == kind:
                return memory
        raise InvalidArgument(
            f"device {self!r} has no memory of kind {kind!r}; it has "
            f"{sorted(m.kind for m in self.memories())}"
        )

    def memory_stats(self) -> Mapping[str, int]:
        """Bytes in use, peak, limit (keys of ``PJRT_Device_MemoryStats``). Optional."""
        self._unimplemented("memory_stats")

    def stream_for_external_ready_events(self) -> int:
        """Returns the handle of a stream that another library is to have wait for its work.

        `Client.buffer_from_dlpack` then takes it: what is done with that buffer comes after that
        work. Optional; for devices with streams.
        """
        self._unimplemented("stream_for_external_ready_events")

    # --- by JAX's names ---

    if TYPE_CHECKING:  # where the backend states them in `attributes`
        coords: list[int]
        core_on_chip: int
        num_cores: int
        slice_index: int
    else:

        def __getattr__(self, name: str) -> Any:
            return find_attribute(self, name, OF_DEVICES)

    @property
    def device_kind(self) -> str:
        """The `kind`."""
        return self.kind

    @property
    def host_id(self) -> int:
        """The `process_index`."""
        return self.process_index

    @property
    def task_id(self) -> int:
        """The `process_index`."""
        return self.process_index

    def addressable_memories(self) -> Sequence[Memory]:
        """Returns the `memories`."""
        return self.memories()

    def get_stream_for_external_ready_events(self) -> int:
        """Returns `stream_for_external_ready_events`."""
        return self.stream_for_external_ready_events()

    def __repr__(self) -> str:
        return f"{self.platform}:{self.id}"


def _memory_of(device: Device, kind: str | None) -> Memory | None:
    if not isinstance(device, Device):
        raise ArgumentTypeError(f"{device!r:.60} is not a device")
    return None if kind is None else device.memory(kind)


class Buffer(_BackendObject, ABC):
    """An array on one device. Reading it waits for the computation that makes it."""

    __slots__ = ("__weakref__",)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The dimensions."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The NumPy (or ml_dtypes) dtype of an element."""

    @property
    @abstractmethod
    def device(self) -> Device:
        """The device that holds it."""

    @property
    def memory(self) -> Memory:
        """The memory that it lives in."""
        return self.device.default_memory()

    @property
    def layout(self) -> Layout:
        """How the elements lie in that memory. Optional (``layouts``)."""
        self._unimplemented("layout")

    @abstractmethod
    def to_host(self) -> npt.NDArray[Any]:
        """Waits, then returns the contents as a read-only, C-contiguous or strided NumPy array.

        Where the backend declares ``zero_copy_get`` the array aliases the buffer and keeps it
        alive. Raises the `PjrtError` of the computation that failed to make it, and
        `DeletedBuffer` after `delete` or donation.
        """

    @abstractmethod
    def delete(self) -> None:
        """Frees the memory; pending work is finished first. A second call does nothing."""

    @abstractmethod
    def is_deleted(self) -> bool:
        """Whether `delete` was called or the buffer was donated."""

    @abstractmethod
    def ready_event(self) -> Event:
        """An event that is ready when the contents are."""

    def block_until_ready(self) -> None:
        """Waits until the contents are ready; raises if computing them failed."""
        self.ready_event().wait()

    def copy_to_host_async(self) -> None:
        """Begins to copy to the host so that `to_host` need not wait. A hint; may do nothing."""

    def on_device_size_in_bytes(self) -> int:
        """The bytes that it takes on the device, padding included. Optional."""
        self._unimplemented("on_device_size_in_bytes")

    def copy_to_device(self, device: Device) -> Buffer:
        """Returns a copy on another device of the same client. Optional."""
        self._unimplemented("copy_to_device")

    def copy_to_memory(self, memory: Memory) -> Buffer:
        """Returns a copy in another memory of the same client. Optional."""
        self._unimplemented("copy_to_memory")

    def unsafe_pointer(self) -> int:
        """The address of the contents; valid until the buffer is deleted. Optional."""
        self._unimplemented("unsafe_pointer")

    def to_dlpack(self, stream: int | None = None) -> Any:
        """Returns a ``dltensor`` PyCapsule that shares the memory. Optional.

        The contents are there for what the consumer does on ``stream``, which is that of the array
        API's ``__dlpack__``: None, -1 (there is no waiting) or a number of the platform's.
        """
        self._unimplemented("to_dlpack")

    def dlpack_device(self) -> tuple[int, int]:
        """Returns DLPack's ``(device_type, device_id)``. Optional."""
        self._unimplemented("dlpack_device")


def require_buffers(buffers: Sequence[Buffer]) -> tuple[Buffer, ...]:
    """Returns the buffers as a tuple; raises `ArgumentTypeError` if they are something else."""
    if is_iterable(buffers):
        found = tuple(buffers)
        if all(isinstance(buffer, Buffer) for buffer in found):
            return found
    raise ArgumentTypeError(f"shards are made of buffers; got {buffers!r:.60}")


Shards = Sequence[Buffer]
"""The buffers of one array, one for each addressable device, in device-assignment order.

An implementation may return a sequence class of its own from `LoadedExecutable.execute` and
recognise it when it is passed as an argument (so that arrays are not split and joined between
launches), but it accepts any sequence of its own buffers. If that class has a method
``block_until_ready()``, it waits for all of them at once.
"""


class Executable(_BackendObject, ABC):
    """A compiled program that is not tied to devices in use."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the program, for display."""

    @property
    @abstractmethod
    def num_replicas(self) -> int:
        """The number of replicas that it was compiled for."""

    @property
    @abstractmethod
    def num_partitions(self) -> int:
        """The number of partitions that it was compiled for."""

    @property
    @abstractmethod
    def output_types(self) -> Sequence[TensorType]:
        """The types of the results on one device. Known when the executable is made."""

    @property
    def input_types(self) -> Sequence[TensorType]:
        """The types of the arguments on one device. Optional."""
        self._unimplemented("input_types")

    @property
    def output_memory_kinds(self) -> Sequence[str]:
        """The memory kind of each result. Optional."""
        self._unimplemented("output_memory_kinds")

    @property
    def parameter_memory_kinds(self) -> Sequence[str]:
        """The memory kind of each argument. Optional."""
        self._unimplemented("parameter_memory_kinds")

    def output_layouts(self) -> Sequence[Layout]:
        """How each result lies in its device's memory. Optional (``layouts``).

        Where the program leaves one to the compiler (``mhlo.layout_mode = "auto"``) this is what it
        chose.
        """
        self._unimplemented("output_layouts")

    def parameter_layouts(self) -> Sequence[Layout]:
        """How each argument must lie in its device's memory. Optional (``layouts``)."""
        self._unimplemented("parameter_layouts")

    def output_shardings(self) -> Sequence[bytes]:
        """How each result lies on the devices, a serialised ``xla.OpSharding`` each. Optional."""
        self._unimplemented("output_shardings")

    def parameter_shardings(self) -> Sequence[bytes]:
        """How each argument must lie on them, a serialised ``xla.OpSharding`` each. Optional."""
        self._unimplemented("parameter_shardings")

    def cost_analysis(self) -> Mapping[str, OptionValue]:
        """``flops``, ``bytes accessed`` and the compiler's other figures. Optional."""
        self._unimplemented("cost_analysis")

    def memory_analysis(self) -> MemoryAnalysis:
        """The memory that a launch needs. Optional."""
        self._unimplemented("memory_analysis")

    def optimized_program(self) -> Program:
        """The program after optimisation, in a format of the backend's choice. Optional."""
        self._unimplemented("optimized_program")

    def as_text(self) -> str:
        """The optimised program as readable text. Optional."""
        self._unimplemented("as_text")

    def fingerprint(self) -> bytes:
        """Equal for equal programs and options on equal versions. Optional."""
        self._unimplemented("fingerprint")

    def generated_code_size_in_bytes(self) -> int:
        """The size of the machine code. Optional."""
        self._unimplemented("generated_code_size_in_bytes")

    def serialize(self) -> bytes:
        """Returns bytes for `Client.deserialize_executable` on an equal backend. Optional."""
        self._unimplemented("serialize")


class LoadedExecutable(_BackendObject, ABC):
    """An executable that is loaded on devices and can be launched."""

    __slots__ = ()

    @property
    @abstractmethod
    def client(self) -> Client:
        """The client that it is loaded on."""

    @property
    @abstractmethod
    def executable(self) -> Executable:
        """What was compiled: types, analyses, serialisation."""

    @property
    @abstractmethod
    def addressable_devices(self) -> Sequence[Device]:
        """The devices of this process that it runs on, in device-assignment order."""

    @abstractmethod
    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        """Launches the program and returns its results at once, argument- and result-major.

        ``arguments[i]`` holds parameter i: one buffer for each of `addressable_devices`. The
        result has the same form. Donated arguments are deleted when the call returns. Errors in
        the arguments raise here; errors of the computation surface when a result is read.

        This method is on the hot path: it parses no keywords, makes no backend call for each
        result, and creates no event that is not asked for.
        """

    def execute_with_wait(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> tuple[Sequence[Shards], Callable[[], None]]:
        """As `execute`, and a function that waits until the launch has ended on every device.

        The function keeps neither arguments nor results alive, works also if they were deleted or
        donated meanwhile, and raises nothing: errors are raised when a result is read. Required of
        a backend that states ``max_blocking_launches`` or ``host_callbacks``, optional
        otherwise.
        """
        self._unimplemented("execute_with_wait")

    @property
    def launcher(self) -> Callable[[Sequence[Shards]], Sequence[Shards]]:
        """`execute` without options and argument checks: the caller guarantees valid arguments.

        Their number and types are the program's, their form is that of `Client.shards` and of
        launches, and they are on the devices that the program runs on. The backend checks only
        whether they were deleted.

        Instead of `Shards` in one memory a backend may return an object of its own that is no
        sequence. Arrays hold that object, launchers take it as they take `Shards`, and
        `Client.opener` makes `Shards` of it on demand. `Shards` that have such an object give it as
        their attribute ``held``.
        """
        return self.execute

    @property
    def launch_steps(self) -> LaunchSteps | None:
        """What the compiled core calls in place of `launcher`; None: it calls that. Optional.

        For backends whose ``launcher`` is a short function in Python around others in C.
        """
        return None

    def lending_launcher(
        self, lent: Sequence[int]
    ) -> Callable[[list[Any]], Sequence[Shards]] | None:
        """`launcher` that takes the arguments numbered in ``lent`` from other places, or None.

        They are NumPy arrays, or shards on another device of the client, of the parameters' types.
        For backends that can pass such memory to a launch more cheaply than by a put or a copy.
        NumPy arrays are copied before it returns; the list of arguments may be overwritten.
        Where it is None, `Client.shards_from_host` and `Buffer.copy_to_device` are used. Optional.
        """
        return None

    def part_lending_launcher(
        self, lent: Mapping[int, Sequence[tuple[slice | int, ...]]]
    ) -> Callable[[list[Any]], tuple[Sequence[Shards], Callable[[], None]]] | None:
        """`execute_with_wait` that takes the arguments in ``lent`` as whole NumPy arrays, or None.

        They have the parameters' dtypes; ``lent[i]`` is, for each of `addressable_devices`, the
        index of its part in argument i, and such a part has the parameter's shape. The caller
        guarantees valid arguments, as of `launcher`. For backends that can pass such memory to
        launches on several devices more cheaply than by puts. The arrays are copied before it
        returns, whatever launches are under way and in whichever threads; the list of arguments may
        be overwritten. Where it is None, `Client.buffers_from_host` is used. Optional.
        """
        return None

    @abstractmethod
    def delete(self) -> None:
        """Unloads it; running launches finish. A second call does nothing."""

    @abstractmethod
    def is_deleted(self) -> bool:
        """Whether `delete` was called."""


class Topology(_BackendObject, ABC):
    """Devices that programs can be compiled for, present on this machine or not."""

    __slots__ = ()

    @property
    @abstractmethod
    def platform(self) -> str:
        """The platform that it describes, such as ``tpu``."""

    @property
    @abstractmethod
    def platform_version(self) -> str:
        """The version of the platform's runtime."""

    @property
    @abstractmethod
    def devices(self) -> Sequence[DeviceDescription]:
        """The devices, in id order."""

    @property
    def attributes(self) -> Mapping[str, OptionValue]:
        """Facts that the backend states of the topology."""
        return {}

    @property
    def stablehlo_current_version(self) -> tuple[int, int, int] | None:
        """The newest StableHLO version that the compiler reads; None if unknown."""
        return None

    @abstractmethod
    def compile(self, program: Program, options: CompileOptions) -> Executable:
        """Compiles for these devices; `InvalidArgument` for a launch on more than there are."""

    def serialize(self) -> bytes:
        """Returns a description that the same backend reads back. Optional."""
        self._unimplemented("serialize")

    def fingerprint(self) -> int:
        """Equal for equal topologies. Optional."""
        self._unimplemented("fingerprint")


class Client(_BackendObject, ABC):
    """A started backend: its devices; compiles programs for them and moves data."""

    @property
    @abstractmethod
    def platform(self) -> str:
        """The platform name, such as ``cpu``, ``cuda``, ``tpu``."""

    @property
    @abstractmethod
    def platform_version(self) -> str:
        """The version of the platform's runtime, for display."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What the backend declares that it can do."""

    @property
    def backend_name(self) -> str:
        return f"{self.platform!r} ({type(self).__module__.split('.')[0]})"

    @property
    def compiler_identity(self) -> str | None:
        """Equal for clients that can load each other's executables, given equal versions.

        A backend that is a library returns a value unique to its build. None if that is unknown:
        then no executable is kept between runs.
        """
        return f"{type(self).__module__}.{type(self).__qualname__}"

    @property
    def process_index(self) -> int:
        """The index of this process among those that share the client's devices."""
        return 0

    @property
    def process_count(self) -> int:
        """The number of processes that share the client's devices."""
        return len({d.process_index for d in self.devices()}) or 1

    @property
    def attributes(self) -> Mapping[str, OptionValue]:
        """Facts that the backend states of itself (``PJRT_Plugin_Attributes``)."""
        return {}

    @abstractmethod
    def devices(self) -> Sequence[Device]:
        """All devices, also those of other processes, in id order. The same objects each time."""

    def addressable_devices(self) -> Sequence[Device]:
        """The devices of this process."""
        return [d for d in self.devices() if d.is_addressable]

    def lookup_device(self, device_id: int) -> Device:
        """Returns the device with that id; `InvalidArgument` lists the ids there are."""
        for device in self.devices() if isinstance(device_id, int | np.integer) else ():
            if device.id == device_id:
                return device
        raise InvalidArgument(
            f"{self.backend_name} has no device {device_id}; it has "
            f"{[d.id for d in self.devices()]}"
        )

    def default_device_assignment(self, num_replicas: int, num_partitions: int) -> DeviceAssignment:
        """Returns the backend's choice of devices; replica-major in id order by default."""
        ids = [d.id for d in self.devices()]
        check_assignable(num_replicas, num_partitions, len(ids), self.backend_name)
        rows = (ids[r * num_partitions : (r + 1) * num_partitions] for r in range(num_replicas))
        return DeviceAssignment(tuple(map(tuple, rows)))

    @abstractmethod
    def compile(self, program: Program, options: CompileOptions) -> LoadedExecutable:
        """Compiles and loads a program."""

    def deserialize_executable(
        self, serialized: bytes, options: CompileOptions | None = None
    ) -> LoadedExecutable:
        """Loads what `Executable.serialize` gave, on a backend of the same version. Optional."""
        self._unimplemented("deserialize_executable")

    @abstractmethod
    def buffer_from_host(
        self,
        array: npt.NDArray[Any],
        device: Device,
        memory: Memory | None = None,
        semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
        layout: Layout | None = None,
    ) -> Buffer:
        """Puts a host array (any strides, any alignment, also 0-d and empty) on a device.

        ``memory`` None is the device's default memory, ``layout`` None its default layout; others
        are for backends that declare ``memory_kinds`` and ``layout_put``. The backend keeps
        ``array`` alive for as long as ``semantics`` lets it use the memory. Raises
        `ResourceExhausted` when the device is out of memory and `UnsupportedDtype` for a dtype that
        it lacks.
        """

    def shards_from_host(
        self, arrays: Sequence[npt.NDArray[Any]], device: Device
    ) -> Sequence[Shards]:
        """Puts several host arrays on one device, as `buffer_from_host` puts one, in one call.

        Returns the `shards` of each, or what its launchers return instead. A backend overrides this
        where one call is cheaper than the loop.
        """
        if not is_iterable(arrays):
            raise ArgumentTypeError(f"shards_from_host takes several arrays; got {arrays!r:.60}")
        return [self.shards((self.buffer_from_host(array, device),)) for array in arrays]

    def buffers_from_host(
        self,
        arrays: Sequence[npt.NDArray[Any]],
        devices: Sequence[Device],
        memory_kind: str | None = None,
        semantics: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
    ) -> Shards:
        """Puts the parts of one array on several devices in one call, the i-th on ``devices[i]``.

        The parts have one shape and one dtype; `buffer_from_host` says what else holds of each.
        ``memory_kind`` None is the default memory of each device. Returns their `shards`. A backend
        overrides this where one call is cheaper than the loop.
        """
        check_parts(arrays, devices)
        return self.shards(
            [
                self.buffer_from_host(array, device, _memory_of(device, memory_kind), semantics)
                for array, device in zip(arrays, devices, strict=True)
            ]
        )

    def buffer_from_dlpack(self, capsule: Any, device: Device, stream: int | None = None) -> Buffer:
        """Takes a ``dltensor`` PyCapsule over as a buffer, without a copy. Optional.

        With ``stream``, from the device's `Device.stream_for_external_ready_events`, the contents
        are there when that stream's work is done; without it they are there already. A client
        whose devices have no such stream is never passed one.
        """
        self._unimplemented("buffer_from_dlpack")

    def shards(self, buffers: Sequence[Buffer]) -> Shards:
        """Returns the buffers of one array in the form that launches take fastest.

        ``execute`` takes any sequence of buffers; a backend that would have to join them at each
        launch does it here, once.
        """
        return require_buffers(buffers)

    def copy_between_processes(
        self,
        type: TensorType,
        copies: Sequence[tuple[Device, Device]],
        buffers: Sequence[Buffer],
        memory_kind: str | None = None,
    ) -> Sequence[Buffer]:
        """Copies buffers of one type to devices of other processes, without waiting. Optional.

        ``copies`` has the device of each buffer, and the one that it goes to. All processes of the
        run make the same calls, in the same order, also those that have none of the devices.
        ``buffers`` are those of the copies that begin in this process; it returns the buffers of
        those that end in it, in memories of ``memory_kind`` (default: the devices' own). A copy may
        begin and end in one process. Raises `FailedPrecondition`, which names the setting, where
        processes are not set up for it; `Capabilities.copies_between_processes` is then False.
        """
        self._unimplemented("copying arrays to devices of other processes")

    def opener(self, type: TensorType, memory: Memory) -> Callable[[Any], Shards]:
        """Returns a function that makes `Shards` of this type and memory from a launch's result.

        For backends whose `LoadedExecutable.launcher` returns other objects than `Shards`.
        """
        self._unimplemented("opener")

    def read_steps(self, type: TensorType, memory: Memory) -> ReadSteps | None:
        """What the compiled core reads arrays by, of which `opener` makes `Shards`. Optional.

        None: it calls their ``to_host``. For backends that read by a view of the memory
        (``zero_copy_get``): no transfer guard looks at these reads.
        """
        return None

    def register_handler(self, target: str, handler: Handler | int | HandlerStages) -> None:
        """Makes programs that are compiled from now on call a function. Optional.

        For custom calls of ``target`` with ``api_version = 4``, XLA's typed FFI. An integer is the
        address of a C function of type ``XLA_FFI_Handler``, which gets addresses of the device's
        memory; a Python function gets arrays of the host's, and is `Unimplemented` where neither
        views nor copies of them can be had. The handler stays for the life of the process. Raises
        `AlreadyExists` or `InvalidArgument` where another has that target.
        """
        self._unimplemented("register_handler")

    def register_handler_type(self, name: str, type_id: int, type_info: int | None = None) -> None:
        """Makes a type of the states of handlers in C known. Optional, with ``custom_calls``.

        ``type_id`` is the address of an ``XLA_FFI_TypeId``, which is written where it is 0, and
        ``type_info`` that of an ``XLA_FFI_TypeInfo``, which says how a state is deleted. Both stay
        for the life of the process. Raises `AlreadyExists` or `InvalidArgument` where the name has
        another id.
        """
        self._unimplemented("register_handler_type")

    def topology(self) -> Topology:
        """Returns the topology of the client's devices. Optional."""
        self._unimplemented("topology")

    def default_layout(self, type: TensorType) -> Layout:
        """Returns how arrays of that shape and dtype lie unless a layout is named. Optional.

        It belongs to ``layouts``.
        """
        self._unimplemented("default_layout")

    # --- by JAX's names ---

    if not TYPE_CHECKING:  # to a type checker, a name that is not there is an error

        def __getattr__(self, name: str) -> Any:
            return find_attribute(self, name, OF_CLIENTS)

    def device_count(self) -> int:
        """Returns the number of `devices`."""
        return len(self.devices())

    def local_device_count(self) -> int:
        """Returns the number of `addressable_devices`."""
        return len(self.addressable_devices())

    def local_devices(self) -> Sequence[Device]:
        """Returns the `addressable_devices`."""
        return self.addressable_devices()

    def host_id(self) -> int:
        """Returns the `process_index`."""
        return self.process_index

    def task_id(self) -> int:
        """Returns the `process_index`."""
        return self.process_index

    def device_from_local_hardware_id(self, local_hardware_id: int) -> Device:
        """Returns the device of this process with that id; `InvalidArgument` lists them."""
        devices = self.addressable_devices()
        if isinstance(local_hardware_id, int):
            for device in devices:
                if device.local_hardware_id == local_hardware_id:
                    return device
        raise InvalidArgument(
            f"{self.backend_name} has no device of the local hardware id {local_hardware_id!r:.40}"
            f"; it has {[d.local_hardware_id for d in devices]}"
        )

    @abstractmethod
    def close(self) -> None:
        """Frees the backend's resources once live buffers are gone. A second call does nothing."""
