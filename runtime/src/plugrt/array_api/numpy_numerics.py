"""NumPy's numerical functions that the standard lacks: elements, bits, grids, polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from plugrt.array_api import linalg
from plugrt.array_api.array_conversion import asarray
from plugrt.array_api.creation import full_like, ones, zeros
from plugrt.array_api.data_types import astype, finfo, result_type
from plugrt.array_api.elementwise.arithmetic import abs
from plugrt.array_api.elementwise.complex import conj, imag, real
from plugrt.array_api.elementwise.exponential import exp
from plugrt.array_api.elementwise.float_properties import (
    clip,
    isnan,
)
from plugrt.array_api.elementwise.power import pow
from plugrt.array_api.elementwise.rounding import floor
from plugrt.array_api.elementwise.trigonometry import atan2, sin
from plugrt.array_api.manipulation import (
    broadcast_to,
    concat,
    flip,
    moveaxis,
    ravel,
    reshape,
)
from plugrt.array_api.matrix_products import tensordot
from plugrt.array_api.numpy_functions import diag
from plugrt.array_api.numpy_linalg import lstsq
from plugrt.array_api.numpy_options import Traced, as_floats, counterpart, is_known, promote
from plugrt.array_api.numpy_signals import convolve
from plugrt.array_api.searching import nonzero, where
from plugrt.array_api.statistics import sum
from plugrt.array_api.utility import diff
from plugrt.errors import ArgumentError, ArgumentTypeError, ShapeError
from plugrt.lax.special_functions.bessel import bessel_i0e
from plugrt.tracing.argument_checks import normalize_axis
from plugrt.tracing.promotion import default_int, dtype_kind


@counterpart
def angle(z: Traced, deg: bool = False) -> Any:
    """Returns the angle of complex numbers in radians, or in degrees."""
    (z,) = as_floats(z)
    found = atan2(imag(z) if dtype_kind(z.dtype) == "c" else full_like(z, 0), real(z))
    return found * (180 / math.pi) if deg else found


def iscomplex(x: Any) -> object:
    """Returns where the imaginary part is not 0."""
    return imag(x) != 0 if x.dtype.kind == "c" else full_like(x, False, dtype=np.bool_)


@counterpart
def nan_to_num(
    x: Traced,
    nan: Traced = 0.0,
    posinf: Traced = None,
    neginf: Traced = None,
) -> Any:
    """Returns an array with numbers in place of NaNs and infinities."""
    kind = dtype_kind(x.dtype)
    if kind not in "fc":
        return x
    if kind == "c":
        parts = [nan_to_num(part, nan, posinf, neginf) for part in (real(x), imag(x))]
        return astype(parts[0] + 1j * parts[1], x.dtype)
    limits = finfo(x.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    found = where(x == math.inf, astype(asarray(high), x.dtype), x)
    found = where(x == -math.inf, astype(asarray(low), x.dtype), found)
    return where(isnan(x), astype(asarray(nan), x.dtype), found)


def nan_to_num_of(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> object:
    """Returns `nan_to_num`; without ``copy`` it is assigned to ``x``."""
    found = nan_to_num(x, nan, posinf, neginf)
    if copy:
        return found
    x[...] = found
    return x


@counterpart
def sinc(x: Traced) -> object:
    """Returns ``sin(pi x) / (pi x)``, which is 1 at 0."""
    (x,) = as_floats(x)
    y = x * math.pi
    return where(x == 0, 1, sin(y) / where(x == 0, 1, y))


@counterpart
def i0(x: Traced) -> object:
    """Returns the modified Bessel function of the first kind and order 0."""
    (x,) = as_floats(x)
    return bessel_i0e(x) * exp(abs(x))


@counterpart
def packbits(a: Traced, axis: int | None = None, bitorder: str = "big") -> object:
    """Packs each eight elements along an axis into a uint8; nonzero elements are bits of 1."""
    x, axis = (ravel(a), 0) if axis is None else (a, normalize_axis("packbits", axis, a.ndim))
    if x.dtype.kind not in "biu":
        raise ArgumentTypeError(f"numpy.packbits takes integers and bool; found {x.dtype.name}")
    bits = moveaxis(x != 0, axis, -1)
    n = bits.shape[-1]
    rest = zeros((*bits.shape[:-1], -n % 8), dtype=np.bool_)
    eights = reshape(concat([bits, rest], axis=-1), (*bits.shape[:-1], -(-n // 8), 8))
    packed = sum(eights * _weigh_bits("packbits", bitorder), axis=-1, dtype=np.uint8)
    return moveaxis(packed, -1, axis)


@counterpart
def unpackbits(
    a: Traced, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> object:
    """Returns the bits of uint8 as elements along an axis: cut to ``[:count]``, or zero-padded."""
    if a.dtype != np.uint8:
        raise ArgumentTypeError(f"numpy.unpackbits takes uint8; found {a.dtype.name}")
    x, axis = (ravel(a), 0) if axis is None else (a, normalize_axis("unpackbits", axis, a.ndim))
    bits = (moveaxis(x, axis, -1)[..., None] & _weigh_bits("unpackbits", bitorder)) != 0
    n = bits.shape[-2] * 8
    found = reshape(astype(bits, np.uint8), (*bits.shape[:-2], n))
    if count is not None:
        if count < -n:
            raise ArgumentError(f"count of numpy.unpackbits is {count}; there are {n} bits")
        rest = zeros((*found.shape[:-1], max(count - n, 0)), dtype=np.uint8)
        found = concat([found[..., :count], rest], axis=-1)
    return moveaxis(found, -1, axis)


def _weigh_bits(title: str, order: str) -> Any:
    if order not in ("big", "little"):
        raise ArgumentError(f"bitorder of numpy.{title} is {order!r}; it takes 'big' and 'little'")
    weights = np.asarray([1 << i for i in range(8)], np.uint8)
    return asarray(weights[::-1].copy() if order == "big" else weights)


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """Returns the cross products of vectors of three elements."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = moveaxis(asarray(a), axisa, -1), moveaxis(asarray(b), axisb, -1)
    return moveaxis(linalg.cross(x, y), -1, axisc)


