"""`Methods`: the operators and methods of arrays, which `plugrt.array_api` supplies.

They are declared here, for readers and type checkers, and implemented in
``plugrt.array_api.operators``. Until that is imported each is a stub that imports it and goes on;
where jaxlib's bindings are missing, that raises `MissingTraceExtra`, which says what to install.
So arrays can be moved, and programs run, without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any, NoReturn, Self

from plugrt.interface import Device

Axis = int | Sequence[int] | None


class Methods:
    """What arrays and traced arrays have in common: everything that is computed."""

    __slots__ = ()

    def __add__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __radd__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __sub__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __rsub__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __mul__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __rmul__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __truediv__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __rtruediv__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __floordiv__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __rfloordiv__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __mod__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __rmod__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __pow__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __rpow__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __matmul__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __rmatmul__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __and__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __rand__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __or__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __ror__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __xor__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __rxor__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __lshift__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __rlshift__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __rshift__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __rrshift__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __divmod__(self, other: Any, /) -> tuple[Self, Self]:
        raise NotImplementedError

    def __rdivmod__(self, other: Any, /) -> tuple[Self, Self]:
        raise NotImplementedError

    def __eq__(self, other: Any, /) -> Self:  # type: ignore[override]
        raise NotImplementedError

    def __ne__(self, other: Any, /) -> Self:  # type: ignore[override]
        raise NotImplementedError

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __le__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __gt__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __ge__(self, other: Any, /) -> Self:
        raise NotImplementedError

    def __neg__(self) -> Self:
        raise NotImplementedError

    def __pos__(self) -> Self:
        raise NotImplementedError

    def __abs__(self) -> Self:
        raise NotImplementedError

    def __invert__(self) -> Self:
        raise NotImplementedError

    def __round__(self, ndigits: int | None = None, /) -> Any:
        raise NotImplementedError

    def __getitem__(self, key: Any, /) -> Self:
        raise NotImplementedError

    def __setitem__(self, key: Any, value: Any, /) -> NoReturn:
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
    def at(self) -> Any:
        raise NotImplementedError

    def sum(self, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def prod(self, axis: Axis = None, *, dtype: Any = None, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def mean(self, axis: Axis = None, *, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def max(self, axis: Axis = None, *, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def min(self, axis: Axis = None, *, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def any(self, axis: Axis = None, *, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def all(self, axis: Axis = None, *, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def std(self, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def var(self, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Self:
        raise NotImplementedError

    def argsort(self, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Self:
        raise NotImplementedError

    def sort(self, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Self:
        raise NotImplementedError

    def cumsum(self, axis: int | None = None, *, dtype: Any = None) -> Self:
        raise NotImplementedError

    def cumprod(self, axis: int | None = None, *, dtype: Any = None) -> Self:
        raise NotImplementedError

    def astype(self, dtype: Any, *, copy: bool = True) -> Self:
        raise NotImplementedError

    def reshape(self, *shape: Any) -> Self:
        raise NotImplementedError

    def transpose(self, *axes: Any) -> Self:
        raise NotImplementedError

    def flatten(self) -> Self:
        raise NotImplementedError

    def ravel(self) -> Self:
        raise NotImplementedError

    def squeeze(self, axis: Axis = None) -> Self:
        raise NotImplementedError

    def swapaxes(self, axis1: int, axis2: int) -> Self:
        raise NotImplementedError

    def take(self, indices: Any, axis: int | None = None) -> Self:
        raise NotImplementedError

    def repeat(self, repeats: Any, axis: int | None = None) -> Self:
        raise NotImplementedError

    def nonzero(self) -> tuple[Self, ...]:
        raise NotImplementedError

    def conj(self) -> Self:
        raise NotImplementedError

    def round(self, decimals: int = 0) -> Self:
        raise NotImplementedError

    def clip(self, min: Any = None, max: Any = None) -> Self:
        raise NotImplementedError

    def dot(self, other: Any) -> Self:
        raise NotImplementedError

    def copy(self) -> Self:
        raise NotImplementedError

    def to_device(self, device: Device, /, *, stream: Any = None) -> Self:
        raise NotImplementedError


def install(methods: Mapping[str, Any]) -> None:
    """Puts implementations in the place of the stubs: for each that is declared, and no other."""
    declared = _declared()
    if declared.keys() != methods.keys():
        raise AssertionError(f"not both declared and given: {declared.keys() ^ methods.keys()}")
    for name, method in methods.items():
        setattr(Methods, name, method)


def _declared() -> dict[str, Any]:
    return {n: v for n, v in vars(Methods).items() if isinstance(v, FunctionType | property)}


def _stub(name: str, is_property: bool) -> Any:
    def first_use(self: Any, *args: Any, **kwargs: Any) -> Any:
        import_module("plugrt.array_api")  # a later room, known here by its name alone
        installed = vars(Methods)[name]
        return installed.fget(self) if is_property else installed(self, *args, **kwargs)

    first_use.__name__ = name
    return property(first_use) if is_property else first_use


for _name, _member in _declared().items():
    setattr(Methods, _name, _stub(_name, isinstance(_member, property)))
