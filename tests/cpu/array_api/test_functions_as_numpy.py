"""NumPy's functions on arrays give NumPy's results, with each parameter, or refuse it."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import overrides

import plugrt
from cpu.array_api.numpy_calls import CALLS, IN_PLACE, Draw
from plugrt import array_api as xp
from plugrt.errors import PlugrtError
from support.effort import seeds, some_of
from support.jax_oracle import jax

READ = {
    "argwhere", "bincount", "compress", "extract", "flatnonzero", "histogram",
    "histogram_bin_edges", "histogram2d", "intersect1d", "ix_", "nonzero", "real_if_close",
    "setdiff1d", "setxor1d", "trim_zeros", "union1d", "unique", "unique_values",
}  # fmt: skip
"""Functions with data-dependent shapes, which are not traced."""
REFUSED = {
    ("std", "mean"), ("var", "mean"), ("nanstd", "mean"), ("nanvar", "mean"),
    ("full_like", "shape"), ("ones_like", "shape"), ("zeros_like", "shape"),
    ("empty_like", "shape"), ("polyfit", "full"), ("polyfit", "cov"),
    ("meshgrid", "sparse"),
}  # fmt: skip
WITHOUT_EFFECT = {
    ("astype", "copy"), ("intersect1d", "assume_unique"), ("isin", "assume_unique"),
    ("isin", "kind"), ("argsort", "stable"), ("choose", "mode"),
    ("argpartition", "axis"), ("histogram_bin_edges", "weights"), ("reshape", "copy"),
    ("sort", "stable"), ("nan_to_num", "copy"),
}  # fmt: skip


EVERYWHERE = {"out", "order", "subok", "casting", "kind", "overwrite_input", "device"}
ELSEWHERE = {
    "allclose", "array2string", "array_equal", "array_equiv", "array_repr", "array_str",
    "can_cast", "common_type", "einsum_path", "fix", "iscomplexobj", "isrealobj", "linalg.eigh",
    "linalg.qr", "linalg.svd", "may_share_memory", "min_scalar_type", "ndim", "result_type",
    "save", "savetxt", "savez", "savez_compressed", "shape", "shares_memory", "size",
    "unique_all", "unique_counts", "unique_inverse", "unique_values",
}  # fmt: skip
"""Functions whose results are no arrays, or are not unique: see test_numpy_protocols.py."""
REFUSED_FUNCTIONS = {
    "busday_count", "busday_offset", "datetime_as_string", "is_busday", "linalg.eig",
    "linalg.eigvals", "roots",
}  # fmt: skip
OF_NO_ARRAYS = {
    "arange", "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "empty",
    "eye", "frombuffer", "fromfile", "fromfunction", "fromiter", "fromstring", "full",
    "genfromtxt", "identity", "loadtxt", "ones", "require", "tri", "zeros",
}  # fmt: skip
"""They dispatch on the array in ``like=``, which does not affect the result."""


def find(name: str) -> Callable[..., Any]:
    owner, _, last = name.partition(" ")[0].rpartition(".")
    return getattr(getattr(np, owner) if owner else np, last)


def to_ours(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return xp.asarray(x)
    return type(x)(map(to_ours, x)) if isinstance(x, list | tuple) else x


def leaves(x: Any) -> list[Any]:
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, list | tuple) else [x]


def check(name: str, found: Any, expected: Any, args: Any) -> None:
    ours, theirs = leaves(found), leaves(expected)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        other = np.asarray(other)
        assert isinstance(one, plugrt.Array)
        assert one.shape == other.shape
        if name == "empty_like":
            continue
        given = [x.dtype for x in leaves(args) if isinstance(x, np.ndarray)]
        kinds = {one.dtype.kind, other.dtype.kind}
        assert len(kinds) == 1 or kinds == {"i", "u"}, (one.dtype, other.dtype)
        if given[:1] == [other.dtype] and len({*given}) == 1:
            assert one.dtype == other.dtype
        scale = np.abs(other[np.isfinite(other)]).max(initial=1) if other.size else 1
        wide = {*given} <= {np.dtype(np.float64), np.dtype(bool)} and one.dtype == np.float64
        eps = 1e-9 if wide else 5e-3 if one.dtype == np.float16 else 2e-5
        np.testing.assert_allclose(np.asarray(one), other, rtol=eps, atol=eps * scale)


def call_both(name: str, args: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Returns plugrt's and NumPy's result; an exception stands for its result."""
    both = []
    for convert in (to_ours, lambda x: x):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                both.append(
                    find(name)(*convert(args), **{k: convert(v) for k, v in options.items()})
                )
        except (TypeError, ValueError, IndexError, OverflowError, RuntimeError) as error:
            both.append(error)
    return both[0], both[1]


