"""Warm calls run few Python functions or none, and each finds its own program."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from support.collector import uncollected
from support.native_core import runs_in_c, warm_calls

READINGS = {"_call_in_python", "_call_read", "read", "_open_all", "flatten"}
"""The Python functions that read a call's arguments; others may make results."""


@runs_in_c
def test_a_warm_call_is_no_python_call() -> None:
    add = plugrt.jit(lambda a, b: a + b)
    x = plugrt.device_put(np.ones(3, np.float32))
    assert not warm_calls(lambda: add(x, x))


@runs_in_c
def test_two_host_arguments_of_one_hash_are_both_known() -> None:
    """One of 256 shapes has the hash of a number. Earlier, the core kept only one of the two."""
    first = plugrt.jit(lambda a, b: a)
    for n in range(1, 258):
        assert "token" not in warm_calls(lambda: first(np.ones(n, np.float32), 2.0))  # noqa: B023


class Counted:
    """A container that counts how often it is flattened."""

    def __init__(self, part: Any) -> None:
        self.part, self.opened = part, 0


def _open_counted(counted: Counted) -> tuple[tuple[Any], None]:
    counted.opened += 1
    return (counted.part,), None


plugrt.tree.register_node(Counted, _open_counted, lambda _, parts: Counted(*parts))


def test_a_call_reads_its_settings_and_arguments_once() -> None:
    """The C core calls no Python for it; both cores flatten a registered class once."""
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
    """Returns a number that depends on the pytree's structure and its leaves' positions."""
    if isinstance(tree, dict):
        return sum(_weigh(x) * (3 + ord(key)) for key, x in tree.items()) + 0.5
    if isinstance(tree, list | tuple):
        unit = 2 if isinstance(tree, list) else 7
        return sum(_weigh(x) * (unit + i) for i, x in enumerate(tree)) + 0.25
    return xp.sum(xp.asarray(tree)) * 1.0


class Point(NamedTuple):
    x: Any
    y: Any


class Vector(NamedTuple):
    """A named tuple whose iterator does not yield its fields."""

    x: Any
    y: Any

    def __iter__(self) -> Any:
        return iter("abc")


class Unknown(tuple[Any, ...]):
    pass


def test_a_tuple_of_another_class_is_no_container() -> None:
    x = plugrt.device_put(np.ones(2, np.float32))
    f = plugrt.jit(lambda p: p[0] + p[1])
    f(Point(x, x))
    f((x, x))
    for _ in range(2):
        with pytest.raises(plugrt.errors.NotAnArray, match="Unknown"):
            f(Unknown((x, x)))


def _count(tree: Any) -> Any:
    """Returns a number that depends on the pytree's structure and the positions of None."""
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
