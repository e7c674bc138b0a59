"""The one place that knows jaxlib's private Python API, and where its minors differ.

jaxlib promises nothing about the names used here. All of them are listed in
`plugrt_cpu.jaxlib_private_api`, and a test fails with the missing ones when a jaxlib drops any.

Two rules, because JAX may live in the same process: nothing here sets a state that is global to
jaxlib (`plugrt_cpu.tracebacks` does, for moments, where JAX is not), and nothing on the way of an
array calls what makes jaxlib import JAX (it does so, where JAX is installed, to describe any
one-device array that it makes by itself). `split` has no other way.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt_cpu.jaxlib_import import import_jaxlib, jaxlib_minor
from plugrt_cpu.tracebacks import pause_while_collecting

_jax, _hlo = import_jaxlib()
pause_while_collecting(_jax)
_SingleDeviceSharding: Any = _jax.SingleDeviceSharding
_GSPMDSharding: Any = _jax.GSPMDSharding
_REPLICATED = _hlo.HloSharding.replicate()
# Up to 0.11 a result handler looks at what JAX's avals and shardings have unless told not to; later
# ones never do, and have no such argument.
_SKIP_CHECKS = (True,) if "_skip_checks" in (_jax.array_result_handler.__doc__ or "") else ()
# Since 0.10.2.
_HAS_LAUNCH_ID = "launch_id" in (_jax.LoadedExecutable.execute_sharded.__doc__ or "")
GIVES_MEMORYVIEWS = jaxlib_minor() >= (0, 10)
"""Whether Python's buffer protocol works with a sharding that is not JAX's own class."""


RawArray: Any = _jax.ArrayImpl
"""jaxlib's class of arrays."""


class Aval:
    """What jaxlib reads of an array's type: ``shape``, ``dtype`` and ``weak_type``."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape = shape
        self.dtype = dtype
        self.weak_type = False

    def str_short(self) -> str:
        """What jaxlib names a deleted array by."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class OneDevice(_SingleDeviceSharding):  # type: ignore[misc]
    """A sharding for arrays on one device, with the Python side that jaxlib asks of JAX's."""

    def __init__(self, device: Any, memory_kind: str) -> None:
        super().__init__(device, memory_kind)
        self._devices_in_order = (device,)
        self._kind = memory_kind

    # Properties, not attributes: JAX, once imported, adds some without a setter to the base class.
    # Each put asks for this one twice, and for the next method once.
    @property
    def memory_kind(self) -> str:
        return self._kind

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        return self._devices_in_order

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return _REPLICATED

    # 0.9 asks for these two to tell the size of an array.
    def shard_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape

    @property
    def device_set(self) -> set[Any]:
        return set(self._devices_in_order)


class ManyDevices(_GSPMDSharding):  # type: ignore[misc]
    """A sharding that says "one buffer on each of these devices" and nothing of their content.

    jaxlib's executables look at the devices of an argument only, never at how it is divided. Two
    members are `OneDevice`'s again: nanobind's classes take one base, so that there is no mixin.
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
    """Returns what makes an array of one result of a launch; make it once for an executable."""
    return _jax.array_result_handler(aval, sharding, True, *_SKIP_CHECKS)


def with_launch_id(launch: Callable[..., Any], launch_id: int) -> Callable[..., Any]:
    """Returns ``execute_sharded`` with a launch id, which jaxlib 0.9 has no use for."""
    return partial(launch, launch_id=launch_id) if launch_id and _HAS_LAUNCH_ID else launch


def put(array: npt.NDArray[Any], aval: Aval, sharding: Any, device: Any, semantics: Any) -> Any:
    """Returns an array on one device; only ``ZERO_COPY`` may alias the source."""
    raw = _jax.batched_device_put(
        aval,
        sharding,
        [array],
        [device],
        True,
        semantics is not ZERO_COPY,
        semantics,
        # Without it, jaxlib asks for a global state that only JAX sets.
        enable_x64=True,
    )
    # jaxlib parks its reference to a source that it has copied until some later call.
    _jax.collect_garbage()
    return raw


def assemble(aval: Aval, sharding: Any, arrays: list[Any]) -> Any:
    """Returns one array of several devices from one array on each of them."""
    return RawArray(aval, sharding, arrays, True, True)


def prepare_several_devices() -> None:
    """Comes before a program for several devices is compiled, loaded or launched.

    An array on several devices that has no frames noted cannot be taken apart, which reading does
    (jaxlib 0.10: "Expecting an IFRT `Array` to have a user context").
    """
    _jax.set_tracebacks_enabled(True)


def split(array: Any) -> list[Any]:
    """Returns the one-device arrays of an array. jaxlib imports JAX here if it is installed."""
    arrays: list[Any] = array._arrays
    return arrays


def copy(array: Any, devices: Any, sharding: Any) -> Any:
    """Returns a copy of a one-device array on a `device_list` of one, in the sharding's memory."""
    return _jax.batched_copy_array_to_devices_with_sharding(
        [array], [devices], [sharding], _ALWAYS_COPY
    )[0]