def compare(name: str, args: Any, options: dict[str, Any]) -> Any:
    found, expected = call_both(name, args, options)
    if isinstance(expected, Exception):
        assert isinstance(found, Exception), f"NumPy: {expected!r}"
    else:
        if isinstance(found, Exception):
            raise found
        check(name, found, expected, args)
    return expected


def same(a: Any, b: Any) -> bool:
    if isinstance(a, Exception) or isinstance(b, Exception):
        return isinstance(a, Exception) and isinstance(b, Exception)
    pairs = list(zip(leaves(a), leaves(b), strict=False))
    return len(leaves(a)) == len(leaves(b)) and all(
        np.shape(x) == np.shape(y) and np.result_type(x) == np.result_type(y)
        and np.array_equal(x, y, equal_nan=np.asarray(x).dtype.kind in "fc")
        for x, y in pairs
    )  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_each_parameter(name: str) -> None:
    unchanged: set[str] = set()
    for seed in seeds(4):
        args, changes = CALLS[name](Draw(seed))
        plain = compare(name, args, {})
        if not seed:
            unchanged = {*changes}
        for parameter, value in changes.items():
            if (name, parameter) in REFUSED:
                with pytest.raises(PlugrtError, match=parameter):
                    find(name)(*to_ours(args), **{parameter: to_ours(value)})
                unchanged.discard(parameter)
            elif not same(plain, compare(name, args, {parameter: value})):
                unchanged.discard(parameter)
    assert unchanged == {parameter for n, parameter in WITHOUT_EFFECT if n == name}


def _split(value: Any, arrays: list[Any]) -> Any:
    """Moves the arrays of a value to a list; returns the value with their indices."""
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return _Place(len(arrays) - 1)
    if isinstance(value, list | tuple):
        return type(value)(_split(part, arrays) for part in value)
    return value


class _Place(int):
    """The index of an array of a call."""


def _join(value: Any, arrays: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_join(part, arrays) for part in value)
    return arrays[value] if isinstance(value, _Place) else value


UNTRACED = {"where alone", "polydiv"}
"""``where`` has a data-dependent shape; a traced remainder keeps its leading zeros."""
TRACED = [name for name in CALLS if name not in UNTRACED and name.partition(" ")[0] not in READ]


@pytest.mark.parametrize("name", some_of(TRACED, 60))
def test_traced(name: str) -> None:
    """Parameters are left out at random, or have another value than the default."""
    for seed in seeds(1):
        args, options, expected = _accepted_call(name, seed)
        arrays: list[Any] = []
        call = _split([args, [*options.values()]], arrays)
        run = partial(_run, find(name), call, [*options])
        check(name, plugrt.jit(run)(*arrays), expected, args)


def _accepted_call(name: str, seed: int) -> tuple[Any, dict[str, Any], Any]:
    """Returns a random call that NumPy accepts, as arguments and options, and NumPy's result."""
    for attempt in range(10):
        draw = Draw(seed + 17 + 1000 * attempt)
        args, changes = CALLS[name](draw)
        options = {
            parameter: value
            for parameter, value in changes.items()
            if (name, parameter) not in REFUSED and draw.pick(False, True)
        }
        _, expected = call_both(name, args, options)
        if not isinstance(expected, Exception):
            return args, options, expected
    pytest.fail(f"NumPy refuses ten calls of {name}")


