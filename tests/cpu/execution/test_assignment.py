"""Assignments to arrays, ``x[key] = value``: aliases see them, other arrays keep the old values.

Differs from JAX: `x[key] = value` | a TypeError | assigns, as in NumPy; other arrays and views
keep the old values. `config.read_only_arrays` makes it a TypeError.
"""

from __future__ import annotations

import copy
import gc
import pickle
import random
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.sharding import NamedSharding, PartitionSpec
from support.effort import seeds
from support.native_core import IN_C

DTYPES = (
    np.float32, np.int32, np.uint8, np.bool_, np.complex64, np.float64, np.float16,
    ml_dtypes.bfloat16, ml_dtypes.int4,
)  # fmt: skip


def random_array(shape: tuple[int, ...], dtype: type, seed: int) -> Any:
    """Returns random numbers from 0 to 6."""
    return np.asarray(np.random.RandomState(seed).rand(*shape) * 7).astype(dtype)


def random_part(rng: random.Random, n: int, arrays: bool) -> Any:
    """Returns a key for an axis of n elements."""
    kind = rng.choice(["slice", "slice", "index", "array"])
    if kind == "array" and arrays:
        return np.array(rng.sample(range(n), rng.randint(0, n)), rng.choice([np.int32, np.int64]))
    if kind == "index" and n:
        return rng.randrange(-n, n)
    ends = [None, *range(-n - 2, n + 2)]
    return slice(rng.choice(ends), rng.choice(ends), rng.choice([None, 1, 2, -1, -2]))


def random_key(rng: random.Random, shape: tuple[int, ...]) -> Any:
    """Returns a mask of the first axes, or keys for some axes, at most one of them an array."""
    if shape and rng.random() < 0.2:
        masked = shape[: rng.randint(1, len(shape))]
        return np.asarray(np.random.RandomState(rng.randrange(10**6)).rand(*masked) < 0.5)
    parts: list[Any] = []
    arrays = rng.random() < 0.5
    for n in shape[: rng.randint(0, len(shape))]:
        part = random_part(rng, n, arrays)
        arrays = arrays and not isinstance(part, np.ndarray)
        parts.append(part)
    if rng.random() < 0.3:
        parts.insert(rng.randint(0, len(parts)), None)
    if rng.random() < 0.2:
        parts.append(...)
    return parts[0] if len(parts) == 1 and parts[0] is not None else tuple(parts)


def random_values(rng: random.Random, shape: tuple[int, ...], dtype: type, seed: int) -> Any:
    """Returns values that broadcast to a shape."""
    if rng.random() < 0.3:
        return dtype(3)
    start = rng.randint(0, len(shape)) if rng.random() < 0.4 else 0
    return random_array(shape[start:], dtype, seed)


@pytest.mark.parametrize("seed", seeds(8))
def test_assignments_as_numpy(seed: int) -> None:
    rng, cases = random.Random(seed), []

    @plugrt.jit
    def assign_all(given: list[tuple[Any, Any]]) -> list[Any]:
        for (x, values), (key, *_) in zip(given, cases, strict=True):
            x[key] = values
        return [x for x, _ in given]

    for i in range(25):
        shape = tuple(rng.randint(0, 4) for _ in range(rng.randint(0, 4)))
        dtype, key = rng.choice(DTYPES), random_key(rng, shape)
        expected = random_array(shape, dtype, i)
        values = random_values(rng, expected[key].shape, dtype, i + 1)
        old, x = expected.copy(), xp.asarray(expected.copy())
        cases.append((key, expected, (xp.asarray(old), values), f"{shape} {dtype} {key}"))
        view, host = x[...], np.asarray(x)
        expected[key] = values
        x[key] = xp.asarray(values) if rng.random() < 0.5 else values
        np.testing.assert_array_equal(x, expected, err_msg=cases[-1][-1])
        np.testing.assert_array_equal(view, old)
        np.testing.assert_array_equal(host, old)
        assert (x.shape, x.dtype) == (shape, dtype)
    jitted = assign_all([given for _, _, given, _ in cases])
    for result, (_, expected, _, what) in zip(jitted, cases, strict=True):
        np.testing.assert_array_equal(result, expected, err_msg=f"jitted {what}")


def capture(x: Any) -> Callable[[], Any]:
    """Returns a compiled function that captures the current values of an array as constants."""
    return plugrt.jit(lambda: x + 0).lower().compile()


