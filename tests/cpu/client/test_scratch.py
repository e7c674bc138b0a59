"""NumPy arguments of launches: copied to memory that is used again, and never seen twice."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.errors import DeletedBuffer
from plugrt.native.native_core import core, reason
from plugrt_cpu import adapter
from support.native_core import runs_in_c

DTYPES = ["bool", "int8", "uint64", "float16", "bfloat16", "int4", "complex64", "float64"]


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """Returns a list that grows with each call of that function of the adapter."""
    calls: list[str] = []
    real = getattr(adapter, name)

    def counting(*args: Any) -> Any:
        calls.append(name)
        return real(*args)

    monkeypatch.setattr(adapter, name, counting)
    return calls


@pytest.mark.skipif(core is None, reason=f"without the core arguments are put: {reason}")
@pytest.mark.parametrize(
    "call",
    [
        lambda f, host, there: f(host, there),
        lambda f, host, there: f(there, host),
        lambda f, host, there: f(host, host),
        lambda f, host, there: f(host, 2.0),
        lambda f, host, there: f(b=host, a=there),
    ],
)
def test_warm_calls_with_small_numpy_arrays_put_nothing(
    call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    add = plugrt.jit(lambda a, b: a + b)
    host = np.arange(4, dtype=np.float32)
    there = plugrt.device_put(host)
    first = np.asarray(call(add, host, there))
    puts = counted(monkeypatch, "put")
    np.testing.assert_array_equal(np.asarray(call(add, host, there)), first)
    assert puts == []


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 0,
        lambda x: x * 1,
        lambda x: x.reshape(2, 3, 2),
        lambda x: xp.permute_dims(x, (1, 0)),
        lambda x: (x + 0, x.reshape(12), x[1:]),
        lambda x: {"a": x * 2, "b": xp.flip(x)},
    ],
)
def test_results_never_see_what_the_source_or_the_next_call_holds(
    function: Callable[..., Any],
) -> None:
    jitted = plugrt.jit(function)
    source = np.zeros((3, 4), np.float32)
    results, expected = [], []
    for i in range(20):
        source[:] = np.arange(12).reshape(3, 4) + i
        results.append(plugrt.tree.leaves(jitted(source)))
        expected.append(plugrt.tree.leaves(function(plugrt.device_put(source.copy()))))
    source[:] = -1
    for got, wanted in zip(results, expected, strict=True):
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3), (300, 301)])
def test_arguments_of_every_dtype_and_size_arrive(shape: tuple[int, ...], dtype: str) -> None:
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    swap = plugrt.jit(lambda a, b: (xp.concat([b.reshape(-1), a.reshape(-1)]), a == a))
    for i in range(3):
        a = np.full(shape, i, np.int64).astype(kind)
        b = np.full(shape, i + 1, np.int64).astype(kind)
        got, same = swap(a, b)
        wanted = np.concatenate([b.reshape(-1), a.reshape(-1)])
        np.testing.assert_array_equal(np.asarray(got), wanted)
        assert got.dtype == kind
        assert np.asarray(same).all()


def test_sources_of_any_layout_arrive() -> None:
    plus = plugrt.jit(lambda a, b: a - b)
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    read_only = whole.copy()
    read_only.flags.writeable = False
    sources = [whole[::2, ::3], whole.T[1:5:2, :2], whole[::-2, ::-3], read_only[:2, :2]]
    for _ in range(2):
        for source in [*sources, np.asfortranarray(sources[0]), sources[0].astype(">f4")]:
            np.testing.assert_array_equal(np.asarray(plus(source, sources[0])), source - sources[0])


def test_a_launch_that_fails_leaves_the_next_one_whole() -> None:
    add = plugrt.jit(lambda a, b: a + b)
    host = np.arange(4, dtype=np.float32)
    there = plugrt.device_put(host)
    add(host, there)
    gone = plugrt.device_put(host)
    gone.delete()
    for _ in range(12):
        with pytest.raises(DeletedBuffer):
            add(host, gone)
    np.testing.assert_array_equal(np.asarray(add(host + 1, there)), 2 * host + 1)


def test_arrays_that_are_no_result_of_a_launch_go_beside_host_arrays() -> None:
    add = plugrt.jit(lambda a, b: (a + b, a - b))
    host = np.arange(4, dtype=np.float32)
    there = plugrt.device_put(host)
    for other in (copy.copy(there), copy.copy(there), there):
        plus, minus = add(host, other)
        np.testing.assert_array_equal(np.asarray(plus), 2 * host)
        np.testing.assert_array_equal(np.asarray(minus), 0 * host)
    one = plugrt.jit(lambda a, b: a + b)
    np.testing.assert_array_equal(np.asarray(one(host, copy.copy(there))), 2 * host)


@pytest.mark.parametrize("several", [False, True])
def test_arguments_without_use_are_passed_over(several: bool) -> None:
    f = plugrt.jit(lambda a, _, b, n: (a - b, b) if several else a - b, static_argnums=3)
    host = np.arange(4, dtype=np.float32)
    there = plugrt.device_put(host)
    for unused in (host, there, 1.5):
        for a, b in ((host, host + 1), (host, there), (there, host + 2), (host, 2.0)):
            for _ in range(2):
                got = f(a, unused, b, "static")
                got = got[0] if several else got
                np.testing.assert_array_equal(np.asarray(got), host - np.asarray(b))


def test_donating_the_other_argument_takes_that_one_only() -> None:
    add = plugrt.jit(lambda a, b: a + b, donate_argnums=0)
    host = np.arange(4, dtype=np.float32)
    for i in range(3):
        state = plugrt.device_put(host + i)
        np.testing.assert_array_equal(np.asarray(add(state, host)), 2 * host + i)
        assert state.is_deleted()
        np.testing.assert_array_equal(np.asarray(add(host, plugrt.device_put(host))), 2 * host)


def test_results_that_are_not_there_yet_keep_their_arguments() -> None:
    def slow(x: Any, n: Any) -> Any:
        return plugrt.lax.fori_loop(0, n, lambda i, y: y @ y / 2.0, x)

    run = plugrt.jit(slow)
    source = np.zeros((100, 100), np.float32)
    results = []
    for i in range(12):
        source[:] = _diagonal(i)
        results.append(run(source, np.int32(200)))
        source[:] = 7
    for i, result in enumerate(results):
        wanted = np.asarray(run(plugrt.device_put(_diagonal(i)), np.int32(200)))
        np.testing.assert_array_equal(np.asarray(result), wanted)


def _diagonal(corner: float) -> npt.NDArray[np.float32]:
    matrix = np.zeros((100, 100), np.float32)
    np.fill_diagonal(matrix, 2.0)
    matrix[0, 1] = corner
    return matrix


def test_threads_that_launch_one_program_do_not_share_memory() -> None:
    double = plugrt.jit(lambda a, b: a + b)
    wrong: list[Any] = []

    def call(number: int) -> None:
        host = np.full(64, number, np.float32)
        for i in range(300):
            result = np.asarray(double(host, host * i))
            if not (result == number * (i + 1)).all():
                wrong.append((number, i, result))

    threads = [threading.Thread(target=call, args=(n,)) for n in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("several", [False, True])
def test_arrays_on_another_device_arrive(several: bool) -> None:
    f = plugrt.jit(lambda a, _, b: (a - b, a * b) if several else a - b)
    here, there = plugrt.devices()[0], plugrt.devices()[-1]
    host = np.arange(4, dtype=np.float32)
    at = plugrt.device_put(host, there)
    results = []
    for i in range(10):
        near = plugrt.device_put(host + i)
        for other in (near, copy.copy(near), near[:], host + i):
            for unused in (near, at, 1.0):
                found = plugrt.tree.leaves(f(at, unused, other))
                assert {r.device for r in found} == {there}
                results.append((i, found))
        near.delete()
        with pytest.raises(DeletedBuffer):
            f(at, at, near)
    for i, found in results:
        np.testing.assert_array_equal(np.asarray(found[0]), np.full(4, -i, np.float32))
        if several:
            np.testing.assert_array_equal(np.asarray(found[1]), host * (host + i))
    assert near.is_deleted()
    assert not at.is_deleted()
    assert here is not there


def test_arrays_on_another_device_that_are_not_there_yet_arrive() -> None:
    def slow(x: Any, n: Any) -> Any:
        return plugrt.lax.fori_loop(0, n, lambda i, y: y @ y / 2.0, x)

    make, add = plugrt.jit(slow), plugrt.jit(lambda a, b: a + b)
    at = plugrt.device_put(np.zeros((100, 100), np.float32), plugrt.devices()[-1])
    results = [add(at, make(_diagonal(i), np.int32(200))) for i in range(12)]
    for i, result in enumerate(results):
        wanted = np.asarray(make(plugrt.device_put(_diagonal(i)), np.int32(200)))
        np.testing.assert_array_equal(np.asarray(result), wanted)


@runs_in_c
@pytest.mark.parametrize(("count", "kept"), [(64, 40), (1 << 15, 15), (1 << 20, 0)])
def test_large_results_are_not_kept(count: int, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a call returned is freed once nobody has it, although its launch read host memory."""
    found: list[int] = []
    real = core.ScratchPut

    def make(**given: Any) -> Any:
        found.append(given["late"])
        return real(**given)

    monkeypatch.setattr(core, "ScratchPut", make)
    plugrt.jit(lambda x: xp.broadcast_to(x[0], (count,)))(np.ones(4, np.float32))
    assert found == [kept]
