"""Calls of other libraries with arrays, which docs/ecosystem.md describes.

Each call gets the library and an array of plugrt, then NumPy's, and returns results to compare.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

import plugrt
from plugrt import array_api as xp

A = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
N = np.asarray([[1, np.nan, 3], [4, 5, 6]], np.float32)
Call: TypeAlias = Callable[[Any, Any], Any]
"""A call with the library and an array, which is plugrt's or NumPy's."""


def _array(lib: Any, x: Any, name: str) -> Any:
    """Returns a method of xarray's arrays over the first dimension."""
    data = lib.DataArray(x, dims=("a", "b"), coords={"b": [0.0, 1.0, 2.0]})
    return getattr(data, name)("a").data


def _frame(lib: Any, x: Any) -> Any:
    frame = lib.DataFrame(np.zeros((2, 3), np.float32))
    frame.loc[:, 0], frame.iloc[0], frame["c"] = x[:, 2], x[1], x[:, 1]
    return frame


def _xarray(make: Callable[[Any, Any], Any]) -> Call:
    return lambda lib, x: (
        make(lib, lib.DataArray(x, dims=("a", "b"), coords={"b": [0.0, 1.0, 2.0]})).data
    )


def _at(lib: Any, x: Any) -> Any:
    return lib.at(x, 0).set(9), lib.at(x, (0, 1)).add(2.0)


def _with_names(lib: Any, x: Any) -> Any:
    space = xp if isinstance(x, plugrt.Array) else np
    return (
        lib.apply_where(x > 2, x, lambda v: -v, fill_value=0), lib.atleast_nd(x, ndim=3),
        lib.cov(x), lib.create_diagonal(x[0]), lib.expand_dims(x, axis=0),
        lib.isclose(x, x), lib.kron(x, x), lib.pad(x, 1), lib.setdiff1d(x, x[:1]),
        lib.sinc(x), lib.nan_to_num(x), lib.one_hot(space.asarray([0, 1]), 3), lib.isin(x, x[:1]),
    )  # fmt: skip


