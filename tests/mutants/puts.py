"""Mutants of puts: each puts other contents for some arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.abi.element_types import supported_dtypes
from plugrt.errors import Internal
from plugrt.interface import HostBufferSemantics
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.client import BackendClient
from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient

_LARGE = 1 << 20


def put_changed(applies: Callable[[Array], Any], change: Callable[[Array], Array]) -> Faults:
    """Returns a mutant that puts other contents for arrays that a function selects."""

    def buffer_from_host(self: MutantClient, array: Array, *rest: Any) -> BackendBuffer:
        return MutantClient.buffer_from_host(
            self, change(array) if applies(array) else array, *rest
        )

    return Faults(client={"buffer_from_host": buffer_from_host})


def flip(array: Array) -> Array:
    """Returns a copy with a changed lowest byte of the last element."""
    copy = np.ascontiguousarray(array).reshape(array.shape).copy()
    copy.reshape(-1).view(np.uint8)[-copy.itemsize] ^= 1
    return copy


def _in_memory_order(array: Array) -> Array:
    """Returns the memory from the first element on, as a put without strides sends it."""
    strides = np.empty(array.shape, np.bool_).strides
    bytes_apart = [step * array.itemsize for step in strides]
    return np.lib.stride_tricks.as_strided(array, array.shape, bytes_apart)


def _without_negative(array: Array) -> Array:
    """Returns the array from the first address of a reversed one, read forwards."""
    return np.ascontiguousarray(
        array[tuple(slice(None, None, -1 if s < 0 else 1) for s in array.strides)]
    )


def _refuse(array: Array) -> Array:
    raise Internal(f"no arrays of shape {array.shape}")


def _has_stride(array: Array, wanted: Callable[[int], bool]) -> bool:
    return bool(array.size) and any(map(wanted, array.strides))


def _is_fortran(array: Array) -> bool:
    return array.flags.f_contiguous and array.flags.owndata and not array.flags.c_contiguous


def _is_gap(array: Array) -> bool:
    flags = array.flags
    return array.ndim == 3 and not (flags.c_contiguous or flags.f_contiguous)


_SHAPES: Mapping[str, Faults] = {
    "scalar": put_changed(lambda a: a.ndim == 0, lambda a: np.asarray(a + a.dtype.type(1))),
    "one": put_changed(lambda a: a.shape == (1, 1), flip),
    "empty": put_changed(lambda a: a.size == 0, _refuse),
    "rank8": put_changed(lambda a: a.ndim > 6, lambda a: a.reshape(a.shape[1:])),
    "transposed": put_changed(
        lambda a: a.flags.f_contiguous and not a.flags.owndata and a.ndim > 1, _in_memory_order
    ),
    "strided": put_changed(_is_gap, _in_memory_order),
    "negative_strides": put_changed(lambda a: _has_stride(a, lambda s: s < 0), _without_negative),
    "broadcast": put_changed(lambda a: _has_stride(a, lambda s: s == 0), flip),
    "fortran": put_changed(_is_fortran, _in_memory_order),
    "unaligned": put_changed(lambda a: not a.flags.aligned, flip),
    "read_only": put_changed(lambda a: not a.flags.writeable, flip),
    "huge": put_changed(lambda a: a.nbytes > 1 << 31, flip),
    "larger": put_changed(lambda a: a.nbytes > 1 << 26, flip),
    "large": put_changed(lambda a: a.size > _LARGE, lambda a: np.roll(a, 1)),
    "special_values": put_changed(lambda a: a.size == 8, lambda a: np.nan_to_num(a, nan=np.nan)),
    "byte_order": put_changed(
        lambda a: not a.dtype.isnative, lambda a: a.view(a.dtype.newbyteorder())
    ),
}  # fmt: skip


def _alias(semantics: HostBufferSemantics | None) -> Faults:
    """Returns a mutant that uses the caller's memory for one semantics that forbids it."""

    def buffer_from_host(
        self: MutantClient, array: Array, device: Any, memory: Any = None,
        given: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
    ) -> BackendBuffer:  # fmt: skip
        buffer = MutantClient.buffer_from_host(self, array, device, memory, given)
        if given == semantics:
            buffer._handle = (
                array if given < HostBufferSemantics.IMMUTABLE_ZERO_COPY else flip(array)
            )
        return buffer

    return Faults(client={"buffer_from_host": buffer_from_host})


def _forget_source() -> Faults:
    """Returns a mutant that keeps the address of memory put without a copy, but no reference."""
    slots: list[Array] = []

    def buffer_from_host(
        self: MutantClient, array: Array, device: Any, memory: Any = None,
        given: HostBufferSemantics = HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
    ) -> BackendBuffer:  # fmt: skip
        buffer = MutantClient.buffer_from_host(self, array, device, memory, given)
        if given is HostBufferSemantics.IMMUTABLE_ZERO_COPY:
            slots.append(array.copy())  # the allocator reuses it for the next array
            buffer._handle = slots[0]
            slots[0][:] = array
        return buffer

    return Faults(client={"buffer_from_host": buffer_from_host})


def _reversed_shards(self: MutantClient, arrays: Sequence[Array], device: Any) -> Sequence[Any]:
    return list(BackendClient.shards_from_host(self, arrays, device))[::-1]


def _first_device(self: MutantClient, arrays: Sequence[Array], devices: Any, *rest: Any) -> Any:
    return BackendClient.buffers_from_host(self, arrays, [devices[0]] * len(devices), *rest)


_PUTS: Mapping[str, Faults] = {
    **{
        f"dtypes.{name}": put_changed(lambda a, name=name: a.dtype.name == name, flip)  # type: ignore[misc]
        for name in sorted(supported_dtypes(API_MINOR) - {"void"})
    },
    **{
        f"lengths.{name}": put_changed(
            lambda a, name=name: a.dtype.name == name and a.shape == (191,),  # type: ignore[misc]
            flip,
        )
        for name in sorted(supported_dtypes(API_MINOR) - {"void"})
    },
    **_SHAPES,
    **{f"semantics.{member.name.lower()}": _alias(member) for member in HostBufferSemantics},
    "source_lives": _forget_source(),
    "several": Faults(client={"shards_from_host": _reversed_shards}),
    "parts": Faults(client={"buffers_from_host": _first_device}, devices=2),
}


MUTANTS: Mapping[str, Faults] = {
    **{f"buffers.put_get.{name}": faults for name, faults in _PUTS.items()},
}
