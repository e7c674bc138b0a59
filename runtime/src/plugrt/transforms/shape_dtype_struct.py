"""`ShapeDtypeStruct`: abstract arguments for lowering, without data; `typeof`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import ArgumentError, ArgumentTypeError, NotAnArray, ShapeError
from plugrt.execution.arrays.arguments import is_weak, read_arguments
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_types import has_protocol, is_registered
from plugrt.execution.arrays.aval import Aval, intern_aval, intern_host_aval, sharding_type
from plugrt.execution.arrays.host_data import check_dtype, narrow_dtype, python_scalar
from plugrt.execution.placement.chosen_shardings import is_chosen
from plugrt.execution.placement.put_target import read_format
from plugrt.execution.placement.specs_in_context import name_in_context
from plugrt.execution.shardings.format import Format
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.frames.argument_errors import require_flag, with_argument_errors
from plugrt.interface import Layout
from plugrt.native.known_dtypes import is_key_dtype
from plugrt.transforms.stated_places import read_place, stated_place


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ShapeDtypeStruct:
    """Describes an array by its shape and dtype (and placement), without data.

    ``sharding`` is a sharding, also over an `AbstractMesh`; a `plugrt.layout.Format`, which has a
    layout as well; or a `PartitionSpec`, over the mesh in the context. As ``jax.ShapeDtypeStruct``.

    Raises `ArgumentTypeError` for an object that is no shape, dtype or sharding, and `ShapeError`
    for a sharding of more dimensions than the shape has.

    >>> x = plugrt.ShapeDtypeStruct((2, 3), "float32")
    >>> plugrt.jit(lambda x: x.sum(axis=0)).eval_shape(x).shape
    (3,)
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sharding: Sharding | None
    weak_type: bool
    """Whether the dtype yields to the other arguments' dtype, as a Python number's does."""
    _layout: Layout | None

    @with_argument_errors
    def __init__(
        self,
        shape: Sequence[int],
        dtype: npt.DTypeLike,
        sharding: Sharding | Format | PartitionSpec | None = None,
        weak_type: bool = False,
    ) -> None:
        if dtype is None:  # NumPy's word for float64
            raise ArgumentError("ShapeDtypeStruct takes a dtype; got None")
        read = tuple(operator.index(n) for n in shape)
        named = name_in_context(sharding, "ShapeDtypeStruct")
        place, layout = read_place(named, "ShapeDtypeStruct")
        if place is not None:
            place.check_rank(len(read))
        require_flag("ShapeDtypeStruct", "weak_type", weak_type)
        for name, value in (
            ("shape", read),
            ("dtype", dtype if is_key_dtype(dtype) else np.dtype(dtype)),
            ("sharding", place),
            ("weak_type", bool(weak_type)),
            ("_layout", layout),
        ):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        stated = {"sharding": self.sharding, "weak_type": self.weak_type, "layout": self._layout}
        shown = "".join(f", {name}={value!r}" for name, value in stated.items() if value)
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{shown})"

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentTypeError("len() of a ShapeDtypeStruct without dimensions")
        return self.shape[0]

    @classmethod
    def like(cls, x: object) -> ShapeDtypeStruct:
        """Returns the struct of an array, a host value, or another struct.

        It states sharding and layout where ``x`` is committed, or a struct. Raises `NotAnArray`
        for an object without shape and dtype. As ``jax.ShapeDtypeStruct.like``.

        >>> plugrt.ShapeDtypeStruct.like(2.5)
        ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
        """
        [aval] = describe_avals([x], lambda _: "x of ShapeDtypeStruct.like")
        if not aval.committed:
            aval = intern_host_aval(aval.shape, aval.dtype, aval.weak)
        return struct_of(aval)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """Returns the struct with other values of the constructor's parameters.

        Raises `ArgumentError` for a sharding without a layout in place of one with a layout, which
        a `Format` states anew, and `ArgumentTypeError` for other names. As
        ``jax.ShapeDtypeStruct.update``, which ignores other names.

        >>> plugrt.ShapeDtypeStruct((2, 3), "float32").update(shape=(6,)).shape
        (6,)
        """
        if self._layout is not None and isinstance(changes.get("sharding"), Sharding):
            raise ArgumentError(
                f"ShapeDtypeStruct.update: the struct has the layout {self._layout}, and "
                f"sharding={changes['sharding']!r} has none. Give a Format, with None for the "
                "default layout"
            )
        place = self.sharding if self._layout is None else self.format
        same = {
            "shape": self.shape, "dtype": self.dtype, "sharding": place,
            "weak_type": self.weak_type,
        }  # fmt: skip
        return ShapeDtypeStruct(**{**same, **changes})

    @property
    def format(self) -> Format:
        """The layout, None for the default one, with the sharding."""
        return Format(self._layout, self.sharding)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


@with_argument_errors
def typeof(x: object) -> Aval:
    """Returns the type that a function is traced for: shape, dtype and weak type.

    ``x`` is an array, a traced array, host data, a number, or a struct. Equal types are the same
    object; they contain no sharding, except over Explicit axes. As ``jax.typeof``. Raises
    `NotAnArray` for another object.

    >>> plugrt.typeof(1.5).weak_type, plugrt.typeof(np.ones((2, 3), np.int8)).shape
    (True, (2, 3))
    """
    if isinstance(x, Array) and type(x) is not Array:  # it is traced
        return x.aval
    [aval] = describe_avals([x], lambda _: "x of typeof")
    if (sharding := sharding_type(aval)) is not None:
        return intern_aval(aval.shape, aval.dtype, sharding, False, aval.weak)
    return intern_host_aval(aval.shape, aval.dtype, aval.weak)


def struct_of(aval: Aval) -> ShapeDtypeStruct:
    """Returns an argument or a result as a struct, with sharding and layout if they are known."""
    sharding = aval.sharding
    if sharding is None or is_chosen(sharding):
        return ShapeDtypeStruct(aval.shape, aval.dtype, None, aval.weak_type)
    place = Format(aval.layout, sharding)
    return ShapeDtypeStruct(aval.shape, aval.dtype, place, aval.weak_type)


def describe_avals(leaves: Sequence[object], name: Callable[[int], str]) -> list[Aval]:
    """Returns the avals of a traced call's arguments, which may be objects with shape and dtype.

    Puts nothing on a device. Raises `NotAnArray` with ``name(i)``, the name of the i-th argument.
    """
    return [_describe_aval(leaf, name, i) for i, leaf in enumerate(leaves)]


def _read_aval(leaf: object, name: Callable[[int], str], i: int) -> Aval:
    return read_arguments([leaf], lambda _: f"argument {name(i)}")[1][0]


def _describe_aval(leaf: Any, name: Callable[[int], str], i: int) -> Aval:
    if type(leaf) is Array:
        return leaf._aval
    if (
        isinstance(leaf, np.ndarray | np.generic)
        or python_scalar(leaf) is not None
        or is_registered(leaf)
    ):
        return _read_aval(leaf, name, i)
    try:
        shape = tuple(map(operator.index, leaf.shape))
        dtype = leaf.dtype
        if not is_key_dtype(dtype):
            dtype = narrow_dtype(np.dtype(dtype))
    except (AttributeError, TypeError):  # also a module such as numpy, whose shape is a function
        if has_protocol(leaf):
            return _read_aval(leaf, name, i)
        raise NotAnArray(
            f"argument {name(i)} is {leaf!r:.60}; expected an array, or anything with shape and "
            "dtype such as plugrt.ShapeDtypeStruct"
        ) from None
    what = f"argument {name(i)}"
    if any(size < 0 for size in shape):
        raise ShapeError(f"{what} has the shape {shape}, of which a dimension is negative")
    check_dtype(dtype, what)
    weak = is_weak(leaf, dtype)
    if has_protocol(leaf):  # another library's array: a call reads it to the host
        return intern_host_aval(shape, dtype, weak)
    sharding, layout = read_place(stated_place(leaf), what)
    if sharding is None:
        return intern_host_aval(shape, dtype, weak)
    try:
        sharding.check_shape(shape)
        sharding.tiling(len(shape))  # raises if it leaves dimensions to the compiler
    except ShapeError as error:
        raise ShapeError(f"{what}: {error}") from None
    _, layout = read_format(Format(layout, sharding), shape, dtype, what)
    return intern_aval(shape, dtype, sharding, True, weak, layout)
