"""Traced arrays used outside of their trace, and functions that fail half-way."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from plugrt import array_api, config, device_get, device_put, devices, jit, lax
from plugrt.errors import ConcretizationError, LeakedTracer
from support.ops import add, mul, sin

X = np.arange(3, dtype=np.float32)


class Holder:
    value: Any = None


def leak() -> Any:
    """Returns a traced array of a call that has ended."""
    holder = Holder()

    @jit
    def leaking(x: Any) -> Any:
        holder.value = add(x, 1)
        return x

    leaking(X)
    return holder.value


@pytest.mark.parametrize(
    "use",
    [
        lambda t: add(t, 1),
        lambda t: add(X, t),
        lambda t: jit(lambda x: add(x, 1))(t),
        lambda t: jit(lambda x: add(x, t))(X),
        lambda t: jit(lambda: t)(),
        lambda t: jit(lambda: (X, [t]))(),
        lambda t: jit(lambda x: jit(lambda: add(x, t))())(X),
        device_put,
        lambda t: bool(t),
        np.asarray,
    ],
)
def test_use_after_the_call(use: Any) -> None:
    traced = leak()
    with pytest.raises(LeakedTracer, match="'leaking'"):
        use(traced)
    np.testing.assert_array_equal(jit(lambda x: add(x, 2))(X), X + 2)


def test_a_leaked_argument_names_itself() -> None:
    kept = []
    jit(lambda params: kept.append(params["w"]))({"w": X})
    with pytest.raises(LeakedTracer, match=r"argument params\['w'\]"):
        sin(kept[0])
    assert "Tracer<float32[3]>" in repr(kept[0])


def test_use_in_another_thread() -> None:
    errors: list[BaseException] = []

    @jit
    def f(x: Any) -> Any:
        def elsewhere() -> None:
            try:
                add(x, 1)
            except LeakedTracer as error:
                errors.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return add(x, 1)

    np.testing.assert_array_equal(f(X), X + 1)
    assert len(errors) == 1


def test_threads_of_a_traced_function_compute_for_themselves() -> None:
    results: list[Any] = []

    @jit
    def f(x: Any) -> Any:
        thread = threading.Thread(target=lambda: results.append(jit(lambda y: add(y, 1))(X)))
        thread.start()
        thread.join()
        return mul(x, 2)

    np.testing.assert_array_equal(f(X), 2 * X)
    np.testing.assert_array_equal(results[0], X + 1)


def test_device_put_and_get_of_traced_arrays() -> None:
    f = jit(lambda x: add(device_put({"x": x}, devices()[2])["x"], device_put(1.0)))
    np.testing.assert_array_equal(f(X), X + 1)
    with pytest.raises(ConcretizationError, match="NumPy array"):
        jit(device_get)(X)


@pytest.mark.parametrize(
    "keep",
    [
        lambda x, kept: lax.fori_loop(0, 3, lambda i, c: (kept.append(add(c, 1)), c)[1], x),
        lambda x, kept: lax.while_loop(
            lambda c: (kept.append(add(c, 1)), array_api.any(c > 9))[1], lambda c: c, x
        ),
        lambda x, kept: lax.cond(True, lambda c: (kept.append(add(c, 1)), c)[1], lambda c: c, x),
        lambda x, kept: lax.scan(lambda c, y: (kept.append(add(c, 1)), (c, y))[1], x, x),
    ],
    ids=["fori_loop", "while_loop", "cond", "scan"],
)
def test_leaks_out_of_control_flow(keep: Any) -> None:
    kept: list[Any] = []

    @jit
    def f(x: Any) -> Any:
        keep(x, kept)
        return add(x, kept[0])

    with pytest.raises(LeakedTracer):
        f(X)
    clean()


class Unlucky(Exception):
    pass


def clean() -> None:
    """Asserts that no trace is left in this thread and that the next call works."""
    out = jit(lambda x: add(mul(x, 2), 1))(X)
    np.testing.assert_array_equal(out, 2 * X + 1)
    assert isinstance(device_get(add(X, 1)), np.ndarray)


def test_an_exception_in_the_function() -> None:
    fail = [True]

    @jit
    def f(x: Any) -> Any:
        y = add(x, 1)
        if fail[0]:
            raise Unlucky("now")
        return y

    for _ in range(2):
        with pytest.raises(Unlucky, match="now") as caught:
            f(X)
        assert caught.traceback[-1].name == "f"
        clean()
    fail[0] = False
    np.testing.assert_array_equal(f(X), X + 1)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, RecursionError])
def test_any_exception_leaves_nothing(error: type[BaseException]) -> None:
    @jit
    def inner(x: Any) -> Any:
        add(x, 1)
        raise error

    with pytest.raises(error):
        jit(lambda x: inner(add(x, 1)))(X)
    clean()


def test_settings_overridden_inside_do_not_stay() -> None:
    @jit
    def f(x: Any) -> Any:
        with config.override(enable_x64=True):
            raise Unlucky

    with pytest.raises(Unlucky):
        f(X)
    assert config.enable_x64 is None
    clean()


def test_a_failed_operation_inside_a_function() -> None:
    @jit
    def f(x: Any) -> Any:
        try:
            add(x, np.ones(7, np.float32))
        except ValueError:
            return add(x, 1)
        raise AssertionError

    np.testing.assert_array_equal(f(X), X + 1)
    clean()
