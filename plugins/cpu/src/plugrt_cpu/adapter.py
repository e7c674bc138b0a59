"""The only module that uses jaxlib's private Python API, and handles differences between versions.

jaxlib does not guarantee the names used here. All of them are listed in
`plugrt_cpu.jaxlib_private_api`, and a test fails with the missing ones when a jaxlib drops any.

Two rules, because JAX may be in the same process: no function here sets a state that is global to
jaxlib (`plugrt_cpu.tracebacks` does, for finalisers, if JAX is not imported), and no function on
the path of an array makes jaxlib import JAX (it does so, if JAX is installed, to describe any
one-device array that it makes by itself). `split` and `from_dlpack` cannot avoid it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from itertools import cycle, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt import interface
from plugrt.errors import FailedPrecondition
from plugrt.lifetime.forks import FORKED, call_in_child
from plugrt.lifetime.uninterrupted_imports import import_native
from plugrt.native.native_core import new_lock
from plugrt_cpu.jaxlib_import import import_jaxlib, jaxlib_minor
from plugrt_cpu.tracebacks import AtEnd, collecting, stop_recording

if TYPE_CHECKING:
    import numpy.typing as npt

_jax, _hlo = import_jaxlib()
_SingleDeviceSharding: Any = _jax.SingleDeviceSharding
_GSPMDSharding: Any = _jax.GSPMDSharding
_REPLICATED = _hlo.HloSharding.replicate()
# jaxlib up to 0.11 reads attributes of JAX's avals and shardings in a result handler unless an
# argument disables that; later versions do not, and lack the argument.
_SKIP_CHECKS = (True,) if "_skip_checks" in (_jax.array_result_handler.__doc__ or "") else ()
# Since 0.10.2.
_HAS_LAUNCH_ID = "launch_id" in (_jax.LoadedExecutable.execute_sharded.__doc__ or "")
GIVES_MEMORYVIEWS = jaxlib_minor() >= (0, 10)
"""Whether Python's buffer protocol works with a sharding of another class than JAX's own."""


RawArray: Any = _jax.ArrayImpl
"""jaxlib's class of arrays."""


class Aval:
    """The part of an array's type that jaxlib reads: ``shape``, ``dtype`` and ``weak_type``."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape = shape
        self.dtype = dtype
        self.weak_type = False

    def str_short(self) -> str:
        """Returns the description of a deleted array in jaxlib's errors."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class OneDevice(_SingleDeviceSharding):  # type: ignore[misc]
    """A sharding for arrays on one device, with the Python attributes that jaxlib reads."""

    def __init__(self, device: Any, memory_kind: str) -> None:
        super().__init__(device, memory_kind)
        self._devices_in_order = (device,)
        self._kind = memory_kind

    # Properties, not attributes: JAX adds properties without a setter to the base class when it is
    # imported. Each put reads this one twice, and calls the next method once.
    @property
    def memory_kind(self) -> str:
        return self._kind

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        return self._devices_in_order

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return _REPLICATED

    # jaxlib 0.9 calls these two to compute the size of an array.
    def shard_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape

    @property
    def device_set(self) -> set[Any]:
        return set(self._devices_in_order)


class ManyDevices(_GSPMDSharding):  # type: ignore[misc]
    """A sharding that states the devices of an array's buffers, and no division.

    jaxlib's executables read only the devices of an argument's sharding, never its division. Two
    members repeat `OneDevice`'s: nanobind's classes have one base, which excludes a mixin.
    """

    def __init__(self, devices: Sequence[Any], memory_kind: str) -> None:
        super().__init__(
            _jax.DeviceList(tuple(devices)), _hlo.HloSharding.replicate(), memory_kind=memory_kind
        )
        self._devices_in_order = tuple(devices)

    @property
    def memory_kind(self) -> str:
        return str(self._memory_kind)

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        return self._devices_in_order

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return _hlo.HloSharding.replicate()


def sharding(devices: Sequence[Any], memory_kind: str) -> Any:
    """Returns a sharding over these jaxlib devices, in this order."""
    if len(devices) == 1:
        return OneDevice(devices[0], memory_kind)
    return ManyDevices(devices, memory_kind)


