"""NumPy's functions of plugrt's arrays: they run functions of the array API on their device.

NumPy calls two protocols (NEP 13 for ufuncs, NEP 18 for other functions): ``np.sin(x)`` runs
``array_api.sin``, eagerly or as a part of a trace. A function without a counterpart is refused,
since NumPy would silently copy the data to the host. Functions that can only run on the host, such
as ``np.save`` and ``np.allclose``, read the arrays. (JAX has neither protocol: there ``np.sin(x)``
is a NumPy array.)
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
from plugrt.array_api.missing_names import standard_name
from plugrt.array_api.numpy_options import drop_plain, fill, in_dtype, take_where
from plugrt.array_api.sets import put_like, require_concrete
from plugrt.errors import ArgumentTypeError
from plugrt.execution.arrays.array import Array
from plugrt.tracing.promotion import default_int, inexact
from plugrt.tracing.tracer import Tracer

_OURS = (Array, Tracer)
_OPERANDS = (*_OURS, np.ndarray, np.generic, bool, int, float, complex, list, tuple)
_BY_METHOD = frozenset(METHODS) & {
    "all", "any", "argmax", "argmin", "cumprod", "cumsum", "max", "mean", "min", "prod", "repeat",
    "round", "squeeze", "std", "sum", "take", "var",
}  # fmt: skip
"""Functions for which NumPy itself calls a method of the same name and parameters."""
_ON_HOST = frozenset({
    "allclose", "array2string", "array_equal", "array_equiv", "array_repr", "array_str", "copyto",
    "may_share_memory", "min_scalar_type", "save", "savetxt", "savez", "savez_compressed",
    "shares_memory",
})  # fmt: skip
"""Functions whose results are Python objects, files, or NumPy arrays passed by the caller."""
_BY_DATA = frozenset({
    "intersect1d", "real_if_close", "setdiff1d", "setxor1d", "trim_zeros", "union1d", "unique",
})  # fmt: skip
"""Functions whose results' shapes or dtypes depend on data: NumPy runs them on the host."""
_BY_SHAPE = frozenset({"common_type", "einsum_path"})
"""Functions of shapes and dtypes, whose results are Python objects."""
_IN_PARTS = frozenset({
    "array_split", "dsplit", "hsplit", "isneginf", "isposinf", "isreal", "polyadd", "polysub",
    "put_along_axis", "resize", "rollaxis", "vsplit",
})  # fmt: skip
"""Functions that NumPy implements with others, without copies to the host."""
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
"""Ufuncs of operators: NumPy's arrays and scalars call them for ``host + x``."""
_NOTHING = np.empty(0)
_ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}
_WRITTEN = {
    "numpy.add.at": "x.at[i].add(y)", "numpy.multiply.at": "x.at[i].multiply(y)",
    "numpy.maximum.accumulate": "lax.cummax(x)", "numpy.minimum.accumulate": "lax.cummin(x)",
    "numpy.linalg.eig": "numpy.linalg.eigh(x) of a symmetric x",
    "numpy.linalg.eigvals": "numpy.linalg.eigvalsh(x) of a symmetric x",
}  # fmt: skip
"""Replacements for names that are refused."""
_OF_FLOATS = frozenset({"fabs", "rint"})
"""Ufuncs that return floats for integers, too, unlike the standard's functions."""


def make_protocols(namespace: ModuleType) -> dict[str, Callable[..., Any]]:
    """Returns both protocols' methods, for arrays whose functions are in ``namespace``."""

    def __array_ufunc__(
        self: object, ufunc: np.ufunc, method: str, /, *inputs: object, **options: object
    ) -> object:
        name = _OPERATORS.get(ufunc)
        if name is not None and method == "__call__" and not options:
            first, second = inputs
            if type(first) in _OURS:
                return getattr(first, f"__{name}__")(_convert_operand(second))
            return getattr(second, f"__r{name}__")(_convert_operand(first))
        if not all(isinstance(x, _OPERANDS) for x in inputs):
            return NotImplemented
        title = _name_ufunc(ufunc)
        out = options.pop("out", None)
        function, defaults = _find_ufunc(namespace, ufunc, method)
        drop_plain(title, options)
        operands: list[object] = list(map(_convert_operand, inputs))
        where = None
        if method in ("__call__", "outer"):
            operands = in_dtype(title, operands, options)
            where = take_where(title, options, out)
        _check_options(title, function, options)
        found = function(*operands, **{**defaults, **options})
        return found if out is None else fill(title, out, found, where)

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
        owner, name = func.__module__.rpartition(".")[2], func.__name__
        title = f"{func.__module__}.{name}"
        if owner == "numpy" and name in _IN_PARTS:
            return np.ndarray.__array_function__(_NOTHING, func, (), args, kwargs)
        bound = _bind(func, args, kwargs)
        given = bound.arguments
        if owner == "numpy" and name in _ON_HOST and not isinstance(given.get("dst"), _OURS):
            return func(*map(_read, args), **{name: _read(x) for name, x in kwargs.items()})
        if owner == "numpy" and name in _BY_SHAPE:
            return func(*map(_stand_in, args), **kwargs)
        if owner == "numpy" and name in _BY_DATA:
            return _call_on_host(func, bound)
        out = given.pop("out", None)
        drop_plain(title, given)
        found = _call(namespace, func, title, bound)
        return found if out is None else fill(title, out, found)

    return {"__array_ufunc__": __array_ufunc__, "__array_function__": __array_function__}


