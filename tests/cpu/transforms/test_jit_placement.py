"""`jit`: committed and uncommitted arguments, and where programs run.

Same as JAX: committed and uncommitted arrays decide the device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrt import backends, device_put, devices, jit
from plugrt.errors import ArgumentError, DeviceMismatch, InvalidArgument, UnknownPlatform
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
        jit(lambda x, y: (add(x, 1), y))(on(1), on(2))  # a forwarded argument is a result
    with pytest.raises(DeviceMismatch, match="cpu:2"):
        jit(lambda x, y: add(x, 1), keep_unused=True)(on(1), on(2))


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
