"""`fft` and `FftType`."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import numpy as np

from plugrt.errors import ArgumentError, DtypeError, ShapeError
from plugrt.tracing.emit import convert, emit, hlo, strong
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind, inexact
from plugrt.tracing.tracer import Tracer


class FftType(enum.IntEnum):
    """The transforms: forward, inverse, of real numbers, inverse to real numbers."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


@operation(static=("fft_type", "fft_lengths"), weak_by="none")
def fft(x: Tracer, fft_type: FftType | str | int, fft_lengths: Sequence[int]) -> Tracer:
    """Returns the transform over the last dimensions, as many as ``fft_lengths`` (up to 3).

    ``fft_type`` is a member of `FftType` or its name; the lengths are the dimensions' sizes, for
    IRFFT the sizes of the real result. float32 and float64 (RFFT), else complex. Raises
    `ShapeError` if the last dimensions differ from the lengths, `DtypeError` for RFFT of complex
    numbers, and `ArgumentError` for an unknown type. As ``jax.lax.fft``.

    >>> lax.fft(xp.asarray([1.0, 2.0, 3.0, 4.0]), "RFFT", (4,))
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    name = str(getattr(fft_type, "name", fft_type)).upper()
    if name not in FftType.__members__:
        raise ArgumentError(f"fft_type is {', '.join(FftType.__members__)}; got {fft_type!r}")
    lengths = [int(n) for n in fft_lengths]
    if len(lengths) > min(x.ndim, 3):
        raise ShapeError(f"lax.fft over {len(lengths)} dimensions of shape {x.shape}; at most 3")
    x = _convert_input(strong(x), real=name == "RFFT")
    if not lengths:
        return x
    last = list(x.shape[-len(lengths) :])
    expected = list(lengths)
    if name == "IRFFT":
        expected[-1] = lengths[-1] // 2 + 1
    if last != expected:
        raise ShapeError(
            f"lax.fft of type {name} and lengths {lengths} takes dimensions {expected} at the end; "
            f"found shape {x.shape}"
        )
    result: Tracer = emit(hlo.fft, x, fft_type=hlo.FftTypeAttr.get(name), fft_length=lengths)
    return result


def _convert_input(x: Tracer, *, real: bool) -> Tracer:
    kind = dtype_kind(x.dtype)
    if real:
        if kind == "c":
            raise DtypeError("lax.fft of type RFFT takes real numbers; found complex ones")
        return x if kind == "f" else convert(x, inexact(x.dtype))
    if kind == "c":
        return x
    return convert(x, np.complex128 if inexact(x.dtype) == np.float64 else np.complex64)
