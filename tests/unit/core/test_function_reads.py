"""Arrays that C reads by functions of their backend, as NumPy arrays over the same memory."""

from __future__ import annotations

import gc
import inspect
import sys
from threading import RLock
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import DeletedBuffer
from plugrt.execution.arrays.array import array_holding
from plugrt.execution.arrays.array_contents import _format
from plugrt.execution.arrays.aval import ArrayAval
from plugrt.native.native_core import core
from support.native_core import runs_in_c

pytestmark = runs_in_c


def _reader(shape: Any, dtype: Any, view: Any = memoryview, **steps: Any) -> Any:
    return core.FunctionReader(
        held_class=bytearray,
        view=view,
        shape=shape,
        dtype=dtype,
        unless=(),
        format=_format(np.dtype(dtype)),
        **{"is_ready": lambda held: True, "wait": None, "lock": RLock(), **steps},
    )


def _array(
    held: bytearray, shape: tuple[int, ...], dtype: Any, view: Any = memoryview, **steps: Any
) -> Any:
    sharding = plugrt.device_put(np.float32(1)).sharding
    aval = ArrayAval(shape, np.dtype(dtype), sharding, False, False)
    aval.reader = _reader(shape, aval.dtype, view, **steps)
    return array_holding(held, aval)


@pytest.mark.parametrize("view", [memoryview, lambda held: np.frombuffer(held, np.uint8)])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3)])
def test_a_read_is_a_read_only_array_over_the_memory_that_keeps_it(shape: Any, view: Any) -> None:
    wanted = np.arange(np.prod(shape, dtype=int), dtype=np.int16).reshape(shape)
    held = bytearray(wanted.tobytes())
    array = _array(held, shape, np.int16, view)
    host = array.__array__()
    assert array.__array__() is host
    np.testing.assert_array_equal(host, wanted, strict=True)
    assert host.strides == wanted.strides or not host.size
    assert (host.flags.writeable, host.flags.owndata, host.flags.c_contiguous) == (
        False,
        False,
        True,
    )
    if host.size:
        held[0] ^= 1
        assert host.flat[0] == wanted.flat[0] ^ 1
    del array
    with pytest.raises(BufferError):
        held.append(0)
    del host
    gc.collect()
    held.append(0)  # refused while its memory is lent


def _requested(thing: Any, flags: int) -> tuple[Any, ...]:
    """Returns the result of a request for a buffer, or its refusal."""
    try:
        view = thing.__buffer__(flags)
    except (BufferError, ValueError):  # NumPy raises ValueError
        return ("refused",)
    return (
        view.format, view.itemsize, view.ndim, view.shape, view.strides, view.nbytes,
        view.readonly, view.tobytes(),
    )  # fmt: skip


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no requests for a buffer with flags here")
@pytest.mark.parametrize("dtype", ["?", "<i2", "<f4", "<f8", "<c8"])
@pytest.mark.parametrize("shape", [(), (3,), (1, 1), (2, 3), (0,), (2, 0, 3)])
def test_a_buffer_is_what_numpy_gives_of_the_same_contents(shape: Any, dtype: str) -> None:
    host = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    host.flags.writeable = False
    for name, flags in vars(inspect)["BufferFlags"].__members__.items():
        held = bytearray(host.tobytes())
        assert _requested(_array(held, shape, dtype), flags) == _requested(host, flags), name


def test_a_buffer_keeps_the_memory_and_not_the_array() -> None:
    held = bytearray(b"abcdefgh")
    array = _array(held, (2, 2), np.uint16)
    view, host = memoryview(array), np.asarray(array)
    assert type(view.obj).__name__ == "HostBuffer"
    assert view.obj.obj is held
    assert array._extra is None  # only Python keeps an array here; the core keeps memory
    assert view.tolist() == host.tolist()
    assert memoryview(array).obj is view.obj is host.base.obj
    assert array.__array__().base is view.obj
    assert type(array._extra) is np.ndarray
    del array
    gc.collect()
    with pytest.raises(BufferError):
        held.append(0)
    view.release()
    with pytest.raises(BufferError):
        held.append(0)
    del host
    held.append(0)


