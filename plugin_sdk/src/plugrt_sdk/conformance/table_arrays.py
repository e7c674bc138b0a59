"""`Arrays`: thousands of arrays of a PJRT library, each of another dtype, shape or device.

`TableClient` makes guarded memory for each call, and that needs far longer than the call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import ELEMENT_TYPES, supported_dtypes
from plugrt_sdk.conformance.expect import Array, Mismatch, expect_same_bits
from plugrt_sdk.conformance.function_table import is_error, require_slot, take_error
from plugrt_sdk.conformance.inputs import NARROW, RANKS, Shape, fill
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.sweeps import within_limits
from plugrt_sdk.conformance.table_client import UNIMPLEMENTED, TableClient
from plugrt_sdk.testing.program_text import named_dtype

_POOL = 4096
_TIMES = 8
"""A sweep has a thousand arrays of each dtype, of each rank and on each device."""
_ALIGNED = 64


class Placed(NamedTuple):
    """An array, and the index of the device that it is for."""

    array: Array
    place: int

    @property
    def what(self) -> str:
        """The array's description in messages."""
        return f"the array of {list(self.array.shape)} {self.array.dtype} on device {self.place}"


class Arrays:
    """Arrays of a client, by calls whose argument structs are made once."""

    def __init__(self, subject: PluginSubject) -> None:
        self.client = TableClient.of(subject)
        self.devices = self.client.devices()
        self._subject = subject
        self._made: dict[str, tuple[Any, Any, int, Any]] = {}
        self._dims: dict[Shape, Any] = {}
        self._room = np.empty(0, np.uint8)
        self._source = np.empty(0, np.uint8)

    @classmethod
    def of(cls, subject: PluginSubject, *required: str) -> Arrays:
        """Returns the arrays of a subject; the check does not apply without some functions."""
        made = cls(subject)
        for name in required:
            require_slot(made.client.api, name)
        return made

    def attempt(self, name: str, **fields: Any) -> tuple[Any, tuple[int, str] | None]:
        """Calls a function; returns its arguments, which the next call reuses, and its error."""
        found = self._made.get(name)
        if found is None:
            require_slot(self.client.api, name)
            args = self.client.args(name)
            blank = self.client.keep(ffi.new("char[]", bytes(ffi.buffer(args, args.struct_size))))
            found = (args, blank, int(args.struct_size), getattr(self.client.api, name))
            self._made[name] = found
        args, blank, size, function = found
        ffi.memmove(args, blank, size)  # without the answers of the call before
        for field, value in fields.items():
            setattr(args, field, value)
        error = function(args)
        return args, take_error(self.client.api, error) if is_error(error) else None

    def call(self, name: str, **fields: Any) -> Any:
        """Calls a function that must succeed, or be refused as unimplemented."""
        args, failed = self.attempt(name, **fields)
        if failed is not None:
            if failed[0] == UNIMPLEMENTED:
                self._subject.refuse(failed[1])
            said = failed[1].partition("\n")[0]
            raise Mismatch(f"PJRT_{name} to succeed", f"code {failed[0]}: {said}")
        return args

    def finish(self, event: Any, what: str) -> None:
        """Waits for an event without an error, and destroys it."""
        if event == ffi.NULL:
            return
        _, failed = self.attempt("Event_Await", event=event)
        self.call("Event_Destroy", event=event)
        if failed is not None:
            raise Mismatch(f"no error of {what}", f"code {failed[0]}: {failed[1]}")

    def put_args(self, array: Array) -> dict[str, Any]:
        """Returns the fields that put an array, from memory that the next put overwrites."""
        if self._source.nbytes < array.nbytes:
            room = np.empty(2 * array.nbytes + _ALIGNED, np.uint8)
            self._source = room[-room.ctypes.data % _ALIGNED :]
        self._source[: array.nbytes] = array.reshape(-1).view(np.uint8)
        shape = array.shape
        if shape not in self._dims:
            self._dims[shape] = ffi.new("int64_t[]", shape) if shape else ffi.NULL
        return {
            "client": self.client.handle, "type": ELEMENT_TYPES[array.dtype],
            "data": ffi.cast("void*", self._source.ctypes.data), "dims": self._dims[shape],
            "num_dims": array.ndim,
        }  # fmt: skip

    def put(self, array: Array, **place: Any) -> Any:
        """Puts an array on a ``device`` or in a ``memory``; its source changes after the call."""
        args = self.call("Client_BufferFromHostBuffer", **self.put_args(array), **place)
        buffer = args.buffer
        self._source[: array.nbytes] ^= 0xFF  # allowed: the semantics is kImmutableOnlyDuringCall
        self.finish(args.done_with_host_buffer, "a put")
        return buffer

    def destroy(self, *buffers: Any) -> None:
        """Destroys buffers."""
        for buffer in buffers:
            self.call("Buffer_Destroy", buffer=buffer)

    def expect_read(self, buffer: Any, array: Array, what: str) -> None:
        """Reads a buffer by ``PJRT_Buffer_ToHostBuffer``, which must give an array's elements."""
        narrow = bool(NARROW.match(array.dtype.name))
        size = array.nbytes
        if narrow:
            size = int(self.call("Buffer_ToHostBuffer", src=buffer).dst_size)
            if size != array.nbytes:  # elements share bytes
                return
        if self._room.nbytes < size:
            self._room = np.empty(2 * size, np.uint8)
        flat = array.reshape(-1)
        room = self._room[:size]
        np.invert(flat.view(np.uint8), out=room)
        args = self.call(
            "Buffer_ToHostBuffer",
            src=buffer,
            dst=ffi.cast("void*", room.ctypes.data),
            dst_size=size,
        )
        self.finish(args.event, "a read")
        found = room.view(array.dtype)
        if narrow:  # the upper bits of such a byte do not belong to the element
            found, flat = (x.astype(np.float32) for x in (found, flat))
        if found.tobytes() != flat.tobytes():
            expect_same_bits(found, flat, what)

    def dtypes(self) -> list[str]:
        """Returns the dtypes that the library puts, with float32 in any case."""
        found = []
        for dtype in sorted(supported_dtypes(self.client.api.pjrt_api_version.minor_version)):
            if dtype != "void":
                one = np.zeros(1, named_dtype(dtype))
                fields = {**self.put_args(one), "device": self.devices[0]}
                args, failed = self.attempt("Client_BufferFromHostBuffer", **fields)
                if failed is None or dtype == "float32":
                    found.append(dtype)
                if failed is None:
                    buffer = args.buffer
                    self.finish(args.done_with_host_buffer, "a put")
                    self.destroy(buffer)
        return found

    def sweep(self, *small: Shape, part: float = 1.0) -> Iterator[Placed]:
        """Yields arrays of each dtype and rank for each device, then of ``small`` shapes as well.

        The latter are in random order, so that fewer of them, from a slow library, are as varied.
        """
        random = self._subject.random("arrays")
        pools = [fill(dtype, (_POOL,), random) for dtype in self.dtypes()]
        places = range(len(self.devices))

        def placed(shape: Shape, pool: Array, place: int) -> Placed:
            count = int(np.prod(shape, dtype=np.int64))
            begin = int(random.integers(0, _POOL - count + 1))
            return Placed(pool[begin : begin + count].reshape(shape), place)

        def items() -> Iterator[Placed]:
            for shape in RANKS:
                for pool in pools:
                    for place in places:
                        yield placed(shape, pool, place)
            shapes = [*small, *RANKS * _TIMES] if small else []
            order = random.permutation(len(shapes) * len(pools) * len(places))
            for number in order:
                rest, place = divmod(int(number), len(places))
                rest, kind = divmod(rest, len(pools))
                yield placed(shapes[rest % len(shapes)], pools[kind], place)

        return within_limits(items(), part)