def _run(function: Callable[..., Any], call: Any, names: list[str], *arrays: Any) -> Any:
    args, values = _join(call, arrays)
    return function(*args, **dict(zip(names, values, strict=True)))


@pytest.mark.parametrize("name", IN_PLACE)
def test_assigned(name: str) -> None:
    unchanged: set[str] = set()
    for seed in seeds(3):
        (host, *args), changes = IN_PLACE[name](Draw(seed))
        found = []
        for options in ({}, *({parameter: value} for parameter, value in changes.items())):
            expected = host.copy()
            x, alias = (y := xp.asarray(host)), y
            before = x[:1]
            find(name)(expected, *args, **options)
            result = find(name)(x, *to_ours(args), **{k: to_ours(v) for k, v in options.items()})
            assert result is None
            assert alias is x
            np.testing.assert_array_equal(np.asarray(x), expected)
            np.testing.assert_array_equal(np.asarray(before), host[:1])
            found.append(expected)
        unchanged |= {p for p, x in zip(changes, found[1:], strict=True) if not same(x, found[0])}
    assert unchanged == {*changes} - {"mode"}


def test_gradients_with_spacings() -> None:
    for seed in seeds(4):
        draw = Draw(seed)
        x, (dx, dy) = draw.floats(4, 3), (draw.spread(4), draw.spread(3))
        for spacing in ((2.0,), (2.0, 0.5), (dx, dy), (0.5, dy)):
            for order in (1, 2):
                compare("gradient", (x, *spacing), {"edge_order": order})


def test_results_are_assigned_to_out() -> None:
    x, out = xp.asarray([1.0, 2.0]), xp.asarray([0.0, 0.0])
    assert np.add(x, 1, out=out) is out
    assert out.tolist() == [2, 3]
    assert np.nanmax(xp.asarray([[1.0, np.nan], [2, 3]]), axis=0, out=out) is out
    assert out.tolist() == [2, 3]
    assert np.multiply(x, 9, out=out, where=np.asarray([True, False])).tolist() == [9, 3]
    with pytest.raises(ValueError, match=r"out of numpy\.add has shape .*; the result has \(2,\)"):
        np.add(x, 1, out=xp.asarray([0.0]))
    with pytest.raises(TypeError, match=r"result of float32, which out of int32 does not hold"):
        np.add(x, 1, out=xp.asarray([0, 0]))


def _positional(name: str) -> list[str]:
    """Returns NumPy's parameters that a row passes by position."""
    args, _ = CALLS[name](Draw(0))
    return [*inspect.signature(find(name)).parameters][: len(args)]


def test_each_function_and_parameter_of_numpy_is_tried_here() -> None:
    """Others are refused, or tested in another file, or mean the same for every function."""
    names = {
        f"{owner}.{f.__name__}".removeprefix("numpy.")
        for f in overrides.get_overridable_numpy_array_functions()
        if (owner := f.__module__) in ("numpy", "numpy.fft", "numpy.linalg")
    }
    tried: dict[str, set[str]] = {}
    for row in CALLS:
        name = row.partition(" ")[0]
        tried.setdefault(name, set()).update(_positional(row), CALLS[row](Draw(0))[1])
    assert names - {*tried, *IN_PLACE} == ELSEWHERE | REFUSED_FUNCTIONS | OF_NO_ARRAYS
    untried = {
        f"{name} {parameter}"
        for name, known in tried.items()
        for parameter, details in inspect.signature(find(name)).parameters.items()
        if parameter not in {*known, *EVERYWHERE} and details.kind is not details.VAR_KEYWORD
    }
    assert untried == {
        "clip max", "clip min", "gradient varargs", "linalg.lstsq rcond",
        "linalg.matrix_rank hermitian", "linalg.pinv hermitian", "take mode", "unique sorted",
    }  # fmt: skip


