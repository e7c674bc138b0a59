"""The operators and methods of `Array` and of traced arrays, from one table.

``a += b`` binds ``a`` to a new array: arrays do not change. Python scalars do not widen dtypes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, MethodType, ModuleType
from typing import Any

import numpy as np

from plugrt.array_api import matrix_products
from plugrt.array_api.elementwise import arithmetic, bitwise, comparison, power
from plugrt.array_api.methods import METHODS, PROPERTIES
from plugrt.array_api.numpy_protocols import make_protocols
from plugrt.errors import ArgumentError, NotAnArray
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_methods import install
from plugrt.execution.arrays.array_types import is_registered
from plugrt.execution.arrays.sharers import trace_state
from plugrt.execution.transfers.host_values import scalar_operand
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.frames.traceback_filter import filter_traceback, with_user_frames
from plugrt.settings.declarations import config
from plugrt.tracing.operation import Operation
from plugrt.tracing.tracer import Tracer

BINARY: dict[str, Operation[Any, Any]] = {
    "add": arithmetic.add,
    "sub": arithmetic.subtract,
    "mul": arithmetic.multiply,
    "truediv": arithmetic.divide,
    "floordiv": arithmetic.floor_divide,
    "mod": arithmetic.remainder,
    "divmod": arithmetic.divmod,
    "pow": power.power,
    "matmul": matrix_products.matmul,
    "and": bitwise.bitwise_and,
    "or": bitwise.bitwise_or,
    "xor": bitwise.bitwise_xor,
    "lshift": bitwise.bitwise_left_shift,
    "rshift": bitwise.bitwise_right_shift,
}
"""The operators with a reflected form, and their functions."""

COMPARISONS: dict[str, Operation[Any, Any]] = {
    "eq": comparison.equal,
    "ne": comparison.not_equal,
    "lt": comparison.less,
    "le": comparison.less_equal,
    "gt": comparison.greater,
    "ge": comparison.greater_equal,
}
UNARY: dict[str, Operation[Any, Any]] = {
    "neg": arithmetic.negative,
    "pos": arithmetic.positive,
    "abs": arithmetic.abs,
    "invert": bitwise.bitwise_invert,
}

_OPERANDS = (Tracer, Array, np.ndarray, np.generic, bool, int, float, complex)
_PLAIN = (int, float, bool)
_CONTAINERS = (list, tuple)


def _binary(function: Operation[Any, Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    computes = function not in COMPARISONS.values()

    def forward(self: Any, other: Any, /) -> Any:
        try:
            return (
                function(self, other) if type(other) is Array else apply_mixed(self, other, False)
            )
        except Exception as error:  # raised again without plugrt's frames
            filter_traceback(error)
            raise

    def reflected(self: object, other: object, /) -> Any:
        try:
            return apply_mixed(self, other, True)
        except Exception as error:  # raised again without plugrt's frames
            filter_traceback(error)
            raise

    def apply_mixed(self: Any, other: Any, swap: bool) -> Any:
        plain = type(other) in _PLAIN and (other or type(other) is not float)  # -0.0 is not 0.0
        known = plain or isinstance(other, np.generic)
        if known and trace_state.trace is None and type(self) is Array:
            scalar = scalar_operand(other, self)
            return function(scalar, self) if swap else function(self, scalar)
        if not known and not isinstance(other, _OPERANDS) and not is_registered(other):
            if computes and type(other) in _CONTAINERS:
                raise _make_operand_error(function, other)
            return NotImplemented
        return function(other, self) if swap else function(self, other)

    return forward, reflected


def _make_operand_error(
    function: Operation[Any, Any], other: list[Any] | tuple[object, ...]
) -> NotAnArray:
    # Python would otherwise repeat the list, with the array as the number of repetitions.
    return NotAnArray(
        f"an operand of {function._title} is the {type(other).__name__} {other!r:.60}; make an "
        "array of it, array_api.asarray(...)"
    )


def _unary(function: Operation[Any, Any]) -> Callable[..., Any]:
    def method(self: Any, /) -> Any:
        try:
            return function(self)
        except Exception as error:  # raised again without plugrt's frames
            filter_traceback(error)
            raise

    return method


def _get_namespace(namespace: ModuleType, version: str) -> property:
    """Returns ``__array_namespace__``, which returns ``namespace``; ``version`` is the standard's.

    array-api-compat's ``is_writeable_array`` only looks for this attribute in an unknown class.
    With ``read_only_arrays`` that function, in any copy of the library, does not find it, and so
    returns False.
    """
    known = ("2021.12", "2022.12", "2023.12", version)

    def __array_namespace__(self: object, *, api_version: str | None = None) -> ModuleType:
        stated = api_version is None or (isinstance(api_version, str) and api_version in known)
        if not stated:
            raise ArgumentError(
                f"version {api_version!r} of the array API standard was requested; "
                f"plugrt.array_api implements {version} and what it includes"
            )
        return namespace

    def find(self: object) -> Callable[..., ModuleType]:
        # Workaround for array-api-845.
        if config.read_only_arrays:
            caller: FrameType | None = sys._getframe(1)
            while caller and caller.f_code.co_name == "first_use":  # the stub before `install`
                caller = caller.f_back
            if caller and caller.f_code.co_name == "is_writeable_array":
                raise AttributeError("arrays are read-only (config.read_only_arrays)")
        return MethodType(__array_namespace__, self)

    return property(find)


def _make_powers(forward: Any, reflected: Any) -> tuple[Any, Any]:
    """Returns both forms of ``**``, which checks its operands first."""

    @with_user_frames
    def compute_power(self: Any, other: Any, /) -> Any:
        power.check_exponent(self, other)
        if power.is_known_exponent(self, other):
            return power.known_power(self, exponent=other)
        return forward(self, other)

    @with_user_frames
    def compute_reflected_power(self: Any, other: Any, /) -> Any:
        power.check_exponent(other, self)
        return reflected(self, other)

    return compute_power, compute_reflected_power


def _table() -> dict[str, Any]:
    """Returns the operators, methods and properties of arrays by their names in the class."""
    result: dict[str, Any] = {}
    for name, function in BINARY.items():
        result[f"__{name}__"], result[f"__r{name}__"] = _binary(function)
    pair = result["__pow__"], result["__rpow__"]
    result["__pow__"], result["__rpow__"] = _make_powers(*pair)
    for name, function in COMPARISONS.items():
        result[f"__{name}__"], _ = _binary(function)
    for name, function in UNARY.items():
        result[f"__{name}__"] = _unary(function)
    result.update({name: property(function) for name, function in PROPERTIES.items()})
    result.update(METHODS)
    for name in METHODS.keys() - {"__getitem__"}:  # __getitem__ checks its key itself
        result[name] = with_argument_errors(METHODS[name])
    return result


def _install(namespace: ModuleType) -> None:
    """Installs operators and methods in arrays, and ``namespace`` as their namespace."""
    protocols = {name: with_user_frames(f) for name, f in make_protocols(namespace).items()}
    get = _get_namespace(namespace, namespace.__array_api_version__)
    install({**_table(), "__array_namespace__": get, **protocols})


_install(sys.modules[__name__.rpartition(".")[0]])
