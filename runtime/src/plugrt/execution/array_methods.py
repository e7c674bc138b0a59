"""`Methods`: the operators and methods of arrays, which `plugrt.array_api` supplies.

They are declared here, for readers and type checkers, and implemented in
``plugrt.array_api.operators``. Until that is imported each is a stub that imports it and goes on;
where jaxlib's bindings are missing, that raises `MissingTraceExtra`, which names the package to
install. Arrays can be moved, and programs run, without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import EllipsisType, FunctionType, ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NoReturn,
    Protocol,
    Self,
    SupportsIndex,
    TypeAlias,
    TypeVar,
)

import numpy as np
import numpy.typing as npt

from plugrt.execution.method_source import load_methods
from plugrt.execution.sharding import Sharding
from plugrt.interface import Device

X = TypeVar("X")
X_co = TypeVar("X_co", covariant=True)


class UpdateMethod(Protocol[X_co]):
    """A method of ``x.at[key]`` that returns ``x`` updated with values."""

    def __call__(
        self,
        values: Values,
        *,
        mode: Mode | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> X_co: ...


class Update(Protocol[X]):
    """The type of ``x.at[key]`` (see ``plugrt.array_api.indexing.at``)."""

    set: UpdateMethod[X]
    add: UpdateMethod[X]
    subtract: UpdateMethod[X]
    multiply: UpdateMethod[X]
    mul: UpdateMethod[X]
    divide: UpdateMethod[X]
    power: UpdateMethod[X]
    min: UpdateMethod[X]
    max: UpdateMethod[X]

    def apply(
        self,
        function: Callable[[Any], Any],
        *,
        mode: Mode | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> X: ...

    def get(
        self,
        *,
        mode: Mode | None = None,
        fill_value: complex | np.generic | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> X: ...


class Updates(Protocol[X]):
    """The type of ``x.at``: to be indexed with a key."""

    def __getitem__(self, key: Key, /) -> Update[X]: ...


class Methods:
    """The operators and methods that arrays and traced arrays have in common."""

    __slots__ = ()

    def __add__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __radd__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __sub__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __rsub__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __mul__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __rmul__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __truediv__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __rtruediv__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __floordiv__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __rfloordiv__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __mod__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __rmod__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __pow__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __rpow__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __matmul__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __rmatmul__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __and__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __rand__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __or__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __ror__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __xor__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __rxor__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __lshift__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __rlshift__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __rshift__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __rrshift__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __divmod__(self, other: Operand, /) -> tuple[Self, Self]:
        raise NotImplementedError

    def __rdivmod__(self, other: Operand, /) -> tuple[Self, Self]:
        raise NotImplementedError

    def __eq__(self, other: Any, /) -> Self:  # type: ignore[override]
        raise NotImplementedError

    def __ne__(self, other: Any, /) -> Self:  # type: ignore[override]
        raise NotImplementedError

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __le__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __gt__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __ge__(self, other: Operand, /) -> Self:
        raise NotImplementedError

    def __neg__(self) -> Self:
        raise NotImplementedError

    def __pos__(self) -> Self:
        raise NotImplementedError

    def __abs__(self) -> Self:
        raise NotImplementedError

    def __invert__(self) -> Self:
        raise NotImplementedError

    def __round__(self, ndigits: int | None = None, /) -> Self:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Self]:
        raise NotImplementedError

    def __getitem__(self, key: Key, /) -> Self:
        raise NotImplementedError

    if not TYPE_CHECKING:  # to a type checker, arrays cannot be written to

        def __setitem__(self, key: Key, value: Values, /) -> NoReturn:
            raise NotImplementedError

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        raise NotImplementedError

    @property
    def T(self) -> Self:
        raise NotImplementedError

    @property
    def mT(self) -> Self:
        raise NotImplementedError

    @property
    def real(self) -> Self:
        raise NotImplementedError

    @property
    def imag(self) -> Self:
        raise NotImplementedError

    @property
    def at(self) -> Updates[Self]:
        raise NotImplementedError

    def sum(
        self,
        axis: Axes = None,
        dtype: npt.DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
    ) -> Self:
        raise NotImplementedError

    def prod(
        self,
        axis: Axes = None,
        dtype: npt.DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
    ) -> Self:
        raise NotImplementedError

    def mean(
        self,
        axis: Axes = None,
        dtype: npt.DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
    ) -> Self:
        raise NotImplementedError

    def max(self, axis: Axes = None, out: None = None, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def min(self, axis: Axes = None, out: None = None, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def any(self, axis: Axes = None, out: None = None, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def all(self, axis: Axes = None, out: None = None, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def std(
        self,
        axis: Axes = None,
        dtype: npt.DTypeLike | None = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        correction: float | None = None,
    ) -> Self:
        raise NotImplementedError

    var = std

    def argmax(self, axis: int | None = None, out: None = None, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def argmin(self, axis: int | None = None, out: None = None, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def argsort(self, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Self:
        raise NotImplementedError

    def sort(self, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Self:
        raise NotImplementedError

    def cumsum(
        self, axis: int | None = None, dtype: npt.DTypeLike | None = None, out: None = None
    ) -> Self:
        raise NotImplementedError

    def cumprod(
        self, axis: int | None = None, dtype: npt.DTypeLike | None = None, out: None = None
    ) -> Self:
        raise NotImplementedError

    def astype(self, dtype: npt.DTypeLike, *, copy: bool = True) -> Self:
        raise NotImplementedError

    def reshape(self, *shape: int | Sequence[int]) -> Self:
        raise NotImplementedError

    def transpose(self, *axes: int | Sequence[int]) -> Self:
        raise NotImplementedError

    def flatten(self) -> Self:
        raise NotImplementedError

    def ravel(self) -> Self:
        raise NotImplementedError

    def squeeze(self, axis: Axes = None) -> Self:
        raise NotImplementedError

    def swapaxes(self, axis1: int, axis2: int) -> Self:
        raise NotImplementedError

    def take(self, indices: Operand | Sequence[int], axis: int | None = None) -> Self:
        raise NotImplementedError

    def repeat(self, repeats: Operand | Sequence[int], axis: int | None = None) -> Self:
        raise NotImplementedError

    def nonzero(self) -> tuple[Self, ...]:
        raise NotImplementedError

    def conj(self) -> Self:
        raise NotImplementedError

    def round(self, decimals: int = 0, out: None = None) -> Self:
        raise NotImplementedError

    def clip(
        self, min: Operand | None = None, max: Operand | None = None, out: None = None
    ) -> Self:
        raise NotImplementedError

    def dot(self, other: Operand) -> Self:
        raise NotImplementedError

    def copy(self) -> Self:
        raise NotImplementedError

    def to_device(self, device: Device | Sharding, /, *, stream: None = None) -> Self:
        raise NotImplementedError


Axes: TypeAlias = int | Sequence[int] | None
Operand: TypeAlias = (
    Methods | np.ndarray[Any, np.dtype[Any]] | np.generic | bool | int | float | complex
)
"""Operands of operators: `plugrt.typing.ArrayLike`, or traced arrays."""
Values: TypeAlias = Operand | Sequence[Operand] | Sequence[Sequence[Operand]]
Index: TypeAlias = (
    SupportsIndex
    | slice
    | EllipsisType
    | Methods
    | np.ndarray[Any, np.dtype[Any]]
    | np.bool
    | Sequence[int]
    | Sequence[Sequence[int]]
    | None
)
Key: TypeAlias = Index | tuple[Index, ...]
"""What ``x[key]`` takes."""
Mode: TypeAlias = Literal["drop", "fill", "clip", "promise_in_bounds"]


def install(methods: Mapping[str, Any]) -> None:
    """Puts implementations in the place of the stubs: for each that is declared, and no other."""
    declared = _declared()
    if declared.keys() != methods.keys():
        raise AssertionError(f"not both declared and given: {declared.keys() ^ methods.keys()}")
    for name, method in methods.items():
        if isinstance(method, FunctionType):
            method.__wrapped__ = _DECLARED[name]  # type: ignore[attr-defined]  # its signature
        setattr(Methods, name, method)


def _declared() -> dict[str, Any]:
    return {n: v for n, v in vars(Methods).items() if isinstance(v, FunctionType | property)}


def _stub(name: str, is_property: bool) -> Any:
    def first_use(self: Any, *args: Any, **kwargs: Any) -> Any:
        load_methods()
        installed = vars(Methods)[name]
        return installed.fget(self) if is_property else installed(self, *args, **kwargs)

    first_use.__name__ = name
    if is_property:
        return property(first_use)
    first_use.__wrapped__ = _DECLARED[name]  # type: ignore[attr-defined]  # its signature
    return first_use


_DECLARED = _declared()
for _name, _member in _DECLARED.items():
    setattr(Methods, _name, _stub(_name, isinstance(_member, property)))
