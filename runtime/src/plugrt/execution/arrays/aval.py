"""`Aval`: an argument or a result of a call, without its data. Equal avals are one object."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeGuard, overload

import numpy as np

from plugrt.base.bounded_cache import BoundedCache
from plugrt.execution.shardings.gspmd_sharding import buffer_sharding
from plugrt.execution.shardings.manual_types import ManualAxisType, mat_of, write_type
from plugrt.execution.shardings.named_sharding import NamedSharding, explicit_part, is_abstract
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.interface import Layout, Shards, TensorType
from plugrt.native.known_dtypes import buffer_type, is_key_dtype
from plugrt.native.native_core import core


class PythonAval:
    """The slots of an `Aval` that the core uses when it reads and waits."""

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

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    ndim: int
    sharding: Sharding | None
    """The devices, their parts, and the memory kind. None: on the host, or unspecified."""
    committed: bool
    """Whether computations must run on the devices of the sharding."""
    weak: bool
    """Whether the dtype yields to others, as a Python number's does."""
    layout: Layout | None
    """The order of elements in memory, in each device's part; None is the devices' default."""
    opener: Callable[[object], Shards] | None
    # `HeldForm.open`, for arrays that hold another object than `Shards`.
    reader: object
    # A `core.FunctionReader` once the opener is known: the core reads arrays with it.
    waiter: object
    # A `core.ShardsWait`: the core waits with it, if not with functions of a library.

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        sharding: Sharding | None,
        committed: bool,
        weak: bool,
        layout: Layout | None = None,
    ) -> None:
        fix = partial(object.__setattr__, self)
        fix("shape", shape)
        fix("dtype", dtype)
        fix("ndim", len(shape))
        fix("sharding", sharding)
        fix("committed", committed)
        fix("weak", weak)
        fix("layout", layout)
        self.opener = self.reader = self.waiter = None

    def __setattr__(self, name: str, value: object) -> None:
        if name not in ("opener", "reader", "waiter"):
            raise AttributeError(f"cannot assign to {name!r} of {self!r}: arrays share their avals")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"cannot delete {name!r} of {self!r}: arrays share their avals")

    def __reduce__(self) -> tuple[object, ...]:
        contents = self.shape, self.dtype, self.sharding, self.committed, self.weak, self.layout
        return intern_aval, contents

    @property
    def tensor_type(self) -> TensorType:
        """The shape and dtype alone."""
        return TensorType(self.shape, self.dtype)

    @property
    def weak_type(self) -> bool:
        """Whether the dtype yields to others, as in JAX; a bool is never weak."""
        return self.weak and self.dtype.char != "?"

    @property
    def mat(self) -> ManualAxisType:
        """The `ManualAxisType`: how devices differ along the axes that `plugrt.shard_map` binds."""
        return mat_of(self.sharding)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def is_number(self) -> bool:
        """Whether it describes a Python number or bool."""
        return self.weak and self.sharding is None and not self.shape

    def __repr__(self) -> str:
        weak = "weak " if self.weak_type else ""
        if not self.committed and is_abstract(self.sharding):  # as JAX writes types
            mesh, spec = self.sharding.mesh, self.sharding.spec
            states = spec.unreduced | self.mat.unreduced, spec.reduced | self.mat.reduced
            axes = explicit_part(mesh, spec, self.ndim).spec
            own = write_type(self.shape, axes, *states, self.mat.varying)
            return f"{weak}{self.dtype.name}{own}"
        order = self.layout.text if self.layout else ""
        held = f" {'committed to' if self.committed else 'on'} {self.sharding!r}"
        return f"{weak}{self.tensor_type}{order}{held if is_placed(self) else ''}"


class KeyAval(Aval):
    """The aval of random keys: the shape and sharding of the keys, not of the words in buffers.

    The core reads and awaits only arrays whose avals are of the base class.
    """

    __slots__ = ()

    @property
    def of_words(self) -> ArrayAval:
        """The aval of the buffers, which hold the keys' words."""
        shape, dtype = buffer_type(self.shape, self.dtype)
        held: Any = self.sharding
        if held is not None:
            held, _ = buffer_sharding(held, self.shape, self.dtype)
        found: ArrayAval = intern_aval(shape, dtype, held, self.committed)
        return found


if TYPE_CHECKING:

    class ArrayAval(Aval):
        """An aval with a sharding: of an array, or of a struct on devices."""

        sharding: Sharding
else:
    ArrayAval = Aval


if core is not None:
    core.set_aval_class(Aval)

_known: BoundedCache[tuple[object, ...], Any] = BoundedCache(65536, interned=True)
"""Avals by contents. Evicting one leads to new compilations, but never to wrong results."""


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
    """Returns the only `Aval` with these contents; ``layout`` None is the default.

    Only Python bools are weak booleans; arrays of booleans are never weak.
    """
    weak = weak and (dtype.char != "?" or sharding is None)
    key = (shape, dtype, sharding, committed, weak, layout)
    found: Aval | None = _known.get(key)
    return found if found is not None else _known.get_or_make(key, partial(_class(dtype), *key))


def _class(dtype: np.dtype[np.generic]) -> type[Aval]:
    return KeyAval if is_key_dtype(dtype) else Aval


@lru_cache(maxsize=65536)
def intern_host_aval(
    shape: tuple[int, ...], dtype: np.dtype[np.generic], weak: bool = False
) -> Aval:
    """Returns the only `Aval` of host values of this type. Each call of a program calls this.

    A weak aval without dimensions is a Python number: a float or complex number has the default
    dtype, which `parameter_types` widens if the program computes in 64 bits.
    """
    return intern_aval(shape, dtype, None, False, weak)


def sharding_type(aval: Aval) -> NamedSharding | None:
    """Returns the sharding in an argument's type; None without a mesh of Explicit axes."""
    sharding = aval.sharding
    if isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes:
        return explicit_part(sharding.mesh, sharding.spec, aval.ndim)
    return None


def is_of_keys(aval: Aval) -> TypeGuard[KeyAval]:
    """Whether it describes random keys."""
    return type(aval) is KeyAval


def is_placed(aval: Aval) -> TypeGuard[ArrayAval]:
    """Whether it has a sharding: host values and descriptions without one have none."""
    return aval.sharding is not None