ALIASES: dict[str, Callable[[Any], Any]] = {
    "view": np.asarray,
    "dlpack": np.from_dlpack,
    "slice": lambda x: x[...],
    "part": lambda x: x.addressable_shards[0].data,
    "put": lambda x: plugrt.device_put(x, x.device),
    "copy": lambda x: xp.asarray(x, copy=True),
    "program": plugrt.jit(lambda x: x),
    "launch": plugrt.jit(lambda x: x + 0),
    "captured": capture,
    "transposed": lambda x: x.T.T,
    "half": lambda x: xp.concat((x[:2], x[2:])),
}
if IN_C:
    ALIASES["memory"] = memoryview
    ALIASES["bytes"] = lambda x: np.frombuffer(x, x.dtype).reshape(x.shape)


def read_alias(alias: Any) -> Any:
    if isinstance(alias, memoryview):
        return alias.tolist()
    return alias() if callable(alias) else alias


@pytest.mark.parametrize("seed", seeds(4))
def test_aliases_made_between_assignments_keep_their_values(seed: int) -> None:
    rng = random.Random(seed)
    dtype = rng.choice((np.float32, np.int32, np.uint8))
    start = random_array((6, 24000) if seed % 2 else (600, 240), dtype, seed)
    x, expected = xp.asarray(start.copy()), start.copy()
    keys = [random_key(rng, x.shape) for _ in range(4)] if seed % 2 else [slice(2, 500), (..., 1)]
    kept: list[tuple[str, Any, Any]] = []
    for step in range(60):
        for name in rng.sample([*ALIASES], rng.choice((0, 0, 0, 1, 2))):
            kept.append((name, ALIASES[name](x), expected.copy()))
        i, j = (rng.randrange(n) for n in x.shape)
        key = rng.choice((i, (i, j), (-i - 1, -j - 1), rng.choice(keys)))
        kind = rng.choice(("number", "numpy", "own", "alias"))
        if kind == "number":
            x[key] = expected[key] = rng.randrange(100)
        elif kind == "alias" and kept and isinstance(kept[-1][1], np.ndarray):
            _, alias, had = kept[-1]
            x[key], expected[key] = alias[key], had[key]
        elif kind == "own":
            x[...] = x
            x[0], expected[0] = x[-1], expected[-1]
        else:
            values = random_array(expected[key].shape, dtype, step)
            x[key], expected[key] = values, values
        if rng.random() < 0.5:
            rng.shuffle(kept)
            del kept[5:]
            np.testing.assert_array_equal(x[...], expected)
        for name, alias, had in kept:
            np.testing.assert_array_equal(read_alias(alias), had, err_msg=f"{name} {step}")
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("imported", ["numpy", "dlpack", "aliased"])
def test_imported_memory_stays(imported: str) -> None:
    memory = np.arange(65536, dtype=np.float32)
    if imported == "numpy":
        x = xp.asarray(memory)
    elif imported == "dlpack":
        x = xp.from_dlpack(memory)
    else:
        x = plugrt.device_put(memory, may_alias=True)
    for i in range(3):
        x[i] = -1
    assert memory[:3].tolist() == [0, 1, 2]
    assert x[:4].tolist() == [-1, -1, -1, 3]


def test_a_failed_assignment_leaves_the_array() -> None:
    x = xp.arange(65536)
    x[0] = 5
    for value in (1.5, np.ones(3)):
        with pytest.raises((TypeError, ValueError)):
            x[:2] = value
    x[1] = 7
    assert x[:4].tolist() == [5, 7, 2, 3]


def test_an_alias_sees_it() -> None:
    x = xp.arange(4.0)
    y = x
    x[1] = 9
    assert y is x
    assert y.tolist() == [0, 9, 2, 3]


# The list in docs/arrays.md.
ITSELF: dict[str, Callable[[Any], Any]] = {
    "asarray": xp.asarray,
    "from_dlpack": xp.from_dlpack,
    "astype": lambda x: x.astype(x.dtype, copy=False),
    "nan_to_num": lambda x: np.nan_to_num(x, copy=False),
    "device_put": plugrt.device_put,
    "wait": plugrt.block_until_ready,
    "stop_gradient": lax.stop_gradient,
}


