"""`Methods`: the operators and methods of arrays, which `plugrt.array_api` supplies.

They are declared here, for readers and type checkers, and implemented in
``plugrt.array_api.operators``. Until that is imported each is a stub that imports it and goes on;
where jaxlib's bindings are missing, that raises `MissingTraceExtra`, which names the package to
install. Arrays can be moved, and programs run, without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, Self, TypeAlias

import numpy.typing as npt

from plugrt.execution.arrays.array_operators import Operand, Operators
from plugrt.execution.arrays.method_source import load_methods
from plugrt.execution.arrays.missing_attributes import INSTEAD, Missing
from plugrt.execution.shardings.sharding import Sharding
from plugrt.interface import Device

Axes: TypeAlias = int | Sequence[int] | None


class Methods(Operators):
    """The operators and methods that arrays and traced arrays have in common."""

    __slots__ = ()

    def sum(
        self,
        axis: Axes = None,
        dtype: npt.DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: Operand | None = None,
        where: Operand | None = None,
    ) -> Self:
        raise NotImplementedError

    def prod(
        self,
        axis: Axes = None,
        dtype: npt.DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: Operand | None = None,
        where: Operand | None = None,
    ) -> Self:
        raise NotImplementedError

    def mean(
        self,
        axis: Axes = None,
        dtype: npt.DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: Operand | None = None,
    ) -> Self:
        raise NotImplementedError

    def max(
        self,
        axis: Axes = None,
        out: None = None,
        keepdims: bool = False,
        initial: Operand | None = None,
        where: Operand | None = None,
    ) -> Self:
        raise NotImplementedError

    def min(
        self,
        axis: Axes = None,
        out: None = None,
        keepdims: bool = False,
        initial: Operand | None = None,
        where: Operand | None = None,
    ) -> Self:
        raise NotImplementedError

    def any(
        self,
        axis: Axes = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: Operand | None = None,
    ) -> Self:
        raise NotImplementedError

    def all(
        self,
        axis: Axes = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: Operand | None = None,
    ) -> Self:
        raise NotImplementedError

    def std(
        self,
        axis: Axes = None,
        dtype: npt.DTypeLike | None = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Operand | None = None,
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


def install(methods: Mapping[str, Any]) -> None:
    """Puts implementations in the place of the stubs: for each that is declared, and no other."""
    if _DECLARED.keys() != methods.keys():
        raise AssertionError(f"not both declared and given: {_DECLARED.keys() ^ methods.keys()}")
    for name, method in methods.items():
        if isinstance(method, FunctionType):
            method.__wrapped__ = _DECLARED[name]  # type: ignore[attr-defined]  # its signature
        setattr(_OWNERS[name], name, method)


def _stub(name: str, is_property: bool) -> Any:
    def first_use(self: Any, *args: Any, **kwargs: Any) -> Any:
        load_methods()
        installed = vars(_OWNERS[name])[name]
        return installed.fget(self) if is_property else installed(self, *args, **kwargs)

    first_use.__name__ = name
    if is_property:
        return property(first_use)
    first_use.__wrapped__ = _DECLARED[name]  # type: ignore[attr-defined]  # its signature
    return first_use


_OWNERS = {
    name: owner
    for owner in (Operators, Methods)
    for name, member in vars(owner).items()
    if isinstance(member, FunctionType | property)
}
"""The class that declares each, by name."""
_DECLARED: dict[str, Any] = {name: vars(owner)[name] for name, owner in _OWNERS.items()}
for _name, _member in _DECLARED.items():
    setattr(_OWNERS[_name], _name, _stub(_name, isinstance(_member, property)))
for _name in INSTEAD:
    setattr(Methods, _name, Missing(_name))
