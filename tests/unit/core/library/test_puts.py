"""Host values as arguments of calls in the compiled core, on a real PJRT library."""

from __future__ import annotations

import gc
import pickle
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.capi import create_client, load_library
from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffers.host_put import Transfers
from plugrt.capi.buffers.native_read import _FUNCTIONS, _REFERENCES
from plugrt.capi.library.client_handle import _OF_CORE
from plugrt.errors import DeletedBuffer, PjrtError
from plugrt.interface import Client
from plugrt.native.native_core import core
from support.library_client import default_client
from support.native_core import python_calls, runs_in_c
from support.xla_cpu import library_path, needs_library

pytestmark = [needs_library, runs_in_c]
H = np.arange(4, dtype=np.float32)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with default_client("core puts") as made:
        yield made


IN_PYTHON = "put"
"""Python's functions for puts."""


def _warm(function: Any, *args: Any) -> Any:
    """Returns a jitted function after two calls with these arguments."""
    jitted = plugrt.jit(function)
    for _ in range(2):
        jitted(*args)
    return jitted


def test_arrays_of_each_dtype_and_numbers_are_put_by_the_core(client: Client) -> None:
    one = plugrt.device_put(np.float32(1))
    where = lambda a, b: xp.where(a == 1, b, a)  # noqa: E731
    for code in "bBhHiIlLqQefdFD":
        value = np.arange(6).reshape(2, 3).astype(code)
        jitted = _warm(lambda a: a * 1, value)
        more = value + value.dtype.type(1)
        with python_calls() as seen:
            found = jitted(more)
        assert IN_PYTHON not in seen, code
        assert (found.dtype, found.shape) == (value.dtype, (2, 3))
        np.testing.assert_array_equal(np.asarray(found), value + value.dtype.type(1))
    for shape in ((), (0, 3), (1, 2, 1, 2)):
        value = np.ones(shape, np.float32)
        value.flags.writeable = False
        jitted = _warm(lambda a, b: a + b, value, one)
        with python_calls() as seen:
            found = jitted(value, one)
        assert found.shape == shape
        assert IN_PYTHON not in seen
    numbers = ((2.5, -0.0), (7, -(2**31)), (2**40, -(2**62)), (True, False), (1j, -2j))
    for array, (first, number_after) in zip("fil?F", numbers, strict=True):
        one = plugrt.device_put(np.ones((), array))
        jitted = _warm(where, one, first)
        for number in (number_after, first, number_after):
            with python_calls() as seen:
                result = jitted(one, number)
            assert IN_PYTHON not in seen
            found = np.asarray(result)
            assert (repr(found.item()), found.dtype.char) == (repr(number), np.dtype(array).char)
    wide = _warm(lambda a, b: a + b, np.ones(2), 0.5)  # a Python float beside float64 is float64
    assert np.asarray(wide(np.ones(2), 0.1)).tolist() == [1.1, 1.1]


def test_scalars_strided_arrays_and_the_dtypes_of_ml_dtypes_are_put_by_the_core(
    client: Client,
) -> None:
    wide = np.arange(24, dtype=np.float32).reshape(4, 6)
    scalars = [
        np.float32(2),
        np.int32(3),
        np.bool_(True),
        np.float64(4),
        np.longlong(5),
        np.half(6),
    ]
    small = [ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn, ml_dtypes.int4]
    views = [wide[::2, ::3], wide.T, wide[::-1], np.broadcast_to(H, (2, 4)), H[::2], wide[:0, ::2]]
    for value in (*scalars, *views, *(H.astype(t) for t in small), ml_dtypes.bfloat16(7)):
        jitted = _warm(lambda a: xp.where(a == a, a, a), value)
        with python_calls() as seen:
            found = jitted(value)
        assert IN_PYTHON not in seen, value
        assert (found.dtype, found.shape) == (value.dtype, value.shape)
        assert not found._aval.weak
        np.testing.assert_array_equal(np.asarray(found), value)
    x = plugrt.device_put(H)
    plus = _warm(lambda a, b: a + b, x, np.array(1, np.float32))  # as a scalar, for a call
    for number in (2, -3):
        np.testing.assert_array_equal(np.asarray(plus(x, np.float32(number))), H + number)
    unpickled = pickle.loads(pickle.dumps(H))
    assert unpickled.dtype is not H.dtype
    more = _warm(lambda a: a + 1, H)
    with python_calls() as seen:
        found = more(unpickled)
    assert IN_PYTHON not in seen
    np.testing.assert_array_equal(np.asarray(found), H + 1)
    with python_calls() as seen:
        plugrt.jit(lambda a: a - 1)(H)
    assert IN_PYTHON in seen, "the first call is Python's"


