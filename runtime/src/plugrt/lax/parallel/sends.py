"""`psend` and `precv`: the two halves of an exchange, connected by a token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError, Unimplemented
from plugrt.execution.trees import pytrees
from plugrt.interface import TensorType
from plugrt.lax.parallel.exchanges import ppermute, read_pairs
from plugrt.lax.parallel.replica_calls import collective
from plugrt.lax.parallel.replica_groups import AxisName, axis_places
from plugrt.lax.tokens import Sent, Token
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import strong
from plugrt.typing import HasShapeAndDtype


@collective
def psend(x: object, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """Sends ``x`` along the (source, target) pairs of ``perm``; returns a token for `precv`.

    Each array of a pytree is sent separately, and the result is a pytree of tokens. Any shape and
    dtype. Raises `UnboundAxis`, and `ArgumentError` for an index out of range or named twice. As
    ``jax.lax.psend``, which does not work on CPU: XLA:CPU supports neither of StableHLO's ``send``
    and ``recv``. Here the token carries the array, and the matching `precv` is one `ppermute`, on
    any backend that has collectives; an array that is never received is not sent.

    >>> shift = [(0, 1), (1, 0)]
    >>> def swap(v):
    ...     return lax.precv(lax.psend(v, "i", shift), v, "i", shift)
    >>> plugrt.pmap(swap, "i")(xp.asarray([1.0, 2.0]))
    Array([2., 1.], dtype=float32)
    """
    sent = _describe("psend", axis_name, perm)
    return pytrees.map(lambda v: Token([sent], [strong(as_tracer(v, "argument x of psend"))]), x)


@collective
def precv(
    token: Token,
    out_shape: HasShapeAndDtype,
    axis_name: AxisName,
    perm: Sequence[tuple[int, int]],
) -> Any:
    """Returns the array that the `psend` of ``token`` sent to this device; zeros without a source.

    ``out_shape`` has its shape and dtype; ``axis_name`` and ``perm`` must equal the `psend`'s.
    Raises `UnboundAxis`, `ArgumentTypeError` for an object that is no token, `ShapeError` or
    `DtypeError` if an array of another type was sent, `ArgumentError` if the token comes after no
    such `psend` or after several, and `Unimplemented` for a token that comes after no `psend`, such
    as from `create_token`: the array must be sent before it is received. As ``jax.lax.precv``; see
    `psend`.
    """
    if not isinstance(token, Token):
        raise ArgumentTypeError(
            f"precv takes the token of a psend; got {token!r:.60} of type "
            f"{type(token).__qualname__}"
        )
    if isinstance(out_shape, type) or not hasattr(out_shape, "dtype"):
        raise ArgumentTypeError(
            "out_shape of precv has a shape and a dtype, as ShapeDtypeStruct has; got "
            f"{out_shape!r:.60}"
        )
    wanted = _describe("precv", axis_name, perm)
    if not token.sent:
        raise Unimplemented(
            "precv takes the token of a psend that is called before it in the same function: both "
            "are one exchange of the program. This token comes after no psend"
        )
    found = [a for sent, a in zip(token.sent, token.arrays, strict=True) if sent == wanted]
    if len(found) != 1:
        came = [(sent.axes, sent.pairs) for sent in token.sent]
        shadowed = ", over axes that others of the same name shadow here"
        raise ArgumentError(
            f"precv over {wanted.axes} along {[*wanted.pairs]} needs a token of one psend of the "
            f"same axes and pairs; this one comes after {came}"
            f"{shadowed if not found and (wanted.axes, wanted.pairs) in came else ''}"
        )
    [array] = found
    types = (
        TensorType(array.shape, array.dtype),
        TensorType(tuple(out_shape.shape), np.dtype(out_shape.dtype)),
    )
    if types[0] != types[1]:
        raise (ShapeError if types[0].shape != types[1].shape else DtypeError)(
            f"precv with out_shape {types[1]} gets the {types[0]} that psend sent"
        )
    return ppermute(array, axis_name, wanted.pairs)


def _describe(function: str, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Sent:
    pairs = read_pairs(function, axis_name, perm)
    axes = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    return Sent(axes, axis_places(axis_name), pairs)
