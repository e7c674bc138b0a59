"""Warm calls: how few Python functions they run, and that each finds its own program."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.errors import DeletedBuffer
from support.collector import uncollected
from support.native_core import IN_C, runs_in_c, warm_calls

READINGS = {"_call_in_python", "_call_read", "read", "_open_all", "flatten"}
"""The functions in Python that read a call; others may make constant or forwarded results."""


@runs_in_c
def test_a_warm_call_is_no_python_call() -> None:
    add = plugrt.jit(lambda a, b: a + b)
    x = plugrt.device_put(np.ones(3, np.float32))
    assert not warm_calls(lambda: add(x, x))


@pytest.mark.parametrize("keys", [["a", "b"], ["b", "a"], [f"k{i}" for i in range(40)], [2, 1]])
def test_a_warm_call_with_a_dict_of_arrays_is_none(keys: list[Any]) -> None:
    double = plugrt.jit(lambda d: {k: v * 2 for k, v in d.items()})
    arrays = {k: plugrt.device_put(np.full(3, i, np.float32)) for i, k in enumerate(keys)}
    assert not IN_C or not warm_calls(lambda: double(arrays))
    for values in (arrays, dict(reversed(arrays.items())), arrays):
        found = double(values)
        assert list(found) == sorted(keys)
        assert {k: float(v[0]) for k, v in found.items()} == {
            k: 2.0 * i for i, k in enumerate(keys)
        }


class Counted:
    """A container that counts how often it is opened."""

    def __init__(self, part: Any) -> None:
        self.part, self.opened = part, 0


def _open_counted(counted: Counted) -> tuple[tuple[Any], None]:
    counted.opened += 1
    return (counted.part,), None


plugrt.tree.register_node(Counted, _open_counted, lambda _, parts: Counted(*parts))


def test_a_call_reads_its_settings_and_arguments_once() -> None:
    """In C that is no Python call; a container that a function opens is opened once in both."""
    x, host = plugrt.device_put(np.ones(2, np.float32)), np.ones(2, np.float32)

    def function(*args: Any, n: int = 1, **kwargs: Any) -> Any:
        return [leaf * n for leaf in plugrt.tree.leaves((args, kwargs))]

    f, g = plugrt.jit(function, static_argnames="n"), plugrt.pmap(lambda v: v + 1)
    forms: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
        (f, (x, x), {}), (f, (x, host, 2.0, None), {}), (f, ({"b": x, "a": [host]}, x), {}),
        (f, (x,), {"z": x, "a": (2, x)}), (f, (x,), {"n": 3}), (f, (Counted(x), host), {}),
        (f, ([{"k": Counted(x)}],), {"n": 2}), (f.lower(x, host).compile(), (x, host), {}),
        (f.lower({"k": Counted(x)}, z=x).compile(), ({"k": Counted(x)},), {"z": x}),
        (g, (g(host[None]),), {}),
    ]  # fmt: skip
    for called, args, kwargs in forms:
        seen = warm_calls(lambda: called(*args, **kwargs))  # noqa: B023  # called at once
        assert seen.count("token") <= 1
        assert seen.count("read") <= 1
        for kept in (args[0], args[0][0]["k"] if type(args[0]) is list else None):
            if type(kept) is Counted:
                before = kept.opened
                called(*args, **kwargs)
                assert kept.opened == before + 1


def test_a_dict_of_whatever_else_goes_beside_one_of_arrays() -> None:
    @plugrt.jit
    def total(d: Any) -> Any:
        return sum(map(xp.sum, plugrt.tree.leaves(d)), xp.asarray(0.0))

    x = plugrt.device_put(np.ones(3, np.float32))
    host = np.ones(3, np.float32)
    for _ in range(2):
        for d, wanted in [
            ({}, 0), ({"a": x}, 3), ({"b": x}, 3), ({"a": x, "b": x}, 6), ({"a": x, "b": host}, 6),
            ({"a": host, "b": x}, 6), ({"a": x, "b": 2.0, "c": x}, 8), ({"a": {"b": x}}, 3),
            ({"a": [x, host]}, 6), (OrderedDict(a=x), 3), ({"a": x, "b": None, "c": x}, 6),
            (None, 0), (host, 3),
        ]:  # fmt: skip
            assert float(total(d)) == wanted


def test_a_dict_with_a_deleted_array_is_refused_by_name() -> None:
    double = plugrt.jit(lambda d: {k: v * 2 for k, v in d.items()})
    arrays = {k: plugrt.device_put(np.ones(3, np.float32)) for k in "abc"}
    double(arrays)
    arrays["b"].delete()
    with pytest.raises(DeletedBuffer, match="'b'"):
        double(arrays)


@pytest.mark.parametrize("keys", [["a", "b", "c"], ["c", "a", "b"], [3, 1, 2]])
@pytest.mark.parametrize("passed", [False, True])
def test_results_in_a_dict_have_the_order_of_the_function(keys: list[Any], passed: bool) -> None:
    known, same, plus = keys
    f = plugrt.jit(
        lambda x: {known: 3 if passed else x * 3, same: x if passed else x * 1, plus: x + 1}
    )
    x = plugrt.device_put(np.ones(2, np.float32))
    for _ in range(3):
        found = f(x)
        assert [*found] == keys
        np.testing.assert_array_equal(np.asarray(found[known]), 3 if passed else [3, 3])
        np.testing.assert_array_equal(np.asarray(found[same]), [1, 1])
        np.testing.assert_array_equal(np.asarray(found[plus]), [2, 2])


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("referred", [False, True])
def test_donating_takes_the_memory_unless_another_array_has_it(
    shared: bool, referred: bool
) -> None:
    step = plugrt.jit(lambda a, b: (a + b, a - b), donate_argnums=0)
    other = plugrt.device_put(np.ones(3, np.float32))
    for _ in range(3):
        state = plugrt.device_put(np.full(3, 2, np.float32))
        pointer = state.unsafe_buffer_pointer()
        reference = weakref.ref(state) if referred else None
        same = plugrt.jit(lambda x: x)(state) if shared else None
        results = step(state, other)
        assert state.is_deleted()
        taken = pointer in [result.unsafe_buffer_pointer() for result in results]
        assert taken is not shared
        assert [float(result[0]) for result in results] == [3, 1]
        if same is not None:
            np.testing.assert_array_equal(np.asarray(same), np.full(3, 2))
        assert reference is None or reference() is state


def _random_tree(random: np.random.Generator, depth: int) -> Any:
    kind = random.integers(4) if depth else 3
    if kind == 3:
        value = float(random.integers(100))
        host = np.float32([value])
        return [host, plugrt.device_put(host), value][random.integers(3)]
    children = [_random_tree(random, depth - 1) for _ in range(random.integers(1, 4))]
    names = random.permutation(["z", "a", "m"])
    return [list, tuple, lambda c: dict(zip(names, c, strict=False))][kind](children)


def _weigh(tree: Any) -> Any:
    """Returns a number that tells the leaves and all of their places in a pytree."""
    if isinstance(tree, dict):
        return sum(_weigh(x) * (3 + ord(key)) for key, x in tree.items()) + 0.5
    if isinstance(tree, list | tuple):
        unit = 2 if isinstance(tree, list) else 7
        return sum(_weigh(x) * (unit + i) for i, x in enumerate(tree)) + 0.25
    return xp.sum(xp.asarray(tree)) * 1.0


@pytest.mark.parametrize("seed", range(6))
def test_nested_containers_are_told_apart(seed: int) -> None:
    random = np.random.default_rng(seed)
    f = plugrt.jit(lambda *args, **kwargs: (_weigh(args), _weigh(kwargs)))
    for _ in range(5):
        args = tuple(_random_tree(random, 3) for _ in range(random.integers(1, 3)))
        kwargs = {"k": _random_tree(random, 2)} if random.integers(2) else {}
        for _ in range(2):  # cold, then warm
            np.testing.assert_allclose(f(*args, **kwargs), [_weigh(args), _weigh(kwargs)], 1e-5)


def test_shapes_of_nesting_with_the_same_leaves() -> None:
    a, b = (plugrt.device_put(np.float32(i)) for i in (1, 2))
    f = plugrt.jit(lambda x, y=0.0: _weigh([x, y]))
    calls: list[tuple[Any, ...]] = [
        (([a], b),), ((a, [b]),), (([a, b],),), ([(a, b)],), ([[a], [b]],), ([[a]], b), ([a], [b]),
        ({"a": [a], "b": b},), ({"b": [a], "a": b},), ({"a": {"b": a}}, b), ({"b": {"a": a}}, b),
    ]  # fmt: skip
    for _ in range(2):
        for call in calls:
            np.testing.assert_allclose(f(*call), _weigh([*call, 0.0][:2]), 1e-6)


def test_a_warm_call_with_nested_containers_is_not_flattened() -> None:
    x = plugrt.device_put(np.ones(2, np.float32))
    f = plugrt.jit(lambda t: t["a"]["w"][0] - t["b"]["v"][0])
    assert not IN_C or not warm_calls(lambda: f({"b": {"v": [x]}, "a": {"w": [x, x]}}))
    assert np.asarray(f({"b": {"v": [x]}, "a": {"w": [x, x]}})).tolist() == [0, 0]


def test_a_warm_call_with_none_is_not_flattened() -> None:
    x, y = (plugrt.device_put(np.full(2, i, np.float32)) for i in (1, 2))
    f = plugrt.jit(lambda *args, **kwargs: _count(args) * 100 + _count(kwargs))
    calls: list[tuple[Any, dict[str, Any]]] = [
        ((None,), {}), ((x, None), {}), ((None, x), {}), ((x, None, y), {}),
        ((), {"b": None, "a": x}), ((x,), {"a": None}), (({"b": x, "a": None},), {}),
        (({"b": x, "a": y, "c": None},), {}), (([None, x], (None,)), {}),
        (([{"b": [x, None]}, None],), {"k": None}), ((None, 2.0, np.float32([3])), {}),
        (([None, 2.0], None), {}),
    ]  # fmt: skip
    wanted = [np.asarray(f(*args, **kwargs)) for args, kwargs in calls]
    assert len({value.tobytes() for value in wanted}) == len(calls)
    for args, kwargs in calls:
        if all(isinstance(leaf, plugrt.Array) for leaf in plugrt.tree.leaves((args, kwargs))):
            assert not IN_C or READINGS.isdisjoint(warm_calls(partial(f, *args, **kwargs)))
    for _ in range(3):  # also as the last call
        for (args, kwargs), value in zip(calls, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(f(*args, **kwargs)), value)


def test_a_warm_call_of_a_compiled_function_takes_none() -> None:
    x, y = (plugrt.device_put(np.full(2, i, np.float32)) for i in (1, 2))
    compiled = plugrt.jit(lambda a, b, c: a + c if b is None else b).lower(x, None, y).compile()
    compiled(x, None, y)
    with pytest.raises(plugrt.errors.ArgumentMismatch, match="structure"):
        compiled(None, x, y)
    assert not IN_C or not warm_calls(lambda: compiled(x, None, y))
    for _ in range(3):
        assert np.asarray(compiled(x, None, y)).tolist() == [3, 3]


class Point(NamedTuple):
    x: Any
    y: Any


class Vector(NamedTuple):
    """Iterates over something else, as pytrees do not see."""

    x: Any
    y: Any

    def __iter__(self) -> Any:
        return iter("abc")


class Unknown(tuple[Any, ...]):
    pass


def test_a_warm_call_with_named_tuples_is_not_flattened() -> None:
    x, y = (plugrt.device_put(np.full(2, i, np.float32)) for i in (1, 2))
    seen: list[Any] = []

    @plugrt.jit
    def f(first: Any, *rest: Any, **more: Any) -> Any:
        seen.append(first)
        return Vector(first[0] * 3 + first[1], [Point(None, rest), more])

    calls: list[tuple[Any, dict[str, Any]]] = [
        ((Point(x, y),), {}), ((Vector(x, y),), {}), (((x, y),), {}), (([x, y],), {}),
        ((Point(y, x), x), {}), ((Point(x, 2.0),), {"k": [Point(y, {"b": x, "a": None})]}),
    ]  # fmt: skip
    wanted = [f(*args, **kwargs) for args, kwargs in calls]
    assert [*map(type, seen)] == [Point, Vector, tuple, list, Point, Point]
    for args, kwargs in calls:
        if all(isinstance(leaf, plugrt.Array) for leaf in plugrt.tree.leaves((args, kwargs))):
            assert not IN_C or READINGS.isdisjoint(warm_calls(partial(f, *args, **kwargs)))
    for _ in range(3):
        for (args, kwargs), value in zip(calls, wanted, strict=True):
            found = f(*args, **kwargs)
            assert type(found) is Vector
            assert repr(found[:]) == repr(value[:])
    assert len(seen) == len(calls)


def test_a_tuple_of_another_class_is_no_container() -> None:
    x = plugrt.device_put(np.ones(2, np.float32))
    f = plugrt.jit(lambda p: p[0] + p[1])
    f(Point(x, x))
    f((x, x))
    for _ in range(2):
        with pytest.raises(plugrt.errors.NotAnArray, match="Unknown"):
            f(Unknown((x, x)))


def _count(tree: Any) -> Any:
    """Returns a number that tells apart the pytrees above, and where None is in them."""
    if tree is None:
        return 0.5
    if isinstance(tree, dict):
        return 3 + sum(_count(x) * ord(key) for key, x in tree.items())
    if isinstance(tree, list | tuple):
        return 7 * len(tree) + sum(_count(x) * (i + 2) for i, x in enumerate(tree))
    return xp.sum(xp.asarray(tree))


def test_containers_nested_without_end_are_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with uncollected(), pytest.raises(RecursionError):
        plugrt.jit(lambda x: x)(endless)


def test_a_compiled_function_names_a_wrong_structure_before_a_wrong_value() -> None:
    compiled = plugrt.jit(lambda a: a + 1).lower(np.ones(2, np.float32)).compile()
    with pytest.raises(plugrt.errors.ArgumentMismatch, match="structure"):
        compiled(np.ones(2, np.float32), "no array")
    with pytest.raises(plugrt.errors.NotAnArray, match="argument a of"):
        compiled("no array")
