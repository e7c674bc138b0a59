"""Creation functions against NumPy: dtypes, devices, shapes, and refusals."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
import plugrt.array_api as xp
from plugrt import config
from plugrt.errors import DtypeError, InvalidArgument, NotAnArray, ShapeError, UnsupportedDtype
from plugrt.sharding import PmapSharding
from support.numpy_oracle import ALL, FLOATS, dtype_of, identical, same, sample, traced

MAKERS: dict[str, Callable[..., Any]] = {
    "zeros": lambda f, **o: f((2, 3), **o),
    "ones": lambda f, **o: f((2, 3), **o),
    "full": lambda f, **o: f((2, 3), 1, **o),
    "eye": lambda f, **o: f(2, 3, k=1, **o),
}


@pytest.mark.parametrize("dtype", [*ALL, "float8_e4m3fn"])
@pytest.mark.parametrize("name", MAKERS)
def test_filled(name: str, dtype: str) -> None:
    kind = dtype_of(dtype)
    result = MAKERS[name](getattr(xp, name), dtype=kind)
    numpy: Any = np.eye(2, 3, 1) if name == "eye" else MAKERS[name](getattr(np, name))
    identical(result, numpy.astype(kind))


@pytest.mark.parametrize("shape", [(), 4, (0,), (2, 0), [2, 1], (np.int64(2), 3)])
def test_shapes(shape: Any) -> None:
    identical(xp.zeros(shape), np.zeros(shape, np.float32))
    identical(xp.full(shape, 7), np.full(shape, 7, np.int32))
    assert xp.empty(shape).shape == np.zeros(shape).shape
    identical(traced(lambda x: x + xp.ones(shape))(1.0), np.full(shape, 2, np.float32))


def test_an_array_can_be_a_size() -> None:
    assert xp.zeros((xp.asarray(2), 3)).shape == (2, 3)


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like", "full_like"])
def test_like(name: str) -> None:
    x = xp.asarray(sample((2, 3), "int8"))
    more = (5,) if name == "full_like" else ()
    wanted = {"zeros_like": 0, "ones_like": 1, "full_like": 5, "empty_like": 0}[name]
    function = getattr(xp, name)
    identical(function(x, *more), np.full((2, 3), wanted, np.int8))
    identical(function(x, *more, dtype=xp.float64), np.full((2, 3), wanted, np.float64))
    identical(traced(lambda y: function(y, *more))(x), np.full((2, 3), wanted, np.int8))


def test_full_keeps_the_bits_of_its_value() -> None:
    identical(xp.full(2, 0.1, dtype=xp.float64), np.full(2, 0.1))
    identical(xp.full_like(xp.zeros(2, dtype=xp.float64), 0.1), np.full(2, 0.1))
    identical(xp.full(2, xp.asarray(3, dtype=xp.int8)), np.full(2, 3, np.int8))
    identical(xp.full((), np.float64(0.1)), np.float64(0.1))
    identical(xp.full(2, 2**40), np.full(2, 2**40))
    identical(traced(lambda x: xp.full(2, x * 2))(np.float32(3)), np.full(2, 6, np.float32))
    for value in (True, 1, 1.5, 2j):
        assert xp.full(1, value).dtype.kind == np.asarray(value).dtype.kind
    with pytest.raises(ShapeError, match=r"fill_value of full has shape \(2,\)"):
        xp.full(3, np.ones(2))
    identical(xp.full((2, 3), np.arange(3)), np.full((2, 3), np.arange(3)))
    column = np.float32([[1], [2]])
    identical(xp.full_like(xp.zeros((2, 3)), column), np.full((2, 3), column))


@pytest.mark.parametrize(
    "make",
    [
        lambda **o: xp.zeros(2, **o),
        lambda **o: xp.ones(2, **o),
        lambda **o: xp.empty(2, **o),
        lambda **o: xp.full(2, 3.0, **o),
        lambda **o: xp.eye(2, **o),
        lambda **o: xp.arange(2, **o),
        lambda **o: xp.arange(1 << 17, **o),
        lambda **o: xp.linspace(0, 1, 2, **o),
        lambda **o: xp.asarray([1, 2], **o),
        lambda **o: xp.zeros_like(xp.ones(2), **o),
        lambda **o: xp.full_like(xp.ones(2), 2, **o),
        lambda **o: xp.astype(xp.ones(2), xp.int8, **o),
        lambda **o: xp.from_dlpack(np.ones(2), **o),
    ],
)
def test_device_commits(make: Callable[..., Any]) -> None:
    device = plugrt.devices()[5]
    result = make(device=device)
    assert result.devices() == {device}
    assert result.committed
    assert not make().committed
    assert make().devices() == {plugrt.devices()[0]}


def test_a_sharding_is_a_device_too() -> None:
    rows = PmapSharding(plugrt.devices()[:2])
    x = xp.ones((2, 4), device=rows)
    assert x.sharding == rows
    y = xp.zeros_like(x)
    assert y.sharding == rows
    identical(y, np.zeros((2, 4), np.float32))


def test_a_platform_name_is_refused_as_a_device() -> None:
    with pytest.raises(InvalidArgument, match="'cpu'"):
        xp.zeros(2, device="cpu")


def test_bad_dtypes() -> None:
    for dtype in ("U3", object, "datetime64[s]", [("a", "f4")], "no such"):
        with pytest.raises(UnsupportedDtype):
            xp.zeros(2, dtype=dtype)


def test_default_dtypes_follow_the_setting() -> None:
    for wide, bits in [(None, 32), (True, 64), (False, 32)]:
        with config.override(enable_x64=wide):
            assert xp.zeros(1).dtype == f"float{bits}"
            assert xp.arange(3).dtype == f"int{bits}"
            assert xp.linspace(0, 1, 3).dtype == f"float{bits}"
            assert xp.asarray([1.5, 2]).dtype == f"float{bits}"
            assert xp.asarray(1j).dtype == f"complex{2 * bits}"
            assert xp.zeros(1, dtype=float).dtype == f"float{bits}"
            narrowed = np.float32 if wide is False else np.float64
            assert xp.zeros(1, dtype=xp.float64).dtype == narrowed


class TestArange:
    @pytest.mark.parametrize(
        "args",
        [(5,), (2, 7), (7, 2, -2), (0,), (5, 2), (0, 10, 3), (0.0, 1.0, 0.1), (1, 2.5), (-3.5, 3.5),
         (0, -1, -0.25), (np.int64(4),), (np.float32(2.5),)],
    )  # fmt: skip
    def test_against_numpy(self, args: tuple[Any, ...]) -> None:
        wanted = np.arange(*args)
        kind = np.int32 if wanted.dtype.kind == "i" else np.float32
        same(xp.arange(*args), wanted.astype(kind), tolerance=1e-6)
        same(traced(lambda x: x + xp.arange(*args, dtype=np.float64))(0.0),
             wanted.astype(np.float64), tolerance=1e-12)  # fmt: skip

    @pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "bfloat16", "float64"])
    def test_dtypes(self, dtype: str) -> None:
        kind = dtype_of(dtype)
        identical(xp.arange(1, 6, dtype=kind), np.arange(1, 6).astype(kind))

    def test_large_ones_are_the_same_on_the_device(self) -> None:
        identical(xp.arange(3, 1 << 17), np.arange(3, 1 << 17, dtype=np.int32))
        same(xp.arange(0, 1, 1e-5), np.arange(0, 1, 1e-5).astype(np.float32), tolerance=1e-6)
        assert xp.arange(2**40, 2**40 + 3).dtype == np.int64

    def test_refusals(self) -> None:
        with pytest.raises(ValueError, match="step of arange is 0"):
            xp.arange(0, 5, 0)
        with pytest.raises(DtypeError, match="bool"):
            xp.arange(3, dtype=xp.bool)
        with pytest.raises(NotAnArray, match="arange got the bound or step 'a'"):
            xp.arange("a")


class TestLinspace:
    @pytest.mark.parametrize("dtype", [*FLOATS, "complex128"])
    def test_dtypes(self, dtype: str) -> None:
        kind = dtype_of(dtype)
        same(xp.linspace(-1, 2, 5, dtype=kind), np.linspace(-1, 2, 5).astype(kind))
        on_device = traced(lambda x: x * xp.linspace(-1, 2, 5, dtype=kind))(np.ones((), kind))
        same(on_device, np.linspace(-1, 2, 5).astype(kind))

        identical(xp.linspace(-3, 2, 4, dtype=xp.int32), np.linspace(-3, 2, 4, dtype=np.int32))

    def test_the_last_is_the_end_itself(self) -> None:
        big = xp.linspace(0.1, 0.7, 100_001)
        assert float(big[-1]) == np.float32(0.7)
        same(big, np.linspace(0.1, 0.7, 100_001).astype(np.float32), tolerance=1e-6)

    def test_refusals(self) -> None:
        with pytest.raises(ShapeError, match="num of linspace is -1"):
            xp.linspace(0, 1, -1)
        with pytest.raises(DtypeError, match="bool"):
            xp.linspace(0, 1, 3, dtype=xp.bool)
        with pytest.raises(DtypeError, match="complex bound"):
            xp.linspace(0, 1j, 3, dtype=xp.float32)
        with pytest.raises(DtypeError, match="complex bound"):
            xp.linspace(0, 1j, 3, dtype=xp.int32)


@pytest.mark.parametrize("k", [-(2**40), -(2**31), -4, -1, 0, 2, 5, 2**31 - 1, 2**31])
def test_triangles_and_diagonals(k: int) -> None:
    a = sample((2, 3, 4), "float32")
    identical(xp.tril(xp.asarray(a), k=k), np.tril(a, k))
    identical(traced(lambda x: xp.triu(x, k=k))(a), np.triu(a, k))
    identical(xp.eye(3, 4, k=k), np.eye(3, 4, k, dtype=np.float32))
    identical(xp.eye(3), np.eye(3, dtype=np.float32))
    with pytest.raises(ShapeError, match=r"tril got x of shape \(3,\)"):
        xp.tril(a[0, :, 0], k=k)


def test_meshgrid_of_other_things() -> None:
    assert xp.meshgrid() == []
    identical(xp.meshgrid(xp.asarray(2), xp.asarray([1, 2]))[0], np.array([[2], [2]], np.int32))
    with pytest.raises(ShapeError, match=r"arrays\[0\] of shape \(1, 1\)"):
        xp.meshgrid(np.ones((1, 1)))
    with pytest.raises(ValueError, match="'yx'"):
        xp.meshgrid(np.ones(1), indexing="yx")


def test_every_creation_function_takes_dtype_and_device() -> None:
    for name in ("arange", "asarray", "empty", "empty_like", "eye", "full", "full_like",
                 "linspace", "ones", "ones_like", "zeros", "zeros_like"):  # fmt: skip
        assert {"dtype", "device"} <= set(inspect.signature(getattr(xp, name)).parameters)
