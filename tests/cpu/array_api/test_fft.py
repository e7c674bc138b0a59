"""The `fft` extension against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import errors
from support.behaviour import behaviour
from support.numpy_oracle import same

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL = ["fftn", "ifftn", "rfftn", "irfftn"]
NORMS: list[Any] = ["backward", "ortho", "forward"]


def numbers(name: str, shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray[Any, Any]:
    random = np.random.default_rng(0)
    real = random.standard_normal(shape).astype(dtype)
    return real if name in ("rfft", "ihfft", "rfftn") else real + 1j * real[::-1]


@behaviour(19, "`fft` along one axis, cut off or filled, in each norm, is NumPy's")
@pytest.mark.parametrize("name", ONE)
def test_along_one_axis(name: str) -> None:
    x = numbers(name, (4, 6))
    for options in ({}, {"n": 3, "axis": 0, "norm": "ortho"}, {"n": 9, "norm": "forward"}):
        expected = getattr(np.fft, name)(x, **options)
        same(getattr(xp.fft, name)(x, **options), expected, tolerance=2e-5)


@behaviour(19, "`fftn` and its kin over any number of axes are NumPy's")
@pytest.mark.parametrize("name", SEVERAL)
def test_over_several_axes(name: str) -> None:
    x = numbers(name, (2, 3, 4, 5))
    for norm, options in zip(
        NORMS, ({}, {"s": (4, 6), "axes": (-1, 0)}, {"axes": (1,)}), strict=True
    ):
        expected = getattr(np.fft, name)(x, norm=norm, **options)
        same(getattr(xp.fft, name)(x, norm=norm, **options), expected, tolerance=2e-5)
    same(
        getattr(xp.fft, name)(x, s=(4, 6)),
        getattr(np.fft, name)(x, s=(4, 6), axes=(-2, -1)),
        tolerance=2e-5,
    )


def test_dtypes_of_64_and_16_bits() -> None:
    x = numbers("rfft", (8,), "float64")
    same(xp.fft.rfft(x), np.fft.rfft(x), tolerance=1e-12)
    half = xp.fft.fft(xp.asarray(x, dtype=xp.float16))
    assert half.dtype == np.complex64
    same(xp.fft.fft(np.arange(4, dtype=np.int32)), np.fft.fft(np.arange(4)).astype("F"))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_frequencies(n: int) -> None:
    same(xp.fft.fftfreq(n, d=0.25), np.fft.fftfreq(n, 0.25).astype("f"))
    same(xp.fft.rfftfreq(n, dtype=xp.float64), np.fft.rfftfreq(n))


def test_within_jit() -> None:
    x = numbers("fft", (5,))
    same(plugrt.jit(xp.fft.ifft)(x), xp.fft.ifft(x), tolerance=0)


def test_wrong_calls_are_named() -> None:
    x = xp.ones(4)
    with pytest.raises(errors.ArgumentError, match="norm of fft is 'both'; it takes backward"):
        xp.fft.fft(x, norm="both")  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match="fft got 0 points"):
        xp.fft.fft(x, n=0)
    with pytest.raises(errors.ArgumentError, match="irfft got 0 points"):
        xp.fft.irfft(xp.ones(1))
    with pytest.raises(errors.ArgumentError, match="1 lengths for 2 axes"):
        xp.fft.fftn(xp.ones((2, 2)), s=(2,), axes=(0, 1))
    with pytest.raises(errors.DtypeError, match="rfft got x of dtype complex64; it takes real"):
        xp.fft.rfft(numbers("fft", (4,)))
    with pytest.raises(errors.DtypeError, match=r"ihfft got x of dtype complex64.* ifft for"):
        xp.fft.ihfft(numbers("fft", (4,)))
    with pytest.raises(errors.AxisError, match="axis of fft is 1"):
        xp.fft.fft(x, axis=1)
    with pytest.raises(errors.DtypeError, match="fftfreq got dtype of dtype int32"):
        xp.fft.fftfreq(4, dtype=xp.int32)
