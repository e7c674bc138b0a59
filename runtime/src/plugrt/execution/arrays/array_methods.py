"""`Methods`: the operators and methods of arrays, which `plugrt.array_api` supplies.

They are declared here, for readers and type checkers, and implemented in
``plugrt.array_api.operators``. Until that is imported, each is a stub that imports it and calls the
implementation. Without jaxlib's bindings this raises `MissingTraceExtra`, which names the package
to install; moving arrays and running programs need no bindings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, NoReturn, Self, TypeAlias

import numpy.typing as npt

from plugrt.execution.arrays.array_operators import Operand, Operators
from plugrt.execution.arrays.method_source import load_methods
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.interface import Device

_ON_THE_HOST = "numpy.{name}, with numpy.asarray(x), computes it on the host"
INSTEAD: Mapping[str, str] = {
    "clone": "it is x.copy()",
    "conjugate": "it is x.conj()",
    "device_buffer": "it is x.addressable_data(0)",
    "device_buffers": "they are [shard.data for shard in x.addressable_shards]",
    "diagonal": "write x[plugrt.array_api.arange(n), plugrt.array_api.arange(n)]",
    "flat": "it is x.ravel()",
    "platform": "it is x.device.platform, or that of one of x.devices()",
    "ptp": "write x.max() - x.min()",
    "searchsorted": "it is plugrt.array_api.searchsorted(x, values)",
    "trace": "write plugrt.array_api.sum(plugrt.array_api.linalg.diagonal(x))",
    "traceback": (
        "arrays do not record which operation made them; plugrt.config.debug_nans finds "
        "NaNs' origins"
    ),
    **dict.fromkeys(("argpartition", "choose", "compress"), _ON_THE_HOST),
    "byteswap": "arrays have the byte order of the machine",
}
"""Name to the hint."""


class Missing:
    """A descriptor that raises an AttributeError with a hint when it is read.

    A method ``__getattr__`` of arrays would slow down the reading of every attribute.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, owner: object | None, cls: type) -> NoReturn:
        name = self._name
        text = f"{cls.__name__!r} object has no attribute {name!r}: {INSTEAD[name]}"
        raise AttributeError(text.format(name=name), name=name, obj=cls if owner is None else owner)


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
    ) -> Self: ...
    def prod(
        self,
        axis: Axes = None,
        dtype: npt.DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: Operand | None = None,
        where: Operand | None = None,
    ) -> Self: ...
    def mean(
        self,
        axis: Axes = None,
        dtype: npt.DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: Operand | None = None,
    ) -> Self: ...
    def max(
        self,
        axis: Axes = None,
        out: None = None,
        keepdims: bool = False,
        initial: Operand | None = None,
        where: Operand | None = None,
    ) -> Self: ...
    def min(
        self,
        axis: Axes = None,
        out: None = None,
        keepdims: bool = False,
        initial: Operand | None = None,
        where: Operand | None = None,
    ) -> Self: ...
    def any(
        self,
        axis: Axes = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: Operand | None = None,
    ) -> Self: ...
    def all(
        self,
        axis: Axes = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: Operand | None = None,
    ) -> Self: ...
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
    ) -> Self: ...

    var = std

    def argmax(self, axis: int | None = None, out: None = None, keepdims: bool = False) -> Self: ...
    def argmin(self, axis: int | None = None, out: None = None, keepdims: bool = False) -> Self: ...
    def argsort(self, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Self: ...
    def sort(self, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Self: ...
    def cumsum(
        self, axis: int | None = None, dtype: npt.DTypeLike | None = None, out: None = None
    ) -> Self: ...
    def cumprod(
        self, axis: int | None = None, dtype: npt.DTypeLike | None = None, out: None = None
    ) -> Self: ...
    def astype(self, dtype: npt.DTypeLike, *, copy: bool = True) -> Self: ...
    def reshape(
        self, *shape: int | Sequence[int], order: str = "C", out_sharding: Any = None
    ) -> Self: ...
    def transpose(self, *axes: int | Sequence[int]) -> Self: ...
    def view(self, dtype: npt.DTypeLike) -> Self: ...
    def flatten(self) -> Self: ...
    def ravel(self) -> Self: ...
    def squeeze(self, axis: Axes = None) -> Self: ...
    def swapaxes(self, axis1: int, axis2: int) -> Self: ...
    def take(self, indices: Operand | Sequence[int], axis: int | None = None) -> Self: ...
    def repeat(self, repeats: Operand | Sequence[int], axis: int | None = None) -> Self: ...
    def nonzero(self) -> tuple[Self, ...]: ...
    def conj(self) -> Self: ...
    def round(self, decimals: int = 0, out: None = None) -> Self: ...
    def clip(
        self, min: Operand | None = None, max: Operand | None = None, out: None = None
    ) -> Self: ...
    def dot(self, other: Operand) -> Self: ...
    def copy(self) -> Self: ...
    def to_device(self, device: Device | Sharding, /, *, stream: None = None) -> Self: ...


def install(methods: Mapping[str, object]) -> None:
    """Replaces the stubs by implementations; these must be exactly the declared names."""
    if DECLARED.keys() != methods.keys():
        raise AssertionError(f"not both declared and given: {DECLARED.keys() ^ methods.keys()}")
    for name, method in methods.items():
        if isinstance(method, FunctionType):
            method.__wrapped__ = DECLARED[name]  # type: ignore[attr-defined]  # its signature
        setattr(_OWNERS[name], name, method)


def _stub(name: str, is_property: bool) -> object:
    def first_use(self: object, *args: object, **kwargs: object) -> Any:
        load_methods()
        installed = vars(_OWNERS[name])[name]
        return installed.fget(self) if is_property else installed(self, *args, **kwargs)

    first_use.__name__ = name
    if is_property:
        return property(first_use)
    first_use.__wrapped__ = DECLARED[name]  # type: ignore[attr-defined]  # its signature
    return first_use


_OWNERS = {
    name: owner
    for owner in (Operators, Methods)
    for name, member in vars(owner).items()
    if isinstance(member, FunctionType | property)
}
"""The declared names, each with the class that declares it."""
DECLARED: dict[str, object] = {name: vars(owner)[name] for name, owner in _OWNERS.items()}
for _name, _member in DECLARED.items():
    setattr(_OWNERS[_name], _name, _stub(_name, isinstance(_member, property)))
for _name in INSTEAD:
    setattr(Methods, _name, Missing(_name))