@counterpart
def inner(a: Traced, b: Traced) -> Any:
    """Returns the sums of products over the last axes of both."""
    return tensordot(a, b, axes=((-1,), (-1,))) if a.ndim and b.ndim else a * b


@counterpart
def vdot(a: Traced, b: Traced) -> object:
    """Returns the sum of ``conj(a) * b`` over all elements."""
    return tensordot(conj(ravel(a)), ravel(b), axes=1)


@counterpart
def kron(a: Traced, b: Traced) -> object:
    """Returns the Kronecker product: blocks of ``b`` times each element of ``a``."""
    n = max(a.ndim, b.ndim)
    x, y = (reshape(v, (1,) * (n - v.ndim) + v.shape) for v in (a, b))
    left = reshape(x, [k for m in x.shape for k in (m, 1)])
    right = reshape(y, [k for m in y.shape for k in (1, m)])
    return reshape(left * right, [i * j for i, j in zip(x.shape, y.shape, strict=True)])


@counterpart
def ediff1d(ary: Traced, to_end: Traced = None, to_begin: Traced = None) -> object:
    """Returns the differences of neighbours, flattened, between ``to_begin`` and ``to_end``."""
    ends = [None if x is None else ravel(asarray(x)) for x in (to_begin, to_end)]
    parts = [x for x in (ends[0], diff(ravel(ary)), ends[1]) if x is not None]
    return concat([astype(x, ary.dtype) for x in parts])


@counterpart
def vander(x: Traced, N: int | None = None, increasing: bool = False) -> Any:
    """Returns powers of a vector's elements as columns, the highest or the lowest first."""
    if x.ndim != 1:
        raise ShapeError(f"x of numpy.vander has shape {x.shape}; it takes a vector")
    n = x.shape[0] if N is None else N
    wide = astype(x, result_type(x, default_int())) if dtype_kind(x.dtype) in "biu" else x
    found = pow(wide[:, None], asarray(np.arange(n), dtype=default_int())[None])
    return found if increasing else flip(found, axis=1)


