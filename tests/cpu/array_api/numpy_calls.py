"""Random calls of NumPy's functions: arguments, and values other than the defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Call: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional arguments, and a value for each further parameter that is not its default."""


class Draw:
    """Draws arrays of one dtype of each kind, with and without elements."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.float = self.pick(np.float32, np.float64)
        self.other = np.float64 if self.float == np.float32 else np.float32
        self.int = self.pick(np.int32, np.int8, np.uint8)
        self.n, self.m = (int(self.rng.integers(2, 5)) for _ in range(2))

    def pick(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def shape(self, least: int = 0, most: int = 3) -> tuple[int, ...]:
        sizes = self.rng.integers(1, 4, int(self.rng.integers(least, most + 1)))
        return tuple(int(n) for n in sizes)

    def empty(self) -> Any:
        """Returns an array without elements along its first axis."""
        return np.zeros((0, 3), self.float)

    def floats(self, *shape: int) -> Any:
        return np.asarray(self.rng.standard_normal(shape).round(2) * 3, self.float)

    def any(self, least: int = 0, most: int = 3) -> Any:
        """Returns floats, integers or booleans of a random shape."""
        shape = self.shape(least, most)
        return self.pick(self.floats, self.ints, self.bools)(*shape)

    def nans(self, *shape: int) -> Any:
        x = self.floats(*shape)
        return np.where(self.rng.random(shape) < 0.3, np.asarray(np.nan, x.dtype), x)

    def complex(self, *shape: int) -> Any:
        x = self.floats(*shape)
        return np.asarray(x + self.pick(1j, -1j) * self.floats(*shape))

    def ints(self, *shape: int, low: int = 0, high: int = 5) -> Any:
        return np.asarray(self.rng.integers(low, high, shape), self.int)

    def bools(self, *shape: int) -> Any:
        return np.asarray(self.rng.random(shape) < 0.5)

    def places(self, *shape: int, high: int) -> Any:
        return np.asarray(self.rng.integers(0, high, shape), np.int32)

    def spread(self, n: int) -> Any:
        """Returns increasing numbers."""
        return np.cumsum(self.rng.random(n) + 0.1).astype(self.float)

    def matrix(self) -> Any:
        return self.floats(self.n, self.m)

    def regular(self, n: int) -> Any:
        """Returns a matrix that has an inverse."""
        return self.floats(n, n) + np.eye(n, dtype=self.float) * 9


def _reduction(d: Draw, **more: Any) -> Call:
    x = d.pick(d.floats, d.ints, d.nans)(d.n, d.m)
    return (x,), {"axis": d.pick(0, 1, -1, (0, 1)), "keepdims": True, **more}


def _masked(d: Draw, **more: Any) -> Call:
    x = d.pick(d.floats, d.ints, d.nans)(d.n, d.m)
    mask = np.arange(d.n * d.m).reshape(d.n, d.m) % 3 > 0
    return (x,), {"axis": d.pick(0, 1, (1, 0)), "keepdims": True, "where": mask, **more}


def _sum(d: Draw) -> Call:
    return _masked(d, dtype=d.float, initial=2)


def _logical(d: Draw) -> Call:
    _, changes = _masked(d)
    mask = changes["where"]
    return (d.pick(mask, ~mask),), {**changes, "where": d.pick(mask, ~mask)}


def _extremum(d: Draw) -> Call:
    x = d.pick(d.floats, d.ints, d.nans)(d.n, d.m)
    return (x,), {"axis": d.pick(0, 1), "keepdims": True, "initial": d.pick(1, -90, 90)}


def _some(d: Draw) -> Call:
    x = d.pick(d.floats, d.ints, d.nans)(d.n, d.m)
    return (x, None, None, False, d.pick(1, 2)), {"where": np.arange(d.m) % 2 > 0}


def _deviation(d: Draw) -> Call:
    x = d.pick(d.floats, d.nans)(d.n, 4)
    mask = d.bools(d.n, 4) | (np.arange(4) > 1)
    return (x,), {
        "axis": d.pick(0, 1), "keepdims": True, "where": mask, "ddof": 1, "correction": 0.5,
        "dtype": np.float64, "mean": x.mean(keepdims=True),
    }  # fmt: skip


def _quantile(scale: float) -> Callable[[Draw], Call]:
    def call(d: Draw) -> Call:
        x = d.pick(d.floats, d.ints, d.nans)(d.n, d.m)
        q = d.pick(0.37, np.asarray([0.11, 0.83, 0.52], d.float), [0.0, 1.0])
        q = np.multiply(q, scale) if isinstance(q, np.ndarray) else (
            [v * scale for v in q] if isinstance(q, list) else q * scale)  # fmt: skip
        return (x, q), {
            "axis": d.pick(0, 1, (0, 1)), "keepdims": True, "method": d.pick(*METHODS),
            "weights": np.ones((d.n, d.m), d.float),
        }  # fmt: skip

    return call


METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf",
    "hazen", "weibull", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint",
    "nearest",
)  # fmt: skip


def _like(d: Draw, *more: Any) -> Call:
    return (d.any(), *more), {"dtype": np.int16, "shape": (2, 3)}


def _fft(d: Draw) -> Call:
    return (d.floats(4, 5),), {"n": d.pick(3, 6), "axis": 0, "norm": d.pick("ortho", "forward")}


def _fftn(d: Draw) -> Call:
    return (d.floats(4, 5, 3),), {"s": (3, 6), "axes": d.pick((0, 1), (1, 2)), "norm": "ortho"}


def _fftn_with_axes(d: Draw) -> Call:
    args, changes = _fftn(d)
    return args, {**changes, "s": d.pick((3, 6), (4, 2))}


CALLS: dict[str, Callable[[Draw], Call]] = {
    "all": _logical,
    "amax": _extremum,
    "amin": _extremum,
    "angle": lambda d: ((d.pick(d.complex, d.floats)(*d.shape()),), {"deg": True}),
    "any": _logical,
    "amax of some": _some, "amin of some": _some, "max of some": _some, "min of some": _some,
    "nanmax of some": _some, "nanmin of some": _some,
    "append": lambda d: ((d.matrix(), d.floats(1, d.m)), {"axis": 0}),
    "apply_along_axis": lambda d: ((lambda v: v.sum() * v, d.pick(0, 1), d.matrix()), {}),
    "apply_along_axis with": lambda d: ((lambda v, k, s=0: v[:1] * k + s, 1, d.matrix(), 3),
                                        {"s": d.pick(1, 2)}),
    "apply_over_axes": lambda d: ((np.sum, d.floats(2, 3, 2), d.pick([0], [0, 2], [1, -1])), {}),
    "argmax": _reduction,
    "argmin": _reduction,
    "argsort": lambda d: ((d.matrix(),), {"axis": d.pick(0, None), "stable": True}),
    "argwhere": lambda d: ((d.any(),), {}),
    "around": lambda d: ((d.floats(*d.shape()),), {"decimals": d.pick(1, -1)}),
    "argpartition": lambda d: ((np.asarray([3, 1, 2], d.float), [0, 1, 2]),
                               {"axis": d.pick(0, None)}),
    "array_split": lambda d: ((d.floats(5, 4), d.pick(3, [1, 3])), {"axis": 1}),
    "astype": lambda d: ((d.any(), d.pick(np.float16, np.int32)), {"copy": False}),
    "atleast_1d": lambda d: ((d.any(), d.any())[: d.pick(1, 2)], {}),
    "atleast_2d": lambda d: ((d.any(), d.any())[: d.pick(1, 2)], {}),
    "atleast_3d": lambda d: ((d.any(), d.any())[: d.pick(1, 2)], {}),
    "average": lambda d: ((d.pick(d.floats, d.ints)(d.n, d.m),), {
        "axis": d.pick(0, 1), "weights": abs(d.floats(d.n, d.m)) + 1, "returned": True,
        "keepdims": True,
    }),
    "bincount": lambda d: (
        (d.pick(d.ints(9), d.ints(9) > 2),), {"weights": d.floats(9), "minlength": 8}
    ),
    "block": lambda d: (([[d.floats(2, 3), d.floats(2, 1)], [d.floats(1, 4)]],), {}),
    "broadcast_arrays": lambda d: ((d.floats(3), d.ints(2, 1)), {}),
    "broadcast_to": lambda d: ((d.floats(3), (2, 3)), {}),
    "choose": lambda d: ((d.places(4, high=2), [d.floats(4), d.floats(1)]),
                         {"mode": d.pick("wrap", "clip")}),
    "choose beyond": lambda d: ((d.places(4, high=9), [d.floats(4), d.floats(1)]),
                                {"mode": d.pick("wrap", "clip")}),
    "clip": lambda d: ((d.pick(d.floats, d.ints)(*d.shape(1)), -1, 2), {}),
    "column_stack": lambda d: (([d.floats(3), d.ints(3, 2)],), {}),
    "compress": lambda d: ((d.bools(d.n), d.floats(d.n, 9)), {"axis": 0}),
    "concatenate": lambda d: (([d.matrix(), d.ints(1, d.m)],), {"axis": None, "dtype": d.other}),
    "convolve": lambda d: ((d.pick(d.floats, d.ints)(d.n), d.floats(d.m)),
                           {"mode": d.pick("same", "valid")}),
    "copy": lambda d: ((d.any(),), {}),
    "corrcoef": lambda d: ((d.floats(2, 4),), {"y": d.floats(2, 4), "rowvar": False,
                                               "dtype": d.other}),
    "correlate": lambda d: ((d.pick(d.floats, d.complex)(d.n), d.floats(d.m)),
                            {"mode": d.pick("same", "full")}),
    "count_nonzero": _reduction,
    "cov": lambda d: ((d.pick(d.floats, d.complex)(2, 4),), {
        "y": d.floats(2, 4), "rowvar": False, "bias": True, "ddof": 0, "dtype": np.complex64,
        "fweights": [1, 2, 1, 3], "aweights": np.asarray([1, 0.5, 2, 1], d.float),
    }),
    "cross": lambda d: ((d.floats(3, 3), d.floats(3, 3)),
                        {"axisa": 0, "axisb": 0, "axisc": 0, "axis": 0}),
    "cumprod": lambda d: ((d.matrix(),), {"axis": 0, "dtype": np.float64}),
    "cumsum": lambda d: ((d.matrix(),), {"axis": d.pick(0, -1), "dtype": d.other}),
    "cumulative_prod": lambda d: ((d.floats(4),), {"dtype": d.other, "include_initial": True}),
    "cumulative_prod of axis": lambda d: ((d.matrix(),), {"axis": d.pick(0, 1)}),
    "cumulative_sum": lambda d: ((d.floats(4),), {"dtype": d.other, "include_initial": True}),
    "cumulative_sum of axis": lambda d: ((d.matrix(),), {"axis": d.pick(0, 1)}),
    "delete": lambda d: ((d.floats(4, 5), d.pick(1, [0, 2], slice(0, 2), [-1])),
                         {"axis": d.pick(0, 1)}),
    "diag": lambda d: ((d.pick(d.floats(3), d.matrix()),), {"k": d.pick(1, -1)}),
    "diag_indices_from": lambda d: ((d.floats(3, 3),), {}),
    "diagflat": lambda d: ((d.any(1),), {"k": d.pick(1, -2)}),
    "diagonal": lambda d: ((d.floats(3, 4, 2),), {"offset": 1, "axis1": 2, "axis2": 2}),
    "diff": lambda d: ((d.matrix(),), {"n": 2, "axis": 0, "prepend": d.floats(d.n, 1),
                                       "append": d.floats(d.n, 2)}),
    "digitize": lambda d: ((d.pick(d.floats(4), np.asarray([0.5, 1, 2])),
                            np.asarray(d.pick([0, 0.5, 1, 2], [2, 1, 0]), d.float)),
                           {"right": True}),
    "dot": lambda d: ((d.matrix(), d.floats(d.m, 2)), {}),
    "dsplit": lambda d: ((d.floats(2, 1, 4), d.pick(2, [1])), {}),
    "dstack": lambda d: (([d.floats(3), d.ints(3)],), {}),
    "ediff1d": lambda d: ((d.floats(*d.shape(1)),), {"to_end": 9, "to_begin": [1, 2]}),
    "einsum": lambda d: (("ij,kj->ik", d.matrix(), d.matrix()), {}),
    "empty_like": lambda d: _like(d),
    "expand_dims": lambda d: ((d.any(), d.pick(0, -1, (0, 1))), {}),
    "extract": lambda d: ((d.bools(d.n, d.m), d.matrix()), {}),
    "flatnonzero": lambda d: ((d.any(),), {}),
    "flip": lambda d: ((d.matrix(),), {"axis": d.pick(0, 1, (0,))}),
    "fliplr": lambda d: ((d.matrix(),), {}),
    "flipud": lambda d: ((d.any(1),), {}),
    "full_like": lambda d: _like(d, 3),
    "geomspace": lambda d: ((abs(d.floats(3)) + 1, 9.0), {
        "num": d.pick(1, 4), "endpoint": False, "axis": 1, "dtype": np.float16}),
    "gradient": lambda d: ((d.floats(4, 3),), {"axis": d.pick(0, 1), "edge_order": 2}),
    "histogram": lambda d: ((d.pick(d.floats, d.ints)(9),), {
        "bins": d.pick(4, np.asarray([-1.0, 0.5, 2], d.float), "sturges"), "range": (-2, 4),
        "density": True,
        "weights": d.floats(9),
    }),
    "histogram2d": lambda d: ((d.floats(9), d.floats(9)), {
        "bins": d.pick(4, (3, 2), d.spread(4), [3, d.spread(2)]), "range": [(-2, 4), (0, 3)],
        "density": True, "weights": d.floats(9),
    }),
    "histogram_bin_edges": lambda d: ((d.floats(9),), {
        "bins": d.pick(4, "sqrt"), "range": (-2, 4), "weights": d.floats(9)}),
    "histogramdd": lambda d: ((d.pick(d.floats(9, 2), [d.floats(9), d.floats(9)]),), {
        "bins": d.pick(4, (3, 2)), "range": [(-2, 4), (0, 3)], "density": True,
        "weights": d.floats(9),
    }),
    "hsplit": lambda d: ((d.pick(d.floats(4), d.floats(2, 4)), d.pick(2, [1])), {}),
    "hstack": lambda d: (([d.floats(3), d.ints(2)],), {"dtype": np.float64}),
    "i0": lambda d: ((d.floats(*d.shape()),), {}),
    "imag": lambda d: ((d.complex(3),), {}),
    "inner": lambda d: ((d.matrix(), d.floats(2, d.m)), {}),
    "insert": lambda d: ((d.floats(3, 3), d.pick(1, [0, 2], [2, 0], -1, slice(0, 2)),
                          d.pick(5, 2.5)), {"axis": d.pick(0, 1)}),
    "interp": lambda d: ((d.nans(5), d.spread(4), d.floats(4)),
                         {"left": -9, "right": 9.5, "period": 1.5}),
    "intersect1d": lambda d: ((np.arange(4, dtype=d.int), np.arange(2, 5, dtype=d.int)),
                              {"assume_unique": True, "return_indices": True}),
    "isclose": lambda d: ((d.nans(9), d.nans(9)), {"rtol": 1, "atol": 2, "equal_nan": True}),
    "iscomplex": lambda d: ((d.pick(d.floats(3), d.complex(3), np.asarray([1 + 0j, 1j])),), {}),
    "isin": lambda d: ((d.pick(d.ints(3, 3), d.nans(4)), d.pick(d.ints(4), [1, 2.0], [])),
                       {"invert": True, "assume_unique": True, "kind": "sort"}),
    "isneginf": lambda d: ((np.asarray([1, -np.inf, np.inf, np.nan], d.float),), {}),
    "isposinf": lambda d: ((np.asarray([1, -np.inf, np.inf, np.nan], d.float),), {}),
    "isreal": lambda d: ((d.pick(d.floats(3), np.asarray([1 + 0j, 1j])),), {}),
    "ix_": lambda d: ((d.ints(3), d.pick(d.bools(2), d.ints(2))), {}),
    "kron": lambda d: ((d.any(0, 2), d.any(0, 2)), {}),
    "lexsort": lambda d: (((d.ints(2, 6), d.ints(2, 6, high=3)),), {"axis": 0}),
    "linspace": lambda d: ((d.floats(2), d.floats(2)), {
        "num": d.pick(1, 4), "endpoint": False, "retstep": True, "dtype": np.float16, "axis": 1}),
    "logspace": lambda d: ((d.floats(2), 2.0), {
        "num": d.pick(1, 4), "endpoint": False, "base": d.pick(2.0, np.asarray([2, 3.0])),
        "dtype": np.float64, "axis": -1}),
    "matrix_transpose": lambda d: ((d.floats(2, 3, 2),), {}),
    "max": _extremum,
    "mean": lambda d: _masked(d, dtype=np.float64),
    "median": _reduction,
    "meshgrid": lambda d: ((d.floats(2), d.floats(3)), {"sparse": True, "indexing": "ij"}),
    "min": _extremum,
    "moveaxis": lambda d: ((d.floats(2, 3, 2), d.pick(0, (0, 1)), d.pick(-1, 1)), {}),
    "nan_to_num": lambda d: ((np.asarray([1, np.nan, np.inf, -np.inf], d.float),), {
        "nan": 5, "posinf": 6, "neginf": -7, "copy": False}),
    "nanargmax": lambda d: ((d.pick(d.floats, d.ints)(d.n, d.m),), {"axis": 1, "keepdims": True}),
    "nanargmin": lambda d: ((d.pick(d.floats, d.ints)(d.n, d.m),), {"axis": 0, "keepdims": True}),
    "nancumprod": lambda d: ((d.nans(2, 3),), {"axis": 0, "dtype": np.float64}),
    "nancumsum": lambda d: ((d.nans(2, 3),), {"axis": 0, "dtype": np.float64}),
    "nanmax": _extremum,
    "nanmean": lambda d: _masked(d, dtype=np.float64),
    "nanmedian": _reduction,
    "nanmin": _extremum,
    "nanpercentile": _quantile(100.0),
    "nanprod": _sum,
    "nanquantile": _quantile(1.0),
    "nanstd": _deviation,
    "nansum": _sum,
    "nanvar": _deviation,
    "nonzero": lambda d: ((d.any(1),), {}),
    "ones_like": lambda d: _like(d),
    "outer": lambda d: ((d.matrix(), d.floats(2)), {}),
    "packbits": lambda d: ((d.bools(3, 9),), {"axis": d.pick(0, 1), "bitorder": "little"}),
    "pad": lambda d: ((d.matrix(), d.pick(1, (1, 2), [(0, 1), (2, 0)])), {}),
    "pad with": lambda d: (
        (d.matrix(), 1), {"constant_values": d.pick(3, (3, 4), [(1, 2), (3, 4)], [[5], [6]])}
    ),
    "pad by": lambda d: ((d.matrix(), 1), {"mode": "edge"}),
    "partition": lambda d: ((np.asarray([[3, 1, 2]], d.float), [0, 1, 2]),
                            {"axis": d.pick(0, None)}),
    "percentile": _quantile(100.0),
    "piecewise": lambda d: ((x := d.floats(5), [x < 0, x > 1], [-1, lambda v: v * 2, 7]), {}),
    "piecewise with": lambda d: ((x := d.floats(5), [x < 0], [lambda v, k, s=0: v * k + s, 3], 4),
                                 {"s": 2}),
    "polyadd": lambda d: ((d.floats(3), d.floats(d.n)), {}),
    "poly": lambda d: ((d.floats(4),), {}),
    "polydiv": lambda d: ((d.floats(5), d.floats(3) + 2), {}),
    "polydiv short": lambda d: ((d.floats(2), d.floats(3)), {}),
    "polymul": lambda d: ((d.floats(3), d.floats(d.n)), {}),
    "polyder": lambda d: ((d.floats(4),), {"m": 2}),
    "polyfit": lambda d: ((d.spread(6), d.floats(6), 2), {
        "w": d.spread(6), "rcond": 0.5, "full": True, "cov": True}),
    "polyint": lambda d: ((d.floats(3),), {"m": 2, "k": 3}),
    "polysub": lambda d: ((d.floats(3), d.floats(d.n)), {}),
    "polyval": lambda d: ((d.floats(3), d.any()), {}),
    "prod": _sum,
    "ptp": lambda d: ((d.pick(d.floats, d.ints)(d.n, d.m),), {"axis": 0, "keepdims": True}),
    "quantile": _quantile(1.0),
    "ravel": lambda d: ((d.matrix(),), {"order": "F"}),
    "ravel_multi_index": lambda d: (((d.places(4, high=3), d.places(4, high=4)), (3, 4)),
                                    {"order": "F"}),
    "ravel_multi_index beyond": lambda d: (((d.places(4, high=9), d.places(4, high=9)), (3, 4)),
                                           {"mode": d.pick("wrap", "clip", ("clip", "wrap"))}),
    "real": lambda d: ((d.complex(3),), {}),
    "real_if_close": lambda d: ((d.pick(d.complex(3), d.floats(3) + 0j),), {"tol": 1e30}),
    "repeat": lambda d: ((d.matrix(), d.pick(2, 3)), {"axis": d.pick(0, 1)}),
    "reshape": lambda d: ((d.floats(2, 3), (3, -1)), {"order": "F", "copy": True}),
    "resize": lambda d: ((d.any(1), (3, 4)), {}),
    "roll": lambda d: ((d.matrix(), d.pick(1, -2)), {"axis": d.pick(0, 1)}),
    "rollaxis": lambda d: ((d.floats(2, 3, 4), d.pick(1, 2)), {"start": d.pick(1, 3)}),
    "rot90": lambda d: ((d.floats(2, 3, 2),), {"k": d.pick(2, 3, -1), "axes": (1, 2)}),
    "round": lambda d: ((d.floats(*d.shape()),), {"decimals": d.pick(1, -1)}),
    "searchsorted": lambda d: ((np.asarray([0, 1, 1, 2], d.float), d.ints(3)), {
        "side": "right", "sorter": np.asarray([3, 1, 0, 2])}),
    "select": lambda d: (([d.bools(4), d.bools(4)], [d.floats(4), d.ints(4)]), {"default": 3}),
    "setdiff1d": lambda d: ((d.ints(6), d.ints(2)), {"assume_unique": True}),
    "setxor1d": lambda d: ((np.arange(4, dtype=d.int), np.arange(2, 5, dtype=d.int)), {}),
    "setxor1d of unique": lambda d: ((np.asarray([0, 1, 1]), np.asarray([5])),
                                     {"assume_unique": True}),
    "sinc": lambda d: ((d.any(),), {}),
    "sort": lambda d: ((d.pick(d.floats, d.nans)(d.n, d.m),), {
        "axis": d.pick(0, None), "stable": True}),
    "sort_complex": lambda d: ((d.pick(d.floats, d.complex)(d.n, d.m),), {}),
    "split": lambda d: ((d.floats(4, 4), d.pick(2, [1, 3])), {"axis": 1}),
    "squeeze": lambda d: ((d.floats(1, 3, 1),), {"axis": d.pick(0, 2)}),
    "stack": lambda d: (([d.floats(3), d.ints(3)],), {"axis": 1, "dtype": np.float64}),
    "std": _deviation,
    "sum": _sum,
    "swapaxes": lambda d: ((d.floats(2, 3, 4), 0, d.pick(1, -1)), {}),
    "take": lambda d: ((d.floats(3, 4), d.places(2, 2, high=3)), {"axis": d.pick(0, 1)}),
    "take_along_axis": lambda d: ((d.floats(2, 2), d.places(2, 2, high=2)), {"axis": 0}),
    "tensordot": lambda d: ((d.floats(2, 2), d.floats(2, 2)), {"axes": d.pick(1, ((0,), (1,)))}),
    "tile": lambda d: ((d.any(), d.pick(2, (2, 1))), {}),
    "trace": lambda d: ((d.floats(3, 4, 2),), {"offset": 1, "axis1": 2, "axis2": 2,
                                               "dtype": np.float64}),
    "transpose": lambda d: ((d.floats(2, 3, 2),), {"axes": (1, 0, 2)}),
    "trapezoid": lambda d: ((d.floats(3, 3),), {"x": d.spread(3), "dx": 2, "axis": 0}),
    "tril": lambda d: ((d.matrix(),), {"k": d.pick(1, -1)}),
    "tril_indices_from": lambda d: ((d.matrix(),), {"k": d.pick(1, -1)}),
    "trim_zeros": lambda d: ((np.asarray([0, 0, 3, 0, 2, 0], d.float),), {"trim": "f"}),
    "trim_zeros of rows": lambda d: ((np.asarray([[0, 0], [0, 3], [0, 0]], d.float),),
                                     {"axis": d.pick(0, 1)}),
    "triu": lambda d: ((d.matrix(),), {"k": d.pick(1, -1)}),
    "triu_indices_from": lambda d: ((d.matrix(),), {"k": d.pick(1, -1)}),
    "union1d": lambda d: ((d.ints(4), d.ints(2)), {}),
    "unique rows": lambda d: ((d.ints(5, 2, high=2),), {"axis": d.pick(0, 1)}),
    "unique": lambda d: ((d.pick(d.nans(6), d.ints(6)),), {
        "return_index": True, "return_inverse": True, "return_counts": True,
        "equal_nan": False}),
    "unpackbits": lambda d: ((np.asarray(d.ints(2, 3), np.uint8),),
                             {"axis": d.pick(0, 1), "count": d.pick(3, -2), "bitorder": "little"}),
    "unravel_index": lambda d: ((d.places(4, high=12), (3, 4)), {"order": "F"}),
    "unstack": lambda d: ((d.matrix(),), {"axis": 1}),
    "unwrap": lambda d: ((d.pick(d.floats(3, 5) * 3, np.asarray([[0, 5], [9, 2]], np.int32)),),
                         {"axis": 0, "discont": 5.0, "period": 4}),
    "vander": lambda d: ((d.pick(d.floats, d.ints)(3),), {"N": d.pick(2, 5), "increasing": True}),
    "var": _deviation,
    "vdot": lambda d: ((d.pick(d.floats, d.complex)(2, 3), d.floats(6)), {}),
    "vsplit": lambda d: ((d.floats(4, 2), d.pick(2, [1])), {}),
    "vstack": lambda d: (([d.floats(3), d.ints(2, 3)],), {"dtype": np.float64}),
    "where alone": lambda d: ((d.bools(3, 3),), {}),
    "where": lambda d: ((d.bools(d.n, d.m), d.matrix(), d.ints(d.m)), {}),
    "zeros_like": lambda d: _like(d),
    "fft.fft": _fft, "fft.ifft": _fft, "fft.rfft": _fft, "fft.irfft": _fft, "fft.hfft": _fft,
    "fft.ihfft": _fft, "fft.fft2": _fftn, "fft.ifft2": _fftn, "fft.rfft2": _fftn,
    "fft.irfft2": _fftn,
    "fft.fftn": _fftn_with_axes, "fft.ifftn": _fftn_with_axes, "fft.rfftn": _fftn_with_axes,
    "fft.irfftn": _fftn_with_axes,
    "fft.fftshift": lambda d: ((d.matrix(),), {"axes": 0}),
    "fft.ifftshift": lambda d: ((d.matrix(),), {"axes": 0}),
    "linalg.cholesky": lambda d: ((np.eye(3, dtype=d.float) * 4 + 1,), {"upper": True}),
    "linalg.cond": lambda d: ((d.regular(3),), {"p": d.pick(1, "fro", -2)}),
    "linalg.cross": lambda d: ((d.floats(3, 3), d.floats(3, 3)), {"axis": 0}),
    "linalg.det": lambda d: ((d.regular(3),), {}),
    "linalg.diagonal": lambda d: ((d.floats(3, 3),), {"offset": 1}),
    "linalg.eigvalsh": lambda d: ((d.regular(3),), {"UPLO": "U"}),
    "linalg.inv": lambda d: ((d.regular(3),), {}),
    "linalg.lstsq": lambda d: ((d.regular(3), d.floats(3, 2)), {}),
    "linalg.matmul": lambda d: ((d.matrix(), d.floats(d.m, 2)), {}),
    "linalg.matrix_norm": lambda d: ((d.matrix(),), {"keepdims": True, "ord": 1}),
    "linalg.matrix_power": lambda d: ((d.regular(2), d.pick(3, -1)), {}),
    "linalg.matrix_rank": lambda d: ((d.regular(3),), {"tol": 9.5, "rtol": 0.9}),
    "linalg.matrix_transpose": lambda d: ((d.matrix(),), {}),
    "linalg.multi_dot": lambda d: (([d.matrix(), d.floats(d.m, 2), d.floats(2, 2)],), {}),
    "linalg.norm": lambda d: ((d.matrix(),), {
        "ord": d.pick(1, "nuc", -2), "keepdims": True, "axis": d.pick(0, 1)}),
    "linalg.outer": lambda d: ((d.floats(2), d.floats(3)), {}),
    "linalg.pinv": lambda d: ((d.regular(3),), {"rcond": 0.9, "rtol": 0.9}),
    "linalg.slogdet": lambda d: ((d.regular(3),), {}),
    "linalg.solve": lambda d: ((d.regular(3), d.floats(3)), {}),
    "linalg.svdvals": lambda d: ((d.matrix(),), {}),
    "linalg.tensordot": lambda d: ((d.floats(2, 2), d.floats(2, 2)), {"axes": 1}),
    "linalg.tensorinv": lambda d: ((d.regular(4).reshape(2, 2, 4),), {"ind": 1}),
    "linalg.tensorsolve": lambda d: ((d.regular(4).reshape(2, 2, 2, 2), d.floats(2, 2)),
                                     {"axes": (0, 1)}),
    "linalg.trace": lambda d: ((d.floats(3, 3),), {"offset": 1, "dtype": d.other}),
    "linalg.vecdot": lambda d: ((d.floats(3, 3), d.floats(3, 3)), {"axis": -2}),
    "linalg.vector_norm": lambda d: ((d.matrix(),), {"axis": 0, "keepdims": True, "ord": 1}),
}  # fmt: skip
"""Functions that draw a call, by NumPy's name."""

IN_PLACE: dict[str, Callable[[Draw], Call]] = {
    "copyto": lambda d: ((d.matrix(), d.floats(d.m)), {"where": d.bools(d.n, d.m)}),
    "fill_diagonal": lambda d: ((d.floats(6, d.pick(2, 3)), d.pick(5, d.floats(2))),
                                {"wrap": True}),
    "place": lambda d: ((d.matrix(), d.bools(d.n, d.m), d.floats(2)), {}),
    "put": lambda d: ((d.matrix(), [0, 3], d.pick(5, [5, 6])), {"mode": "clip"}),
    "put_along_axis": lambda d: ((d.floats(2, 3), d.places(2, 1, high=2), 9, 1), {}),
    "putmask": lambda d: ((d.matrix(), d.bools(d.n, d.m), d.floats(2)), {}),
}  # fmt: skip
"""Functions that assign to their first argument."""
