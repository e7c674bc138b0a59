"""`Operators`: the operators of arrays, declared for readers and type checkers, and their operands.

`plugrt.execution.arrays.array_methods` has the named methods, and states where both are
implemented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import EllipsisType, ModuleType
from typing import (
    Any,
    Literal,
    Protocol,
    Self,
    SupportsIndex,
    TypeAlias,
    TypeVar,
)

import numpy as np

from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.partition_spec import PartitionSpec

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
        out_sharding: NamedSharding | PartitionSpec | None = None,
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
        function: Callable[[Any], object],
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
        out_sharding: NamedSharding | PartitionSpec | None = None,
    ) -> X: ...


class Updates(Protocol[X]):
    """The type of ``x.at``, which is indexed with a key."""

    def __getitem__(self, key: Key, /) -> Update[X]: ...


class Operators:
    """The operators that arrays and traced arrays have in common."""

    __slots__ = ()

    def __add__(self, other: Operand, /) -> Self: ...
    def __radd__(self, other: Operand, /) -> Self: ...
    def __sub__(self, other: Operand, /) -> Self: ...
    def __rsub__(self, other: Operand, /) -> Self: ...
    def __mul__(self, other: Operand, /) -> Self: ...
    def __rmul__(self, other: Operand, /) -> Self: ...
    def __truediv__(self, other: Operand, /) -> Self: ...
    def __rtruediv__(self, other: Operand, /) -> Self: ...
    def __floordiv__(self, other: Operand, /) -> Self: ...
    def __rfloordiv__(self, other: Operand, /) -> Self: ...
    def __mod__(self, other: Operand, /) -> Self: ...
    def __rmod__(self, other: Operand, /) -> Self: ...
    def __pow__(self, other: Operand, /) -> Self: ...
    def __rpow__(self, other: Operand, /) -> Self: ...
    def __matmul__(self, other: Operand, /) -> Self: ...
    def __rmatmul__(self, other: Operand, /) -> Self: ...
    def __and__(self, other: Operand, /) -> Self: ...
    def __rand__(self, other: Operand, /) -> Self: ...
    def __or__(self, other: Operand, /) -> Self: ...
    def __ror__(self, other: Operand, /) -> Self: ...
    def __xor__(self, other: Operand, /) -> Self: ...
    def __rxor__(self, other: Operand, /) -> Self: ...
    def __lshift__(self, other: Operand, /) -> Self: ...
    def __rlshift__(self, other: Operand, /) -> Self: ...
    def __rshift__(self, other: Operand, /) -> Self: ...
    def __rrshift__(self, other: Operand, /) -> Self: ...
    def __divmod__(self, other: Operand, /) -> tuple[Self, Self]: ...
    def __rdivmod__(self, other: Operand, /) -> tuple[Self, Self]: ...
    def __eq__(self, other: object, /) -> Self: ...  # type: ignore[override]
    def __ne__(self, other: object, /) -> Self: ...  # type: ignore[override]

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: Operand, /) -> Self: ...
    def __le__(self, other: Operand, /) -> Self: ...
    def __gt__(self, other: Operand, /) -> Self: ...
    def __ge__(self, other: Operand, /) -> Self: ...
    def __neg__(self) -> Self: ...
    def __pos__(self) -> Self: ...
    def __abs__(self) -> Self: ...
    def __invert__(self) -> Self: ...
    def __round__(self, ndigits: int | None = None, /) -> Self: ...
    def __iter__(self) -> Iterator[Self]: ...
    def __getitem__(self, key: Key, /) -> Self: ...
    def __setitem__(self, key: Key, value: Values, /) -> None: ...
    @property
    def __array_namespace__(self) -> Callable[..., ModuleType]: ...
    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, /, *inputs: object, **options: object
    ) -> Any: ...
    def __array_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object],
        kwargs: Mapping[str, object],
        /,
    ) -> Any: ...
    @property
    def T(self) -> Self: ...
    @property
    def mT(self) -> Self: ...
    @property
    def real(self) -> Self: ...
    @property
    def imag(self) -> Self: ...
    @property
    def at(self) -> Updates[Self]: ...


Operand: TypeAlias = (
    Operators | np.ndarray[Any, np.dtype[Any]] | np.generic | bool | int | float | complex
)
"""Operands of operators: `plugrt.typing.ArrayLike`, or traced arrays."""
Values: TypeAlias = Operand | Sequence[Operand] | Sequence[Sequence[Operand]]
Index: TypeAlias = (
    SupportsIndex
    | slice
    | EllipsisType
    | Operators
    | np.ndarray[Any, np.dtype[Any]]
    | np.bool
    | Sequence[int]
    | Sequence[Sequence[int]]
    | None
)
Key: TypeAlias = Index | tuple[Index, ...]
"""The type of ``key`` in ``x[key]``."""
Mode: TypeAlias = Literal["drop", "fill", "clip", "promise_in_bounds"]