_ALWAYS_COPY = [_jax.ArrayCopySemantics.ALWAYS_COPY]


ZERO_COPY = _jax.HostBufferSemantics.ZERO_COPY
ONLY_DURING_CALL = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
UNTIL_TRANSFER_COMPLETES = _jax.HostBufferSemantics.IMMUTABLE_UNTIL_TRANSFER_COMPLETES


def device_list(devices: Sequence[Any]) -> Any:
    """Returns jaxlib's list of devices to compile for."""
    return _jax.DeviceList(tuple(devices))


def compile_options() -> Any:
    """Returns jaxlib's default options."""
    return _jax.CompileOptions()


def parse_compile_options(encoded: bytes) -> Any:
    """Returns the options of a serialised ``CompileOptionsProto``."""
    return _jax.CompileOptions.ParseFromString(encoded)


def device_assignment(ids: npt.NDArray[np.int32]) -> Any:
    """Returns jaxlib's device assignment for ids of shape (replicas, partitions)."""
    return _jax.DeviceAssignment.create(ids)


def make_client(**options: Any) -> Any:
    """Starts jaxlib's CPU client."""
    return _jax.get_tfrt_cpu_client(**options)


def make_collectives(implementation: str, distributed_client: Any) -> Any:
    """Returns what CPU devices of several processes exchange data with; None for ``none``."""
    if implementation == "gloo":
        return _jax.make_gloo_tcp_collectives(distributed_client=distributed_client)
    if implementation == "mpi":
        collectives = _jax.make_mpi_collectives()
        collectives.Init()
        return collectives
    return None


def hlo_to_stablehlo(code: bytes) -> bytes:
    """Returns the MLIR module for a serialised ``HloModuleProto``."""
    return bytes(_jax.mlir.hlo_to_stablehlo(code))


def program_shape(module_proto: bytes) -> tuple[list[Any], list[Any]]:
    """Returns the XLA shapes of the parameters and of the results on one device."""
    shape = _hlo.XlaComputation(module_proto).program_shape()
    result = shape.result_shape()
    return shape.parameter_shapes(), result.tuple_shapes() if result.is_tuple() else [result]


memory_lock = threading.RLock()
"""Held to delete an array, and to take a reference to its memory for the host.

XLA's ``AcquireExternalReference`` looks at a buffer's description after it has left the buffer's
mutex, and ``Delete`` frees that description without waiting for such references (jaxlib 0.10: a
crash of ``np.asarray(x)`` beside ``x.delete()`` in another thread, under JAX as well).
Reentrant, because to make a view may run the garbage collector, and that a finaliser.
"""


def _renew_lock() -> None:
    global memory_lock
    memory_lock = threading.RLock()  # its owner may be a thread that the child has not


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def delete(array: Any) -> None:
    """Deletes an array under everyone who reads, awaits or launches with it in another thread.

    jaxlib's own ``delete`` lets go of the memory's description, which calls that wait without the
    interpreter's lock are still using: they crash (jaxlib 0.10, JAX as well). A second array of
    the same memory is deleted in its stead; the first one then says that it is deleted, and its
    description goes with the last reference to it.
    """
    if not array.is_deleted():
        with memory_lock, contextlib.suppress(RuntimeError, ValueError):
            array.clone().delete()  # raises where another thread has just deleted it


def view(array: Any) -> memoryview:
    """Waits, then returns a read-only view of the memory of a one-device array."""
    if not array.is_ready():  # nobody else shall wait for it
        array.block_until_ready()
    lock = memory_lock
    lock.acquire()  # a third of the time that `with` takes: most first reads are of a few bytes
    try:
        return memoryview(array)
    finally:
        lock.release()


def address(array: Any) -> int:
    """Returns where the memory of a one-device array begins."""
    with memory_lock:
        return int(array.unsafe_buffer_pointer())


def to_dlpack(array: Any) -> tuple[Any, Any]:
    """Returns a ``dltensor`` capsule of a one-device array, and what must outlive it.

    jaxlib (0.10) aborts the process when an array is deleted, and nothing else refers to its
    memory, while a capsule of it lives.
    """
    with memory_lock:
        keeper = array.clone()
        return _jax.buffer_to_dlpack_managed_tensor(keeper), keeper


def from_dlpack(capsule: Any, device: Any) -> Any:
    """Takes a capsule over. jaxlib imports JAX here if it is installed."""
    return _jax.dlpack_managed_tensor_to_buffer(capsule, device, None)
