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
from plugrt.array_api.elementwise import arithmetic
from plugrt.array_api.methods import METHODS
from plugrt.array_api.missing_names import standard_name, written_instead
from plugrt.errors import ArgumentTypeError, Unimplemented
from plugrt.execution.array import Array
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
_ACCUMULATIONS = {"add": "cumulative_sum", "multiply": "cumulative_prod"}


def make_protocols(namespace: ModuleType) -> dict[str, Callable[..., Any]]:
    """Returns both protocols' methods, for arrays whose functions are in ``namespace``."""

    def __array_ufunc__(
        self: Any, ufunc: np.ufunc, method: str, /, *inputs: Any, **options: Any
    ) -> Any:
        name = _OPERATORS.get(ufunc)
        if name is not None and method == "__call__" and not options:
            first, second = inputs
            if type(first) in _OURS:
                return getattr(first, f"__{name}__")(_as_operand(second))
            return getattr(second, f"__r{name}__")(_as_operand(first))
        if not all(isinstance(x, _OPERANDS) for x in inputs):
            return NotImplemented
        title = f"numpy.{ufunc.__name__}"
        out = options.pop("out", None)
        if any(isinstance(x, _OURS) for x in out or ()):
            raise Unimplemented(f"{title} cannot write into out: arrays do not change")
        function, defaults = _of_ufunc(namespace, ufunc, method)
        _check_options(title, function, options)
        found = function(*map(_as_operand, inputs), **{**defaults, **options})
        return found if out is None else _fill(out, found)

    def __array_function__(
        self: Any,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        /,
    ) -> Any:
        if not all(issubclass(t, (*_OURS, np.ndarray)) for t in types):
            return NotImplemented
        if func.__name__ in _ON_HOST:
            return func(*map(_read, args), **{name: _read(x) for name, x in kwargs.items()})
        return _call(namespace, func, args, kwargs)

    return {"__array_ufunc__": __array_ufunc__, "__array_function__": __array_function__}


# --- ufuncs --------------------------------------------------------------------------------------


@cache
def _of_ufunc(
    namespace: ModuleType, ufunc: np.ufunc, method: str
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Returns the function that a method of a ufunc is, and the arguments that NumPy implies."""
    name = ufunc.__name__
    if method == "__call__":
        function = arithmetic.divmod if name == "divmod" else _find(namespace, name)
        return function or _refuse_name(f"numpy.{name}", name), {}
    if method == "outer" and (binary := _find(namespace, name)):
        return lambda a, b: binary(_with_axes(a, b), b), {}
    table = {"reduce": (_REDUCTIONS, {"axis": 0}), "accumulate": (_ACCUMULATIONS, {"axis": 0})}
    names, defaults = table.get(method, ({}, {}))
    if name not in names:
        _refuse_name(f"numpy.{name}.{method}", name)
    function = getattr(namespace, names[name])
    return function, dict(defaults)


def _with_axes(a: Any, b: Any) -> Any:
    """Returns ``a`` with an axis of size 1 for each axis of ``b``."""
    return a[(..., *[None] * np.ndim(b))]


def _check_options(name: str, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    if not options:
        return
    taken = _signature(function).parameters
    wrong = sorted(option for option in options if option not in taken)
    if wrong:
        raise ArgumentTypeError(
            f"{name} of an array of plugrt has no parameter {', '.join(wrong)}; it takes "
            f"{', '.join(taken)}"
        )


def _as_operand(x: Any) -> Any:
    return asarray(x) if isinstance(x, list | tuple) else x


def _fill(out: tuple[Any, ...], found: Any) -> Any:
    """Returns NumPy's own arrays ``out`` with the results in them: ``host += x``."""
    results = found if isinstance(found, tuple) else (found,)
    for target, result in zip(out, results, strict=True):
        np.copyto(target, np.asarray(result), casting="same_kind")
    return out if isinstance(found, tuple) else out[0]


# --- other functions -----------------------------------------------------------------------------


def _call(
    namespace: ModuleType, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Returns what the counterpart of ``func`` gives for NumPy's own arguments."""
    name = func.__name__
    owner = func.__module__.rpartition(".")[2]
    title = f"{func.__module__}.{name}"
    if owner == "numpy" and name in _WRITTEN_HERE:
        return _WRITTEN_HERE[name](namespace, *args, **kwargs)
    given = _bind(func, args, kwargs)
    if owner == "numpy" and name in _BY_METHOD:
        (_, x), *options = given.items()
        method = getattr(asarray(x), name)
        _check_options(title, method, dict(options))
        return method(**dict(options))
    function = _find(namespace, name, "" if owner == "numpy" else owner)
    return _call_by_name(title, function or _refuse_name(title, name), given)


def _bind(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
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


def _call_by_name(title: str, function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
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


def _find(namespace: ModuleType, name: str, extension: str = "") -> Callable[..., Any] | None:
    """Returns the function of a NumPy name, or of one in ``numpy.linalg`` or ``numpy.fft``."""
    owner: Any = getattr(namespace, extension, None) if extension else namespace
    known = name if extension else standard_name(name)
    return getattr(owner, known) if known in getattr(owner, "__all__", ()) else None


def _refuse_name(title: str, name: str) -> NoReturn:
    raise ArgumentTypeError(
        f"{title} has no counterpart in plugrt.array_api, and NumPy would compute it on a copy on "
        f"the host: write {title}(numpy.asarray(x)) for that{written_instead(name)}"
    )


def _read(x: Any) -> Any:
    """Returns arrays of ours, also in lists and tuples, as NumPy's."""
    if isinstance(x, list | tuple):
        return type(x)(map(_read, x))
    return np.asarray(x) if isinstance(x, _OURS) else x


def _clip(
    namespace: Any,
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    *,
    min: Any = None,
    max: Any = None,
) -> Any:
    lower, upper = (b if a is None else a for a, b in ((a_min, min), (a_max, max)))
    return namespace.clip(a, lower, upper)


def _where(namespace: Any, condition: Any, *choices: Any) -> Any:
    return namespace.where(condition, *choices) if choices else namespace.nonzero(condition)


def _of_matrices(name: str) -> Callable[..., Any]:
    def function(
        namespace: Any, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, **options: Any
    ) -> Any:
        matrices = namespace.moveaxis(asarray(a), (axis1, axis2), (-2, -1))
        return getattr(namespace.linalg, name)(matrices, offset=offset, **options)

    return function


def _size(_: Any, a: Any, axis: int | None = None) -> int:
    return int(np.prod(np.shape(a))) if axis is None else int(a.shape[axis])


_WRITTEN_HERE: dict[str, Callable[..., Any]] = {
    "clip": _clip,
    "copy": lambda _, a: asarray(a, copy=True),
    "diagonal": _of_matrices("diagonal"),
    "iscomplexobj": lambda _, x: x.dtype.kind == "c",
    "isrealobj": lambda _, x: x.dtype.kind != "c",
    "ndim": lambda _, a: a.ndim,
    "shape": lambda _, a: a.shape,
    "size": _size,
    "trace": _of_matrices("trace"),
    "where": _where,
}
"""Functions whose parameters the standard's lacks or calls otherwise."""