def test_refused_numpy_functions_name_a_replacement() -> None:
    x = xp.asarray([1.0, 2.0])
    for name in REFUSED_FUNCTIONS - {"linalg.eig", "linalg.eigvals", "datetime_as_string"}:
        arguments = (x, x) if len(inspect.signature(find(name)).parameters) > 1 else (x,)
        with pytest.raises(TypeError, match=rf"numpy.{name} has no counterpart.*numpy.{name}\(n"):
            find(name)(*arguments)


def test_take_raises_beyond_the_ends() -> None:
    x = xp.asarray([[1.0, 2.0, 3.0]])
    for places in ([0, 3], [-4]):
        with pytest.raises(IndexError, match=r"numpy\.take go beyond the 3 elements"):
            np.take(x, xp.asarray(places), axis=1)
    with pytest.raises(IndexError, match="the 0 elements"):
        np.take(xp.zeros(0), xp.asarray([0]))
    np.testing.assert_array_equal(np.take(x, xp.asarray([-3, 2])), [1, 3])
    np.testing.assert_array_equal(np.take(x, xp.asarray([4]), mode="wrap"), [2])


@pytest.mark.parametrize("name", ["max", "min", "sum", "prod"])
def test_an_initial_value_must_fit(name: str) -> None:
    function, x = getattr(np, name), xp.asarray([1, 2], dtype=xp.uint8)
    with pytest.raises(OverflowError, match=f"initial of {name} is -1"):
        function(x, initial=-1)
    with pytest.raises(OverflowError):
        function(x, initial=-1, where=xp.asarray([True, False]))
    assert function(x, initial=3) == function(np.asarray(x), initial=3)


def test_polynomials_without_their_first_zeros() -> None:
    a, b = [0.0, 0.0, 2.0, 1.0], [0.0, 3.0, -1.0]
    np.testing.assert_allclose(np.polymul(xp.asarray(a), xp.asarray(b)), np.polymul(a, b))
    zeros = [0.0, 0.0]
    np.testing.assert_allclose(np.polymul(xp.asarray(zeros), xp.asarray(b)), np.polymul(zeros, b))
    product = np.polymul([1.0, 2.0, 4.0], [2.0, 1.0])
    expected = np.polydiv(product, [2.0, 1.0])
    for found, part in zip(
        np.polydiv(xp.asarray(product), xp.asarray([2.0, 1.0])), expected, strict=True
    ):
        np.testing.assert_allclose(found, part)
    np.testing.assert_allclose(np.poly(xp.asarray([1, 2, -3])), np.poly([1, 2, -3]))
    with pytest.raises(ValueError, match=r"numpy\.linalg\.eigvals"):
        np.poly(xp.eye(2))


def test_places_are_integers_and_lengths_not_negative() -> None:
    x = xp.arange(3.0)
    with pytest.raises(TypeError, match=r"obj of numpy\.insert is integers.*found float64"):
        np.insert(x, 1.5, 1)
    with pytest.raises(TypeError, match=r"obj of numpy\.delete is integers.*found float64"):
        np.delete(x, [1.5])
    with pytest.raises(ValueError, match=r"minlength of numpy\.bincount is 0 or more; got -1"):
        np.bincount(xp.asarray([1, 2]), minlength=-1)
    with pytest.raises(ValueError, match="boolean array"):
        np.delete(x, np.zeros(0, np.bool_))


