"""`jit`: when it traces and compiles, and which objects it keeps alive."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from typing import Any

import numpy as np

from plugrt import clear_caches, config, device_put, devices, jit
from support.compiles import compilations
from support.jax_oracle import jax
from support.ops import add, mul

X = np.arange(3, dtype=np.float32)


def test_shapes_dtypes_and_weakness() -> None:
    f = jit(lambda x: mul(x, x))
    x = device_put(X)
    assert compilations(
        f, (x,), (x,), (X,), (X + 1,), (X[:2],), (X.astype(np.float64),), (np.float32(1),),
        (1.0,), (2.0,), (1,), (True,),
    ) == [1, 0, 0, 0, 1, 1, 1, 1, 0, 1, 1]  # fmt: skip


def test_jits_of_one_function_share_programs() -> None:
    def f(x: Any) -> Any:
        return add(x, 1)

    assert compilations(lambda x: jit(f)(x), (X,), (X,)) == [1, 0]
    assert compilations(jit(f, keep_unused=True), (X,)) == [1]
    assert jit(f)._cache_size() >= 1


def test_unused_arguments_are_pruned() -> None:
    f = jit(lambda x, y, z: add(x, z))
    unused = device_put(X, devices()[1])
    text = f.lower(X, X, X).as_text()
    assert text.count("%arg") < jit(lambda x, y, z: add(x, z), keep_unused=True).lower(
        X, X, X
    ).as_text().count("%arg")
    unused.delete()
    np.testing.assert_array_equal(f(X, np.ones(7), X), 2 * X)


def test_kept_unused_arguments_reach_the_program() -> None:
    f = jit(lambda x, y: add(x, 1), keep_unused=True)
    assert f.lower(X, X).as_text().count("%arg1") == 1
    np.testing.assert_array_equal(f(X, X), X + 1)


def test_forwarded_outputs_share_memory() -> None:
    """Nothing is copied where nothing is computed.

    Differs from JAX: the memory of results that are arguments, or one value twice | each has its
    own | they share it; a donation deletes the donated array alone.
    """
    x = device_put(X)
    one, two = jit(lambda x: (x, x))(x)
    assert one.unsafe_buffer_pointer() == two.unsafe_buffer_pointer()
    jit(lambda v: v + 1, donate_argnums=0)(one)
    assert one.is_deleted()
    np.testing.assert_array_equal(two, X)
    np.testing.assert_array_equal(x, X)
    theirs = jax.jit(lambda x: (x, x))(X)
    assert theirs[0].unsafe_buffer_pointer() != theirs[1].unsafe_buffer_pointer()
    same, more = jit(lambda x: (x, add(x, 1)))(x)
    assert same.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(more, X + 1)
    assert more.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()


def test_programs_go_with_the_function() -> None:
    big = device_put(np.ones(3))

    def f(x: Any, big: Any = big) -> Any:
        return add(x, big)

    jitted = jit(f)
    jitted(X)
    references = [weakref.ref(f), weakref.ref(big), weakref.ref(jitted)]
    del f, big, jitted
    gc.collect()
    assert [r() for r in references] == [None] * 3


def test_a_jit_within_a_function_leaves_nothing() -> None:
    def use() -> weakref.ref[Any]:
        inner = jit(lambda x: add(x, 1))
        jit(lambda x: inner(inner(x)))(X)
        return weakref.ref(inner)

    reference = use()
    gc.collect()
    assert reference() is None


def test_unhashable_callables_keep_their_own_cache() -> None:
    class Callable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, x: Any) -> Any:
            return add(x, 1)

    f = jit(Callable())
    assert compilations(f, (X,), (X,)) == [1, 0]
    np.testing.assert_array_equal(jit(lambda x: mul(f(x), f(x)))(X), (X + 1) ** 2)


def test_clearing() -> None:
    f, g = jit(lambda x: add(x, 1)), jit(lambda x: add(x, 2))
    f(X), g(X)
    f.clear_cache()
    assert f._cache_size() == 0
    assert compilations(g, (X,)) == [0]
    assert compilations(f, (X,)) == [1]
    clear_caches()
    assert compilations(g, (X,)) == [1]
    assert compilations(add, (X, X)) == [1]


def together(*functions: Any) -> list[Any]:
    """Runs functions in threads that start at once; returns results or exceptions."""
    barrier = threading.Barrier(len(functions))
    results: list[Any] = [None] * len(functions)

    def run(i: int) -> None:
        barrier.wait()
        try:
            results[i] = functions[i]()
        except Exception as error:  # noqa: BLE001 handed to the test
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def test_threads_trace_one_function_at_once() -> None:
    @jit
    def f(x: Any) -> Any:
        for i in range(20):
            x = add(mul(x, 1), i)
        return x

    results = together(*[lambda: f(X)] * 6)
    for result in results:
        np.testing.assert_array_equal(result, X + 190)


def test_threads_that_miss_together_trace_once() -> None:
    traced: list[int] = []

    @jit
    def f(x: Any) -> Any:
        traced.append(1)
        time.sleep(0.05)  # long enough for the other threads to arrive
        return add(x, 1)

    for result in together(*[lambda: f(X)] * 6):
        np.testing.assert_array_equal(result, X + 1)
    assert len(traced) == 1


def test_another_thread_traces_again_after_a_failure() -> None:
    traced: list[int] = []

    @jit
    def f(x: Any) -> Any:
        traced.append(1)
        time.sleep(0.05)
        if len(traced) == 1:
            raise ValueError("the first time")
        return add(x, 1)

    results = together(*[lambda: f(X)] * 4)
    errors = [r for r in results if isinstance(r, Exception)]
    assert [str(e) for e in errors] == ["the first time"]
    assert len(traced) == 2


def test_threads_trace_different_functions_at_once() -> None:
    inner = jit(lambda x: add(x, 1))

    def make(n: int) -> Any:
        f = jit(lambda x: inner(mul(x, n)))
        return lambda: [np.asarray(f(X[: 1 + i % 3])) for i in range(9)]

    for n, result in enumerate(together(*[make(n) for n in range(6)])):
        assert not isinstance(result, Exception), result
        for i, value in enumerate(result):
            np.testing.assert_array_equal(value, X[: 1 + i % 3] * n + 1)


def test_threads_launch_and_clear_at_once() -> None:
    f = jit(lambda x, y: add(x, y))
    x = device_put(X)
    stop = threading.Event()

    def clear() -> None:
        while not stop.is_set():
            f.clear_cache()
            stop.wait(0.005)

    def launch() -> Any:
        for _ in range(60):
            y = f(x, x)
        return y

    def launches() -> Any:
        try:
            return launch()
        finally:
            stop.set()

    results = together(clear, launches, launch, launch)
    for result in results[1:]:
        np.testing.assert_array_equal(result, 2 * X)


def test_settings_of_one_thread_do_not_reach_another() -> None:
    f = jit(lambda x: mul(x, 2.5))
    n = device_put(np.arange(3, dtype=np.int32))

    def wide() -> Any:
        with config.override(enable_x64=True):
            return [f(n).dtype for _ in range(20)]

    wides, narrows = together(wide, lambda: [f(n).dtype for _ in range(20)])
    assert set(wides) == {np.dtype(np.float64)}
    assert set(narrows) == {np.dtype(np.float32)}


def test_containers_of_two_leaves_are_told_apart_whatever_the_keys_of_a_dict() -> None:
    f = jit(lambda x: x)
    a = device_put(X)
    for _ in range(2):
        for arguments in ([a, a], (a, a), {list: a, 2: a}, {tuple: a, 2: a}, {2: a, ~2: a}):
            returned = f(arguments)
            assert type(returned) is type(arguments)
            assert type(returned) is not dict or set(returned) == set(arguments)