def test_a_call_reads_the_array_as_it_is_then_and_keeps_nothing_of_it(client: Client) -> None:
    changing = np.zeros(4, np.float32)
    jitted = _warm(lambda a, b: a + b, changing, H)
    count = sys.getrefcount(changing)
    results = []
    for i in range(5):
        changing[:] = i
        results.append(jitted(changing, H))
    changing[:] = 99
    for i, result in enumerate(results):
        np.testing.assert_array_equal(np.asarray(result), H + i)
    assert sys.getrefcount(changing) == count
    changing.resize(8, refcheck=False)  # no view of it is left
    np.testing.assert_array_equal(np.asarray(jitted(changing[:4], H)), changing[:4] + H)


class Counting:
    """A core client that counts calls of the library's functions; a put can fail on request."""

    def __init__(self, client: Client) -> None:
        self.alive, self.fail_at = Counter[str](), -1
        handle = client.handle()
        self.made = handle.core
        slots = handle.library.slots
        self.functions = []
        for name in _OF_CORE:
            kind = f"PJRT_Error*(struct PJRT_{name}_Args*)"
            self.functions.append(ffi.callback(kind, self._count(name, slots[name])))
        addresses = [int(ffi.cast("uintptr_t", f)) for f in self.functions]
        log = lambda *_: None  # noqa: E731
        self.core = core.Client(*addresses, log, log, handle.pointer, 144)

    def _count(self, name: str, function: Any) -> Any:
        def call(args: Any) -> Any:
            if name == "Client_BufferFromHostBuffer":
                self.fail_at -= 1
                if self.fail_at == -1:
                    args.struct_size = 1
            error = function(args)
            if not error and name == "Client_BufferFromHostBuffer":
                self.alive.update(["buffer", "event"])
            elif name in ("Buffer_Destroy", "Event_Destroy"):
                self.alive.subtract([name.partition("_")[0].lower()])
            return error

        return call


