"""Samples made of uniform, normal, exponential and gamma numbers: `rayleigh`, `orthogonal`, …"""

from __future__ import annotations

import operator
from typing import Any

from plugrt.errors import ArgumentError, ShapeError
from plugrt.random.continuous import (
    Shape,
    broadcast_parameter,
    exponential,
    float_dtype,
    normal,
    read_shape,
    sample_normal,
    sample_uniform,
)
from plugrt.random.discrete import rademacher
from plugrt.random.gamma_family import gamma
from plugrt.random.generators import split_in, xp
from plugrt.random.keys import read_key
from plugrt.tracing.argument_checks import normalize_shape
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import convert
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import inexact, result_dtype
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DTypeLike


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def pareto(
    key: Tracer, b: Tracer, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Tracer:
    """Returns numbers of the Pareto distribution with the shape parameter ``b``, from 1 on.

    ``shape`` None is ``b.shape``. A real floating ``dtype``, the default one for None. Raises
    `DtypeError` for others, `ShapeError` where ``b`` does not broadcast or for a wrong key. As
    ``jax.random.pareto``.
    """
    own, dtype = read_key("pareto", key), float_dtype("pareto", dtype)
    wanted = read_shape("pareto", shape, b)
    power = broadcast_parameter("pareto", "b", b, wanted, dtype)
    drawn: Tracer = xp.exp(exponential(own, wanted, dtype) / power)
    return drawn


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def rayleigh(
    key: Tracer, scale: Tracer, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Tracer:
    """Returns numbers of the Rayleigh distribution.

    ``shape`` None is ``scale.shape``. A real floating ``dtype``, the default one for None. Raises
    `DtypeError` for others, `ShapeError` where ``scale`` does not broadcast or for a wrong key. As
    ``jax.random.rayleigh``.
    """
    own, dtype = read_key("rayleigh", key), float_dtype("rayleigh", dtype)
    wanted = read_shape("rayleigh", shape, scale)
    wide: Any = broadcast_parameter("rayleigh", "scale", scale, wanted, dtype)
    drawn: Tracer = wide * xp.sqrt(xp.log(sample_uniform(own, wanted, dtype)) * -2)
    return drawn


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def wald(
    key: Tracer, mean: Tracer, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Tracer:
    """Returns numbers of the Wald (inverse normal) distribution with a mean.

    ``shape`` None is ``mean.shape``. A real floating ``dtype``, the default one for None. Raises
    `DtypeError` for others, `ShapeError` where ``mean`` does not broadcast or for a wrong key. As
    ``jax.random.wald``.
    """
    of_normal, of_choice = split_in(read_key("wald", key), 2)
    dtype = float_dtype("wald", dtype)
    wanted = read_shape("wald", shape, mean)
    m: Any = broadcast_parameter("wald", "mean", mean, wanted, dtype)
    v: Any = sample_normal(of_normal, wanted, dtype)
    y, squared = v * v, m * m
    root = xp.sqrt(4 * m * y + squared * (y * y))
    x = m + squared * y / 2 - m / 2 * root
    chosen = sample_uniform(of_choice, wanted, dtype) <= m / (m + x)
    drawn: Tracer = xp.where(chosen, x, squared / x)
    return drawn


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def triangular(
    key: Tracer,
    left: Tracer,
    mode: Tracer,
    right: Tracer,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Tracer:
    """Returns numbers between ``left`` and ``right``, the likeliest at ``mode``.

    ``shape`` None is the shape of the three broadcast. A real floating ``dtype``, the default one
    for None. Raises `DtypeError` for others, `ShapeError` where they do not broadcast or for a
    wrong key. As ``jax.random.triangular``.
    """
    own, dtype = read_key("triangular", key), float_dtype("triangular", dtype)
    wanted = read_shape("triangular", shape, left, mode, right)
    a, top, b = (
        broadcast_parameter("triangular", name, x, wanted, dtype)
        for name, x in (("left", left), ("mode", mode), ("right", right))
    )
    low: Any = a
    high: Any = b
    peak: Any = top
    u: Any = sample_uniform(own, wanted, dtype)
    rising = low + xp.sqrt(u * (high - low) * (peak - low))
    falling = high - xp.sqrt((1 - u) * (high - low) * (high - peak))
    drawn: Tracer = xp.where(u < (peak - low) / (high - low), rising, falling)
    return drawn


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def lognormal(
    key: Tracer,
    sigma: Tracer | float = 1.0,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Tracer:
    """Returns numbers whose logarithms are normal with the standard deviation ``sigma``.

    ``shape`` None is ``sigma.shape``. A floating ``dtype``, also a complex one, the default real
    one for None. Raises `DtypeError` for others, `ShapeError` where ``sigma`` does not broadcast or
    for a wrong key. As ``jax.random.lognormal``.
    """
    own, spread = read_key("lognormal", key), as_tracer(sigma)
    wanted = read_shape("lognormal", shape, spread)
    drawn = normal(own, wanted, dtype)
    wide: Any = broadcast_parameter("lognormal", "sigma", spread, wanted, drawn.dtype)
    result: Tracer = xp.exp(drawn * wide)
    return result


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def maxwell(key: Tracer, shape: Shape = (), dtype: DTypeLike | None = None) -> Tracer:
    """Returns numbers of the Maxwell distribution: lengths of vectors of three normal numbers.

    A real floating ``dtype``, the default one for None. Raises `DtypeError` for others,
    `ShapeError` for a wrong key or shape. As ``jax.random.maxwell``.
    """
    own, dtype = read_key("maxwell", key), float_dtype("maxwell", dtype)
    wanted = normalize_shape("random.maxwell", shape)
    vectors: Any = sample_normal(own, (*wanted, 3), dtype)
    drawn: Tracer = xp.sqrt(xp.sum(vectors * vectors, axis=-1))
    return drawn


@operation(static=("shape", "dtype"), weak_by="none", keys="body")
def double_sided_maxwell(
    key: Tracer,
    loc: Tracer,
    scale: Tracer,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
) -> Tracer:
    """Returns numbers of `maxwell` with a random sign, times ``scale``, plus ``loc``.

    The result's shape is ``shape`` and then the shape of both parameters. A real floating
    ``dtype``, the default one for None. Raises `DtypeError` for others, `ShapeError` for a wrong
    key or shape. As ``jax.random.double_sided_maxwell``, where ``()`` for ``shape`` means the shape
    of the parameters.
    """
    dtype = float_dtype("double_sided_maxwell", dtype)
    both = read_shape("double_sided_maxwell", None, loc, scale)
    wanted = (*(normalize_shape("random.double_sided_maxwell", shape) or both), *both)
    of_length, of_sign = split_in(read_key("double_sided_maxwell", key), 2)
    signed: Any = rademacher(of_sign, wanted, dtype) * maxwell(of_length, wanted, dtype)
    drawn: Tracer = signed * scale + loc
    return drawn


@operation(static=("shape", "dtype"), weak_by="none", keys="body")
def weibull_min(
    key: Tracer,
    scale: Tracer,
    concentration: Tracer,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
) -> Tracer:
    """Returns numbers of the Weibull distribution.

    A real floating ``dtype``, the default one for None. Raises `DtypeError` for others,
    `ShapeError` for a wrong key or shape. As ``jax.random.weibull_min``.
    """
    own, dtype = read_key("weibull_min", key), float_dtype("weibull_min", dtype)
    u: Any = sample_uniform(own, normalize_shape("random.weibull_min", shape), dtype)
    power: Any = concentration
    drawn: Tracer = (-xp.log1p(-u)) ** (1.0 / power) * scale
    return drawn


@operation(static=("shape", "dtype"), weak_by="none", shards=True, keys="body")
def generalized_normal(
    key: Tracer, p: Tracer, shape: Shape = (), dtype: DTypeLike | None = None
) -> Tracer:
    """Returns numbers x with a density that falls as exp(-abs(x)**p).

    A real floating ``dtype``, the default one for None. Raises `DtypeError` for others,
    `ShapeError` for a wrong key or shape. As ``jax.random.generalized_normal``.
    """
    of_size, of_sign = split_in(read_key("generalized_normal", key), 2)
    dtype = float_dtype("generalized_normal", dtype)
    wanted, power = normalize_shape("random.generalized_normal", shape), _inverse(p)
    sizes: Any = gamma(of_size, power, wanted, dtype)
    drawn: Tracer = rademacher(of_sign, wanted, dtype) * sizes**power
    return drawn


def _inverse(p: Any) -> Any:
    return 1 / p


@operation(static=("d", "shape", "dtype"), weak_by="none", shards=True, keys="body")
def ball(
    key: Tracer, d: int, p: Tracer | float = 2, shape: Shape = (), dtype: DTypeLike | None = None
) -> Tracer:
    """Returns vectors of length ``d``, spread evenly within the unit ball of the ``p``-norm.

    They are along the last axis, behind ``shape``. A real floating ``dtype``, the default
    one for None. Raises `DtypeError` for others, `ShapeError` for a wrong key or shape. As
    ``jax.random.ball``.
    """
    of_vectors, of_radius = split_in(read_key("ball", key), 2)
    dtype, power = float_dtype("ball", dtype), as_tracer(p)
    wanted = normalize_shape("random.ball", shape)
    vectors = generalized_normal(of_vectors, power, (*wanted, operator.index(d)), dtype)
    rest = exponential(of_radius, wanted, dtype)
    length = (xp.sum(xp.abs(vectors) ** power, axis=-1) + rest) ** _inverse(power)
    drawn: Tracer = vectors / length[..., None]
    return drawn


@operation(static=("n", "shape", "dtype", "m"), weak_by="none", shards=True, keys="body")
def orthogonal(
    key: Tracer,
    n: int,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
) -> Tracer:
    """Returns orthogonal matrices of ``n`` rows and ``m`` columns (None: ``n``), or unitary ones.

    They are along the last two axes, behind ``shape``; rows or columns are orthonormal,
    whichever are fewer. A floating ``dtype``, the default real one for None. Raises `DtypeError`
    for others, `ShapeError` for a wrong key or shape. As ``jax.random.orthogonal``.
    """
    own, wanted = read_key("orthogonal", key), normalize_shape("random.orthogonal", shape)
    rows = operator.index(n)
    columns = rows if m is None else operator.index(m)
    drawn = normal(own, (*wanted, max(rows, columns), min(rows, columns)), dtype)
    q, r = xp.linalg.qr(drawn)
    made: Tracer = q * xp.expand_dims(xp.sign(xp.linalg.diagonal(r)), -2)
    turned: Any = made
    return turned.mT if rows < columns else made


@operation(static=("shape", "dtype", "method"), weak_by="none", shards=True, keys="body")
def multivariate_normal(
    key: Tracer,
    mean: Tracer,
    cov: Tracer,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
) -> Tracer:
    """Returns normal vectors with a mean, along the last axis, and a matrix of covariances.

    ``shape`` is the result's without the last axis; None: the shapes of ``mean`` and ``cov``
    without the vectors and matrices, broadcast. ``method`` factors the matrix: "cholesky",
    "eigh" or "svd", the latter two also if it is singular. A real floating ``dtype``, the one
    the parameters have for None. Raises `DtypeError` for others, `ShapeError` where the shapes do
    not fit or for a wrong key, `ArgumentError` for another method. As
    ``jax.random.multivariate_normal``.
    """
    own = read_key("multivariate_normal", key)
    if method not in ("svd", "eigh", "cholesky"):
        raise ArgumentError(
            f"method of random.multivariate_normal is cholesky, eigh or svd; got {method!r}"
        )
    if mean.ndim < 1 or cov.ndim < 2 or cov.shape[-2:] != 2 * mean.shape[-1:]:
        raise ShapeError(
            "random.multivariate_normal takes a mean of shape (..., n) and a cov of shape "
            f"(..., n, n); found {mean.shape} and {cov.shape}"
        )
    computed = inexact(result_dtype([(x.dtype, x.weak) for x in (mean, cov)]))
    drawn_dtype = float_dtype("multivariate_normal", computed if dtype is None else dtype)
    center: Any = convert(mean, computed)
    matrix: Any = convert(cov, computed)
    batch = read_shape("multivariate_normal", shape, center[..., 0], matrix[..., 0, 0])
    if method == "cholesky":
        factor = xp.linalg.cholesky(matrix)
    elif method == "eigh":
        values, vectors = xp.linalg.eigh(matrix)
        factor = vectors * xp.sqrt(values)[..., None, :]
    else:
        vectors, values, _ = xp.linalg.svd(matrix)
        factor = vectors * xp.sqrt(values)[..., None, :]
    numbers = sample_normal(own, (*batch, mean.shape[-1]), drawn_dtype)
    result: Tracer = center + xp.einsum("...ij,...j->...i", factor, numbers)
    return result


__all__ = [
    "ball", "double_sided_maxwell", "generalized_normal", "lognormal", "maxwell",
    "multivariate_normal", "orthogonal", "pareto", "rayleigh", "triangular", "wald", "weibull_min",
]  # fmt: skip
