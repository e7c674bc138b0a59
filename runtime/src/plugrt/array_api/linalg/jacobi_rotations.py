"""Jacobi rotations of all pairs of columns, in rounds of disjoint pairs.

The columns are arranged in two rows, and column i of the first is paired with column i of the
second. Between rounds all but one move by one position, so that after ``2 h - 1`` rounds, a sweep,
each pair has occurred (the tournament of Brent and Luk, SIAM J. Sci. Stat. Comput. 6, 1985). A
sweep's rotations are elementwise work on whole blocks, which suits every device.
"""

from __future__ import annotations

from typing import NamedTuple

from plugrt.array_api.elementwise.arithmetic import abs
from plugrt.array_api.elementwise.exponential import hypot, sqrt
from plugrt.array_api.linalg.matrices import conj, unit_phase
from plugrt.array_api.searching import where
from plugrt.tracing.emit import concatenate, convert
from plugrt.tracing.tracer import Tracer

MAX_SWEEPS = 60
"""No known matrix needs more than a dozen; NaN also ends the loop."""


class Rotation(NamedTuple):
    """Rotations of pairs ``(p, q)`` by cosines and sines (..., h), and the resulting changes of the
    diagonals.
    """

    cosine: Tracer  # positive
    sine: Tracer
    gain: Tracer  # real: p becomes ``p - gain``, q becomes ``q + gain``


def find_rotation(p: Tracer, q: Tracer, coupling: Tracer) -> Rotation:
    """Returns the rotations J that make ``J^H [[p, coupling], [conj(coupling), q]] J`` diagonal.

    ``p`` and ``q`` are real, of shape (..., h), ``coupling`` real or complex; J is
    ``[[cosine, sine], [-conj(sine), cosine]]`` by the smaller of both angles (Golub and Van Loan,
    Matrix Computations, 8.5.2).
    """
    size = abs(coupling)
    none = size == 0
    tau = (q - p) / where(none, 1, 2 * size)
    tangent = where(tau >= 0, 1, -1) / (abs(tau) + hypot(1, tau))
    tangent = where(none, 0, convert(tangent, size.dtype))
    cosine = 1 / sqrt(1 + tangent * tangent)
    dtype = coupling.dtype
    sine = convert(tangent * cosine, dtype) * unit_phase(coupling)
    return Rotation(convert(cosine, dtype), sine, tangent * size)


def rotate_columns(left: Tracer, right: Tracer, by: Rotation) -> tuple[Tracer, Tracer]:
    """Returns the columns (..., m, h) of both rows times the rotations."""
    c, s = by.cosine[..., None, :], by.sine[..., None, :]
    return left * c - right * conj(s), left * s + right * c


def move_on(first: Tracer, second: Tracer, axis: int) -> tuple[Tracer, Tracer]:
    """Returns both rows with the next pairs at equal positions along ``axis``, -1 or -2."""
    if first.shape[axis] == 1:
        return first, second
    if axis == -2:
        return (
            _join(first[..., :1, :], second[..., :1, :], first[..., 1:-1, :], axis=-2),
            _join(second[..., 1:, :], first[..., -1:, :], axis=-2),
        )
    return (
        _join(first[..., :1], second[..., :1], first[..., 1:-1], axis=-1),
        _join(second[..., 1:], first[..., -1:], axis=-1),
    )


def _join(*parts: Tracer, axis: int) -> Tracer:
    return concatenate(parts, parts[0].ndim + axis)
