"""What is traced, compiled and moved, counted: the one way from a call to a launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import device_put, devices, jit, lax, monitoring
from plugrt.errors import DeletedBuffer
from plugrt.execution.launches.compiled import CompiledCall
from plugrt.sharding import SingleDeviceSharding
from support.compiles import counting
from support.puts import Puts

X = np.arange(3, dtype=np.float32)
TRACE, COMPILE = monitoring.TRACE, monitoring.COMPILE


# --- one trace ----------------------------------------------------------------------------------


def test_call_lower_and_eval_shape_share_one_trace_and_one_compilation() -> None:
    f = jit(lambda x, y: x * y + 1)
    y = device_put(X)
    with counting() as counts:
        f.eval_shape(X, y)
        f.lower(X, y)
        compiled = f.lower(X, y).compile()
        f(X, y), f(y, y), f(X, X), compiled(y, y)
    assert (counts[TRACE], counts[COMPILE]) == (1, 1)


def test_four_devices_share_one_trace() -> None:
    f = jit(lambda x: x * 3)
    with counting() as counts:
        for device in devices()[:4]:
            assert f(device_put(X, device)).device is device
    assert (counts[TRACE], counts[COMPILE]) == (1, 4)


def test_committed_uncommitted_and_host_arguments_share_one_trace() -> None:
    f = jit(lambda x: x - 1)
    with counting() as counts:
        f(X), f(device_put(X)), f(device_put(X, devices()[0]))
    assert (counts[TRACE], counts[COMPILE]) == (1, 1)


def test_an_inner_function_is_traced_once_for_all_outer_ones() -> None:
    traced = []

    @jit
    def inner(x: Any) -> Any:
        traced.append(x)
        return xp.sin(x) * 2

    with counting() as counts:
        inner(X)
        for n in range(5):
            outer = jit(lambda x, n=n: inner(x + n) + inner(x))
            np.testing.assert_allclose(outer(X), np.sin(X + n) * 2 + np.sin(X) * 2, rtol=1e-6)
    assert len(traced) == 1
    assert counts[TRACE] == 6


def test_inner_functions_of_inner_functions_keep_their_names_apart() -> None:
    @jit
    def g(x: Any) -> Any:
        return x + 1

    @jit
    def f(x: Any) -> Any:
        return g(x) * g(xp.sum(x))

    @jit
    def g_1(x: Any) -> Any:
        return f(x) + g(x) + f(x * 2)

    expected = (X + 1) * (X.sum() + 1) + X + 1 + (2 * X + 1) * (2 * X.sum() + 1)
    np.testing.assert_allclose(jit(lambda x: g_1(x))(X), expected)


def test_an_inner_function_that_closes_over_the_outer_one() -> None:
    big = np.arange(5000.0, dtype=np.float32)

    def outer(x: Any, y: Any) -> Any:
        inner = jit(lambda z: (z * x + big[:3] + big.sum(), y))
        a, same = lax.cond(xp.sum(z := x + 1) > 0, inner, inner, z)
        return a, same

    for _ in range(2):
        a, same = jit(outer)(X, X + 5)
        np.testing.assert_allclose(a, (X + 1) * X + big[:3] + big.sum())
        np.testing.assert_array_equal(same, X + 5)


def test_a_python_float_beside_doubles_keeps_its_digits_in_an_inner_function() -> None:
    inner = jit(lambda x, y: x + y)
    double = np.zeros(2)
    expected = inner(double, 0.1)
    assert expected[0] == 0.1
    np.testing.assert_array_equal(jit(lambda x: inner(x, 0.1))(double), expected)


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


# --- what is put, and where ---------------------------------------------------------------------


def test_host_data_go_straight_to_where_the_computation_runs(puts: Puts) -> None:
    there = devices()[2]
    f = jit(lambda x, y: x + y)
    x = device_put(X, there)
    f(x, X)
    puts.clear()
    f(x, X), jit(f, device=there)(X, x)
    assert [device for _, device in puts] == [there, there]


def test_all_host_data_of_a_call_are_put_by_one_call(puts: Puts) -> None:
    f = jit(lambda t: t["a"] + t["b"] + t["c"])
    tree = {"a": X, "b": X + 1, "c": X + 2}
    f(tree)
    before = puts.calls
    f(tree)
    assert puts.calls == before + 1


def test_unused_host_arguments_are_not_put(puts: Puts) -> None:
    f = jit(lambda x, unused: x + 1)
    f(device_put(X), X)
    puts.clear()
    f(device_put(X), np.zeros(1 << 16, np.float32))
    assert [array.nbytes for array, _ in puts] == [X.nbytes]  # that of device_put


def test_a_python_scalar_is_put_once_on_each_device(puts: Puts) -> None:
    there = devices()[3]
    f = jit(lambda x, y: x * y)
    x = device_put(X, there)
    for _ in range(3):
        f(x, 7.125)
    assert [device for array, device in puts if array.shape == ()] == [there]


def test_a_captured_host_array_is_one_parameter_and_is_put_once(puts: Puts) -> None:
    big = np.ones(3000, np.float32)
    f = jit(lambda x: x + big + big)
    x = device_put(big)
    puts.clear()
    f(x), f(x)
    assert [array.shape for array, _ in puts] == [big.shape]


def test_a_captured_array_goes_to_the_device_of_the_arguments(puts: Puts) -> None:
    big = np.ones(3000, np.float32)
    f = jit(lambda x: x + big)
    x = device_put(big, devices()[1])
    puts.clear()
    assert f(x).device is devices()[1]
    assert [device for _, device in puts] == [devices()[1]]


# --- results that are arguments ------------------------------------------------------------------


def test_a_result_that_is_an_argument_is_an_array_of_its_own() -> None:
    x = device_put(X)
    one, two = jit(lambda a: (a, a))(x)
    assert one is not two
    assert one is not x
    assert one.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    one.delete()
    np.testing.assert_array_equal(two, X)
    x.delete()
    np.testing.assert_array_equal(two, X)
    two.delete()
    assert two.is_deleted()
    with pytest.raises(DeletedBuffer):
        np.asarray(one)


def test_a_snapshot_outlives_the_donation_of_what_it_was_taken_of() -> None:
    snap = jit(lambda p: p)
    step = jit(lambda p: p + 1, donate_argnums=0)
    p = device_put(np.zeros(4096, np.float32))
    s = snap(p)
    for _ in range(3):
        p = step(p)
    np.testing.assert_array_equal(s, np.zeros(4096))
    np.testing.assert_array_equal(p, np.full(4096, 3))


def test_donating_the_snapshot_leaves_the_original() -> None:
    x = device_put(np.zeros(4096, np.float32))
    s = jit(lambda p: p)(x)
    jit(lambda p: p + 1, donate_argnums=0)(s)
    assert s.is_deleted()
    np.testing.assert_array_equal(x, np.zeros(4096))


def test_sharing_ends_with_the_last_other_array() -> None:
    x = device_put(np.zeros(4096, np.float32))
    pointer = x.unsafe_buffer_pointer()
    s = jit(lambda p: p)(x)
    del s
    assert jit(lambda p: p + 1, donate_argnums=0)(x).unsafe_buffer_pointer() == pointer


def test_many_snapshots_do_not_pile_up() -> None:
    x = device_put(X)
    snap = jit(lambda p: p)
    for _ in range(1000):
        snap(x)
    assert len(x._sharers) < 100


def test_a_captured_array_that_is_returned_may_be_deleted() -> None:
    w = device_put(X)
    f = jit(lambda: w)
    for _ in range(3):
        f().delete()
    np.testing.assert_array_equal(f(), X)
    np.testing.assert_array_equal(w, X)


# --- structures -----------------------------------------------------------------------------------


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


def test_one_runner_for_each_order_of_keys() -> None:
    f = jit(lambda d: d["a"] - d["b"])
    for _ in range(2):
        np.testing.assert_array_equal(f({"a": X, "b": X + 1}), X * 0 - 1)
        np.testing.assert_array_equal(f({"b": X + 1, "a": X}), X * 0 - 1)


# --- debug checks ---------------------------------------------------------------------------------


def test_every_kind_of_call_is_checked() -> None:
    text = """
    module @bad { func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %y = stablehlo.log %x : tensor<3xf32>
      return %y : tensor<3xf32> } }
    """
    bad = np.float32([-1, 1, 1])
    log = jit(lambda x: lax.log(x))
    compiled = log.lower(bad).compile()
    program = plugrt.compile(text)
    mapped = plugrt.pmap(lambda x: lax.log(x))
    calls = {
        "jit": lambda: log(bad),
        "operator": lambda: lax.log(device_put(bad)),
        "compiled": lambda: compiled(bad),
        "program": lambda: program(bad),
        "pmap": lambda: mapped(bad[None]),
        "control flow": lambda: lax.cond(True, lax.log, lax.exp, bad),
    }
    for call in calls.values():
        assert np.isnan(np.asarray(call())).any()
    with plugrt.debug_nans(True):
        for name, call in calls.items():
            with pytest.raises(FloatingPointError, match="nan") as caught:
                call()
            assert "test_pipeline.py:" in str(caught.value), name
    for call in calls.values():
        call()


def test_a_debug_check_costs_no_trace_and_keeps_donated_arguments() -> None:
    f = jit(lambda x: x + 1, donate_argnums=0)
    f(device_put(X))
    with counting() as counts, plugrt.debug_nans(True):
        x = device_put(X)
        f(x)
        np.testing.assert_array_equal(x, X)
    assert (counts[TRACE], counts[COMPILE]) == (0, 0)


def test_compiled_objects_name_at_most_five_arguments() -> None:
    f = jit(lambda *x: sum(x)).lower(*[X] * 9).compile()
    with pytest.raises(plugrt.errors.ArgumentMismatch, match="and 4 more") as caught:
        f(*[X.astype(np.int32)] * 9)
    assert str(caught.value).count("takes float32[3]") == 5


def test_a_compiled_object_survives_clear_caches() -> None:
    f = jit(lambda x: x * 2).lower(X).compile()
    f(X)
    plugrt.clear_caches()
    with counting() as counts:
        np.testing.assert_array_equal(f(X), 2 * X)
    assert counts[COMPILE] == 0


def test_the_sharding_of_results_is_that_of_the_launch() -> None:
    x = device_put(X, devices()[1])
    assert jit(lambda a: a + 1)(x).sharding is SingleDeviceSharding(devices()[1])


# --- eager indexing -------------------------------------------------------------------------------


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


def test_eager_updates_compile_once_for_all_positions() -> None:
    x = device_put(np.zeros((9, 2), np.float32))
    with counting() as counts:
        for i in range(9):
            assert np.asarray(x.at[i].set(1.0)).sum(axis=1).tolist() == [
                2.0 if j == i else 0.0 for j in range(9)
            ]
    assert counts[COMPILE] <= 1


def test_a_mask_costs_one_position_an_element(puts: Puts) -> None:
    host = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    x = device_put(host)
    mask = host % 5 == 0
    there = device_put(mask)
    puts.clear()
    np.testing.assert_array_equal(x[there], host[mask])
    assert [(array.dtype, array.shape) for array, _ in puts] == [(np.int32, (mask.sum(),))]
    partly = mask.any(axis=2)
    np.testing.assert_array_equal(x[partly], host[partly])
    np.testing.assert_array_equal(x[:, mask[0]], host[:, mask[0]])
    np.testing.assert_array_equal(x[partly, 1], host[partly, 1])
    np.testing.assert_array_equal(x[np.zeros((2, 3, 4), bool)], host[np.zeros((2, 3, 4), bool)])
    updated = host.copy()
    updated[mask] = -1
    np.testing.assert_array_equal(x.at[mask].set(-1), updated)


# --- found by an outsider -----------------------------------------------------------------------


def test_arrays_on_several_devices_pass_through_whole() -> None:
    r = plugrt.pmap(lambda x: x * 2)(np.arange(8, dtype=np.float32).reshape(4, 2))
    for out in (jit(lambda p: p)(r), jit(lambda p: {"a": (p,)})(r)["a"][0]):
        assert out.shape == (4, 2)
        np.testing.assert_array_equal(out, np.arange(8).reshape(4, 2) * 2)
        assert out.sharding == r.sharding
    np.testing.assert_array_equal(jit(lambda p: p).lower(r).compile()(r), r)


def test_complex_scalars_that_differ_in_the_sign_of_a_zero() -> None:
    f = jit(lambda x: xp.log(x))
    found = [complex(f(complex(-1, zero))).imag for zero in (0.0, -0.0)]
    np.testing.assert_allclose(found, [np.pi, -np.pi], rtol=1e-6)


def test_a_host_value_that_is_two_results_is_two_arrays() -> None:
    for value in (np.ones(2, np.float32), 1.5):
        for form in (lambda p: (p, p), lambda p: (p, p + 1, p)):
            first, *_, last = jit(form)(value)
            first.delete()
            np.testing.assert_array_equal(last, value)


@pytest.mark.parametrize("again", [False, True])
def test_dicts_arrive_sorted_whoever_called_first(again: bool) -> None:
    f = jit(lambda d, **k: [v * 10**i for i, v in enumerate([*d.values(), *k.values()])])
    if again:
        f({"a": 1, "b": 2}, x=3, y=4)
    found = f({"b": 2, "a": 1}, y=4, x=3)
    assert [int(v) for v in found] == [1, 20, 300, 4000]


def test_an_array_that_is_donated_cannot_be_a_result_too() -> None:
    x = device_put(np.ones(2, np.float32))
    with pytest.raises(plugrt.errors.InvalidArgument, match="donated"):
        jit(lambda a, b: (b, a + 1), donate_argnums=0)(x, x)
    np.testing.assert_array_equal(x, 1)


def test_whole_copies_on_several_devices_go_from_device_to_device(puts: Puts) -> None:
    whole = plugrt.pmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(np.stack([X, X]))
    puts.clear()
    for device in (devices()[0], devices()[5]):  # one that has a copy, one that has none
        np.testing.assert_array_equal(jit(lambda x: x + x, device=device)(whole), 4 * X)
        np.testing.assert_array_equal(device_put(whole, device), 2 * X)
    np.testing.assert_array_equal(whole + whole, 4 * X)
    assert puts == []


@pytest.mark.parametrize("kind", ["jit", "pmap", "program"])
def test_everything_compiled_has_one_base_and_one_check(kind: str) -> None:
    parameters = ", ".join(f"%{i}: tensor<2xf32>" for i in range(9))
    text = f"module @nine {{ func.func public @main({parameters}) -> tensor<2xf32> {{ "
    compiled: Any = {
        "jit": lambda: jit(lambda *x: sum(x)).lower(*[np.zeros(2, np.float32)] * 9).compile(),
        "pmap": lambda: (
            plugrt.pmap(lambda *x: sum(x)).lower(*[np.zeros((2, 1), np.float32)] * 9).compile()
        ),
        "program": lambda: plugrt.compile(text + "return %0 : tensor<2xf32> } }"),
    }[kind]()
    assert isinstance(compiled, CompiledCall)
    with pytest.raises(plugrt.errors.ArgumentMismatch, match="and 4 more") as caught:
        compiled(*[np.zeros((2, 2, 2), np.float32)] * 9)
    assert str(caught.value).count("called with float32[2,2,2]") == 5