# Values that NumPy refuses. plugrt checks them only outside of a trace, where it can read them.
WRONG_VALUES: dict[str, tuple[type[Exception], Callable[[Any], Any]]] = {
    "bincount": (TypeError, lambda make: np.bincount(make([1, 2]), make([1j, 2]))),
    "fweights": (ValueError, lambda make: np.cov(make([1.0, 2]), fweights=make([1, -1]))),
    "aweights": (ValueError, lambda make: np.cov(make([1.0, 2]), aweights=make([1.0, -1]))),
    "average": (ZeroDivisionError, lambda make: np.average(make([1, 2]), weights=make([1, -1]))),
    "average of rows": (
        ZeroDivisionError,
        lambda make: np.average(make([[1.0, 2], [3, 4]]), axis=0, weights=make([[1, 0], [-1, 2]])),
    ),
    "average by rows": (
        ZeroDivisionError,
        lambda make: np.average(make([[1.0, 2], [3, 4]]), axis=0, weights=make([1, -1])),
    ),
    "histogram": (ValueError, lambda make: np.histogram(make([1, np.nan]))),
    "edges": (ValueError, lambda make: np.histogram_bin_edges(make([1, np.inf]))),
    "histogram2d": (ValueError, lambda make: np.histogram2d(make([1.0, 2]), make([1, np.nan]))),
    "copyto": (TypeError, lambda make: np.copyto(make([1, 2]), 1.5)),
    "copyto of a complex": (TypeError, lambda make: np.copyto(make([1.0, 2]), 1j)),
    "copyto of much": (OverflowError, lambda make: np.copyto(make([True]).astype("u1"), 300)),
}


@pytest.mark.parametrize("call", WRONG_VALUES)
def test_values_that_numpy_refuses(call: str) -> None:
    error, make_call = WRONG_VALUES[call]
    for make in (np.asarray, xp.asarray):
        with pytest.raises(error):
            make_call(make)


@pytest.mark.parametrize("name", ["nanmedian", "nanargmax", "nanargmin"])
def test_complex_numbers_have_no_order(name: str) -> None:
    numbers = np.asarray([1 + 2j, np.nan], np.complex64)
    with pytest.raises((TypeError, ValueError)):
        getattr(jax.numpy, name)(numbers)
    with pytest.raises(TypeError, match=r"takes? real dtypes"):
        getattr(np, name)(xp.asarray(numbers))


def test_weights_are_not_read_in_a_trace() -> None:
    x, weights = xp.asarray([1.0, 2.0]), xp.asarray([1.0, -1.0])
    assert plugrt.jit(lambda w: np.average(x, weights=w))(weights) == -np.inf
    assert plugrt.jit(lambda: np.average(x, weights=weights))() == -np.inf


def test_copyto_of_numbers() -> None:
    for dtype, number in (("float32", 1), ("float32", True), ("int8", 3), ("complex64", 1.5)):
        for casting in ("same_kind", "safe"):
            found, expected = xp.zeros(2, dtype=dtype), np.zeros(2, dtype)
            np.copyto(found, number, casting=casting)  # type: ignore[call-overload]
            np.copyto(expected, number, casting=casting)  # type: ignore[call-overload]
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["std", "var"])
def test_ddof_is_the_correction(name: str) -> None:
    data = np.asarray([[1.0, 2.0, 4.0], [3.0, 3.0, 9.0]], np.float32)
    x, expected = xp.asarray(data), getattr(np, name)(data, axis=1, ddof=1)
    function = getattr(xp, name)
    for found in (function(x, axis=1, ddof=1), function(x, axis=1, correction=1)):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_quantiles_of_empty_arrays() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for shape, axis in (((0,), None), ((0, 2), 0), ((3, 0), 1)):
            expected = np.nanpercentile(np.zeros(shape), [10, 20, 30], axis=axis)
            found = np.nanpercentile(xp.zeros(shape), [10, 20, 30], axis=axis)
            np.testing.assert_array_equal(found, expected)
            # NumPy raises an IndexError here.
            assert np.isnan(np.percentile(xp.zeros(shape), [10, 20, 30], axis=axis)).all()


def test_histogram_of_narrow_integers() -> None:
    data = [1, 2, 2, 3]
    expected, _ = np.histogram(data, bins=3)
    for dtype in ("int4", "uint4", "int8"):
        counts, _ = np.histogram(xp.asarray(data, dtype=dtype), bins=3)
        assert counts.tolist() == expected.tolist()
