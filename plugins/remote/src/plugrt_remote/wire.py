"""The protocol: messages, their headers and limits, and `FrameReader`, which receives them.

A message is a head (`HEAD`: its number, the bytes of its body, the bytes of its payload), a body of
fixed binary fields, and a payload, the contents of an array or a program. Arrays and programs have
numbers that the client chooses. `PUT`, `EXECUTE`, `JOIN`, `COPY` and `DELETE` are not answered: if
one fails, its results hold the error, which `READ` and `WAIT` of them are answered with.
"""

from __future__ import annotations

import enum
import os
import socket
import struct
from collections import deque
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt import errors
from plugrt.capi.abi.element_types import ELEMENT_TYPES
from plugrt.errors import Internal, PjrtError, PlugrtError, error_from_code, read_message
from plugrt.interface import TensorType
from plugrt_remote.values import ProtocolError

MAGIC = b"plugrt-r"
VERSION = 2
"""The protocol's version; both sides of a connection must have the same."""
HEAD = struct.Struct("<B3xIQ")
MAX_BODY = 16 << 20
MAX_PAYLOAD = 1 << 40
MAX_CODE = 1 << 30
MOST_SEGMENTS = 1000
SEGMENT_FROM = 256 << 10
"""Contents of at least this many bytes go through shared memory, on one machine."""
CONTENTS_WITH_NOTICE = 4096
"""The largest array, in bytes, whose contents come with the notice that it is ready."""


class Op(enum.IntEnum):
    """The kinds of messages; the server sends those from `REPLY` on."""

    HELLO = 1
    COMPILE = 2
    EXECUTE = 3
    PUT = 4
    READ = 5
    WAIT = 6
    WATCH = 7
    DELETE = 8
    JOIN = 9
    COPY = 10
    ASK = 11
    STATS = 12
    STATUS = 13
    PING = 14
    SEGMENT = 15
    RETURN = 16
    CANCEL = 17
    REPLY = 64
    ERROR = 65
    READY = 66
    SEGMENT_FREE = 67
    CALL = 68


HELLO = struct.Struct("<8sI")
"""The protocol's name and version; the token follows, if the server requires one."""
COMPILE = struct.Struct("<QQ32s")
EXECUTE = struct.Struct("<QQHHB")
"""The program, the first result's number, the counts of arguments and of kept ones, the flags."""
PUT = struct.Struct("<QiiBBQ")
"""The array's number, device, memory (-1: the default), dtype, dimensions, segment (0: none)."""
READ = struct.Struct("<QQIQ")
WAIT = struct.Struct("<QQi")
NUMBER = struct.Struct("<Q")
DELETE = struct.Struct("<i")
"""Which part of the arrays that follow: `DROPPED` or `ALL_PARTS`."""
JOIN = struct.Struct("<QH")
PART = struct.Struct("<QI")
COPY = struct.Struct("<QQIii")
ASK = struct.Struct("<QQB")
CANCEL = struct.Struct("<QQ")
STATS = struct.Struct("<Qi")
SEGMENT = struct.Struct("<QQ")
READY = struct.Struct("<QQ")

NOTICE, KEPT = 1, 2
"""Flags of `EXECUTE`: the server must send a notice; indices of arguments to keep follow."""
DROPPED, ALL_PARTS = -2, -1
METHODS = (
    "cost_analysis", "memory_analysis", "optimized_program", "as_text", "fingerprint",
    "generated_code_size_in_bytes",
)  # fmt: skip
"""The methods of `Executable` that `ASK` calls, by their index."""
DTYPES = {number: dtype for dtype, number in ELEMENT_TYPES.items()}
FROM_SERVER = {
    Op.REPLY: MAX_PAYLOAD, Op.READY: CONTENTS_WITH_NOTICE, Op.CALL: MAX_PAYLOAD,
}  # fmt: skip
FROM_CLIENT = {Op.COMPILE: MAX_CODE, Op.PUT: MAX_PAYLOAD, Op.RETURN: MAX_PAYLOAD}


def frame(op: int, body: bytes, size: int = 0) -> bytes:
    """Returns the head and the body of a message, whose payload of ``size`` bytes follows."""
    return HEAD.pack(op, len(body), size) + body


