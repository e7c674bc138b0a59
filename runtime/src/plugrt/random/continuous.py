"""Samples of continuous distributions (`uniform`, `normal`, `gumbel`…), and raw `bits`."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from plugrt.array_api.dtypes import as_dtype
from plugrt.errors import ArgumentError, DtypeError, ShapeError
from plugrt.random.generators import lax, random_bits, read_row, split_key
from plugrt.random.keys import read_key
from plugrt.tracing.argument_checks import normalize_shape
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import (
    broadcast_to,
    constant,
    convert,
    full,
)
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import default_float, default_unsigned, dtype_kind
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DTypeLike

Shape = tuple[int, ...]
finfo: Any = ml_dtypes.finfo


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def bits(key: Tracer, shape: Shape = (), dtype: DTypeLike | None = None) -> Tracer:
    """Returns unsigned integers of random bits.

    Without a dtype they are uint32, or uint64 where ``config.enable_x64`` is True. ``key`` is one
    key, uint32[2]. Raises `DtypeError` for a dtype that is not unsigned, `ShapeError` for a wrong
    key or shape. As ``jax.random.bits``.
    """
    key = read_key("bits", key)
    result_dtype = default_unsigned() if dtype is None else as_dtype(dtype)
    if result_dtype.kind != "u":
        raise DtypeError(
            f"random.bits makes unsigned integers; dtype {result_dtype.name} was requested"
        )
    return random_bits(key, 8 * result_dtype.itemsize, normalize_shape("random.bits", shape))


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def uniform(
    key: Tracer,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    minval: Tracer | float = 0.0,
    maxval: Tracer | float = 1.0,
) -> Tracer:
    """Returns numbers spread evenly over [minval, maxval), which may be arrays that broadcast.

    A real floating ``dtype``, the default one for None. Raises `DtypeError` for others, and
    `ShapeError` for limits that do not broadcast or a wrong key. As ``jax.random.uniform``, bit for
    bit.

    >>> x = random.uniform(random.PRNGKey(0), (100,), minval=-1, maxval=1)
    >>> bool(xp.all(x < 1)), bool(xp.all(x >= -1))
    (True, True)
    """
    key = read_key("uniform", key)
    result_dtype = float_dtype("uniform", dtype)
    low, high = as_tracer(minval), as_tracer(maxval)
    return sample_uniform(key, normalize_shape("random.uniform", shape), result_dtype, low, high)


def sample_uniform(
    key: Tracer,
    shape: Shape,
    dtype: np.dtype[np.generic],
    low: Tracer | None = None,
    high: Tracer | None = None,
) -> Tracer:
    """Returns uniform numbers: random mantissas of numbers from 1 to 2, minus 1, scaled.

    A dtype with a mantissa of fewer than 8 bits draws 8 bits a number, as in JAX. An array of keys
    gives numbers for each, along further leading dimensions.
    """
    info = finfo(dtype)
    whole = (*key.shape, *shape)
    low = constant(0, dtype) if low is None else low
    high = constant(1, dtype) if high is None else high
    low = broadcast_parameter("uniform", "minval", low, whole, dtype)
    high = broadcast_parameter("uniform", "maxval", high, whole, dtype)
    drawn = 8 if info.nmant < 8 else info.bits
    words = np.dtype(f"uint{info.bits}")
    mantissa = convert(random_bits(key, drawn, shape), words)
    mantissa = lax.shift_right_logical(mantissa, constant(drawn - info.nmant, words))
    one = np.ones((), dtype).view(words)
    number = lax.bitcast_convert_type(lax.bitwise_or(mantissa, constant(one)), dtype)
    number = lax.sub(number, constant(1, dtype))
    scaled: Tracer = lax.max(low, lax.add(lax.mul(number, lax.sub(high, low)), low))
    return scaled


def read_shape(function: str, shape: Shape | None, *parameters: Tracer) -> Shape:
    """Returns the requested shape; for None the common shape of the parameters."""
    if shape is not None:
        return normalize_shape(f"random.{function}", shape)
    try:
        return np.broadcast_shapes(*(x.shape for x in parameters))
    except ValueError as error:
        raise ShapeError(f"the parameters of random.{function}: {error}") from error


def broadcast_parameter(
    function: str, name: str, value: Tracer, shape: Shape, dtype: np.dtype[np.generic]
) -> Tracer:
    """Returns a parameter of a distribution in the result's shape and a dtype."""
    pairs = zip(value.shape[::-1], shape[::-1], strict=False)
    if value.ndim > len(shape) or any(m not in (1, n) for m, n in pairs):
        raise ShapeError(
            f"argument {name!r} of random.{function} has shape {value.shape}, which does not "
            f"broadcast to the shape {shape} of the result"
        )
    return broadcast_to(convert(value, dtype), shape)


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def normal(key: Tracer, shape: Shape = (), dtype: DTypeLike | None = None) -> Tracer:
    """Returns normal numbers of mean 0 and variance 1, real or complex.

    A floating ``dtype``, the default real one for None. Raises `DtypeError` for others,
    `ShapeError` for a wrong key or shape. As ``jax.random.normal``.

    >>> random.normal(random.PRNGKey(0), (2, 3)).shape
    (2, 3)
    """
    key = read_key("normal", key)
    result_dtype = default_float() if dtype is None else as_dtype(dtype)
    wanted = normalize_shape("random.normal", shape)
    if result_dtype.kind != "c":
        return sample_normal(key, wanted, float_dtype("normal", dtype))
    part = np.dtype(f"float{result_dtype.itemsize * 4}")
    keys = split_key(key, (2,))
    real, imag = (sample_normal(read_row(keys, i), wanted, part) for i in range(2))
    # A complex division, for the same bits as JAX.
    result: Tracer = lax.div(lax.complex(real, imag), full(wanted, np.sqrt(2), result_dtype))
    return result


