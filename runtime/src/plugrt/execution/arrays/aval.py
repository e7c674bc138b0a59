"""`Aval`: an argument or a result of a call, without its data. Equal ones are one object."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeGuard, overload

import numpy as np

from plugrt.base.bounded_cache import BoundedCache
from plugrt.execution.shardings.named_sharding import NamedSharding, explicit_part
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.interface import Layout, Shards, TensorType
from plugrt.native.native_core import core


class PythonAval:
    """The slots of an `Aval` that the core's reads and waits look at."""

    __slots__ = ("reader", "sharding", "waiter")


AvalBase = PythonAval
if core is not None and not TYPE_CHECKING:
    AvalBase = core.Aval


class Aval(AvalBase):
    """Shape, dtype, weak type, sharding, commitment and layout of an argument or a result.

    Arrays, host values, and descriptions such as `plugrt.ShapeDtypeStruct` become one when a call
    reads them. Equal avals are the same object (`intern_aval`), so that a cache key of a call is a
    tuple of them, hashed and compared by identity.
    """

    __slots__ = ("committed", "dtype", "layout", "ndim", "opener", "shape", "weak")

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        sharding: Sharding | None,
        committed: bool,
        weak: bool,
        layout: Layout | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.ndim = len(shape)
        self.sharding = sharding
        """The devices and their parts, with the kind of memory. None: on the host, or anywhere."""
        self.committed = committed
        """Whether computations have to run on the devices of the sharding."""
        self.weak = weak
        """Whether the dtype yields to others, as a Python number's does."""
        self.layout = layout
        """The order of elements in memory, in each device's part; None is the devices' default."""
        # `HeldForm.open`, for arrays that hold another object than `Shards`.
        self.opener: Callable[[object], Shards] | None = None
        # A `core.FunctionReader` once the opener is there: the core reads arrays with it.
        self.reader: object = None
        # A `core.ShardsWait`: the core waits with it, if not with functions of a library.
        self.waiter: object = None

    @property
    def tensor_type(self) -> TensorType:
        """The shape and dtype alone."""
        return TensorType(self.shape, self.dtype)

    @property
    def weak_type(self) -> bool:
        """`weak`, by JAX's name."""
        return self.weak

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def is_number(self) -> bool:
        """Whether it describes a Python number, which a bool is as well."""
        return self.weak and self.sharding is None and not self.shape

    def __repr__(self) -> str:
        weak = "weak " if self.weak else ""
        order = self.layout.text if self.layout else ""
        held = f"{'committed to' if self.committed else 'on'} {self.sharding!r}"
        return f"{weak}{self.tensor_type}{order} {held if is_placed(self) else 'on the host'}"


if TYPE_CHECKING:

    class ArrayAval(Aval):
        """An aval with a sharding: of an array, or of a struct on devices."""

        sharding: Sharding
else:
    ArrayAval = Aval


if core is not None:
    core.set_aval_class(Aval)

_known: BoundedCache[tuple[object, ...], Any] = BoundedCache(65536, interned=True)
"""Avals by contents. One that is evicted costs compilations, never correctness."""


@overload
def intern_aval(
    shape: tuple[int, ...],
    dtype: np.dtype[np.generic],
    sharding: Sharding,
    committed: bool,
    weak: bool = False,
    layout: Layout | None = None,
) -> ArrayAval: ...
@overload
def intern_aval(
    shape: tuple[int, ...],
    dtype: np.dtype[np.generic],
    sharding: None,
    committed: bool,
    weak: bool = False,
    layout: Layout | None = None,
) -> Aval: ...
def intern_aval(
    shape: tuple[int, ...],
    dtype: np.dtype[np.generic],
    sharding: Sharding | None,
    committed: bool,
    weak: bool = False,
    layout: Layout | None = None,
) -> Aval:
    """Returns the one `Aval` with these contents; ``layout`` is one other than the default.

    Only a Python bool is a weak boolean: an array of booleans has nothing to yield to.
    """
    weak = weak and (dtype.char != "?" or sharding is None)
    key = (shape, dtype, sharding, committed, weak, layout)
    found: Aval | None = _known.get(key)
    return found if found is not None else _known.get_or_make(key, partial(Aval, *key))


@lru_cache(maxsize=65536)
def intern_host_aval(
    shape: tuple[int, ...], dtype: np.dtype[np.generic], weak: bool = False
) -> Aval:
    """Returns the one `Aval` of host values of this type. It is asked for at each call.

    A weak one without dimensions is a Python number: a float or complex number has the default
    dtype, which `parameter_types` widens where the program computes in 64 bits.
    """
    return intern_aval(shape, dtype, None, False, weak)


def sharding_type(aval: Aval) -> NamedSharding | None:
    """Returns the sharding in the type of an argument; None without a mesh of Explicit axes."""
    sharding = aval.sharding
    if isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes:
        return explicit_part(sharding.mesh, sharding.spec, aval.ndim)
    return None


def is_placed(aval: Aval) -> TypeGuard[ArrayAval]:
    """Whether it has a sharding: host values and descriptions without one have none."""
    return aval.sharding is not None
