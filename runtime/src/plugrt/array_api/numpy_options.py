"""Keywords that NumPy's functions share: ``out``, ``dtype``, ``where``.

Arrays of plugrt have no strides and no subclasses, so ``order`` and ``subok`` have no effect where
they concern memory.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from plugrt.array_api.data_types import astype, result_type
from plugrt.array_api.dtypes import as_dtype
from plugrt.array_api.manipulation import broadcast_arrays
from plugrt.array_api.searching import where as choose
from plugrt.errors import ArgumentError, ArgumentTypeError, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import inexact
from plugrt.tracing.tracer import Tracer

Traced: TypeAlias = Any
"""An array that a `counterpart` gets as a tracer; a list becomes one array."""

_SORTS = ("quicksort", "heapsort", "mergesort", "stable")
_CASTINGS = ("no", "equiv", "safe", "same_kind", "same_value", "unsafe")
_PLAIN: dict[str, tuple[object, ...]] = {
    "casting": _CASTINGS, "kind": (*_SORTS, None), "order": ("C", "F", "A", "K", None),
    "overwrite_input": (False, True), "subok": (False, True),
}  # fmt: skip
"""Keywords without effect on results in plugrt, with the values that NumPy accepts.

Sorting is always stable. ``casting`` is checked if there is a ``dtype`` (`in_dtype`).
"""
_MEANT = {
    ("reshape", "order"), ("ravel", "order"), ("sort", "order"), ("argsort", "order"),
    ("partition", "order"), ("argpartition", "order"), ("partition", "kind"),
    ("argpartition", "kind"), ("copyto", "casting"), ("isin", "kind"),
    ("ravel_multi_index", "order"), ("unravel_index", "order"),
}  # fmt: skip
"""Pairs of a function and a keyword that does have an effect."""


def counterpart(body: Callable[..., Any], title: str = "") -> Callable[..., Any]:
    """Decorator: makes an `operation` of a function that has a NumPy function's parameters.

    The parameters whose annotations have `Traced` are arrays, the others are static.
    """
    parameters = inspect.signature(body).parameters.values()
    static = [p.name for p in parameters if "Traced" not in str(p.annotation)]
    return operation(static=static, weak_by="none", title=title)(body)


def as_floats(*arrays: Any) -> list[Any]:
    """Returns arrays in their common floating dtype."""
    dtype = inexact(result_type(*arrays))
    return [astype(x, dtype) for x in arrays]


def promote(*arrays: Any) -> list[Any]:
    """Returns arrays in their common dtype and shape."""
    dtype = result_type(*arrays)
    return list(broadcast_arrays(*(astype(x, dtype) for x in arrays)))


def is_known(x: object) -> bool:
    """Whether an array has values to check; a tracer has none."""
    return not isinstance(x, Tracer)


def drop_plain(title: str, options: dict[str, object]) -> None:
    """Removes keywords without effect; raises `ArgumentError` for values that NumPy lacks."""
    function = title.rpartition(".")[2]
    for name, values in _PLAIN.items():
        if name not in options or (function, name) in _MEANT:
            continue
        if options[name] not in values:
            taken = ", ".join(repr(value) for value in values)
            raise ArgumentError(f"{name} of {title} is {options[name]!r}; it takes {taken}")
        if name != "casting" or "dtype" not in options:
            del options[name]


def in_dtype(title: str, operands: Sequence[object], options: dict[str, Any]) -> list[Any]:
    """Returns the operands of a ufunc in its ``dtype``, which it removes from the options.

    Raises `ArgumentTypeError` if ``casting``, by default "same_kind", does not allow that.
    """
    dtype, casting = options.pop("dtype", None), options.pop("casting", "same_kind")
    if dtype is None:
        return list(operands)
    wanted = as_dtype(dtype)
    found: list[object] = []
    for operand in operands:
        x: Any = operand if isinstance(operand, Array | Tracer) else np.asarray(operand)
        if not np.can_cast(x.dtype, wanted, casting):
            raise ArgumentTypeError(
                f"{title} with dtype {wanted.name} converts {x.dtype.name} to it, which casting "
                f"{casting!r} does not admit; pass casting='unsafe', or convert with x.astype"
            )
        found.append(x.astype(wanted))
    return found


def take_where(title: str, options: dict[str, Any], out: object) -> object:
    """Removes ``where`` from the options of a ufunc and returns it; None for everywhere.

    Raises `ArgumentTypeError` without an ``out`` that keeps the other elements.
    """
    where = options.pop("where", None)
    if where is None or where is True:
        return None
    if out is None:
        raise ArgumentTypeError(
            f"{title} with where leaves the other elements as they are in out, and there is none: "
            f"write numpy.where(condition, {title}(x), other)"
        )
    return np.asarray(where)


def fill(title: str, out: object, found: object, where: object = None) -> Any:
    """Writes results to the arrays ``out`` and returns these, as for ``host += x``.

    Assigns to arrays of plugrt.
    """
    targets = out if isinstance(out, tuple) else (out,)
    results = found if isinstance(found, tuple) else (found,)
    mask = True if where is None else where
    for target, result in zip(targets, results, strict=True):
        if isinstance(target, Array | Tracer):
            _assign(title, target, result, mask)
        elif target is not None:
            np.copyto(target, np.asarray(result), casting="same_kind", where=mask)
    return out if isinstance(found, tuple) else targets[0]


def _assign(title: str, target: Any, result: Any, mask: Any) -> None:
    if target.shape != result.shape:
        raise ShapeError(f"out of {title} has shape {target.shape}; the result has {result.shape}")
    if not np.can_cast(result.dtype, target.dtype, "same_kind"):
        raise ArgumentTypeError(
            f"{title} has a result of {result.dtype.name}, which out of {target.dtype.name} does "
            "not hold; convert it with astype"
        )
    target[...] = result if mask is True else choose(mask, result, target)
