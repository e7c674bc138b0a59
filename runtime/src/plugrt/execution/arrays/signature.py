"""`Signature`: an array's aval: shape, dtype, weakness, sharding and commitment, interned."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt.base.bounded_cache import BoundedCache
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.interface import Layout, Shards, TensorType
from plugrt.native.native_core import core


class PythonSignature:
    """The slots of a `Signature` that the core's reads and waits look at."""

    __slots__ = ("reader", "sharding", "waiter")


SignatureBase = PythonSignature
if core is not None and not TYPE_CHECKING:
    SignatureBase = core.Signature


class Signature(SignatureBase):
    """Shape, dtype, placement and commitment of an array, as one object.

    Equal signatures are the same object (`intern_signature`), so that a cache key of a call is a
    tuple of them, hashed and compared by identity.
    """

    __slots__ = ("committed", "dtype", "layout", "ndim", "opener", "shape", "weak")

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        sharding: Sharding,
        committed: bool,
        weak: bool,
        layout: Layout | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.ndim = len(shape)
        self.sharding = sharding
        self.committed = committed
        self.weak = weak
        self.layout = layout
        """How the parts lie in their memories; None is the devices' default."""
        # Makes `Shards` of what arrays hold where that is something else: see `Client.opener`.
        self.opener: Callable[[Any], Shards] | None = None
        # What the compiled core reads arrays by, once the opener is there: a `core.FunctionReader`.
        self.reader: Any = None
        # What it waits for arrays by, if not by functions of a library: a `core.ShardsWait`.
        self.waiter: Any = None

    @property
    def tensor_type(self) -> TensorType:
        """The shape and dtype alone."""
        return TensorType(self.shape, self.dtype)

    def __repr__(self) -> str:
        weak = "weak " if self.weak else ""
        held = "committed to" if self.committed else "on"
        order = self.layout.text if self.layout else ""
        return f"{weak}{self.tensor_type}{order} {held} {self.sharding!r}"


if core is not None:
    core.set_signature_class(Signature)

_known: BoundedCache[tuple[Any, ...], Signature] = BoundedCache(65536, interned=True)
"""Signatures by contents. One that is evicted costs compilations, never correctness."""


def intern_signature(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    sharding: Sharding,
    committed: bool,
    weak: bool = False,
    layout: Layout | None = None,
) -> Signature:
    """Returns the one `Signature` with these contents; ``layout`` is one other than the default.

    ``weak`` marks Python scalars, whose dtype yields to that of the arrays they meet; a boolean
    has nothing to yield to.
    """
    key = (shape, dtype, sharding, committed, weak and dtype.char != "?", layout)
    if (found := _known.get(key)) is not None:
        return found
    return _known.get_or_make(key, partial(Signature, *key))