def result_handler(aval: Aval, sharding: Any) -> Any:
    """Returns a function that makes an array of one result of each launch of an executable."""
    return _jax.array_result_handler(aval, sharding, True, *_SKIP_CHECKS)


is_deleted: Callable[[Any], bool] = RawArray.is_deleted
is_ready: Callable[[Any], bool] = RawArray.is_ready
wait: Callable[[Any], object] = RawArray.block_until_ready


# Process-wide: a fork concerns every client of the process.
forked_clients: list[Any] = []
"""The clients that a parent process had started: this process has none of their threads."""


def wait_unless_forked(array: Any) -> None:
    """Waits for an array; raises `FailedPrecondition` if a forked child would wait for ever.

    Results that were ready at the fork can be read in the child: they are memory of the process.
    """
    if forked_clients and not array.is_ready() and _client_of(array) in forked_clients:
        raise FailedPrecondition(
            "an array was not ready when this process was forked: the cpu client that makes it "
            f"{FORKED}"
        )
    array.block_until_ready()


def _client_of(array: Any) -> Any:
    return array._sharding._internal_device_list[0].client


wait_for_all: Callable[[Sequence[Any]], object] = _jax.batched_block_until_ready
"""Waits for several arrays; raises the refusal or the failure of one of them."""
wait_for_end: Callable[[Any], object] = _jax.ShardedToken.block_until_ready
"""Waits until the launch of a token has ended; raises its failure."""
take_results: Callable[[Any, list[Any], bool], list[Any]] = (
    _jax.ExecuteResults.consume_with_handlers
)
"""Returns the arrays of a launch's results, made by a `result_handler` each."""
take_token: Callable[[Any], Any] = _jax.ExecuteResults.consume_token
"""Returns the token of a launch that was made with one."""


def with_launch_id(launch: Callable[..., Any], launch_id: int) -> Callable[..., Any]:
    """Returns ``execute_sharded`` with a launch id if jaxlib accepts one (since 0.10.2)."""
    return partial(launch, launch_id=launch_id) if launch_id and _HAS_LAUNCH_ID else launch


def put(array: npt.NDArray[Any], aval: Aval, sharding: Any, device: Any, semantics: Any) -> Any:
    """Returns an array on one device; only ``ZERO_COPY`` may alias the source."""
    if collecting:
        stop_recording()
    raw = _jax.batched_device_put(
        aval,
        sharding,
        [array],
        [device],
        True,
        semantics is not ZERO_COPY,
        semantics,
        # Without this argument jaxlib 0.10 reads a global state that only JAX sets.
        enable_x64=True,
    )
    # Workaround for jaxlib-host-memory: jaxlib 0.10 keeps its reference to a copied source until a
    # later call collects it, so that the source's memory would stay until then.
    collect_garbage()
    return raw


def assemble(aval: Aval, sharding: Any, arrays: list[Any]) -> Any:
    """Returns one array of several devices from one array on each of them."""
    if collecting:
        stop_recording()
    return RawArray(aval, sharding, arrays, True, True)


prepare_several_devices: Callable[[], object] = partial(_jax.set_tracebacks_enabled, True)
"""Turns jaxlib's tracebacks on; call it before compiling or launching for several devices.

To read an array on several devices, jaxlib 0.10 splits it. It cannot split an array that was made
without a recorded traceback: "Expecting an IFRT `Array` to have a user context".
"""


def split(array: Any) -> list[Any]:
    """Returns the one-device arrays of an array. jaxlib imports JAX here if it is installed."""
    if collecting:
        stop_recording()
    arrays: list[Any] = array._arrays
    return arrays


def copy(array: Any, devices: Any, sharding: Any) -> Any:
    """Returns a copy of a one-device array on a `device_list` of one, in the sharding's memory."""
    if collecting:
        stop_recording()
    return _jax.batched_copy_array_to_devices_with_sharding(
        [array], [devices], [sharding], _ALWAYS_COPY
    )[0]