@pytest.mark.parametrize("same", ITSELF)
def test_functions_that_return_the_array_itself(same: str) -> None:
    x = xp.arange(4.0)
    assert ITSELF[same](x) is x


@pytest.mark.parametrize("how", ["device_put", "to_device", "asarray"])
def test_only_an_array_that_is_committed_to_a_place_is_the_result_of_a_put_there(how: str) -> None:
    device = plugrt.devices()[0]
    put: Any = {
        "device_put": plugrt.device_put, "to_device": lambda x, place: x.to_device(place),
        "asarray": lambda x, place: xp.asarray(x, device=place),
    }[how]  # fmt: skip
    for place in (device, plugrt.sharding.SingleDeviceSharding(device)):
        x = xp.arange(4.0)
        y = put(x, place)
        x[0] = 9
        assert y.tolist() == [0, 1, 2, 3]
        assert put(y, place) is y
        assert plugrt.device_put(y, place, may_alias=False) is not y


def test_assigning_a_large_integer_keeps_the_low_bits() -> None:
    x = xp.zeros(2, dtype=xp.uint8)
    x[0] = 300
    assert x.tolist() == [44, 0]


def test_hash_and_comparison_stay() -> None:
    x, y = xp.arange(3.0), xp.arange(3.0)
    for expected in ([True] * 3, [False, True, True]):
        with pytest.raises(TypeError, match="unhashable"):
            hash(x)
        assert (x == y).tolist() == expected
        assert (x != y).tolist() == [not same for same in expected]
        x[0] = 9


def test_an_operator_makes_a_new_array() -> None:
    x = y = xp.arange(4.0)
    x += 1
    assert (x.tolist(), y.tolist()) == ([1, 2, 3, 4], [0, 1, 2, 3])
    x[0] += 5
    assert x.tolist() == [6, 2, 3, 4]


MADE: dict[str, Callable[[Any], Any]] = {
    "slice": lambda x: x[...],
    "numpy": np.asarray,
    "memory": lambda x: np.from_dlpack(x),
    "operator": lambda x: +x,
    "copy": lambda x: xp.asarray(x, copy=True),
    "reshape": lambda x: x.reshape(4),
    "program": lambda x: plugrt.jit(lambda v: v)(x),
    "put": lambda x: plugrt.device_put(x, x.device),
    "part": lambda x: x.addressable_shards[0].data,
    "branch": lambda x: lax.cond(True, lambda v: v, lambda v: v, x),
    "loop": lambda x: lax.fori_loop(0, 0, lambda i, v: v, x),
}


ON_TRACERS = [name for name in MADE if name not in ("numpy", "memory", "put", "part")]


@pytest.mark.parametrize(
    ("made", "traced"), [*((name, False) for name in MADE), *((name, True) for name in ON_TRACERS)]
)
def test_arrays_made_before_an_assignment_keep_the_old_values(made: str, traced: bool) -> None:
    def f(x: Any) -> tuple[Any, Any]:
        y = MADE[made](x)
        x[0] = 9
        return x, y

    x, y = (plugrt.jit(f) if traced else f)(xp.arange(4.0))
    assert ([*map(float, x)], [*map(float, y)]) == ([9, 1, 2, 3], [0, 1, 2, 3])


def test_assigning_to_what_was_made_leaves_the_whole() -> None:
    x = xp.arange(4.0)
    part = x.addressable_shards[0].data
    part[0] = 9
    assert (x.tolist(), part.tolist()) == ([0, 1, 2, 3], [9, 1, 2, 3])
    x.delete()
    assert part.tolist() == [9, 1, 2, 3]


def test_the_place_stays() -> None:
    devices = plugrt.devices()
    if len(devices) < 2:
        pytest.skip("no second device here")
    mesh = plugrt.make_mesh((2,), ("x",))
    divided = NamedSharding(mesh, PartitionSpec("x"))
    x = plugrt.device_put(np.arange(8.0, dtype=np.float32), divided)
    aval = x.aval
    x[1:3] = 7
    assert x.aval is aval
    assert [part.data.tolist() for part in x.addressable_shards] == [[0, 7, 7, 3], [4, 5, 6, 7]]
    whole = plugrt.device_put(np.zeros(8, np.float32), NamedSharding(mesh, PartitionSpec()))
    whole[:] = x
    assert [part.data.tolist() for part in whole.addressable_shards] == [x.tolist()] * 2
    one = xp.arange(4.0)
    one[0] = plugrt.device_put(np.float32(5), devices[1])
    assert one.devices() == {devices[0]}
    assert not one.committed


