"""pmap under `disable_jit`, operation by operation on all replicas; and the debug reruns."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import devices, lax, monitoring, pmap
from plugrt.errors import ConcretizationError, FloatingPointFault, UnboundAxis
from plugrt.sharding import Mesh, NamedSharding, PmapSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.compiles import counting

X = np.arange(8, dtype=np.float32).reshape(4, 2)
PAIRS = X.reshape(2, 2, 2)


def steps(v: Any) -> Any:
    total = lax.psum(v, "i")
    scaled = total * 2
    return scaled + v


@behaviour(107, "under `disable_jit` a debugger stops, and printing shows what each replica has",
           jax="0.4.20 did; JAX 0.10 traces")  # fmt: skip
def test_a_debugger_sees_all_replicas() -> None:
    seen: dict[str, tuple[str, str, tuple[int, ...]]] = {}

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is steps.__code__:
            for name, value in frame.f_locals.items():
                seen[name] = str(value), repr(value), value.shape
        return trace

    before = sys.gettrace()
    with plugrt.disable_jit():
        sys.settrace(trace)
        try:
            result = pmap(steps, "i")(X)
        finally:
            sys.settrace(before)
    total = np.stack([X.sum(0)] * 4)
    np.testing.assert_array_equal(result, 2 * total + X)
    assert result.sharding == NamedSharding(Mesh(devices()[:4], "i"), P("i"))
    assert seen["v"][0] == str(X)
    assert seen["total"] == (
        str(total), "Array([[12., 16.],\n       [12., 16.],\n       [12., 16.],\n       [12., 16.]]"
        ", of 4 replicas, dtype=float32)", (2,),
    )  # fmt: skip
    assert seen["scaled"][0] == str(2 * total)


CALLS: dict[str, Callable[[Any], Any]] = {
    "operators": lambda v: ((v * 2 + 1)[::-1], -v, v > 3, v.astype(np.int32) % 2),
    "functions": lambda v: (xp.sum(v), xp.concat([v, v]), xp.where(v > 3, v, 0), xp.argmax(v)),
    "collectives": lambda v: (
        lax.psum(v, "i"), lax.pmean(v, "i"), lax.all_gather(v, "i"), lax.axis_index("i"),
        lax.ppermute(v, "i", [(0, 1), (1, 2)]), lax.psum({"a": v, "b": 2}, "i"),
        lax.psum(v, ("i", 0)), lax.psum(v, "i", axis_index_groups=[[0, 1, 2], [3]]),
    ),
    "a jitted function": lambda v: plugrt.jit(lambda u: u - lax.pmax(u, "i"))(v),
    "what depends on no argument": lambda v: (np.float32(3), xp.ones(2), 4.0),
    "cond by replica": lambda v: lax.cond(
        v[0] > 2, lambda u: u * lax.axis_index("i"), lambda u: -u, v),
    "cond for all": lambda v: lax.cond(lax.psum(v, "i")[0] > 2, lambda u: -u, lambda u: u, v),
    "while_loop by replica": lambda v: lax.while_loop(lambda c: c[0] < 4, lambda c: c + 1, v),
    "scan": lambda v: lax.scan(lambda c, x: (c + lax.psum(x, "i"), c), xp.zeros(()), v),
    "a branch in Python": lambda v: v if lax.psum(v, "i")[0] > 1 else -v,
    "pmap within": lambda v: pmap(
        lambda u: (lax.psum(u, "j") + u, lax.psum(u, ("i", "j")), lax.axis_index("j")), "j")(v),
    "what pmap within gave": lambda v: pmap(lambda u: u + 1)(v) * v + lax.psum(v, "i"),
}  # fmt: skip


@behaviour(107, "operation by operation pmap returns the results of the compiled function")
@pytest.mark.parametrize("name", CALLS)
def test_as_compiled(name: str) -> None:
    f = pmap(CALLS[name], "i")
    if name == "a branch in Python":
        f = pmap(lambda v: lax.cond(lax.psum(v, "i")[0] > 1, lambda u: u, lambda u: -u, v), "i")
    expected = f(X)
    with plugrt.disable_jit():
        found = pmap(CALLS[name], "i")(X)
    leaves, structure = plugrt.tree.flatten(found)
    wanted, same = plugrt.tree.flatten(expected)
    assert structure == same
    for a, b in zip(leaves, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-6)


def by_size(v: Any) -> Any:
    return lax.cond(v[0] > 2, times_size, abs, v)


def times_size(v: Any) -> Any:
    return v * lax.axis_size("i")


@behaviour(107, "operation by operation control flow is compiled for each mapped axis")
def test_control_flow_is_of_its_axis() -> None:
    with plugrt.disable_jit():
        for size in (4, 3, 4):
            wanted = np.where(X[:size, :1] > 2, X[:size] * size, X[:size])
            np.testing.assert_array_equal(pmap(by_size, "i")(X[:size]), wanted)


@behaviour(107, "operation by operation: axes in and out, keywords, static arguments, devices")
def test_arguments() -> None:
    def f(v: Any, w: Any, n: int, *, k: Any) -> Any:
        assert type(n) is int
        return v @ w * n + k, v, lax.psum(v, "i")

    eye = np.eye(2, dtype=np.float32)
    mapped = pmap(f, "i", in_axes=(1, None, None), out_axes=(0, 1, None),
                  static_broadcasted_argnums=2, devices=devices()[3:7])  # fmt: skip
    with plugrt.disable_jit():
        first, same, total = mapped(X.T.copy(), eye, 3, k=np.ones(4, np.float32))
    np.testing.assert_array_equal(first, 3 * X + 1)
    np.testing.assert_array_equal(same, X.T)
    np.testing.assert_array_equal(total, X.sum(0))
    over = Mesh(devices()[3:7], "i")
    assert same.sharding == NamedSharding(over, P(None, "i"))
    assert total.sharding == NamedSharding(over, P())
    with plugrt.disable_jit():
        found = pmap(lambda x: pmap(lambda v: lax.psum(v, "j"), "j")(x), "i")(PAIRS)
    assert found.sharding.is_equivalent_to(PmapSharding(devices()[:4], replicas=2), found.ndim)


@behaviour(107, "each operation is compiled once, and Python scalars stay scalars")
def test_each_is_compiled_once() -> None:
    def f(v: Any) -> Any:
        assert (lax.psum(1, "i"), lax.axis_size("i"), lax.psum(2.5, "i")) == (4, 4, 10.0)
        return lax.psum(v, "i") + lax.pmin(v, "i") * 72

    x = np.ones((4, 73), np.float32)  # no other test has compiled it
    with plugrt.disable_jit(), counting() as counts:
        for _ in range(3):
            np.testing.assert_array_equal(pmap(f, "i")(x), 76 * x)
    assert counts[monitoring.COMPILE] == 6  # four, and the removal and addition of the mapped axis


@behaviour(107, "`debug.print` and callbacks are called for each replica")
def test_callbacks(capfd: pytest.CaptureFixture[str]) -> None:
    def f(v: Any) -> Any:
        plugrt.debug.print("has {}", v)
        return v

    with plugrt.disable_jit():
        pmap(f, "i")(X)
    plugrt.effects_barrier()
    assert sorted(capfd.readouterr().out.splitlines()) == [f"has {row}" for row in X]


@pytest.mark.filterwarnings("ignore:the jitted function")
@behaviour(107, "`debug_nans` finds the operation in pmap, also nested, compiled ahead, or in jit")
def test_debug_nans_finds_the_operation() -> None:
    def f(v: Any) -> Any:
        return lax.psum(xp.sqrt(xp.log(v - 3)), "i") + 1

    inner = pmap(f, "i")
    calls: dict[str, Callable[[], Any]] = {
        "called": lambda: inner(X),
        "ahead": lambda: inner.lower(X).compile()(X),
        "in jit": lambda: plugrt.jit(lambda x: inner(x) + 1)(X),
        "nested": lambda: pmap(lambda x: inner(x))(PAIRS),
    }
    for name, call in calls.items():
        said = r"stablehlo\.log" if name == "nested" else r"encountered in log of"
        with plugrt.debug_nans(), pytest.raises(FloatingPointFault, match=said) as caught:
            call()
        assert f"test_pmap_by_operation.py:{f.__code__.co_firstlineno + 1}" in str(caught.value)
    with plugrt.debug_nans():
        np.testing.assert_array_equal(pmap(lambda v: v * 2)(X), X * 2)


def test_donation_and_a_global_size_are_compiled() -> None:
    with plugrt.disable_jit():
        _donate_and_size()


def _donate_and_size() -> None:
    x = plugrt.device_put(X, PmapSharding(devices()[: len(X)], 0))
    np.testing.assert_array_equal(pmap(lambda v: v * 2, donate_argnums=0)(x), X * 2)
    assert x.is_deleted()
    traced = []
    sized = pmap(lambda v: (traced.append(type(v)), v * 2)[1], global_axis_size=len(X))
    np.testing.assert_array_equal(sized(X), X * 2)
    assert [cls.__name__ for cls in traced] == ["Tracer"]
    nested = pmap(lambda v: pmap(lambda w: w * 2, donate_argnums=0)(v))
    np.testing.assert_array_equal(nested(np.ones((2, 2, 3))), np.full((2, 2, 3), 2.0))


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a truth value": (lambda: pmap(lambda v: v if v[0] > 0 else -v, "i")(X), ConcretizationError,
                      r"bool\[\], which differs between the 4 replicas of pmap over 'i'"),
    "a float": (lambda: pmap(lambda v: v * float(v[0]))(X), ConcretizationError,
                r"float32\[\], which differs between the 4 replicas of pmap: "),
    "NumPy": (lambda: pmap(lambda v: np.sum(np.asarray(v)))(X), ConcretizationError, "np.asarray"),
    "another device": (lambda: pmap(lambda v: plugrt.device_put(v, devices()[1]))(X),
                       ConcretizationError, "differs between the 4 replicas"),
    "an axis that is not bound": (lambda: pmap(lambda v: lax.psum(v, "q"), "i")(X), UnboundAxis,
                                  "'q'; axes that a surrounding pmap .*: 'i'"),
    "more replicas than devices": (lambda: pmap(steps, "i")(np.ones(9)), ValueError,
                                   "needs 9 replicas, but .* has only 8 devices"),
}  # fmt: skip


@behaviour(107, "operation by operation: donation, a global size and reading one value are refused")
@pytest.mark.parametrize("name", WRONG)
def test_wrong_uses(name: str) -> None:
    call, error, said = WRONG[name]
    with plugrt.disable_jit(), pytest.raises(error, match=said):
        call()
    np.testing.assert_array_equal(pmap(steps, "i")(X), 2 * X.sum(0) + X)  # no trace is open


@behaviour(107, "`global_axis_size` is the size of the mapped axis over all processes")
def test_global_axis_size() -> None:
    np.testing.assert_array_equal(pmap(steps, "i", global_axis_size=4)(X), 2 * X.sum(0) + X)
    with pytest.raises(ValueError, match=r"global_axis_size=8; its mapped axis has size 4.*only"):
        pmap(steps, "i", global_axis_size=8)(X)
    with pytest.raises(ValueError, match="global_axis_size must be an integer from 1; got 0"):
        pmap(steps, "i", global_axis_size=0)


@pytest.mark.parametrize("within", [False, True])
def test_weak_results_are_weak(within: bool) -> None:
    weak = xp.full((2,), 1.5)
    assert weak.weak_type
    with plugrt.config.override(disable_jit=within):
        found = pmap(lambda a, b, c: (a * 2, b * 2, a + c, a * 0 > b), in_axes=(0, None, 0))(
            weak, 2, np.ones(2, np.float16)
        )
    assert [x.weak_type for x in found] == [True, True, False, False]