_ALWAYS_COPY = [_jax.ArrayCopySemantics.ALWAYS_COPY]


collect_garbage: Callable[[], None] = _jax.collect_garbage
"""Frees memory that jaxlib retains of host arrays and of launches.

jaxlib 0.10 records in each launch, wait and `is_ready` which functions of Python run, and keeps
references to their code until this is called: 60 to 100 bytes a call. As in JAX, Python's garbage
collector calls it; that never runs in a loop of launches that deletes as many objects as it makes.
"""
_sweep = AtEnd()
_sweep.call = collect_garbage
# Before the callback that lets finalisers run again: during a collection any lock may be held.
gc.callbacks.insert(0, gc.callbacks.pop())
# Another thread of the parent may have held jaxlib's lock.
call_in_child(partial(setattr, _sweep, "call", int))
is_due: Callable[[], bool] = cycle((*repeat(False, 999), True)).__next__
"""Returns True at each thousandth launch in Python, when `collect_garbage` is due."""
ZERO_COPY = _jax.HostBufferSemantics.ZERO_COPY
ONLY_DURING_CALL = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
UNTIL_TRANSFER_COMPLETES = _jax.HostBufferSemantics.IMMUTABLE_UNTIL_TRANSFER_COMPLETES


def device_list(devices: Sequence[Any]) -> Any:
    """Returns jaxlib's list of devices to compile for."""
    return _jax.DeviceList(tuple(devices))


compile_options: Callable[[], Any] = _jax.CompileOptions
"""Returns jaxlib's default options."""


def parse_compile_options(encoded: bytes) -> Any:
    """Returns the options of a serialised ``CompileOptionsProto``."""
    return _jax.CompileOptions.ParseFromString(encoded)


device_assignment: Callable[[npt.NDArray[np.int32]], Any] = _jax.DeviceAssignment.create
"""Returns jaxlib's device assignment for ids of shape (replicas, partitions)."""


def begin_profile(options: Mapping[str, Any]) -> Callable[[], bytes] | None:
    """Begins to record jaxlib's clients; returns a function that ends it and returns the bytes.

    Returns None during another recording: jaxlib has one profiler per process, and a second
    recording fails only at its end.
    """
    profiler: Any = import_native("jaxlib._profiler")[0]
    if profiler.TraceMe.is_enabled():
        return None
    taken = profiler.ProfileOptions()
    for name, value in options.items():
        setattr(taken, name, value)
    stop: Callable[[], bytes] = profiler.ProfilerSession(taken).stop
    return stop


def make_client(**options: Any) -> Any:
    """Starts jaxlib's CPU client."""
    return _jax.get_tfrt_cpu_client(**options)


def make_gloo_collectives(distributed_client: Any, host: str | None) -> Any:
    """Returns jaxlib's collectives over Gloo, for CPU devices of several processes.

    Gloo listens at ``host``; with None jaxlib uses this machine's name.
    """
    return _jax.make_gloo_tcp_collectives(distributed_client=distributed_client, hostname=host)


def make_mpi_collectives() -> Any:
    """Returns jaxlib's collectives over MPI, with ``Init`` and ``Finalize``."""
    return _jax.make_mpi_collectives()


def make_transfer_factory(distributed_client: Any, **options: Any) -> Any:
    """Returns a factory that makes a client listen for other processes that copy its arrays.

    ``options``: ``socket_address``, ``transport_addresses``, ``transfer_size`` in bytes and
    ``cross_host_transfer_timeout_seconds``.
    """
    return _jax.make_transfer_server_interface_factory(
        distributed_client=distributed_client, **options
    )


def make_absent(aval: Aval, sharding: Any) -> Any:
    """Returns an array on the device of another process, without local shards."""
    return _jax.batched_device_put(
        aval, sharding, [], [], True, True, ONLY_DURING_CALL, enable_x64=True
    )


def make_coordination_service(
    address: str, num_processes: int, *, heartbeat_seconds: int, shutdown_seconds: int
) -> Any:
    """Starts jaxlib's coordination service so that the loss of one process does not end others."""
    return _jax.get_distributed_runtime_service(
        address,
        num_processes,
        heartbeat_timeout=heartbeat_seconds,
        cluster_register_timeout=_NEVER_SECONDS,
        shutdown_timeout=shutdown_seconds,
        recoverable=True,
    )