def sample_normal(key: Tracer, shape: Shape, dtype: np.dtype[np.generic]) -> Tracer:
    """Returns normal numbers; for an array of keys as `sample_uniform`."""
    low = constant(np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype))
    number = lax.erf_inv(sample_uniform(key, shape, dtype, low, constant(1, dtype)))
    scaled: Tracer = lax.mul(constant(np.sqrt(2), dtype), number)
    return scaled


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def truncated_normal(
    key: Tracer,
    lower: Tracer,
    upper: Tracer,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Tracer:
    """Returns normal numbers within the open interval (lower, upper).

    ``shape`` None is the shape of the two limits broadcast. A real floating ``dtype``. Raises
    `DtypeError` for others, and `ShapeError` for limits that do not broadcast or a wrong key. As
    ``jax.random.truncated_normal``.
    """
    key = read_key("truncated_normal", key)
    result_dtype = float_dtype("truncated_normal", dtype)
    wanted = read_shape("truncated_normal", shape, lower, upper)
    scale = constant(np.sqrt(2), result_dtype)
    low, high = convert(lower, result_dtype), convert(upper, result_dtype)
    ends = [lax.erf(lax.div(x, scale)) for x in (low, high)]
    low = broadcast_parameter("truncated_normal", "lower", low, wanted, result_dtype)
    high = broadcast_parameter("truncated_normal", "upper", high, wanted, result_dtype)
    number = lax.mul(scale, lax.erf_inv(sample_uniform(key, wanted, result_dtype, *ends)))
    inner = [
        lax.nextafter(x, constant(to, result_dtype)) for x, to in ((low, np.inf), (high, -np.inf))
    ]
    result: Tracer = lax.clamp(inner[0], number, inner[1])
    return result


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def exponential(key: Tracer, shape: Shape = (), dtype: DTypeLike | None = None) -> Tracer:
    """Returns exponential numbers of mean 1.

    A real floating ``dtype``, the default one for None. Raises `DtypeError` for others,
    `ShapeError` for a wrong key or shape. As ``jax.random.exponential``.
    """
    key = read_key("exponential", key)
    result_dtype = float_dtype("exponential", dtype)
    number = uniform(key, normalize_shape("random.exponential", shape), result_dtype)
    result: Tracer = lax.neg(lax.log1p(lax.neg(number)))
    return result


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def cauchy(key: Tracer, shape: Shape = (), dtype: DTypeLike | None = None) -> Tracer:
    """Returns numbers of the standard Cauchy distribution.

    A real floating ``dtype``, the default one for None. Raises `DtypeError` for others,
    `ShapeError` for a wrong key or shape. As ``jax.random.cauchy``.
    """
    key = read_key("cauchy", key)
    result_dtype = float_dtype("cauchy", dtype)
    low = constant(finfo(result_dtype).eps, result_dtype)
    number = sample_uniform(
        key, normalize_shape("random.cauchy", shape), result_dtype, low, constant(1, result_dtype)
    )
    angle = lax.mul(constant(np.pi, result_dtype), lax.sub(number, constant(0.5, result_dtype)))
    result: Tracer = lax.tan(angle)
    return result


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def laplace(key: Tracer, shape: Shape = (), dtype: DTypeLike | None = None) -> Tracer:
    """Returns numbers of the standard Laplace distribution.

    A real floating ``dtype``, the default one for None. Raises `DtypeError` for others,
    `ShapeError` for a wrong key or shape. As ``jax.random.laplace``.
    """
    key = read_key("laplace", key)
    result_dtype = float_dtype("laplace", dtype)
    low = constant(-1.0 + float(finfo(result_dtype).epsneg), result_dtype)
    number = sample_uniform(
        key, normalize_shape("random.laplace", shape), result_dtype, low, constant(1, result_dtype)
    )
    result: Tracer = lax.mul(lax.sign(number), lax.log1p(lax.neg(lax.abs(number))))
    return result


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def logistic(key: Tracer, shape: Shape = (), dtype: DTypeLike | None = None) -> Tracer:
    """Returns numbers of the standard logistic distribution.

    A real floating ``dtype``, the default one for None. Raises `DtypeError` for others,
    `ShapeError` for a wrong key or shape. As ``jax.random.logistic``.
    """
    key = read_key("logistic", key)
    result_dtype = float_dtype("logistic", dtype)
    low = constant(finfo(result_dtype).tiny, result_dtype)
    number = sample_uniform(
        key, normalize_shape("random.logistic", shape), result_dtype, low, constant(1, result_dtype)
    )
    result: Tracer = lax.sub(lax.log(number), lax.log1p(lax.neg(number)))
    return result


@operation(static=("shape", "dtype", "mode"), weak_by="none", shards=True, keys="body")
def gumbel(
    key: Tracer, shape: Shape = (), dtype: DTypeLike | None = None, mode: str | None = None
) -> Tracer:
    """Returns numbers of the standard Gumbel distribution.

    ``mode`` "high" draws twice as many bits, for rare events; None and "low" do not. A real
    floating ``dtype``, the default one for None. Raises `DtypeError` for others, `ShapeError` for a
    wrong key or shape, `ArgumentError` for another mode. As ``jax.random.gumbel``.
    """
    key = read_key("gumbel", key)
    result_dtype = float_dtype("gumbel", dtype)
    return _gumbel(key, normalize_shape("random.gumbel", shape), result_dtype, mode)


def _gumbel(key: Tracer, shape: Shape, dtype: np.dtype[np.generic], mode: str | None) -> Tracer:
    if mode not in (None, "low", "high"):
        raise ArgumentError(f"mode of random.gumbel is 'low' or 'high'; got {mode!r}")
    info = finfo(dtype)
    tiny, one = constant(info.tiny, dtype), constant(1, dtype)
    if mode != "high":
        inner = lax.neg(lax.log(sample_uniform(key, shape, dtype, tiny, one)))
    else:
        both = sample_uniform(key, (2, *shape), dtype, constant(0, dtype), one)
        high, low = read_row(both, 0), read_row(both, 1)
        more = lax.add(high, lax.mul(constant(2.0**-info.nmant, dtype), low))
        number = lax.select(lax.ge(high, constant(0.5, dtype)), high, lax.add(more, tiny))
        inner = lax.neg(lax.log1p(lax.neg(number)))
    result: Tracer = lax.neg(lax.log(inner))
    return result


def float_dtype(function: str, dtype: DTypeLike | None) -> np.dtype[Any]:
    """Returns the requested floating dtype, the default one for None."""
    result_dtype = default_float() if dtype is None else as_dtype(dtype)
    if dtype_kind(result_dtype) != "f":
        raise DtypeError(f"random.{function} makes floats; dtype {result_dtype.name} was requested")
    return result_dtype
