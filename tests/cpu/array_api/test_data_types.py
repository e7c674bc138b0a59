"""Data types: conversion, limits, kinds, casting; and the inspection API."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
import plugrt.array_api as xp
from plugrt import config
from plugrt.errors import DtypeError
from support.numpy_oracle import ALL, COMPLEX, FLOATS, INTEGERS, dtype_of, identical, traced

WIDTHS = {**{n: int(n.lstrip("uint")) for n in INTEGERS}, "int4": 4, "uint4": 4}


@pytest.mark.parametrize("source", ALL)
def test_astype_converts_as_numpy(source: str) -> None:
    a = np.array([0, 1, 3]).astype(dtype_of(source))
    x = xp.asarray(a)
    targets = [dtype_of(t) for t in ALL if source not in COMPLEX or t in COMPLEX]
    results = traced(lambda y: [xp.astype(y, t) for t in targets])(x)
    for target, result in zip(targets, results, strict=True):
        identical(result, a.astype(target))


def test_astype_truncates_and_everything_but_zero_is_true() -> None:
    x = xp.asarray([-1.7, -0.5, 0.0, 0.5, np.nan])
    identical(xp.astype(x[:4], xp.int8), np.array([-1, 0, 0, 0], np.int8))
    identical(xp.astype(x, xp.bool), np.array([True, True, False, True, True]))
    identical(xp.astype(xp.asarray([0j, 1j]), xp.bool), np.array([False, True]))
    identical(xp.astype(xp.asarray([1 + 2j]), xp.float32), np.array([1], np.float32))


def test_astype_copies_unless_told_not_to() -> None:
    x = xp.asarray([1.0])
    assert xp.astype(x, x.dtype, copy=False) is x
    assert xp.astype(x, x.dtype) is not x
    moved = xp.astype(x, xp.int8, device=plugrt.devices()[1])
    assert moved.devices() == {plugrt.devices()[1]}


@pytest.mark.parametrize("name", [*FLOATS, *COMPLEX, "float8_e4m3fn"])
def test_finfo(name: str) -> None:
    info, known = xp.finfo(dtype_of(name)), ml_dtypes.finfo(dtype_of(name))
    assert (info.bits, info.dtype) == (known.bits, known.dtype)
    for field in ("eps", "max", "min", "smallest_normal"):
        value = getattr(info, field)
        assert type(value) is float
        assert value == float(getattr(known, field))
    assert xp.finfo(xp.ones(1, dtype=dtype_of(name))) == info


@pytest.mark.parametrize("name", WIDTHS)
def test_iinfo(name: str) -> None:
    info, bits = xp.iinfo(dtype_of(name)), WIDTHS[name]
    unsigned = name.startswith("u")
    assert info.bits == bits
    assert (info.min, info.max) == (
        (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )
    assert type(info.max) is int
    assert info.dtype == dtype_of(name)


def test_limits_of_other_dtypes() -> None:
    with pytest.raises(DtypeError, match="finfo got int32"):
        xp.finfo(xp.int32)
    with pytest.raises(DtypeError, match="iinfo got bool"):
        xp.iinfo(xp.bool)


KINDS = {
    "bool": ["bool"],
    "signed integer": ["int8", "int16", "int32", "int64"],
    "unsigned integer": ["uint8", "uint16", "uint32", "uint64"],
    "integral": INTEGERS,
    "real floating": FLOATS,
    "complex floating": COMPLEX,
    "numeric": [*INTEGERS, *FLOATS, *COMPLEX],
}


@pytest.mark.parametrize("kind", KINDS)
def test_isdtype(kind: str) -> None:
    assert [d for d in ALL if xp.isdtype(dtype_of(d), kind)] == [d for d in ALL if d in KINDS[kind]]


def test_isdtype_of_dtypes_and_tuples() -> None:
    assert xp.isdtype(xp.int8, xp.int8)
    assert not xp.isdtype(xp.int8, xp.uint8)
    assert xp.isdtype(xp.int8, ("bool", xp.int8))
    assert not xp.isdtype(xp.int8, ("bool", ("real floating", "complex floating")))
    assert xp.isdtype(xp.int4, "signed integer")
    assert xp.isdtype(xp.float8_e5m2, "real floating")
    with pytest.raises(ValueError, match="no dtype kind 'integer'"):
        xp.isdtype(xp.int8, "integer")


@pytest.mark.parametrize(
    ("source", "target", "allowed"),
    [("int8", "int16", True), ("int16", "int8", False), ("uint8", "int16", True),
     ("uint8", "int8", False), ("int8", "uint16", False), ("uint64", "int64", False),
     ("bool", "int8", True), ("int8", "bool", False), ("float32", "float64", True),
     ("float64", "float32", False), ("float32", "complex64", True),
     ("complex64", "float32", False), ("float64", "complex64", False), ("int8", "float32", True),
     ("float32", "int64", False), ("float16", "bfloat16", False), ("bfloat16", "float32", True)],
)  # fmt: skip
def test_can_cast(source: str, target: str, allowed: bool) -> None:
    assert xp.can_cast(dtype_of(source), dtype_of(target)) is allowed
    assert xp.can_cast(xp.ones(1, dtype=dtype_of(source)), dtype_of(target)) is allowed


class TestInfo:
    info: Any = xp.__array_namespace_info__()

    def test_capabilities(self) -> None:
        assert self.info.capabilities() == {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": 64,
        }
        assert xp.zeros((1,) * 64).ndim == 64

    def test_devices(self) -> None:
        assert self.info.devices() == plugrt.devices()
        assert self.info.default_device() == plugrt.devices()[0]
        with config.override(default_device=plugrt.devices()[1]):
            assert self.info.default_device() == plugrt.devices()[1]
            assert xp.zeros(1).device == plugrt.devices()[1]

    def test_default_dtypes(self) -> None:
        names = ["real floating", "complex floating", "integral", "indexing"]
        assert list(self.info.default_dtypes()) == names
        found = self.info.default_dtypes(device=plugrt.devices()[0])
        assert found["real floating"] == xp.zeros(1).dtype
        assert found["integral"] == xp.arange(1).dtype
        assert found["complex floating"] == xp.asarray(1j).dtype
        assert found["indexing"] == xp.argmax(xp.zeros(1)).dtype

    def test_dtypes(self) -> None:
        every = self.info.dtypes()
        assert len(every) == 13
        assert all(every[name] == getattr(xp, name) for name in every)
        assert set(self.info.dtypes(kind="integral")) == set(INTEGERS)
        assert set(self.info.dtypes(kind=("bool", "complex floating"))) == {"bool", *COMPLEX}
        with config.override(enable_x64=False):
            assert not {"int64", "float64"} & set(self.info.dtypes())
