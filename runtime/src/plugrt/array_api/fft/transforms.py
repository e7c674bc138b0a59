"""The functions of `fft`, which share one implementation."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from plugrt.array_api.array_conversion import asarray
from plugrt.array_api.dtypes import as_dtype
from plugrt.array_api.elementwise.complex import conj
from plugrt.array_api.elementwise.operands import FLOATING, unary
from plugrt.array_api.manipulation import moveaxis
from plugrt.array_api.repetition import roll
from plugrt.errors import ArgumentError, DtypeError
from plugrt.execution.arrays.array import Array
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lax.fourier import fft as transform
from plugrt.lax.shapes import pad
from plugrt.tracing.argument_checks import check_dtype_kind, normalize_axes
from plugrt.tracing.emit import constant, convert
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import default_float
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike, Axes, DeviceLike, DTypeLike

Norm: TypeAlias = Literal["backward", "ortho", "forward"]
Kind: TypeAlias = Literal["FFT", "IFFT", "RFFT", "IRFFT"]


@with_argument_errors
def fft(x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Returns the discrete Fourier transform along ``axis``.

    ``n`` is the length of the transform: the axis is truncated or padded with zeros to it; None
    keeps the axis. ``norm`` selects the direction that divides: "backward" the inverse by n,
    "ortho" both by its root, "forward" this one by n. Floats, real and complex; integers become the
    default float, half precision float32. The result is complex. Raises `AxisError`,
    `ArgumentError` for a length below 1 or another norm, `UnsupportedDtype`.

    >>> xp.fft.fft(xp.asarray([1.0, 0.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _transform_one("fft", x, n, axis, norm)


@with_argument_errors
def ifft(x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Returns the inverse discrete Fourier transform along ``axis``; arguments as of `fft`.

    The result is complex, of length ``n`` along the axis (None: as ``x``). Floats, real and
    complex. Raises `AxisError`, `ArgumentError` for a length below 1 or another norm.
    """
    return _transform_one("ifft", x, n, axis, norm)


