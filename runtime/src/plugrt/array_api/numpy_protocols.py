"""What NumPy's own functions do with arrays: they run the array API's, on the arrays' device.

NumPy hands its functions over by two protocols (NEP 13 for ufuncs, NEP 18 for the others):
``np.sin(x)`` runs ``array_api.sin``, eagerly or as a part of a trace. A function that has no
counterpart is refused, since NumPy would copy the data to the host without a word. What can only
mean the host, such as ``np.save`` and ``np.allclose``, reads the arrays. (JAX has neither protocol:
there ``np.sin(x)`` is a NumPy array.)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from plugrt.array_api.array_conversion import asarray
from plugrt.array_api.data_types import astype
from plugrt.array_api.elementwise import arithmetic
from plugrt.array_api.methods import METHODS
from plugrt.array_api.missing_names import standard_name, written_instead
from plugrt.array_api.numpy_options import drop_plain, fill, in_dtype, take_where
from plugrt.errors import ArgumentTypeError, Unimplemented
from plugrt.execution.arrays.array import Array
from plugrt.tracing.promotion import inexact
from plugrt.tracing.tracer import Tracer

_OURS = (Array, Tracer)
_OPERANDS = (*_OURS, np.ndarray, np.generic, bool, int, float, complex, list, tuple)
_BY_METHOD = frozenset(METHODS) & {
    "all", "any", "argmax", "argmin", "cumprod", "cumsum", "max", "mean", "min", "prod", "repeat",
    "round", "squeeze", "std", "sum", "take", "var",
}  # fmt: skip
"""Functions that NumPy itself answers by a method of the same name and parameters."""
_ON_HOST = frozenset({
    "allclose", "array2string", "array_equal", "array_equiv", "array_repr", "array_str", "copyto",
    "may_share_memory", "save", "savetxt", "savez", "savez_compressed", "shares_memory",
})  # fmt: skip
"""Functions whose results are Python's, files or NumPy arrays that were passed to be filled."""
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
    "logical_or": "any",
}  # fmt: skip
_OPERATORS = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "truediv",
    np.floor_divide: "floordiv", np.remainder: "mod", np.power: "pow", np.matmul: "matmul",
    np.bitwise_and: "and", np.bitwise_or: "or", np.bitwise_xor: "xor",
    np.left_shift: "lshift", np.right_shift: "rshift",
}  # fmt: skip
"""Ufuncs that are operators: NumPy's arrays and scalars call them for ``host + x``."""
_ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}
_OF_FLOATS = frozenset({"fabs", "rint"})
"""Ufuncs that give floats for integers too, where the standard's functions give integers."""


def make_protocols(namespace: ModuleType) -> dict[str, Callable[..., Any]]:
    """Returns both protocols' methods, for arrays whose functions are in ``namespace``."""

    def __array_ufunc__(
        self: object, ufunc: np.ufunc, method: str, /, *inputs: object, **options: object
    ) -> Any:
        name = _OPERATORS.get(ufunc)
        if name is not None and method == "__call__" and not options:
            first, second = inputs
            if type(first) in _OURS:
                return getattr(first, f"__{name}__")(_convert_operand(second))
            return getattr(second, f"__r{name}__")(_convert_operand(first))
        if not all(isinstance(x, _OPERANDS) for x in inputs):
            return NotImplemented
        title = f"numpy.{ufunc.__name__}"
        out = options.pop("out", None)
        _refuse_ours(title, out)
        function, defaults = _find_ufunc(namespace, ufunc, method)
        drop_plain(title, options)
        operands: list[object] = list(map(_convert_operand, inputs))
        where = None
        if method in ("__call__", "outer"):
            operands = in_dtype(title, operands, options)
            where = take_where(title, options, out)
        _check_options(title, function, options)
        found = function(*operands, **{**defaults, **options})
        return found if out is None else fill(out, found, where)

    def __array_function__(
        self: object,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object],
        kwargs: Mapping[str, object],
        /,
    ) -> Any:
        if not all(issubclass(t, (*_OURS, np.ndarray)) for t in types):
            return NotImplemented
        if func.__name__ in _ON_HOST:
            return func(*map(_read, args), **{name: _read(x) for name, x in kwargs.items()})
        title = f"{func.__module__}.{func.__name__}"
        given = _bind(func, args, kwargs)
        out = given.pop("out", None)
        _refuse_ours(title, out)
        drop_plain(title, given)
        found = _call(namespace, func, title, given)
        return found if out is None else fill(out, found)

    return {"__array_ufunc__": __array_ufunc__, "__array_function__": __array_function__}


# --- ufuncs --------------------------------------------------------------------------------------