_NEVER_SECONDS = 7 * 24 * 3600


def make_coordination_client(
    address: str, process_id: int, *, heartbeat_seconds: int, shutdown_seconds: int
) -> Any:
    """Returns a client of jaxlib's service, whose ``connect`` waits for all processes.

    It has no callback for missed heartbeats: jaxlib 0.10 cannot convert its argument for Python,
    and ends the process with "terminate called after throwing an instance of 'std::bad_cast'".
    ``connect`` must not reach its time limit either, at which jaxlib ends the process too.
    """
    # Workaround for jaxlib-connect-timeout
    # Workaround for jaxlib-heartbeat-callback
    return _jax.get_distributed_runtime_client(
        address,
        process_id,
        init_timeout=_NEVER_SECONDS,
        heartbeat_timeout=heartbeat_seconds,
        shutdown_timeout=shutdown_seconds,
        shutdown_on_destruction=False,
        use_compression=True,
    )


def hlo_to_stablehlo(code: bytes) -> bytes:
    """Returns the MLIR module for a serialised ``HloModuleProto``."""
    return bytes(_jax.mlir.hlo_to_stablehlo(code))


def program_shape(module_proto: bytes) -> tuple[list[Any], list[Any]]:
    """Returns the XLA shapes of the parameters and of the results on one device."""
    shape = _hlo.XlaComputation(module_proto).program_shape()
    result = shape.result_shape()
    return shape.parameter_shapes(), result.tuple_shapes() if result.is_tuple() else [result]


def output_memory_kinds(executable: Any) -> tuple[str, ...]:
    """Returns the memory kind of each result; empty if jaxlib 0.9.0 does not know them."""
    try:
        return tuple(executable.get_output_memory_kinds()[0])
    except _jax.JaxRuntimeError as error:
        if "UNIMPLEMENTED" not in str(error):
            raise
        return ()


def register_custom_call(target: str, handler: object) -> None:
    """Registers a C function as the handler of a custom call, with XLA's typed FFI.

    The function is a PyCapsule, its address, or the addresses of its stages.
    """
    if isinstance(handler, interface.HandlerStages):
        stages = {f.name: getattr(handler, f.name) for f in fields(handler)}
        handler = {name: _capsule(address) for name, address in stages.items() if address}
    elif isinstance(handler, int):
        handler = _capsule(handler)
    _jax.register_custom_call_target(target, handler, "Host", 1)


def register_custom_type(name: str, type_id: int, type_info: int | None) -> None:
    """Registers a type of handlers' states by the addresses of its id and its functions."""
    addresses = {"type_id": type_id, "type_info": type_info}
    capsules = {key: _capsule(address) for key, address in addresses.items() if address}
    _jax.register_custom_type(name, capsules)


def _capsule(address: int) -> object:
    new_capsule: Any = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype = ctypes.py_object
    new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    made: object = new_capsule(address, None, None)
    return made


def address_in(capsule: object) -> int:
    """Returns the address in a PyCapsule of jaxlib's."""
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, pointer_of.restype = ctypes.c_char_p, ctypes.c_void_p
    name_of.argtypes = (ctypes.py_object,)
    pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)
    address: int = pointer_of(capsule, name_of(capsule))
    return address


divide_custom_call: Callable[[str], None] = _jax.register_custom_call_as_batch_partitionable
"""Lets XLA divide a custom call that states how many dimensions are a stack, ``num_batch_dims``."""


# Workaround for jaxlib-delete-race
# Process-wide: jaxlib's memory is the process's; a forked child has a lock of its own.
memory_lock = new_lock()
"""Held while deleting an array, and while taking a reference to its memory for the host.

A data race in XLA, jaxlib 0.10: ``np.asarray(x)`` crashes while another thread calls
``x.delete()``, under JAX as well. ``AcquireExternalReference`` reads a buffer's description after
releasing the buffer's mutex, and ``Delete`` frees that description without waiting for it.
Reentrant, because making a view may run the garbage collector and with it a user's finaliser.
"""