class FrameReader:
    """Receives messages: many small ones by one ``recv``, and a large payload into its own array.

    `next` returns the same message until `done` is called. After an interruption `next` continues:
    functions in C receive bytes and record their count, and cannot be interrupted between.
    """

    def __init__(self, sock: socket.socket, limits: Mapping[Any, int], fds: bool = False) -> None:
        self._sock, self.limits, self._takes_fds = sock, limits, fds
        self._buffer = bytearray(256 << 10)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0
        self._received: deque[int] = deque()
        self._head: tuple[int, bytes, Any, int] | None = None
        self._filled = 0
        self.fds: deque[int] = deque()
        """The file descriptors that were received and are not used yet."""

    def has_more(self) -> bool:
        """Whether bytes were received that `next` has not returned."""
        return self._end > self._start or self._head is not None

    def next(self) -> tuple[int, bytes, Any]:
        """Waits for a message, and returns its number, its body and its payload or None.

        Raises `ConnectionError` once the connection has ended, and `ProtocolError` for a message
        beyond the limits.
        """
        if self._head is None:
            self._read_head()
        assert self._head is not None
        op, body, payload, _ = self._head
        if payload is not None:
            self._read_payload(memoryview(payload))
        return op, body, payload

    def done(self) -> None:
        """Forgets the message that `next` returned."""
        self._head, self._filled = None, 0

    def _read_head(self) -> None:
        if self._received or self._end - self._start < HEAD.size:
            self._fill(HEAD.size)
        op, length, size = HEAD.unpack_from(self._buffer, self._start)
        if length > MAX_BODY or size > self.limits.get(op, 0):
            raise ProtocolError(f"a message {op} of {length} and {size} bytes is not allowed")
        if self._end - self._start < HEAD.size + length:
            self._fill(HEAD.size + length)
        begin = self._start + HEAD.size
        body = bytes(self._view[begin : begin + length])
        payload = None
        if size:
            try:
                payload = np.empty(size, np.uint8)
            except MemoryError:
                raise ProtocolError(f"not enough memory for a message of {size} bytes") from None
        self._head, self._start = (op, body, payload, size), begin + length

    def _fill(self, need: int) -> None:
        self._note()
        if self._end - self._start >= need:
            return
        if self._start == self._end:
            self._start, self._end = 0, 0
        elif self._start + need > len(self._buffer):  # not in place: this may be interrupted
            grown = bytearray(need + (256 << 10))
            kept = self._end - self._start
            grown[:kept] = self._view[self._start : self._end]
            view = memoryview(grown)
            self._buffer, self._view, self._start, self._end = grown, view, 0, kept
        while self._end - self._start < need:
            self._receive(self._view[self._end :])
            self._note()

    def _note(self) -> None:
        """Moves the end of the buffer behind the bytes received, also before an interruption."""
        if self._received:
            self._end += self._received[0]
            self._received.clear()  # no interruption can precede it

    def _read_payload(self, out: memoryview) -> None:
        size = len(out)
        if not self._filled and self._end > self._start:
            count = min(size, self._end - self._start)
            out[:count] = self._view[self._start : self._start + count]
            self._filled, self._start = count, self._start + count
        while True:
            if self._received:
                self._filled += self._received[0]
                self._received.clear()
            if self._filled == size:
                return
            self._receive(out[self._filled :])

    def _receive(self, view: memoryview) -> None:
        """Waits for bytes and appends their count to ``_received``."""
        if self._takes_fds:
            count, ancillary, flags, _ = self._sock.recvmsg_into(
                [view], socket.CMSG_SPACE(4 * 4), socket.MSG_CMSG_CLOEXEC
            )
            for _, kind, data in ancillary:
                if kind == socket.SCM_RIGHTS:
                    self.fds.extend(struct.unpack(f"{len(data) // 4}i", data[: len(data) // 4 * 4]))
            if flags & socket.MSG_CTRUNC or len(self.fds) > 64:
                raise ProtocolError("more file descriptors came than messages name")
            self._received.append(count)
        else:
            self._received.extend(map(self._sock.recv_into, (view,)))
        if not self._received[0]:
            raise ConnectionError("the other side closed the connection")

    def close(self) -> None:
        """Closes the file descriptors that are not used."""
        while self.fds:
            os.close(self.fds.popleft())


def pack_error(error: BaseException) -> list[Any]:
    """Returns an exception's code, class and message, for `unpack_error`."""
    if isinstance(error, PjrtError):
        return [error.code, type(error).__name__, error.message]
    if isinstance(error, PlugrtError):
        return [Internal.code, type(error).__name__, read_message(error)]
    return [Internal.code, "", f"{type(error).__name__}: {read_message(error)}"]


def unpack_error(packed: Any) -> PlugrtError:
    """Returns an exception of plugrt's class of that name, or else of the code's class."""
    code, name, message = packed
    cls = getattr(errors, name, None) if name else None
    if isinstance(cls, type) and issubclass(cls, PlugrtError):
        return cls(message)
    return error_from_code(code, message)


def pack_type(type: TensorType) -> list[Any]:
    """Returns the shape and the number of the dtype, for `unpack_type`."""
    return [type.shape, ELEMENT_TYPES[type.dtype]]


def unpack_type(packed: Any) -> TensorType:
    """Returns the type that `pack_type` packed."""
    return TensorType(tuple(packed[0]), DTYPES[packed[1]])


def pack_attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the attributes of a custom call (`plugrt.interface.Handler`) as plain values."""
    return {name: _pack_attribute(value) for name, value in values.items()}


def _pack_attribute(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return pack_attributes(value)
    return [isinstance(value, np.ndarray), ELEMENT_TYPES[value.dtype], value.tobytes()]


def unpack_attributes(packed: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the attributes that `pack_attributes` packed."""
    return {name: _unpack_attribute(value) for name, value in packed.items()}


def _unpack_attribute(packed: Any) -> Any:
    if isinstance(packed, str):
        return packed
    if isinstance(packed, Mapping):
        return unpack_attributes(packed)
    is_vector, number, data = packed
    vector = np.frombuffer(data, DTYPES[number])
    return vector if is_vector else vector[0]


def pack_arrays(arrays: Sequence[npt.NDArray[Any]]) -> tuple[list[Any], bytes]:
    """Returns the types and the contents of arrays, for `unpack_arrays`."""
    types = [pack_type(TensorType(x.shape, x.dtype)) for x in arrays]
    return types, b"".join(x.tobytes() for x in arrays)


def unpack_arrays(types: Sequence[Any], contents: Any) -> list[npt.NDArray[Any]]:
    """Returns arrays of these types and contents; raises `ProtocolError` if they do not match."""
    data = np.empty(0, np.uint8) if contents is None else contents
    arrays, at = [], 0
    try:
        for shape, number in types:
            dtype = DTYPES[number]
            end = at + prod(shape) * dtype.itemsize
            if min(shape, default=0) < 0 or end > len(data):
                raise ValueError(f"{end} bytes of {len(data)} have the shape {shape}")
            array = data[at:end].view(dtype).reshape(tuple(shape))
            arrays.append(np.require(array, requirements="A"))
            at = end
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"arrays cannot be read: {error}") from None
    if at != len(data):
        raise ProtocolError(f"{len(data) - at} bytes follow the contents of arrays")
    return arrays