@cache
def _find_ufunc(
    namespace: ModuleType, ufunc: np.ufunc, method: str
) -> tuple[Callable[..., object], dict[str, object]]:
    """Returns the function that a method of a ufunc is, and the arguments that NumPy implies."""
    name = ufunc.__name__
    if method == "__call__":
        function = arithmetic.divmod if name == "divmod" else _find(namespace, name)
        if name in _OF_FLOATS and function is not None:
            return lambda x: function(astype(x, inexact(x.dtype))), {}
        return function or _refuse_name(f"numpy.{name}", name), {}
    if method == "outer" and (binary := _find(namespace, name)):
        return lambda a, b: binary(_add_axes(a, b), b), {}
    known = {"reduce": _REDUCTIONS, "accumulate": _ACCUMULATIONS}.get(method, {}).get(name)
    return METHODS[known] if known else _refuse_name(f"numpy.{name}.{method}", name), {"axis": 0}


def _add_axes(a: Any, b: Any) -> object:
    """Returns ``a`` with an axis of size 1 for each axis of ``b``."""
    return a[(..., *[None] * np.ndim(b))]


def _check_options(
    name: str, function: Callable[..., object], options: Mapping[str, object]
) -> None:
    if not options:
        return
    taken = _signature(function).parameters
    wrong = sorted(option for option in options if option not in taken)
    if wrong:
        raise ArgumentTypeError(
            f"{name} of an array of plugrt has no parameter {', '.join(wrong)}; it takes "
            f"{', '.join(taken)}"
        )


def _convert_operand(x: object) -> object:
    return asarray(x) if isinstance(x, list | tuple) else x


def _refuse_ours(title: str, out: object) -> None:
    for x in out if isinstance(out, tuple) else (out,):
        if isinstance(x, _OURS):
            raise Unimplemented(
                f"{title} cannot write into out: arrays do not change; use what it returns"
            )


# --- other functions -----------------------------------------------------------------------------


def _call(
    namespace: ModuleType, func: Callable[..., object], title: str, given: Mapping[str, Any]
) -> object:
    """Returns what the counterpart of ``func`` gives for NumPy's own arguments."""
    name = func.__name__
    owner = func.__module__.rpartition(".")[2]
    from plugrt.array_api.numpy_counterparts import COUNTERPARTS  # which loads linalg and fft

    if written := COUNTERPARTS.get(owner, {}).get(name):
        first, *options = given.items()
        _check_options(title, written, dict(options))
        return written(first[1], **dict(options))
    if owner == "numpy" and name in _BY_METHOD:
        (_, x), *options = given.items()
        method = getattr(asarray(x), name)
        _check_options(title, method, dict(options))
        return method(**dict(options))
    function = _find(namespace, name, "" if owner == "numpy" else owner)
    return _call_by_name(title, function or _refuse_name(title, name), given)


def _bind(
    func: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> dict[str, object]:
    """Returns the arguments by NumPy's names, without those that are NumPy's defaults."""
    signature = _signature(func)
    bound = signature.bind(*args, **kwargs).arguments
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            bound.update(bound.pop(name, {}))
    return {
        name: value
        for name, value in bound.items()
        if name not in signature.parameters
        or (
            value is not (default := signature.parameters[name].default)
            and not (type(value) is type(default) and value == default)
        )
    }


_signature = cache(inspect.signature)


def _call_by_name(title: str, function: Callable[..., object], given: Mapping[str, Any]) -> object:
    """Calls a function with what it must have by position, and the rest by name.

    What it must have may have another name in NumPy: ``tup`` of ``vstack``.
    """
    parameters = _signature(function).parameters.values()
    count = sum(
        p.kind is p.POSITIONAL_ONLY or (p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty)
        for p in parameters
    )
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    values = list(given.values())
    if variadic:
        return function(*values[0], **dict(list(given.items())[1:]))
    options = dict(list(given.items())[count:])
    _check_options(title, function, options)
    return function(*values[:count], **options)


def _find(namespace: ModuleType, name: str, extension: str = "") -> Callable[..., object] | None:
    """Returns the function of a NumPy name, or of one in ``numpy.linalg`` or ``numpy.fft``."""
    owner: object = getattr(namespace, extension, None) if extension else namespace
    known = name if extension else standard_name(name)
    return getattr(owner, known) if known in getattr(owner, "__all__", ()) else None


def _refuse_name(title: str, name: str) -> NoReturn:
    raise ArgumentTypeError(
        f"{title} has no counterpart in plugrt.array_api, and NumPy would compute it on a copy on "
        f"the host: write {title}(numpy.asarray(x)) for that{written_instead(name)}"
    )


def _read(x: object) -> object:
    """Returns arrays of ours, also in lists and tuples, as NumPy's."""
    if isinstance(x, list | tuple):
        return type(x)(map(_read, x))
    return np.asarray(x) if isinstance(x, _OURS) else x