@cache
def _find_ufunc(
    namespace: ModuleType, ufunc: np.ufunc, method: str
) -> tuple[Callable[..., object], dict[str, object]]:
    """Returns the function for a method of a ufunc, and the arguments that NumPy implies."""
    name = ufunc.__name__
    if method == "__call__":
        function = arithmetic.divmod if name == "divmod" else _find(namespace, name)
        if function is None:
            from plugrt.array_api.numpy_ufuncs import UFUNCS  # loads linalg

            function = UFUNCS.get(name)
        if name in _OF_FLOATS and function is not None:
            return lambda x: function(astype(x, inexact(x.dtype))), {}
        return function or _refuse_name(_name_ufunc(ufunc)), {}
    if method == "outer" and (binary := _find(namespace, name)):
        return lambda a, b: binary(_add_axes(a, b), b), {}
    known = {"reduce": _REDUCTIONS, "accumulate": _ACCUMULATIONS}.get(method, {}).get(name)
    return METHODS[known] if known else _refuse_name(f"{_name_ufunc(ufunc)}.{method}"), {"axis": 0}


def _name_ufunc(ufunc: np.ufunc) -> str:
    """Returns the name of a ufunc, with the module if that is NumPy's."""
    name = ufunc.__name__
    return f"numpy.{name}" if getattr(np, name, None) is ufunc else name


def _add_axes(a: Any, b: Any) -> object:
    """Returns ``a`` with an axis of size 1 for each axis of ``b``."""
    return a[(..., *[None] * np.ndim(b))]


def _check_options(
    name: str, function: Callable[..., object], options: Mapping[str, object]
) -> None:
    if not options:
        return
    taken = _signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in taken.values()):
        return
    wrong = sorted(option for option in options if option not in taken)
    if wrong:
        raise ArgumentTypeError(
            f"{name} of an array of plugrt has no parameter {', '.join(wrong)}; it takes "
            f"{', '.join(taken)}"
        )


def _convert_operand(x: object) -> object:
    return asarray(x) if isinstance(x, list | tuple) else x


def _call(
    namespace: ModuleType, func: Callable[..., object], title: str, bound: inspect.BoundArguments
) -> object:
    """Returns the result of the counterpart of ``func`` for NumPy's arguments."""
    name = func.__name__
    owner = func.__module__.rpartition(".")[2]
    from plugrt.array_api.numpy_counterparts import COUNTERPARTS  # loads linalg and fft

    if written := COUNTERPARTS.get(owner, {}).get(name):
        arrays = _name_arrays(written)
        for parameter in arrays & bound.arguments.keys():
            value: Any = bound.arguments[parameter]
            if isinstance(value, list | tuple):
                bound.arguments[parameter] = asarray(value)
        options = bound.kwargs
        _check_options(title, written, options)
        return written(*bound.args, **options)
    given: dict[str, Any] = _flatten_keywords(bound)
    if owner == "numpy" and name in _BY_METHOD:
        (_, x), *rest = given.items()
        method = getattr(asarray(x), name)
        _check_options(title, method, dict(rest))
        return method(**dict(rest))
    function = _find(namespace, name, "" if owner == "numpy" else owner)
    return _call_by_name(title, function or _refuse_name(title), given)


@cache
def _name_arrays(function: Callable[..., object]) -> frozenset[str]:
    """Returns the names of parameters that are arrays, not sequences of arrays."""
    return frozenset(
        p.name for p in _signature(function).parameters.values() if p.annotation == "Traced"
    )


def _call_on_host(func: Callable[..., object], bound: inspect.BoundArguments) -> object:
    """Calls NumPy's function on the host, and puts the result on the first plugrt array's
    device.
    """
    ours = [
        (name, require_concrete(func.__name__, x, "Its shape depends on values", name))
        for name, x in bound.arguments.items()
        if isinstance(x, _OURS)
    ]
    bound.arguments.update({name: np.asarray(x) for name, x in ours})
    found = func(*bound.args, **bound.kwargs)
    beside = ours[0][1]
    put = [
        put_like(beside, x if x.dtype == beside.dtype or x.dtype != np.intp else
                 x.astype(default_int()))
        for x in map(np.asarray, found if isinstance(found, tuple) else (found,))
    ]  # fmt: skip
    return tuple(put) if isinstance(found, tuple) else put[0]


def _bind(
    func: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> inspect.BoundArguments:
    """Returns the arguments by NumPy's names, without those that equal NumPy's defaults."""
    signature = _signature(func)
    bound = signature.bind(*args, **kwargs)
    for name, value in list(bound.arguments.items()):
        default = signature.parameters[name].default
        if value is default or (type(value) is type(default) and value == default):
            del bound.arguments[name]
    return bound


def _flatten_keywords(bound: inspect.BoundArguments) -> dict[str, object]:
    """Returns the arguments by name, with each of ``**kwargs`` under its name."""
    given = dict(bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            given.update(given.pop(name, {}))
    return given


_signature = cache(inspect.signature)


def _call_by_name(title: str, function: Callable[..., object], given: Mapping[str, Any]) -> object:
    """Calls a function with required arguments by position, and the rest by name.

    Required arguments may have another name in NumPy: ``tup`` of ``vstack``.
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


def _refuse_name(title: str) -> NoReturn:
    written = f"; on the device, for example, {_WRITTEN[title]}" if title in _WRITTEN else ""
    raise ArgumentTypeError(
        f"{title} has no counterpart in plugrt.array_api, and NumPy would compute it on a copy on "
        f"the host: write {title}(numpy.asarray(x)) for that{written}"
    )


def _read(x: object) -> object:
    """Converts plugrt arrays, also in lists and tuples, to NumPy arrays."""
    if isinstance(x, list | tuple):
        return type(x)(map(_read, x))
    return np.asarray(x) if isinstance(x, _OURS) else x


def _stand_in(x: object) -> object:
    """Returns a NumPy array of the same shape without own elements for a plugrt array."""
    known: Any = x
    return np.broadcast_to(np.empty((), known.dtype), known.shape) if isinstance(x, _OURS) else x