@with_argument_errors
def rfft(x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Returns the ``n // 2 + 1`` frequencies, 0 and above, of real numbers along ``axis``.

    Arguments as of `fft`. Raises `DtypeError` for complex numbers, `AxisError`, `ArgumentError`.

    >>> xp.fft.rfft(xp.asarray([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    return _transform_one("rfft", x, n, axis, norm)


@with_argument_errors
def irfft(x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Returns the ``n`` real numbers whose frequencies, 0 and above, are along ``axis``.

    ``n`` is ``2 * (m - 1)`` for m frequencies unless given; the inverse of `rfft`. Arguments as of
    `fft`. The result is real. Raises `AxisError`, `ArgumentError`.
    """
    return _transform_one("irfft", x, n, axis, norm)


@with_argument_errors
def hfft(x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Returns the ``n`` real frequencies of a signal with Hermitian symmetry along ``axis``.

    ``x`` is its half from time 0 on; ``n`` is ``2 * (m - 1)`` for m of them unless given.
    Arguments as of `fft`. Raises `AxisError`, `ArgumentError`.
    """
    return _transform_one("hfft", x, n, axis, norm)


@with_argument_errors
def ihfft(x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Returns ``n // 2 + 1`` elements, the half of a Hermitian signal whose `hfft` is ``x``.

    Arguments as of `fft`. Raises `DtypeError` for complex numbers, `AxisError`, `ArgumentError`.
    """
    return _transform_one("ihfft", x, n, axis, norm)


@with_argument_errors
def fftn(
    x: ArrayLike, /, s: Sequence[int] | None = None, axes: Axes = None, norm: Norm = "backward"
) -> Array:
    """Returns the Fourier transform over several ``axes``.

    ``s`` are the lengths, one for each of the axes, as the ``n`` of `fft`. Without ``axes`` they
    are the last ``len(s)`` ones, or all. Raises `ArgumentError` where there are not as many.
    """
    return _transform_several("fftn", x, s, axes, norm)


@with_argument_errors
def ifftn(
    x: ArrayLike, /, s: Sequence[int] | None = None, axes: Axes = None, norm: Norm = "backward"
) -> Array:
    """Returns the inverse Fourier transform over several ``axes``; arguments as of `fftn`.

    The result is complex. Floats, real and complex. Raises `AxisError`, `ArgumentError`.
    """
    return _transform_several("ifftn", x, s, axes, norm)


@with_argument_errors
def rfftn(
    x: ArrayLike, /, s: Sequence[int] | None = None, axes: Axes = None, norm: Norm = "backward"
) -> Array:
    """Returns `rfft` along the last of the ``axes``, and `fft` along the others; see `fftn`.

    Floats. Raises `AxisError`, `ArgumentError`.
    """
    return _transform_several("rfftn", x, s, axes, norm)


@with_argument_errors
def irfftn(
    x: ArrayLike, /, s: Sequence[int] | None = None, axes: Axes = None, norm: Norm = "backward"
) -> Array:
    """Returns `irfft` along the last of the ``axes``, and `ifft` along the others; see `fftn`.

    Floats. Raises `AxisError`, `ArgumentError`.
    """
    return _transform_several("irfftn", x, s, axes, norm)


@with_argument_errors
def fftfreq(
    n: int,
    /,
    d: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Array:
    """Returns the frequencies of the ``n`` results of `fft`, for samples at a distance of ``d``.

    These are 0, 1, … and then the negative ones, over ``n * d``, in a float dtype. Raises
    `ArgumentError` for ``n`` below 1, `DtypeError` for a dtype that is not of real floats.

    >>> xp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    size = _length("fftfreq", n)
    places = [*range((size + 1) // 2), *range(-(size // 2), 0)]
    return _frequencies("fftfreq", places, size * d, dtype, device)


@with_argument_errors
def rfftfreq(
    n: int,
    /,
    d: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Array:
    """Returns the frequencies of the ``n // 2 + 1`` results of `rfft`; see `fftfreq`.

    Raises `ArgumentError` for ``n`` below 1, `DtypeError` for a dtype that is not of real floats.
    """
    size = _length("rfftfreq", n)
    return _frequencies("rfftfreq", range(size // 2 + 1), size * d, dtype, device)


def _frequencies(
    function: str, places: Sequence[int], span: float, dtype: Any, device: Any
) -> Array:
    target = default_float() if dtype is None else as_dtype(dtype)
    check_dtype_kind(function, "dtype", target, "f")
    return asarray(np.asarray(places, np.float64) / span, dtype=target, device=device)


@operation(static=("axes",))
def fftshift(x: Tracer, /, axes: Axes = None) -> Tracer:
    """Returns ``x`` with frequency 0 moved to the middle of ``axes`` (None: all).

    Any dtype. Raises `AxisError`.

    >>> xp.fft.fftshift(xp.asarray([0, 1, 2, -2, -1]))
    Array([-2, -1,  0,  1,  2], dtype=int32)
    """
    over = normalize_axes("fftshift", axes, x.ndim)
    result: Tracer = roll(x, [x.shape[i] // 2 for i in over], axis=over)
    return result


@operation(static=("axes",))
def ifftshift(x: Tracer, /, axes: Axes = None) -> Tracer:
    """Returns ``x`` as it was before `fftshift` over the same ``axes``.

    Any dtype. Raises `AxisError`.
    """
    over = normalize_axes("ifftshift", axes, x.ndim)
    result: Tracer = roll(x, [-(x.shape[i] // 2) for i in over], axis=over)
    return result


class _Transform(NamedTuple):
    """The kind of StableHLO's transform, and the power of the size that scales the result."""

    kind: Kind
    powers: Mapping[str, float]


_FORWARD = {"backward": 0.0, "ortho": -0.5, "forward": -1.0}
_INVERSE = {"backward": 0.0, "ortho": 0.5, "forward": 1.0}  # StableHLO's divides by the size
_TRANSFORMS = {
    "fft": _Transform("FFT", _FORWARD),
    "ifft": _Transform("IFFT", _INVERSE),
    "rfft": _Transform("RFFT", _FORWARD),
    "irfft": _Transform("IRFFT", _INVERSE),
    "hfft": _Transform("IRFFT", {"backward": 1.0, "ortho": 0.5, "forward": 0.0}),
    "ihfft": _Transform("RFFT", {"backward": -1.0, "ortho": -0.5, "forward": 0.0}),
    "fftn": _Transform("FFT", _FORWARD),
    "ifftn": _Transform("IFFT", _INVERSE),
    "rfftn": _Transform("RFFT", _FORWARD),
    "irfftn": _Transform("IRFFT", _INVERSE),
}


def _transform_one(function: str, x: object, n: object, axis: object, norm: object) -> Array:
    lengths = None if n is None else (n,)
    result: Array = _transform(x, function=function, lengths=lengths, axes=(axis,), norm=norm)
    return result


def _transform_several(function: str, x: Any, s: Any, axes: Any, norm: Any) -> Array:
    lengths = None if s is None else tuple(s)
    result: Array = _transform(x, function=function, lengths=lengths, axes=axes, norm=norm)
    return result


@operation(static=("function", "lengths", "axes", "norm"), weak_by="none", title="fft")
def _transform(
    x: Tracer, *, function: str, lengths: tuple[int, ...] | None, axes: Any, norm: Any
) -> Tracer:
    kind, powers = _TRANSFORMS[function]
    if norm not in powers:
        raise ArgumentError(f"norm of {function} is {norm!r}; it takes {', '.join(powers)}")
    x = _convert_operand(function, kind, x)
    if axes is None and lengths is not None:
        axes = tuple(range(-len(lengths), 0))
    over = normalize_axes(function, axes, x.ndim)
    if not over:
        return x
    sizes = _read_lengths(function, kind, x, over, lengths)
    result = _run(kind, conj(x) if function == "hfft" else x, over, sizes)
    power = powers[norm]
    if power:
        result = result * math.prod(sizes) ** power
    return conj(result) if function == "ihfft" else result


def _convert_operand(function: str, kind: Kind, x: Tracer) -> Tracer:
    """Returns the operand as float32 or wider, complex unless it is to be real."""
    x = unary(function, x, FLOATING)
    if kind == "RFFT":
        if x.dtype.kind == "c":
            raise DtypeError(
                f"{function} got x of dtype {x.dtype.name}; it takes real numbers (xp.real(x), or "
                f"{function.replace('r', '', 1) if function[0] == 'r' else 'ifft'} for complex)"
            )
        return x if x.dtype.itemsize >= 4 else convert(x, np.float32)
    return x if x.dtype.kind == "c" else convert(x, _complex_of(x.dtype))


def _complex_of(dtype: np.dtype[np.generic]) -> type:
    return np.complex128 if dtype == np.float64 else np.complex64


def _read_lengths(
    function: str, kind: Kind, x: Tracer, axes: Sequence[int], lengths: Any
) -> list[int]:
    """Returns the size of the transform along each of the axes."""
    found = [x.shape[i] for i in axes]
    if kind == "IRFFT":
        found[-1] = 2 * (found[-1] - 1)
    if lengths is not None:
        if len(lengths) != len(axes):
            raise ArgumentError(
                f"s of {function} is {lengths}, {len(lengths)} lengths for {len(axes)} axes"
            )
        found = [operator.index(n) for n in lengths]
    for n in found:
        _length(function, n)
    return found


def _length(function: str, n: Any) -> int:
    size = operator.index(n)
    if size < 1:
        raise ArgumentError(f"{function} got {size} points for an axis; a transform has at least 1")
    return size


def _run(kind: Kind, x: Tracer, axes: Sequence[int], sizes: Sequence[int]) -> Tracer:
    """Returns the transform over the axes; one StableHLO operation transforms up to three."""
    count = len(axes)
    x = moveaxis(x, axes, tuple(range(-count, 0)))
    taken = [*sizes[:-1], sizes[-1] // 2 + 1 if kind == "IRFFT" else sizes[-1]]
    x = _resize(x, taken)
    others: Kind = "IFFT" if kind in ("IFFT", "IRFFT") else "FFT"
    if kind == "IRFFT":  # its result is real, so it comes last
        x = _transform_each(others, x, range(count - 3))
    x = transform(x, kind, sizes[-3:])
    if kind != "IRFFT":
        x = _transform_each(others, x, range(count - 3))
    result: Tracer = moveaxis(x, tuple(range(-count, 0)), axes)
    return result


def _transform_each(kind: Kind, x: Tracer, axes: range) -> Tracer:
    """Returns the complex transform over the axes before the last three, one by one."""
    for axis in axes:
        at = axis - len(axes) - 3
        x = moveaxis(transform(moveaxis(x, at, -1), kind, (x.shape[at],)), -1, at)
    return x


def _resize(x: Tracer, sizes: Sequence[int]) -> Tracer:
    """Returns ``x`` with its last dimensions truncated or padded with zeros to these sizes."""
    edges = [(0, 0, 0)] * (x.ndim - len(sizes))
    edges += [(0, n - m, 0) for n, m in zip(sizes, x.shape[-len(sizes) :], strict=True)]
    return pad(x, constant(0, x.dtype), edges) if any(e[1] for e in edges) else x


__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip
