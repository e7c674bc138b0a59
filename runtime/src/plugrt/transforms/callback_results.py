"""`ResultTypes`: what a Python function that a program calls must return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import ArgumentTypeError, DtypeError, NotAnArray, ShapeError, StructureError
from plugrt.execution.arrays.host_data import check_dtype, narrow_dtype
from plugrt.execution.trees import tree
from plugrt.interface import TensorType
from plugrt.settings.declarations import config

_NARROWED = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
_MOST = 60


class ResultTypes:
    """The types that a call of a Python function promises, as a pytree, and their check.

    ``promised`` is the caller's pytree of things with shape and dtype. Raises `ArgumentTypeError`
    for a leaf without them, `UnsupportedDtype` for a dtype that no device has, and `DtypeError` for
    one of 64 bits where ``enable_x64`` is False.
    """

    def __init__(self, title: str, promised: Any) -> None:
        named = tree.flatten_with_paths(promised)
        self.spec = tree.flatten(promised)[1]
        self._paths = [path for path, _ in named]
        self.types = [read_result_type(f"result_shape_dtypes{p} of {title}", x) for p, x in named]

    def blank(self) -> list[npt.NDArray[Any]]:
        """Returns arrays of zeros of the promised types."""
        return [np.zeros(promised.shape, promised.dtype) for promised in self.types]

    def check(self, returned: Any) -> list[npt.NDArray[Any]]:
        """Returns the leaves of what the function returned, row-major and of the promised types.

        Number, shapes and dtypes are compared; the structure is the promised one, as in JAX.
        Numbers of 64 bits pass for those of 32, Python's among them, unless ``enable_x64`` is on.
        """
        leaves = tree.leaves(returned)
        if len(leaves) != len(self.types):
            raise StructureError(
                f"it returned {len(leaves)} arrays, {returned!r:.{_MOST}}; result_shape_dtypes "
                f"promises {len(self.types)}: {_list_types(self.types)}"
            )
        return [
            _check_leaf(f"the result{path}", leaf, wanted)
            for path, leaf, wanted in zip(self._paths, leaves, self.types, strict=True)
        ]


def read_result_type(name: str, leaf: Any) -> TensorType:
    """Returns the type that a thing with shape and dtype promises; raises as `ResultTypes` does."""
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype") or isinstance(leaf, type):
        raise ArgumentTypeError(
            f"{name} must have a shape and a dtype, as plugrt.ShapeDtypeStruct has; got "
            f"{leaf!r:.{_MOST}} of type {type(leaf).__qualname__}"
        )
    dtype = np.dtype(leaf.dtype)
    check_dtype(dtype, name)
    if narrow_dtype(dtype) != dtype:
        raise DtypeError(
            f"{name} has the dtype {dtype.name}, and numbers of 64 bits are turned off "
            "(enable_x64 is False)"
        )
    return TensorType(tuple(int(n) for n in leaf.shape), dtype)


def _check_leaf(name: str, leaf: Any, wanted: TensorType) -> npt.NDArray[Any]:
    found = np.asarray(leaf)
    if found.dtype.kind in "OSUMm":
        raise NotAnArray(
            f"{name} is {leaf!r:.{_MOST}} of type {type(leaf).__qualname__}; {wanted} was promised"
        )
    if found.shape != wanted.shape:
        raise ShapeError(f"{name} has the shape {found.shape}; {wanted} was promised")
    if found.dtype != wanted.dtype:
        narrowed = _NARROWED.get(found.dtype.name) == wanted.dtype.name
        if not narrowed or config.enable_x64:
            raise DtypeError(f"{name} has the dtype {found.dtype.name}; {wanted} was promised")
    return np.ascontiguousarray(found, wanted.dtype).reshape(wanted.shape)


def _list_types(types: Sequence[TensorType]) -> str:
    return ", ".join(map(str, types)) or "none"
