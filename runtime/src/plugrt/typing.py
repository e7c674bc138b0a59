"""Types for annotations of functions with array parameters: `ArrayLike`, `DTypeLike`, `Shape`…

As ``jax.typing``: annotate arguments with `ArrayLike` and results with `plugrt.Array`. Nested lists
are not array-like: ``array_api.asarray`` makes an array of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from plugrt.execution.arrays.array import Array
from plugrt.execution.placement.put_target import Space
from plugrt.execution.shardings.format import Format
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.interface import Device

__all__ = [
    "ArrayLike", "ArraySource", "Axes", "Container", "DTypeLike", "DeviceLike",
    "HasShapeAndDtype", "KeyArray", "OutSharding", "PutTarget", "Shape", "Shardings",
    "SupportsArray", "SupportsDLPack",
]  # fmt: skip

ArrayLike: TypeAlias = (
    Array | np.ndarray[Any, np.dtype[Any]] | np.generic | bool | int | float | complex
)
"""One array, or a scalar that serves as one: plugrt's, NumPy's, Python's.

It states neither dtype nor rank, as in NumPy and JAX: type checkers accept ``xp.sort(3)``,
``xp.matmul(x, 2)`` and ``xp.bitwise_and(1.5, 2)``, which raise at run time.
"""

KeyArray: TypeAlias = Array | np.ndarray[Any, np.dtype[Any]]
"""A key, or an array of keys, of random bits: words in an array, never a scalar."""

DTypeLike: TypeAlias = npt.DTypeLike
"""A dtype or its name: ``array_api.float32``, ``np.float32``, ``"float32"``, ``float``."""

Shape: TypeAlias = int | Sequence[int]
"""The sizes of dimensions; an integer alone is one dimension."""

Axes: TypeAlias = int | Sequence[int] | None
"""One axis or several, negative ones counted from the last; None is all of them."""

DeviceLike: TypeAlias = Device | Sharding
"""The place of an array: a device, or a sharding over several."""

OutSharding: TypeAlias = NamedSharding | PartitionSpec | None
"""How a result is divided over Explicit axes of a mesh; None leaves it to the rules of types."""

PutTarget: TypeAlias = DeviceLike | Format | Space | PartitionSpec | None
"""A target to which one array can be put."""

Container: TypeAlias = list[Any] | tuple[Any, ...] | Mapping[Any, Any]
"""A pytree that is no leaf. Not any sequence: a text is a sequence of texts."""

_Placement: TypeAlias = Sharding | Format | PartitionSpec

Shardings: TypeAlias = (
    _Placement
    | Sequence[_Placement | list[Any] | tuple[Any, ...] | dict[Any, Any] | None]
    | Mapping[Any, Any]
    | None
)
"""A pytree of targets, which may be a prefix of the arrays' tree."""


class SupportsArray(Protocol):
    """An object that NumPy converts to an array."""

    def __array__(self) -> np.ndarray[Any, np.dtype[Any]]:
        """Returns it as an array of NumPy's."""


class SupportsDLPack(Protocol):
    """An object that shares its memory through DLPack: arrays of other libraries."""

    def __dlpack__(self) -> Any:
        """Returns a capsule."""

    def __dlpack_device__(self) -> Any:
        """Returns the type and the number of its device."""


class HasShapeAndDtype(Protocol):
    """The type of an array: `plugrt.ShapeDtypeStruct`, or an array itself."""

    @property
    def shape(self) -> Sequence[int]:
        """The sizes of the dimensions."""

    @property
    def dtype(self) -> Any:
        """The dtype, or its name."""


# In quotes, because array.array cannot be subscripted before Python 3.12.
_Memory: TypeAlias = "bytearray | memoryview | array[Any]"
ArraySource: TypeAlias = (
    "ArrayLike | list[Any] | tuple[Any, ...] | range | _Memory | SupportsArray | SupportsDLPack"
)
"""An argument of ``array_api.asarray``; lists and tuples may be nested."""


def __dir__() -> list[str]:
    # Without the modules that are imported here.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