def test_assignment_to_a_deleted_array() -> None:
    x = xp.arange(4.0)
    x.delete()
    with pytest.raises(plugrt.errors.DeletedBuffer):
        x[0] = 1


def test_an_empty_assignment_shares_and_goes_on_sharing() -> None:
    x = xp.arange(4.0)
    x[2:2] = 1
    y = plugrt.jit(lambda v: v)(x)
    x[1] = 5
    assert (x.tolist(), y.tolist()) == ([0, 5, 2, 3], [0, 1, 2, 3])


def test_a_captured_array_is_traced_again() -> None:
    x, traces = xp.arange(3.0), []

    @plugrt.jit
    def f(a: Any) -> Any:
        traces.append(a)
        return a + x

    assert f(1.0).tolist() == f(1.0).tolist() == [1, 2, 3]
    compiled = f.lower(1.0).compile()
    x[0] = 10
    assert f(1.0).tolist() == [11, 2, 3]
    assert len(traces) == 2
    assert compiled(1.0).tolist() == [1, 2, 3]
    assert f.lower(1.0).compile()(1.0).tolist() == [11, 2, 3]


# An array's values before and after an assignment, and a function that reads it in a trace.
PAIR, NUMBER, MASK = ([1.0, 2.0], [8.0, 2.0]), (1, 2), ([True, True], [False, True])
READS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "operation": (PAIR, lambda x: x + 0),
    "slice": (PAIR, lambda x: x[:1]),
    "itself": (PAIR, lambda x: x),
    "NumPy view": (PAIR, np.asarray),
    "NumPy copy": (PAIR, np.array),
    "list": (PAIR, lambda x: xp.asarray(x.tolist())),
    "item": (PAIR, lambda x: x.item(0)),
    "bytes": (PAIR, lambda x: np.frombuffer(x.tobytes(), np.float32)),
    "dlpack": (PAIR, np.from_dlpack),
    "put": (PAIR, lambda x: plugrt.device_put(x, x.device)),
    "elsewhere": (PAIR, lambda x: np.asarray(plugrt.device_put(x, plugrt.devices()[-1]))),
    "get": (PAIR, plugrt.device_get),
    "copy": (PAIR, copy.copy),
    "pickle": (PAIR, lambda x: pickle.loads(pickle.dumps(x))),
    "part": (PAIR, lambda x: x.addressable_shards[0].data),
    "text": (PAIR, lambda x: float(str(x).strip("[]").split()[0])),
    "int": (NUMBER, int),
    "float": (NUMBER, float),
    "truth": (([0], [1]), lambda x: 5 if x else 7),
    "bound": (NUMBER, lambda n: xp.arange(3.0)[:n]),
    "index": (NUMBER, lambda n: xp.arange(3.0)[n]),
    "shape": (NUMBER, lambda n: xp.zeros((n, 2))),
    "reshape": (NUMBER, lambda n: xp.reshape(xp.arange(4.0), (int(n), -1))),
    "range": (NUMBER, xp.arange),
    "linspace": (NUMBER, lambda n: xp.linspace(0, n, 3)),
    "repeats": (NUMBER, lambda n: np.repeat(xp.arange(2.0), int(n))),
    "mask": (MASK, lambda m: xp.arange(2.0)[m]),
    "update": (MASK, lambda m: xp.arange(2.0).at[m].set(9)),
    "count": (MASK, lambda m: np.asarray(m).sum()),
}
if IN_C:
    READS["memory"] = PAIR, lambda x: np.asarray(memoryview(x))
    READS["frombuffer"] = PAIR, lambda x: np.frombuffer(x, np.float32)


@pytest.mark.parametrize("read", READS)
def test_an_assignment_to_a_captured_array_traces_again(read: str) -> None:
    (first, second), get = READS[read]
    x, traces = xp.asarray(first), []

    def f(a: Any) -> Any:
        traces.append(a)
        return a + get(x)

    run = plugrt.jit(f)
    for values in (first, second):
        x[...] = xp.asarray(values)
        for _ in range(2):
            np.testing.assert_array_equal(run(0), 0 + get(x))
    assert len(traces) == 2