def test_a_put_that_fails_leaves_nothing_behind_and_raises_what_pythons_does(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = client.handle()
    counting = Counting(client)
    monkeypatch.setattr(handle, "core", counting.core)
    monkeypatch.setattr(client, "_transfers", Transfers(client, handle))  # puts by this core
    jitted = _warm(lambda a, b, c: a + b + c, H, H, H)
    gc.collect()
    counting.alive.clear()
    np.testing.assert_array_equal(np.asarray(jitted(H, H, H)), 3 * H)
    assert counting.alive["event"] == 0
    errors = []
    for fail_at in range(3):
        counting.alive.clear()
        counting.fail_at = fail_at
        with pytest.raises(PjrtError) as caught:
            jitted(H, H, H)
        errors.append(caught.value)
        assert not +counting.alive, fail_at
    monkeypatch.setattr(
        plugrt.capi.buffers.host_put, "is_known", lambda _: False
    )  # Python makes the puts
    transfers = Transfers(client, handle)
    real = handle.library.get_hot_slot("Client_BufferFromHostBuffer")

    def fail(args: Any) -> Any:
        args.struct_size = 1
        return real(args)

    transfers._launch = fail
    with pytest.raises(PjrtError) as expected:
        transfers.put(H, client.devices()[0], None, 0)
    assert {(type(e), str(e)) for e in errors} == {(type(expected.value), str(expected.value))}
    np.testing.assert_array_equal(np.asarray(jitted(H, H, H)), 3 * H)


def test_nothing_is_put_on_a_client_that_is_closed() -> None:
    path = library_path()
    assert path is not None
    closed = create_client(load_library(path), {"cpu_device_count": 1}, name="closed")
    device = closed.devices()[0]
    jitted, x = plugrt.jit(lambda a, b: a + b), plugrt.device_put(H, device)
    for _ in range(2):
        jitted(x, H)
        plugrt.device_put(H, device)
    closed.close()
    for call in (lambda: jitted(x, H), lambda: plugrt.device_put(H, device)):
        with pytest.raises(plugrt.errors.FailedPrecondition, match="is closed"):
            call()
    np.testing.assert_array_equal(np.asarray(jitted(x, x)), 2 * H)


def test_small_results_are_read_by_the_core_as_copies_and_others_viewed(client: Client) -> None:
    jitted = plugrt.jit(lambda a: a * 2)
    for count in (1, 256, 257):  # 257 float32 are more than 1 kB
        x = plugrt.device_put(np.arange(count, dtype=np.float32))
        first, second = jitted(x), jitted(x)
        np.asarray(first)  # determines how such buffers are read
        [buffer] = second._live()
        assert type(buffer._spec.reader) is core.Reader
        out = np.asarray(second)
        assert (out.ctypes.data == second.unsafe_buffer_pointer()) == (count > 256)
        assert not out.flags.writeable
        second.delete()
        np.testing.assert_array_equal(out, 2 * np.arange(count, dtype=np.float32))
        with pytest.raises(DeletedBuffer):
            buffer.read_to_host()
    for dtype in ("bool", "complex64", "bfloat16", "int8"):
        x = plugrt.device_put(np.ones((2, 3), dtype))
        for _ in range(2):
            out = np.asarray(plugrt.device_put(x, may_alias=False))
            assert (out.dtype, out.shape, out.all()) == (np.dtype(dtype), (2, 3), True)


def _while_avals_are_found(act: Callable[[], None], call: Callable[[], Any]) -> None:
    """Calls it, and acts like another thread while Python finds the aval of a host value."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == "quick_avals":
            act()

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)


def test_an_array_that_is_reshaped_while_it_is_looked_at_does_not_stand_for_others(
    client: Client,
) -> None:
    device = client.devices()[0]
    jitted = plugrt.jit(lambda a, b: a.T + b)
    one = plugrt.device_put(np.float32(1), device)
    for _ in range(3):
        jitted(np.zeros(33, np.float32), one)
    changed: Any = np.zeros((3, 11), np.float32)

    def reshape() -> None:
        changed.shape = (33,)

    _while_avals_are_found(reshape, lambda: jitted(changed, one))
    assert changed.shape == (33,)
    for _ in range(3):
        assert jitted(np.zeros((3, 11), np.float32), one).shape == (11, 3)


def test_addresses_in_the_first_page_are_not_read(client: Client) -> None:
    x = plugrt.device_put(np.arange(4, dtype=np.float32), client.devices()[0])
    buffer = x._shards
    handle = buffer._spec.handle
    functions = [handle.library.slots[name] for name in _FUNCTIONS]
    where = _FUNCTIONS.index("Buffer_UnsafePointer")
    asked = []

    def answer(args: Any) -> Any:
        asked.append(args)
        args.buffer_pointer = 0
        return ffi.NULL

    functions[where] = ffi.callback(ffi.typeof(functions[where]), answer)
    counters = [int(ffi.cast("uintptr_t", handle.library.slots[name])) for name in _REFERENCES]
    reader = core.Reader(
        references=core.References(handle.core, *counters, handle.lock),
        functions=tuple(int(ffi.cast("uintptr_t", f)) for f in functions),
        is_memory=handle.is_memory,
        shape=(4,),
        dtype=np.dtype(np.float32),
        views=False,
    )
    assert reader(buffer) is None
    assert asked