def test_the_description_of_a_buffer_lives_as_long_as_a_view() -> None:
    """The first view's reader owns the description; another thread may have made another reader."""
    array = _array(bytearray(48), (2, 3), np.complex64)
    first = memoryview(array)
    array._aval.reader = _reader((2, 3), np.dtype(np.complex64))
    view = memoryview(array)
    array._aval.reader = None
    gc.collect()
    kept = [f"{i}f" for i in range(10_000)]  # would reuse freed memory
    assert (view.format, view.shape, view.strides) == ("Zf", (2, 3), (24, 8)), kept[:1]
    assert view.obj is first.obj


def test_a_dtype_without_a_format_is_read_as_an_array() -> None:
    array = _array(bytearray(4), (2,), plugrt.device_put(np.float32(1)).astype("bfloat16").dtype)
    with pytest.raises(BufferError, match="bfloat16 has no buffer"):
        memoryview(array)
    assert np.asarray(array).dtype == array.dtype


def test_memory_of_another_size_is_left_to_python() -> None:
    for held in (bytearray(8), bytearray(16)):
        with pytest.raises(TypeError):  # by the opener, which does not support bytearray
            np.asarray(_array(held, (3,), np.float32))
        held.append(0)  # not lent any more


def test_memory_in_another_order_is_left_to_python() -> None:
    def columns(held: Any) -> Any:
        return np.frombuffer(held, np.float32).reshape(2, 3).T

    held = bytearray(24)
    with pytest.raises(TypeError):  # by the opener, which does not support bytearray
        np.asarray(_array(held, (3, 2), np.float32, columns))
    held.append(0)  # not lent any more


def test_memory_that_is_not_aligned_is_said_to_be_so() -> None:
    array = _array(bytearray(9), (2,), np.float32, lambda held: memoryview(held)[1:])
    assert not np.asarray(array).flags.aligned


@pytest.mark.parametrize("kind", ["the core's", "Python's"])
def test_a_read_waits_before_it_takes_the_lock_under_which_it_looks(kind: str) -> None:
    lock = core.Lock() if kind == "the core's" else RLock()
    told = list[tuple[str, bool]]()

    def tell(what: str) -> Any:
        told.append((what, "count=1" in repr(lock)))
        return bytearray(b"abcd") if what == "view" else None

    def make(held: Any) -> Any:
        steps = {name: lambda _, name=name: tell(name) for name in ("is_ready", "wait", "view")}
        return _array(held, (4,), np.uint8, lock=lock, **steps)

    asked = [("is_ready", False), ("wait", False), ("view", True)]
    assert bytes(np.asarray(make(bytearray(b"abcd")))) == b"abcd"
    assert told == asked
    assert "count=0" in repr(lock)

    def read_again(waited_for: Any) -> list[tuple[str, bool]]:
        waited_for._is_there = True
        told.clear()
        assert bytes(np.asarray(waited_for)) == b"abcd"
        return told

    alone = make(bytearray(b"abcd"))
    assert read_again(alone) == asked[2:]
    another_s = bytearray(b"abcd")  # as if a launch donated it
    shared = make(another_s)
    assert read_again(shared) == asked


def test_an_array_that_was_waited_for_is_known_to_be_there() -> None:
    x = plugrt.device_put(np.float32(1))
    assert not x._is_there
    assert x.block_until_ready()._is_there
    x.delete()
    with pytest.raises(DeletedBuffer):
        np.asarray(x)


def test_a_reader_takes_dimensions_and_a_dtype() -> None:
    for shape, dtype in ([2], np.dtype("f4")), ((2,), "f4"), (("a",), np.dtype("f4")):
        with pytest.raises(TypeError):
            _reader(shape, dtype)
