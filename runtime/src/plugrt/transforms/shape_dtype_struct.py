"""`ShapeDtypeStruct`: abstract arguments for lowering, without data."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrt.errors import ArgumentError, NotAnArray, ShapeError
from plugrt.execution.arrays.arguments import read_arguments
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_types import has_protocol, is_registered
from plugrt.execution.arrays.aval import Aval, intern_aval, intern_host_aval
from plugrt.execution.arrays.host_data import check_dtype, narrow_dtype, python_scalar
from plugrt.execution.placement.default_device import default_device
from plugrt.execution.shardings.mesh import Mesh
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.frames.argument_errors import with_argument_errors


@dataclass(frozen=True, slots=True)
class ShapeDtypeStruct:
    """Stands in for an array where only its shape and dtype (and placement) matter.

    Raises `ArgumentTypeError` for what is no shape, or names no dtype.

    >>> x = plugrt.ShapeDtypeStruct((2, 3), "float32")
    >>> plugrt.jit(lambda x: x.sum(axis=0)).eval_shape(x).shape
    (3,)
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sharding: Sharding | None = None
    weak_type: bool = False
    """Whether the dtype yields to that of other arguments, as a Python number's does."""

    @with_argument_errors
    def __post_init__(self) -> None:
        if self.dtype is None:  # NumPy's word for float64
            raise ArgumentError("ShapeDtypeStruct takes a dtype; got None")
        object.__setattr__(self, "shape", tuple(int(n) for n in self.shape))
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


def describe_avals(leaves: Sequence[Any], name: Callable[[int], str]) -> list[Aval]:
    """Returns the avals of arguments, or of things with shape and dtype, of a call that is traced.

    Nothing is put on a device. ``name(i)`` is the i-th argument's; raises `NotAnArray` with it.
    """
    return [_describe_aval(leaf, name, i) for i, leaf in enumerate(leaves)]


def _read_aval(leaf: Any, name: Callable[[int], str], i: int) -> Aval:
    return read_arguments([leaf], lambda _: f"argument {name(i)}")[1][0]


def _describe_aval(leaf: Any, name: Callable[[int], str], i: int) -> Aval:
    if type(leaf) is Array:
        return leaf._signature
    if (
        isinstance(leaf, np.ndarray | np.generic)
        or python_scalar(leaf) is not None
        or is_registered(leaf)
    ):
        return _read_aval(leaf, name, i)
    try:
        shape = tuple(map(operator.index, leaf.shape))
        dtype = narrow_dtype(np.dtype(leaf.dtype))
    except (AttributeError, TypeError):  # also a module such as numpy, whose shape is a function
        if has_protocol(leaf):
            return _read_aval(leaf, name, i)
        raise NotAnArray(
            f"argument {name(i)} is {leaf!r:.60}; expected an array, or anything with shape and "
            "dtype such as plugrt.ShapeDtypeStruct"
        ) from None
    check_dtype(dtype, f"argument {name(i)}")
    sharding = getattr(leaf, "sharding", None)
    if isinstance(sharding, NamedSharding) and not isinstance(sharding.mesh, Mesh):
        sharding = None
    weak = getattr(leaf, "weak_type", False) is True
    if isinstance(sharding, Sharding):
        try:
            sharding.check_shape(shape)
            sharding.tiling(len(shape))  # refuses one that leaves dimensions to the compiler
        except ShapeError as error:
            raise ShapeError(f"argument {name(i)}: {error}") from None
        return intern_aval(shape, dtype, sharding, True, weak)
    if weak and shape:  # a weak host value is a number
        return intern_aval(shape, dtype, SingleDeviceSharding(default_device()), False, weak)
    return intern_host_aval(shape, dtype, weak and dtype.char != "?")