CALLS: dict[str, dict[str, Call]] = {
    "einops": {
        "`rearrange`": lambda lib, x: lib.rearrange(x, "a b -> (b a)"),
        "`reduce`": lambda lib, x: lib.reduce(x, "a b -> b", "mean"),
        "`repeat`": lambda lib, x: lib.repeat(x, "a b -> a b c", c=2),
        "`einsum`": lambda lib, x: lib.einsum(x, x, "a b, c b -> a c"),
        "`pack`, `unpack`": lambda lib, x: lib.unpack(*lib.pack([x, x], "* b"), "* b")[1],
        "`parse_shape`, `asnumpy`": lambda lib, x: (lib.parse_shape(x, "a _"), lib.asnumpy(x))[1],
    },
    "xarray": {
        "`mean`, `std`, `var`, which skip NaNs": lambda lib, x: [
            _array(lib, x, name) for name in ("mean", "std", "var")
        ],
        "`sum`, `min`, `max`, `median`, `prod`, `cumsum`, which skip NaNs": lambda lib, x: [
            _array(lib, x, name) for name in ("sum", "min", "max", "median", "prod", "cumsum")
        ],
        "`quantile`": _xarray(lambda lib, d: d.quantile(0.3, "a")),
        "arithmetic, `where`, `fillna`": _xarray(lambda lib, d: (d * 2).where(d > 2).fillna(0)),
        "`concat`, `pad`, `diff`": _xarray(
            lambda lib, d: lib.concat([d, d], "a").pad(a=1).diff("b")
        ),
        "`groupby`": _xarray(
            lambda lib, d: d.assign_coords(g=("b", [0, 0, 1])).groupby("g").mean()
        ),
        "`coarsen`, `dot`": _xarray(lambda lib, d: lib.dot(d, d, dim="b")),
        "`integrate`": _xarray(lambda lib, d: d.integrate("b")),
        "`polyfit`": lambda lib, x: (
            lib.DataArray(x, dims=("a", "b")).polyfit("a", 1)["polyfit_coefficients"].to_numpy()
        ),
        "`apply_ufunc`": _xarray(lambda lib, d: lib.apply_ufunc(np.sin, d)),
        "`differentiate`": _xarray(lambda lib, d: d.differentiate("b")),
        "`rolling`": _xarray(lambda lib, d: d.rolling(b=2).mean()),
        "`isin`": _xarray(lambda lib, d: d.isin([1.0, 2.0])),
        "`isel` with arrays of one dimension": _xarray(
            lambda lib, d: d.isel({n: lib.DataArray([0, 1], dims="p") for n in "ab"})
        ),
    },
    "array_api_compat": {
        "`array_namespace`, `size`, `device`": lambda lib, x: lib.size(x),
        "`is_writeable_array`": lambda lib, x: np.asarray(lib.is_writeable_array(x)),
    },
    "array_api_extra": {"`at`": _at, "`cov`, `kron`, `pad`, `isin` and other names": _with_names},
    "opt_einsum": {
        "`contract`": lambda lib, x: lib.contract("ij,kj,kl->il", x, x, x),
        "`contract_expression`": lambda lib, x: lib.contract_expression(
            "ij,kj->ik", x, (2, 3), constants=[0]
        )(x),
    },
    "torch": {
        "`torch.from_dlpack(x)`": lambda lib, x: lib.from_dlpack(x).numpy(),
        "`xp.from_dlpack(tensor)`": lambda lib, x: xp.from_dlpack(lib.asarray(np.asarray(x))),
        "`xp.asarray(tensor)`": lambda lib, x: xp.asarray(lib.asarray(np.asarray(x))),
        "`torch.tensor(x)`": lambda lib, x: lib.tensor(x).numpy(),
        "`torch.asarray(x)`": lambda lib, x: lib.asarray(x).numpy(),
        "`tensor + x`": lambda lib, x: (lib.ones(2, 3) + x).numpy(),
    },
    "keras": {
        "`keras.ops` on its NumPy backend": lambda lib, x: lib.ops.softmax(lib.ops.relu(x) + 1)
    },
    "pandas": {
        "`DataFrame(x)`": lambda lib, x: lib.DataFrame(x).sum().to_numpy(),
        "columns, `loc` and `iloc` set to `x`": lambda lib, x: _frame(lib, x).to_numpy(),
        "`series[x > 1]`": lambda lib, x: lib.Series([5, 6, 7])[x[0] > 1].to_numpy(),
        "`isin(x)`": lambda lib, x: lib.Series([*range(1, 9)]).isin(x[0]).to_numpy(),
        "`unique(x)`, `groupby(x)`": lambda lib, x: lib.unique(x[0]),
    },
    "dask": {
        "`dask.array.from_array(x)`": lambda lib, x: np.asarray(
            import_module("dask.array").from_array(x, chunks=(1, 3)).sum(axis=0).compute()
        )
    },
    "safetensors": {
        "`safetensors.numpy.save`": lambda lib, x: import_module("safetensors.numpy").load(
            import_module("safetensors.numpy").save({"x": np.asarray(x)})
        )["x"]
    },
}
"""By library, then by the page's description."""

FAILS = {
    ("torch", "`torch.asarray(x)`"): (
        RuntimeError, "PyTorch would read the bytes flat and as its default dtype: "
        "`torch.from_dlpack(x)`, `torch.tensor(x)`",
    ),
    ("torch", "`tensor + x`"): (TypeError, "neither converts the other: `xp.asarray(tensor) + x`"),
    ("xarray", "`differentiate`"): (
        AttributeError, "xarray calls `gradient` of the namespace, which the standard lacks: "
        "`np.gradient(x.data)`",
    ),
    ("xarray", "`rolling`"): (
        AttributeError, "xarray calls `lib.stride_tricks` of the namespace",
    ),
    ("xarray", "`isin`"): (
        AttributeError, "xarray calls `isin` of the namespace: `np.isin(x.data, values)`",
    ),
    ("xarray", "`isel` with arrays of one dimension"): (
        TypeError, "xarray refuses it for arrays of the standard: `x.data[i, j]`",
    ),
    ("pandas", "`series[x > 1]`"): (
        KeyError, "pandas accepts NumPy's masks alone: `series[np.asarray(x > 1)]`",
    ),
    ("pandas", "`isin(x)`"): (
        AssertionError, "wrong without an error, as with JAX's arrays: pandas makes a list of "
        "arrays of one element, has no hash of them, and does not find most: `isin(np.asarray(x))`",
    ),
    ("pandas", "`unique(x)`, `groupby(x)`"): (
        TypeError, "pandas accepts NumPy's arrays alone: `np.asarray(x)`",
    ),
}  # fmt: skip
"""Calls that fail: the error, and the reason, with a cure."""