def _space(start: Any, stop: Any, num: int, endpoint: bool, axis: int) -> Any:
    """Returns evenly spaced numbers along an axis, also between arrays."""
    if num < 0:
        raise ArgumentError(f"num of numpy.linspace is {num}; it takes 0 or more")
    low, high = promote(*as_floats(asarray(start), asarray(stop)))
    parts = max(num - 1 if endpoint else num, 1)
    steps = reshape(asarray(np.arange(num) / parts, dtype=low.dtype), (num,) + (1,) * low.ndim)
    found = low + (high - low) * steps
    if endpoint and num > 1:
        found = concat([found[:-1], high[None]])
    return moveaxis(found, 0, axis)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Returns evenly spaced numbers along an axis; with ``retstep`` also their distance."""
    found = _space(start, stop, num, endpoint, axis)
    made = found
    if dtype is not None:
        made = astype(floor(found) if np.dtype(dtype).kind in "iu" else found, dtype)
    if not retstep:
        return made
    parts = num - 1 if endpoint else num
    return made, (asarray(stop) - asarray(start)) / (parts or math.nan)


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> object:
    """Returns powers of ``base`` with evenly spaced exponents along an axis."""
    low, high, known = promote(*as_floats(*map(asarray, (start, stop, base))))
    found = moveaxis(pow(known, _space(low, high, num, endpoint, 0)), 0, axis)
    return found if dtype is None else astype(found, dtype)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> object:
    """Returns a geometric progression along an axis; bounds have one sign or are complex."""
    low, high = promote(*as_floats(asarray(start), asarray(stop)))
    power = _space(full_like(low, 0), full_like(low, 1), num, endpoint, 0)
    found = low * pow(high / low, power)
    if num:
        found = concat([low[None], found[1:]])
    if endpoint and num > 1:
        found = concat([found[:-1], high[None]])
    found = moveaxis(found, 0, axis)
    return found if dtype is None else astype(found, dtype)


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> object:
    """Converts indices along the axes of an array to indices in the flattened array."""
    parts = list(map(asarray, multi_index))
    sizes = np.atleast_1d(dims).tolist()
    modes = [mode] * len(sizes) if isinstance(mode, str) else list(mode)
    if len(parts) != len(sizes) or order not in ("C", "F"):
        raise ArgumentError(
            f"numpy.ravel_multi_index got {len(parts)} arrays of indices for dims {dims}, and "
            f"order {order!r}; it takes an array for each of dims, and 'C' or 'F'"
        )
    total: Any = asarray(0, dtype=default_int())
    triples = list(zip(parts, sizes, modes, strict=True))
    for i, n, how in triples if order == "C" else triples[::-1]:
        if how not in ("raise", "wrap", "clip"):
            raise ArgumentError(
                f"mode of numpy.ravel_multi_index is {how!r}; it takes 'raise', 'wrap', 'clip'"
            )
        if how == "raise" and is_known(i) and ((i < 0) | (i >= n)).any():
            raise ArgumentError(f"multi_index of numpy.ravel_multi_index goes beyond dims {dims}")
        inside = i % n if how == "wrap" else clip(i, 0, n - 1)
        total = total * n + inside
    return total


def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """Converts indices in the flattened array to indices along its axes."""
    places, sizes = asarray(indices), np.atleast_1d(shape).tolist()
    if order not in ("C", "F"):
        raise ArgumentError(f"order of numpy.unravel_index is {order!r}; it takes 'C' and 'F'")
    if is_known(places) and ((places < 0) | (places >= math.prod(sizes))).any():
        raise ArgumentError(f"indices of numpy.unravel_index go beyond shape {tuple(sizes)}")
    found = []
    for n in sizes[::-1] if order == "C" else sizes:
        found.append(astype(places % n, default_int()))
        places = places // n
    return tuple(found[::-1] if order == "C" else found)


def ix_(*args: Any) -> tuple[Any, ...]:
    """Returns vectors as indices of a grid; booleans are read, for the positions of True."""
    found = []
    for i, x in enumerate(map(asarray, args)):
        if x.ndim != 1:
            raise ShapeError(f"numpy.ix_ takes vectors; found shape {x.shape}")
        places = nonzero(x)[0] if x.dtype.kind == "b" else x
        found.append(reshape(places, [-1 if i == j else 1 for j in range(len(args))]))
    return tuple(found)


@counterpart
def polyval(p: Traced, x: Traced) -> object:
    """Returns the values of a polynomial at ``x``; the highest coefficient comes first."""
    dtype = result_type(p, x)
    found = full_like(x, 0, dtype=dtype)
    for i in range(p.shape[0]):
        found = found * x + p[i]
    return astype(found, dtype)


@counterpart
def polyder(p: Traced, m: int = 1) -> object:
    """Returns the coefficients of the derivative of order ``m``."""
    for _ in range(m):
        n = p.shape[0] - 1
        p = p[:-1] * asarray(np.arange(n, 0, -1), dtype=default_int())
    return p


@counterpart
def polyint(p: Traced, m: int = 1, k: Traced = None) -> object:
    """Returns the coefficients of the integral of order ``m``, with constants ``k``."""
    (p,) = as_floats(p)
    constants = zeros(m, dtype=p.dtype) if k is None else broadcast_to(ravel(asarray(k)), (m,))
    for i in range(m):
        over = asarray(np.arange(p.shape[0], 0, -1), dtype=p.dtype)
        p = concat([p / over, astype(constants[i : i + 1], p.dtype)])
    return p


def poly(seq_of_zeros: Any) -> object:
    """Returns the coefficients of the polynomial with these zeros, complex for complex zeros."""
    zeros_of = asarray(seq_of_zeros)
    if zeros_of.ndim > 1:
        raise ShapeError(
            f"numpy.poly has zeros in a vector; found shape {zeros_of.shape} (the eigenvalues of a "
            "matrix are numpy.linalg.eigvals, on the host)"
        )
    return _multiply_factors(ravel(zeros_of))


@counterpart
def _multiply_factors(zeros_of: Traced) -> object:
    (zeros_of,) = as_floats(zeros_of)
    found = ones(1, dtype=zeros_of.dtype)
    for i in range(zeros_of.shape[0]):
        found = concat([found, zeros_of[:1] * 0]) - concat([zeros_of[:1] * 0, found * zeros_of[i]])
    return found


def polymul(a1: Any, a2: Any) -> object:
    """Returns the coefficients of a product; in a trace leading zeros stay."""
    return convolve(_without_zeros(a1), _without_zeros(a2))


def polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    """Returns the coefficients of quotient and remainder; in a trace leading zeros stay."""
    u, v = (ravel(asarray(x)) for x in (u, v))
    quotient, rest = _divide_polynomials(u, v)
    if is_known(rest):
        near = np.isclose(np.asarray(rest), 0, rtol=1e-14)
        rest = rest[min(int(np.argmin(near)) if not near.all() else near.size, near.size - 1) :]
    return quotient, rest


@counterpart
def _divide_polynomials(u: Traced, v: Traced) -> object:
    dtype = result_type(*as_floats(u, v))
    u, v, n = astype(u, dtype), astype(v, dtype), v.shape[0]
    if u.shape[0] < n:
        return zeros(1, dtype=dtype), u
    parts, rest = [], u
    for k in range(u.shape[0] - n + 1):
        parts.append(rest[k : k + 1] / v[:1])
        rest = concat([rest[:k], rest[k : k + n] - parts[k] * v, rest[k + n :]])
    return concat(parts), rest


def _without_zeros(p: Any) -> Any:
    """Returns coefficients without leading zeros, at least one."""
    p = ravel(asarray(p))
    if not is_known(p):
        return p
    places = np.flatnonzero(np.asarray(p))
    return p[places[0] :] if places.size else p[:1] * 0


def polyfit(x: Any, y: Any, deg: int, rcond: float | None = None, *, w: Any = None) -> object:
    """Returns the coefficients of the polynomial nearest to the points, by least squares."""
    x, y = as_floats(asarray(x), asarray(y))
    left, right = vander(x, deg + 1), y
    if w is not None:
        weights = asarray(w)
        left = left * weights[:, None]
        right = right * (weights if y.ndim == 1 else weights[:, None])
    scale = sum(left * left, axis=0) ** 0.5
    limit = x.shape[0] * finfo(x.dtype).eps if rcond is None else rcond
    found = lstsq(left / scale, right, limit)[0]
    return (found.T / scale).T


FUNCTIONS: dict[str, Callable[..., object]] = {
    "angle": angle,
    "cross": cross,
    "diagflat": lambda v, k=0: diag(ravel(asarray(v)), k),
    "ediff1d": ediff1d,
    "geomspace": geomspace,
    "i0": i0,
    "inner": inner,
    "iscomplex": lambda x: (
        imag(x) != 0 if x.dtype.kind == "c" else full_like(x, False, dtype=np.bool_)
    ),
    "ix_": ix_,
    "kron": kron,
    "linspace": linspace,
    "logspace": logspace,
    "nan_to_num": nan_to_num_of,
    "packbits": packbits,
    "poly": poly,
    "polyder": polyder,
    "polydiv": polydiv,
    "polyfit": polyfit,
    "polyint": polyint,
    "polymul": polymul,
    "polyval": polyval,
    "ravel_multi_index": ravel_multi_index,
    "sinc": sinc,
    "unpackbits": unpackbits,
    "unravel_index": unravel_index,
    "vander": vander,
    "vdot": vdot,
}
"""The functions by NumPy's names, with NumPy's parameters."""
