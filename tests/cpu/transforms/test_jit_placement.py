"""`jit`: committed and uncommitted arguments, and where programs run.

Same as JAX: committed and uncommitted arrays decide the device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrt import array_api as xp
from plugrt import backends, config, device_put, devices, jit, make_mesh
from plugrt.errors import (
    ArgumentError,
    DeviceMismatch,
    InvalidArgument,
    ShapeError,
    UnknownPlatform,
)
from plugrt.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding
from support.ops import add

X = np.arange(3, dtype=np.float32)
f = jit(lambda x, y: add(x, y))


def on(i: int) -> Any:
    return device_put(X, devices()[i])


@pytest.mark.parametrize("function", [f, add], ids=["jit", "operation"])
def test_committed_arguments_decide(function: Any) -> None:
    free = device_put(X)
    for args in ((on(2), free), (free, on(2)), (on(2), X), (on(2), 1.0), (on(2), on(2))):
        out = function(*args)
        assert (out.device, out.committed) == (devices()[2], True)
    out = function(free, X)
    assert (out.device, out.committed) == (devices()[0], False)
    np.testing.assert_array_equal(function(free, on(2)), 2 * X)


@pytest.mark.parametrize("function", [f, add], ids=["jit", "operation"])
def test_arguments_committed_to_different_devices(function: Any) -> None:
    for _ in range(2):
        with pytest.raises(DeviceMismatch) as caught:
            function(on(1), on(2))
        text = str(caught.value)
        assert "x: float32[3] on cpu:1" in text
        assert "y: float32[3] on cpu:2" in text
        assert "device_put" in text
    assert isinstance(caught.value, ValueError)


def test_unused_arguments_do_not_count() -> None:
    assert jit(lambda x, y: add(x, 1))(on(1), on(2)).device is devices()[1]
    with pytest.raises(DeviceMismatch, match="cpu:2"):
        jit(lambda x, y: (add(x, 1), y))(on(1), on(2))  # what is passed through is a result
    with pytest.raises(DeviceMismatch, match="cpu:2"):
        jit(lambda x, y: add(x, 1), keep_unused=True)(on(1), on(2))


def test_closures_follow() -> None:
    w = on(4)
    out = jit(lambda x: add(x, w))(X)
    assert (out.device, out.committed) == (devices()[0], False)
    np.testing.assert_array_equal(out, 2 * X)
    assert jit(lambda x: add(x, w))(on(1)).device is devices()[1]
    free = device_put(X)
    out = jit(lambda x: add(x, free))(on(3))
    assert out.device is devices()[3]
    np.testing.assert_array_equal(out, 2 * X)


def test_forwarded_arguments_move_with_the_program() -> None:
    for g in (lambda x, y: (x, add(x, y)), lambda x, y: (x, add(y, y))):
        for out in jit(g)(device_put(X), on(3)):
            assert (out.device, out.committed) == (devices()[3], True)
        for out in jit(g)(device_put(X), on(0)):
            assert (out.device, out.committed) == (devices()[0], True)
        for out in jit(g)(device_put(X), X):
            assert (out.device, out.committed) == (devices()[0], False)
    out = jit(lambda x, y: x)(device_put(X), on(3))
    assert (out.device, out.committed) == (devices()[0], False)
    out = jit(lambda x: x, device=devices()[5])(X)
    assert (out.device, out.committed) == (devices()[5], True)


def test_device_and_backend_options() -> None:
    here = jit(lambda x: add(x, 1), device=devices()[5])
    for x in (X, device_put(X), on(2)):
        out = here(x)
        assert (out.device, out.committed) == (devices()[5], True)
    name = next(iter(backends()))
    assert jit(lambda x: add(x, 1), backend=name)(X).device.client is devices()[0].client
    with pytest.raises(UnknownPlatform, match="nosuch"):
        jit(lambda x: add(x, 1), backend="nosuch")(X)
    with pytest.raises(ArgumentError, match="not both"):
        jit(lambda x: x, device=devices()[0], backend="cpu")
    with pytest.raises(InvalidArgument, match=r"plugrt\.devices"):
        jit(lambda x: x, device="cpu")


def test_shardings_of_one_device() -> None:
    sharding = SingleDeviceSharding(devices()[6])
    out = jit(lambda x: add(x, 1), in_shardings=sharding, out_shardings=sharding)(X)
    assert out.sharding is sharding
    one = NamedSharding(make_mesh((1,), ("x",), devices=devices()[6:7]), PartitionSpec("x"))
    divided = device_put(np.ones(8), NamedSharding(make_mesh((8,), ("x",)), PartitionSpec("x")))
    for asked in (sharding, one):
        for options in ({"in_shardings": asked}, {"out_shardings": asked}):
            called = jit(lambda x: add(x, 1), **options)
            for x in (X, device_put(X), on(6)):
                assert called(x).devices() == {devices()[6]}, options
            if "in_shardings" in options:  # as in JAX: it is on one device, as asked
                assert called(on(2)).devices() == {devices()[6]}
            for x in (divided, *[on(2)] * ("out_shardings" in options)):
                with pytest.raises(
                    DeviceMismatch, match=r"(?s)_shardings: .*device=.* moves"
                ) as error:
                    called(x)
                assert "argument x" in str(error.value), options
                with pytest.raises(DeviceMismatch, match="_shardings: "):
                    called.lower(x)
            assert called.lower(X).compile()(X).devices() == {devices()[6]}
    rows = NamedSharding(one.mesh, PartitionSpec("x"))
    for options, said in (
        ({"in_shardings": rows}, "argument x: "), ({"out_shardings": rows}, "result 0 of "),
    ):  # fmt: skip
        with pytest.raises(ShapeError, match=said):
            jit(lambda x: add(x, 1), **options)(1.0)


def test_jitted_functions_that_are_jitted_again_agree_on_the_device() -> None:
    inner = jit(lambda x: add(x, 1))
    assert jit(inner, device=devices()[3])(X).device is devices()[3]
    assert jit(jit(inner, device=devices()[3]))(X).device is devices()[3]
    with pytest.raises(DeviceMismatch, match=r"device= of jitted .*\n  jit's device or backend on"):
        jit(jit(inner, device=devices()[3]), device=devices()[5])(X)
    assert inner(X).device is devices()[0]


def test_a_device_of_a_function_within_counts_as_an_argument_does() -> None:
    sharding = SingleDeviceSharding(devices()[3])
    for options in ({"device": devices()[3]}, {"in_shardings": sharding}):
        inner: Any = jit(lambda x: add(x, 1), **options)
        for again in (
            jit(inner),
            jit(lambda x, inner=inner: add(inner(x), 1)),
            jit(inner, device=devices()[3]),
        ):
            for x in (X, on(3)):
                assert again(x).device is devices()[3], options
                assert again(x).committed
            with pytest.raises(DeviceMismatch, match="of jitted '<lambda>', called at"):
                jit(inner)(on(2))
        with pytest.raises(DeviceMismatch, match="of jitted '<lambda>', called at"):
            jit(inner, device=devices()[5])(X)


def test_default_device() -> None:
    with config.override(default_device=devices()[7]):
        out = f(X, X)
        assert (out.device, out.committed) == (devices()[7], False)
        assert f(on(1), X).device is devices()[1]
        # An uncommitted array follows, wherever it was made.
        assert f(device_put(X), 1.0).device is devices()[7]
    x = device_put(X)
    with config.override(default_device=devices()[7]):
        assert f(x, x).device is devices()[7]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "float32"])
def test_signs_are_where_their_argument_is(dtype: str) -> None:
    x = device_put(X.astype(dtype), devices()[1])
    found = jit(xp.signbit)(x)
    assert found.devices() == {devices()[1]}
    assert np.asarray(found).tolist() == [False] * 3