def in_mesh(read: Callable[[], Any], a: Any) -> Any:
    mesh = plugrt.make_mesh((1,), ("x",))
    return plugrt.shard_map(
        lambda v: v + read(), mesh=mesh, in_specs=PartitionSpec(), out_specs=PartitionSpec()
    )(a)


# Transformations of a function that reads the array.
AROUND: dict[str, Callable[[Callable[[], Any], Any], Any]] = {
    "inner jit": lambda read, a: plugrt.jit(lambda v: v + read())(a),
    "inlined": lambda read, a: plugrt.jit(lambda v: v + read(), inline=True)(a),
    "scan": lambda read, a: lax.scan(lambda c, _: (c + read(), None), a, None, length=1)[0],
    "loop": lambda read, a: lax.fori_loop(0, 1, lambda _, c: c + read(), a),
    "while": lambda read, a: lax.while_loop(lambda c: c[0] < 1, lambda c: c + read() + 1, a),
    "branch": lambda read, a: lax.cond(True, lambda v: v + read(), lambda v: v, a),
    "map": lambda read, a: lax.map(lambda v: v + read()[0], a),
    "reduction": lambda read, a: lax.associative_scan(lambda v, w: v + w + read()[0], a),
    "composite": lambda read, a: lax.composite(lambda v: v + read(), "a.b")(a),
    "shard_map": in_mesh,
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("around", AROUND)
def test_reads_within_other_functions(around: str, jitted: bool) -> None:
    x = xp.asarray([1.0, 2.0])

    def read() -> Any:
        return np.asarray(x)

    def f(a: Any) -> Any:
        return AROUND[around](read, a)

    run = plugrt.jit(f) if jitted else f
    for value in (1.0, 8.0):
        x[0] = value
        with plugrt.disable_jit():
            expected = np.asarray(f(xp.zeros(2)))
        for _ in range(2):
            np.testing.assert_array_equal(run(xp.zeros(2)), expected)


def test_reads_of_one_function_that_others_call() -> None:
    x, a = xp.asarray([1.0, 2.0]), xp.zeros((1, 2))
    inner = plugrt.jit(lambda v: v + np.asarray(x))
    first, second = (plugrt.jit(lambda v, k=k: k * inner(v)) for k in (1, 2))
    mapped = plugrt.pmap(inner)
    for value in (1.0, 8.0):
        x[0] = value
        assert first(a).tolist() == mapped(a).tolist() == inner(a).tolist() == [[value, 2]]
        assert second(a).tolist() == [[2 * value, 4]]


def test_reads_for_a_shape_that_another_function_asks_for() -> None:
    n = xp.asarray(1)
    sized = plugrt.jit(lambda: xp.zeros(n))
    f = plugrt.jit(lambda: xp.zeros(sized.eval_shape().shape))
    for value in (1, 3):
        n[...] = value
        assert sized.eval_shape().shape == f().shape == (value,)


def test_reads_of_divided_arrays() -> None:
    devices = plugrt.devices()
    if len(devices) < 2:
        pytest.skip("no second device here")
    divided = NamedSharding(plugrt.make_mesh((2,), ("x",)), PartitionSpec("x"))
    x = plugrt.device_put(np.arange(4.0, dtype=np.float32), divided)
    reads: dict[str, Callable[[Any], Any]] = {
        "whole": np.asarray,
        "here": lambda x: np.asarray(plugrt.device_put(x, devices[0])),
        "part": lambda x: np.asarray(x.addressable_shards[0].data),
    }
    functions = [plugrt.jit(lambda a, get=get: a + get(x)) for get in reads.values()]
    for value in (0.0, 8.0):
        x[0] = value
        for f in functions:
            assert f(0.0).tolist() == [value, 1, 2, 3][: 2 if f is functions[-1] else 4]


def test_reads_that_end_with_the_array() -> None:
    f = plugrt.jit(lambda k: xp.zeros(int(kept[0])) + k, static_argnums=0)
    gone = []
    for k in range(3):
        kept = [xp.asarray(3)]
        gone.append(weakref.ref(kept[0]))
        f(k)
        kept.clear()
        assert gone[-1]() is None
    assert f(0).shape == (3,)


def test_a_function_within_another_is_traced_again() -> None:
    x = xp.arange(3.0)
    inner = plugrt.jit(lambda a: a + x)
    outer = plugrt.jit(lambda a: inner(a) * 2)
    loop = plugrt.jit(lambda a: lax.fori_loop(0, 2, lambda i, c: c + x, a))
    for value in (1.0, 5.0):
        x[0] = value
        assert outer(1.0).tolist() == [2 * (1 + value), 4, 6]
        assert inner(1.0).tolist() == [1 + value, 2, 3]
        assert loop(xp.zeros(3)).tolist() == [2 * value, 2, 4]
        assert lax.map(lambda a: a + x[0], xp.zeros(1)).tolist() == [value]


@pytest.mark.parametrize("nested", [False, True])
def test_an_assignment_by_another_thread_during_the_trace(nested: bool) -> None:
    x, assigned = xp.arange(3.0), []

    def assign() -> None:
        x[0] = 10
        assigned.append(x)

    @plugrt.jit
    def f(a: Any) -> Any:
        result = a + x
        if not assigned:
            thread = threading.Thread(target=assign)
            thread.start()
            thread.join()
        return result

    run = plugrt.jit(lambda a: f(a)) if nested else f
    f_before = plugrt.jit(lambda a: a + x)
    f_before(1.0)
    assert run(1.0).tolist() == [1, 2, 3]
    assert run(1.0).tolist() == f(1.0).tolist() == f_before(1.0).tolist() == [11, 2, 3]


def test_a_whole_assignment_is_independent_of_its_source() -> None:
    x, y = xp.zeros(3), xp.arange(3.0)
    x[...] = y
    y[0] = 9
    assert (x.tolist(), y.tolist()) == ([0, 1, 2], [9, 1, 2])
    z = xp.arange(3.0)
    x[...] = z
    z.delete()
    assert x.tolist() == [0, 1, 2]


def test_other_functions_are_not_traced_again() -> None:
    x, y, traces = xp.arange(3.0), xp.arange(3.0), []

    @plugrt.jit
    def f(a: Any) -> Any:
        traces.append(a)
        return a + y

    plugrt.jit(lambda a: a + x)(1.0)
    f(1.0)
    x[0] = 10
    f(1.0)
    assert len(traces) == 1


def test_a_returned_capture_is_another_array() -> None:
    x = xp.arange(3.0)
    f = plugrt.jit(lambda: x)
    f()[0] = 9
    assert (f().tolist(), x.tolist()) == ([0, 1, 2], [0, 1, 2])


def test_traces_do_not_keep_an_array() -> None:
    x = xp.arange(3.0)
    f = plugrt.jit(lambda a, x=x: a + x)
    f(1.0)
    x[0] = 4
    gone = weakref.ref(x)
    del x, f
    gc.collect()
    assert gone() is None


def test_a_jitted_function_assigns_to_its_arguments_alone() -> None:
    def f(x: Any) -> Any:
        y = x
        x[0] = x[1] * 2
        return y

    x = xp.arange(3.0)
    for run in (plugrt.jit(f), plugrt.jit(plugrt.jit(f))):
        assert run(x).tolist() == [2, 1, 2]
    for inline in (False, True):
        inner = plugrt.jit(f, inline=inline)
        both = plugrt.jit(lambda x, inner=inner: (inner(x), x))
        assert [part.tolist() for part in both(x)] == [[2, 1, 2], [0, 1, 2]]
    with plugrt.disable_jit():
        assert plugrt.jit(f)(x).tolist() == [2, 1, 2]
    assert x.tolist() == [0, 1, 2]


@pytest.mark.parametrize("disabled", [False, True])
def test_bodies_of_loops_assign_to_what_they_carry(disabled: bool) -> None:
    def body(i: Any, carry: Any) -> Any:
        carry[i] = i * 10.0
        return carry

    x = xp.zeros(4)
    with plugrt.disable_jit(disabled):
        assert lax.fori_loop(0, 3, body, x).tolist() == [0, 10, 20, 0]
    assert plugrt.jit(lambda x: lax.fori_loop(0, 3, body, x))(x).tolist() == [0, 10, 20, 0]
    assert x.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("disabled", [False, True])
def test_branches_assign_to_their_operands(disabled: bool) -> None:
    def assign(y: Any) -> Any:
        y[0] = 5.0
        return y

    def keep(y: Any) -> Any:
        return y

    x = xp.zeros(3)
    with plugrt.disable_jit(disabled):
        for taken in (True, False):
            wanted = [5.0 * taken, 0, 0]
            assert lax.cond(taken, assign, keep, x).tolist() == wanted
            assert lax.switch(int(taken), [keep, assign], x).tolist() == wanted
            both = plugrt.jit(lambda p, y: (lax.cond(p, assign, keep, y), y))(taken, x)
            assert [y.tolist() for y in both] == [wanted, [0, 0, 0]]
    assert x.tolist() == [0, 0, 0]


def _in_loop(x: Any) -> Any:
    def body(i: Any, carry: Any) -> Any:
        x[0] = i
        return carry

    return lax.fori_loop(0, 3, body, x)


def _in_branch(x: Any) -> Any:
    return lax.cond(x[0] > 0, lambda: x.__setitem__(0, 1), lambda: None)


def _in_function(x: Any) -> Any:
    return plugrt.jit(lambda v: x.__setitem__(0, v))(x[1])


@pytest.mark.parametrize("f", [_in_loop, _in_branch, _in_function])
def test_assignments_to_a_tracer_from_within_are_refused(f: Any) -> None:
    with pytest.raises(TypeError, match=r"x\.at\[key\]\.set"):
        plugrt.jit(f)(xp.zeros(3))


@pytest.mark.parametrize("f", [_in_loop, _in_branch, _in_function])
def test_assignments_from_within_where_nothing_is_traced(f: Any) -> None:
    x = xp.asarray([1.0, 7.0])
    with plugrt.disable_jit():
        f(x)
    assert x.tolist() == [{_in_loop: 2, _in_branch: 1, _in_function: 7}[f], 7]


def test_assignments_to_an_array_from_a_trace_are_refused() -> None:
    x = xp.zeros(3)
    for assign in (lambda v: x.__setitem__(0, v), lambda v: xp.asarray(x).__setitem__(0, v)):
        with pytest.raises(TypeError, match=r"x\.at\[key\]\.set"):
            plugrt.jit(assign)(1.0)
    assert x.tolist() == [0, 0, 0]


def test_a_trace_may_assign_to_arrays_made_of_an_outer_one() -> None:
    x = xp.zeros(3)

    @plugrt.jit
    def f(v: Any) -> tuple[Any, Any]:
        y = +x
        z = lax.fori_loop(0, 0, lambda i, c: c, x)
        y[0] = z[1] = v
        return y, z, x + 0

    assert [part.tolist() for part in f(1.0)] == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_a_tracer_of_an_ended_trace() -> None:
    kept: list[Any] = []
    plugrt.jit(lambda x: kept.append(x))(xp.zeros(3))
    with pytest.raises(plugrt.errors.LeakedTracer):
        kept[0][0] = 1


def test_read_only_arrays() -> None:
    x = xp.zeros(3)
    with plugrt.config.override(read_only_arrays=True):
        with pytest.raises(TypeError, match="read_only_arrays"):
            x[0] = 1
        with pytest.raises(TypeError, match="read_only_arrays"):
            plugrt.jit(lambda x: x.__setitem__(0, 1))(x)
    x[0] = 1
    assert x.tolist() == [1, 0, 0]


@pytest.mark.parametrize("size", [64, 65536])  # assigned in a copy, and in place
def test_threads_see_whole_assignments_and_lose_none(size: int) -> None:
    x = xp.zeros(size)
    f = plugrt.jit(lambda v: v + 0)
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            for use in (np.asarray, f, plugrt.block_until_ready, lambda x: x.addressable_data(0)):
                try:
                    values = np.asarray(use(x))
                except plugrt.errors.PlugrtError as error:
                    wrong.append(error)
                    continue
                if len({*values[32:].tolist()}) != 1:
                    wrong.append(values)

    def assign(i: int) -> None:
        for n in range(20):
            x[i] = n
            x[32:] = n
            if x[i] != n:
                wrong.append((i, n))

    readers = [threading.Thread(target=read) for _ in range(2)]
    writers = [threading.Thread(target=assign, args=(i,)) for i in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in (*readers, *writers):
            thread.start()
        for thread in writers:
            thread.join()
    finally:
        done.set()
        sys.setswitchinterval(interval)
    for thread in readers:
        thread.join()
    assert not wrong
    assert x[:4].tolist() == [19] * 4
