"""Counts traces, compilations and transfers on the one path from a call to a launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import device_put, devices, jit, lax, monitoring
from support.compiles import counting
from support.traffic import Traffic

X = np.arange(3, dtype=np.float32)
TRACE, COMPILE = monitoring.TRACE, monitoring.COMPILE


def test_call_lower_and_eval_shape_share_one_trace_and_one_compilation() -> None:
    f = jit(lambda x, y: x * y + 1)
    y = device_put(X)
    with counting() as counts:
        f.eval_shape(X, y)
        f.lower(X, y)
        compiled = f.lower(X, y).compile()
        f(X, y), f(y, y), f(X, X), compiled(y, y)
    assert (counts[TRACE], counts[COMPILE]) == (1, 1)


@pytest.mark.parametrize("way", ["cond", "while", "fori", "scan", "pmap", "jit", "operator"])
def test_python_floats_beside_doubles_keep_their_digits(way: str) -> None:
    double = device_put(np.zeros(1))
    found = {
        "cond": lambda: lax.cond(True, lambda x, y: x + y, lambda x, y: x - y, double, 0.1),
        "while": lambda: lax.while_loop(
            lambda c: c[2] < 1, lambda c: (c[0] + c[1], c[1], c[2] + 1), (double, 0.1, 0)
        )[0],
        "fori": lambda: lax.fori_loop(0, 1, lambda i, c: (c[0] + c[1], c[1]), (double, 0.1))[0],
        "scan": lambda: lax.scan(
            lambda c, x: ((c[0] + c[1], c[1]), None), (double, 0.1), np.zeros(1)
        )[0][0],
        "pmap": lambda: plugrt.pmap(lambda x, y: x + y, in_axes=(0, None))(double, 0.1),
        "jit": lambda: jit(lambda x, y: x + y)(double, 0.1),
        "operator": lambda: double + 0.1,
    }[way]()
    assert np.asarray(found).item() == 0.1


def test_host_data_go_straight_to_where_the_computation_runs(puts: Traffic) -> None:
    there = devices()[2]
    f = jit(lambda x, y: x + y)
    x = device_put(X, there)
    f(x, X)
    puts.clear()
    f(x, X), jit(f, device=there)(X, x)
    assert [device for _, device in puts.arrays] == [there, there]


def test_all_host_data_of_a_call_are_put_by_one_call(puts: Traffic) -> None:
    f = jit(lambda t: t["a"] + t["b"] + t["c"])
    tree = {"a": X, "b": X + 1, "c": X + 2}
    f(tree)
    puts.clear()
    f(tree)
    assert len(puts) == 1


@pytest.mark.parametrize("seed", range(20))
def test_containers_on_the_first_level_arrive_in_their_places(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = iter(range(100))

    def leaf() -> Any:
        value = np.float32([next(count)])
        return value if random.random() < 0.5 else device_put(value)

    def container() -> Any:
        keys = random.permutation(["a", "b", "c", "d"])[: random.integers(1, 5)]
        kind = random.integers(4)
        if kind == 0:
            return {str(k): leaf() for k in keys}
        if kind == 1:
            return tuple(leaf() for _ in keys)
        return [leaf() for _ in keys] if kind == 2 else leaf()

    args = [container() for _ in range(random.integers(1, 4))]
    kwargs = {k: container() for k in random.permutation(["z", "y", "x"])[: random.integers(3)]}
    identity = jit(lambda *args, **kwargs: (args, kwargs))
    plus = jit(lambda *args, **kwargs: plugrt.tree.map(lambda v: v + 1, (args, kwargs)))
    for _ in range(3):
        got_args, got_kwargs = identity(*args, **kwargs)
        assert plugrt.tree.structure((got_args, got_kwargs)) == plugrt.tree.structure(
            (tuple(args), kwargs)
        )
        for got, want in zip(
            plugrt.tree.leaves((got_args, got_kwargs)),
            plugrt.tree.leaves((tuple(args), kwargs)),
            strict=True,
        ):
            np.testing.assert_array_equal(got, want)
        for got, want in zip(
            plugrt.tree.leaves(plus(*args, **kwargs)),
            plugrt.tree.leaves((tuple(args), kwargs)),
            strict=True,
        ):
            np.testing.assert_array_equal(got, np.asarray(want) + 1)


def test_a_debug_check_costs_no_trace_and_keeps_donated_arguments() -> None:
    f = jit(lambda x: x + 1, donate_argnums=0)
    f(device_put(X))
    with counting() as counts, plugrt.debug_nans(True):
        x = device_put(X)
        f(x)
        np.testing.assert_array_equal(x, X)
    assert (counts[TRACE], counts[COMPILE]) == (0, 0)


def test_eager_slices_and_positions_compile_once_for_all_starts() -> None:
    host = np.arange(60, dtype=np.float32).reshape(20, 3)
    x = device_put(host)
    reads = [
        lambda i: (x[i : i + 5], host[i : i + 5]),
        lambda i: (x[i], host[i]),
        lambda i: (x[i : i + 2, 1], host[i : i + 2, 1]),
        lambda i: (x[i, :2], host[i, :2]),
        lambda i: (x[None, i : i + 4, ..., 1:], host[None, i : i + 4, ..., 1:]),
    ]
    for read in reads:
        with counting() as counts:
            for i in range(14):
                got, want = read(i)
                np.testing.assert_array_equal(got, want)
        assert counts[COMPILE] <= 1


def test_complex_scalars_that_differ_in_the_sign_of_a_zero() -> None:
    f = jit(lambda x: xp.log(x))
    found = [complex(f(complex(-1, zero))).imag for zero in (0.0, -0.0)]
    np.testing.assert_allclose(found, [np.pi, -np.pi], rtol=1e-6)


@pytest.mark.parametrize("again", [False, True])
def test_dicts_arrive_sorted_whoever_called_first(again: bool) -> None:
    f = jit(lambda d, **k: [v * 10**i for i, v in enumerate([*d.values(), *k.values()])])
    if again:
        f({"a": 1, "b": 2}, x=3, y=4)
    found = f({"b": 2, "a": 1}, y=4, x=3)
    assert [int(v) for v in found] == [1, 20, 300, 4000]


@pytest.mark.parametrize("kind", ["jit", "pmap", "program"])
def test_everything_compiled_has_one_check(kind: str) -> None:
    parameters = ", ".join(f"%{i}: tensor<2xf32>" for i in range(9))
    text = f"module @nine {{ func.func public @main({parameters}) -> tensor<2xf32> {{ "
    compiled: Any = {
        "jit": lambda: jit(lambda *x: sum(x)).lower(*[np.zeros(2, np.float32)] * 9).compile(),
        "pmap": lambda: (
            plugrt.pmap(lambda *x: sum(x)).lower(*[np.zeros((2, 1), np.float32)] * 9).compile()
        ),
        "program": lambda: plugrt.compile(text + "return %0 : tensor<2xf32> } }"),
    }[kind]()
    with pytest.raises(plugrt.errors.ArgumentMismatch, match="and 4 more") as caught:
        compiled(*[np.zeros((2, 2, 2), np.float32)] * 9)
    assert str(caught.value).count("called with float32[2,2,2]") == 5