def _attempt(lock: threading.RLock) -> Any:
    """Returns a context manager that tries to acquire a lock; ``with`` returns whether it did.

    All of it is in C, so that no interrupt can come between the lock and the block. If the lock was
    not acquired, the end of the block raises the lock's `RuntimeError`.
    """
    enter = staticmethod(partial(lock.acquire, False))
    return type("Attempt", (), {"__enter__": enter, "__exit__": staticmethod(lock.__exit__)})()


# Process-wide: jaxlib's memory is the process's; a forked child has a lock of its own.
_attempt_memory_lock = _attempt(memory_lock)


@call_in_child
def _renew_lock() -> None:
    global memory_lock, _attempt_memory_lock
    memory_lock = new_lock()  # its owner may be a thread that does not exist in the child
    _attempt_memory_lock = _attempt(memory_lock)


def delete(array: Any) -> None:
    """Deletes an array while other threads may read it, wait for it or launch with it.

    jaxlib 0.10 has a use after free, under JAX as well: ``delete`` frees the description of the
    memory while calls that wait without the interpreter's lock still use it, and they crash. So
    this deletes a second array of the same memory; the first one then reports that it is deleted,
    and its description is freed with the last reference to it.
    """
    # Workaround for jaxlib-delete-race
    doomed = _second(array)
    if doomed is not None:
        with memory_lock, _already_deleted:
            doomed.delete()
        collect_garbage()  # Workaround for jaxlib-host-memory


def delete_between_launches(array: Any, launch_lock: threading.RLock) -> None:
    """Like `delete`, but not during a launch on several devices: those hold ``launch_lock``.

    No call waits while it holds that lock: a finaliser that the garbage collector runs in a read,
    which holds `memory_lock`, may be deleting or launching. No finaliser may run with that lock,
    since it might launch and so wait for a thread that waits for it: no garbage-collected object is
    made.
    """
    doomed = _second(array)
    if doomed is not None:
        end_between_launches(doomed, launch_lock)


def end_between_launches(doomed: Any, launch_lock: threading.RLock) -> None:
    """Deletes an array that nothing else refers to, as `delete_between_launches`."""
    with _already_deleted:
        while not _delete_if_free(doomed, launch_lock):
            with memory_lock:
                pass
    collect_garbage()


def _delete_if_free(array: Any, launch_lock: threading.RLock) -> bool:
    """Deletes an array unless another thread holds `memory_lock`."""
    taken = False
    try:
        with launch_lock, _attempt_memory_lock as taken:
            if taken:
                array.delete()
    except RuntimeError:
        if taken:
            raise
    return taken


def _second(array: Any) -> Any:
    """Returns another array of the same memory; None if it is deleted."""
    if collecting:
        stop_recording()
    if not array.is_deleted():
        with memory_lock, _already_deleted:
            return array.clone()
    return None


_already_deleted = contextlib.suppress(RuntimeError, ValueError)
"""Raised by jaxlib if another thread has just deleted an array."""


def address(array: Any) -> int:
    """Returns the start address of a one-device array's memory."""
    with memory_lock:
        return int(array.unsafe_buffer_pointer())


def to_dlpack(array: Any) -> tuple[Any, Any]:
    """Returns a ``dltensor`` capsule of a one-device array, and an object that must outlive it.

    jaxlib 0.10 aborts the process if an array is deleted while a capsule of it lives and no other
    object refers to its memory; hence the second array.
    """
    if collecting:
        stop_recording()
    with memory_lock:
        # Workaround for jaxlib-deleted-capsule
        keeper = array.clone()
        return _jax.buffer_to_dlpack_managed_tensor(keeper), keeper


def from_dlpack(capsule: Any, device: Any) -> Any:
    """Takes ownership of a capsule. jaxlib imports JAX here if it is installed."""
    if collecting:
        stop_recording()
    return _jax.dlpack_managed_tensor_to_buffer(capsule, device, None)
