"""``x.at[key].set(values)`` and other updates that return a new array; ``x[key] = values``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from plugrt.array_api.indexing.items import Spec
from plugrt.array_api.indexing.key import Key, parse
from plugrt.array_api.indexing.read import read
from plugrt.array_api.indexing.write import write
from plugrt.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError
from plugrt.execution.arrays.array import Array, array_holding
from plugrt.execution.arrays.host_data import as_unsigned
from plugrt.execution.shardings.format import Format
from plugrt.execution.transfers.transfer import device_put
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.native.known_dtypes import is_key_dtype
from plugrt.settings.declarations import config
from plugrt.tracing.emit import broadcast_to, convert, emit, full, hlo, reshape, select, strong
from plugrt.tracing.operation import Operation, operation
from plugrt.tracing.promotion import dtype_kind, kind_rank
from plugrt.tracing.trace import current_trace
from plugrt.tracing.tracer import Tracer
from plugrt.typing import OutSharding

_COMBINE: dict[str, Callable[..., object]] = {
    "add": hlo.add,
    "subtract": hlo.subtract,
    "multiply": hlo.multiply,
    "min": hlo.minimum,
    "max": hlo.maximum,
}
_WRITE_MODES = (None, "drop", "fill", "clip", "promise_in_bounds")


class IndexUpdateHelper:
    """The attribute ``x.at``: index it with a key and call an update, ``x.at[key].set(value)``."""

    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, key: object) -> IndexUpdateRef:
        return IndexUpdateRef(self._array, key)

    def __repr__(self) -> str:
        return f"At({self._array!r})"


def _update_method(how: str, says: str) -> Callable[..., object]:
    def method(
        self: IndexUpdateRef,
        values: object,
        *,
        mode: str | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        out_sharding: OutSharding = None,
    ) -> Any:
        flags = (mode, indices_are_sorted, unique_indices, out_sharding)
        return self._update(how, values, *flags)

    method.__name__ = how
    method.__qualname__ = f"Update.{how}"
    method.__doc__ = f"Returns ``x`` with {says}."
    return with_argument_errors(method)


class IndexUpdateRef:
    """The elements ``x[key]``, to be updated. Methods return new arrays; ``x`` is not changed.

    A key is as in ``x[key]``. Values broadcast to the shape of ``x[key]`` and are converted to the
    dtype of ``x``; a value of a higher kind (a float for integers) is refused with `DtypeError`. If
    index arrays name an element twice, ``add`` and the like apply twice; ``set`` uses an
    unspecified one of the values. ``mode`` decides about positions that are out of bounds (without
    a mode an integer out of bounds raises `InvalidIndex`): ``drop`` (the default) ignores them,
    ``clip`` clamps them. Negative ones count from the back. A boolean array may be traced if the
    value does not depend on the number of selected elements. ``indices_are_sorted`` and
    ``unique_indices`` are promises that make updates faster. As ``jax.numpy.ndarray.at``.
    """

    __slots__ = ("_array", "_key")

    def __init__(self, array: Any, key: object) -> None:
        self._array = array
        self._key = key

    def __repr__(self) -> str:
        return f"Update({self._array!r}, {self._key!r})"

    set = _update_method("set", "the elements replaced by ``values``")
    add = _update_method("add", "``values`` added to the elements")
    subtract = _update_method("subtract", "``values`` subtracted from the elements")
    multiply = mul = _update_method("multiply", "the elements multiplied by ``values``")
    divide = _update_method("divide", "the elements divided by ``values``; floating dtypes")
    power = _update_method("power", "the elements raised to the power of ``values``")
    min = _update_method("min", "the lesser of elements and ``values``")
    max = _update_method("max", "the greater of elements and ``values``")

    @with_argument_errors
    def apply(
        self,
        function: Callable[[Any], object],
        *,
        mode: str | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> Any:
        """Returns ``x`` with ``function``, which is elementwise, applied to the elements."""
        if not callable(function):
            raise ArgumentTypeError(f"x.at[key].apply takes a function; got {function!r:.60}")
        flags = (mode, indices_are_sorted, unique_indices, None)
        return self._update("apply", 0, *flags, function=function)

    @with_argument_errors
    def get(
        self,
        *,
        mode: str | None = None,
        fill_value: Any = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        out_sharding: OutSharding = None,
    ) -> Any:
        """Returns ``x[key]``; ``mode`` decides about positions that are out of bounds.

        ``clip`` (the default) gives the nearest element, ``fill`` (the default with a
        ``fill_value``) the ``fill_value``: if None NaN, the least signed or the greatest unsigned
        integer. With neither an integer that is out of bounds raises `InvalidIndex`.
        """
        del indices_are_sorted, unique_indices  # hints without effect on a gather
        bounded = mode is None and fill_value is None
        embed = current_trace() is not None
        key = parse(self._array.shape, self._key, embed=embed, bounded=bounded)
        return get_at(self._array, key.operands, spec=key.spec, mode=mode, fill_value=fill_value,
            out_sharding=out_sharding,
        )  # fmt: skip

    def _update(
        self,
        how: str,
        values: Any,
        mode: str | None,
        indices_are_sorted: bool,
        unique_indices: bool,
        out_sharding: OutSharding,
        function: Callable[[Any], object] | None = None,
    ) -> object:
        x, mask = self._array, self._key
        if how != "set" and is_key_dtype(x.dtype):
            raise DtypeError(f"x.at[key].{how} does not accept dtype {x.dtype.name}")
        if how == "divide" and dtype_kind(x.dtype) not in "fc":
            raise DtypeError(
                f"x.at[key].divide got x of dtype {x.dtype.name}; it takes floating dtypes"
            )
        if mode not in _WRITE_MODES:
            raise ArgumentError(
                f"mode is {mode!r}; updates take {', '.join(map(repr, _WRITE_MODES))}"
            )
        update, given, options = _find_update(x, mask, values, bounded=mode is None)
        if update is update_at:
            options |= {"mode": mode, "sorted_": indices_are_sorted, "unique": unique_indices}
        return update(x, *given, how=how, function=function, out_sharding=out_sharding, **options)


def _find_update(
    x: Any, key: Any, values: Any, *, bounded: bool = True
) -> tuple[Any, tuple[Any, Any], dict[str, Any]]:
    """Returns the operation that updates ``x``, its arguments after ``x``, and options."""
    values = as_unsigned(values, x.dtype) if isinstance(values, _VALUES) else np.asarray(values)
    if _is_mask(key, x, values):
        return update_where, (key, values), {}
    parsed = parse(x.shape, key, embed=current_trace() is not None, bounded=bounded)
    return update_at, (parsed.operands, values), {"spec": parsed.spec, **_AT}


def setitem(x: Any, key: object, value: object, /) -> None:
    """Assigns ``value`` to the elements that ``key`` selects; `docs/arrays.md` has the rules.

    The array gets new buffers, with the result of ``x.at[key].set(values)``. Its shape, dtype and
    sharding stay. A traced array represents the result from then on.
    """
    if config.read_only_arrays:
        raise ArgumentTypeError(
            "x[key] = value with config.read_only_arrays (PLUGRT_READ_ONLY_ARRAYS) set; "
            "x.at[key].set(value) returns a new array"
        )
    if type(x) is Tracer:
        _assign_in_trace(x, key, value)
        return
    if (trace := current_trace()) is not None:
        raise ArgumentTypeError(
            f"x[key] = value to {x._aval} while {trace.name!r} is traced: the array is "
            "not one of that function. Write y = x.at[key].set(value), and return it"
        )
    update, given, options = _find_update(x, key, value)
    if getattr(x, "_is_alone", False) and _assign_in_place(x, update, given, options):
        return
    while True:  # again if another thread has assigned meanwhile
        held = x._held()
        new = update(x, *given, how="set", function=None, **options)
        if x._replace(held, _place_as(x, new)):
            return


def _place_as(x: Any, new: Any) -> Any:
    """Returns an array with the sharding and the layout of ``x``."""
    old = x._aval
    if new._aval.sharding is old.sharding and new._aval.layout is old.layout:
        return new
    return device_put(new, old.sharding if old.layout is None else Format(old.layout, old.sharding))


def _assign_in_place(
    x: Any, update: Operation[..., Any], given: tuple[Any, Any], options: dict[str, object]
) -> bool:
    """Assigns by a launch that writes to the buffers of ``x``, if nothing else refers to them.

    Returns whether it did. Other threads wait for the buffers.
    """
    index, value = given
    if type(value) not in _PLAIN and not isinstance(value, np.generic):
        return False  # its conversion may read x
    operands = index if type(index) is tuple else (index,)
    taker = array_holding(x._shards, x._aval)
    made: list[Any] = []
    if id(x) in map(id, (*operands, value)) or not x._lend_to(taker, made):
        return False
    launch = partial(_IN_PLACE[update], how="set", function=None, **options)
    try:
        # Only in C: an interrupt comes before the launch, or after the array has its result.
        made += map(launch, (taker,), (index,), (value,))
        made[0] = _place_as(x, made[0])
    finally:
        x._end_loan(taker, made)
    return True


def _assign_in_trace(x: Tracer, key: Any, value: Any) -> None:
    x._live()
    if x.scope is not x.trace.scope or current_trace() is not x.trace:
        raise ArgumentTypeError(
            f"x[key] = value to {x!r}, which is of a function around the one that runs (a loop, a "
            "branch or a nested function): the assignment would not be seen there. Write "
            "y = x.at[key].set(value), and return it"
        )
    new = x.at[key].set(value)
    x._value, x.scope, x.scalar, x.origin = new._value, new.scope, new.scalar, new.origin


def _is_mask(key: Any, x: Any, values: Any) -> bool:
    """Whether an update is a select between old and new values, without the mask's count."""
    if not isinstance(key, Array | np.ndarray) or dtype_kind(key.dtype) != "b" or not key.ndim:
        return False
    if key.shape != x.shape[: key.ndim]:
        return False  # `parse` raises the error
    shape: tuple[int, ...] = getattr(values, "shape", ())
    rest: int = x.ndim - key.ndim
    return len(shape) <= rest or (len(shape) == rest + 1 and shape[0] == 1)


@operation(static=("spec", "mode", "fill_value"), weak_by=("x",), shards=True, keys="each")
def get_at(
    x: Tracer,
    operands: tuple[Tracer, ...],
    *,
    spec: Spec,
    mode: str | None,
    fill_value: object,
) -> Tracer:
    """Returns the elements that a key selects; ``mode`` decides about positions out of bounds."""
    return read(x, Key(spec, operands), mode, fill_value)


@operation(
    static=("how", "function"), weak_by=("x",), shards=True, keys="each", keyed=("x", "value")
)
def update_where(
    x: Tracer, mask: Tracer, value: Tracer, *, how: str, function: Callable[[Any], object] | None
) -> Tracer:
    """Returns ``x`` updated where ``mask`` is true, with the same value at each true element."""
    value = _cast_values(x, value, how)
    rest = x.shape[mask.ndim :]
    if value.ndim > len(rest):
        value = reshape(value, value.shape[1:])
    if any(n not in (1, m) for n, m in zip(value.shape[::-1], rest[::-1], strict=False)):
        raise ShapeError(
            f"the value of shape {value.shape} does not broadcast to the shape {rest} that x of "
            f"shape {x.shape} has behind the boolean index of shape {mask.shape}"
        )
    new = _make_combine(how, function)(x, broadcast_to(value, x.shape))
    aligned = reshape(mask, mask.shape + (1,) * len(rest))
    return select(broadcast_to(aligned, x.shape), new, x)


@operation(
    static=("spec", "how", "function", "mode", "sorted_", "unique"),
    weak_by=("x",),
    title="at",
    shards=True,
    keys="each",
    keyed=("x", "value"),
)
def update_at(
    x: Tracer,
    index: tuple[Tracer, ...],
    value: Tracer,
    *,
    spec: Spec,
    how: str,
    function: Callable[[Any], object] | None,
    mode: str | None,
    sorted_: bool,
    unique: bool,
) -> Tracer:
    """Returns ``x`` updated at the elements that a key selects."""
    key = Key(spec, index)
    value = _cast_values(x, value, how)

    def written(y: Tracer, combine: Callable[[Tracer, Tracer], Tracer]) -> Tracer:
        return write(y, key, value, combine, mode=mode, sorted_=sorted_, unique=unique)

    if how in ("divide", "power"):
        # A scatter combines in unspecified order, so the factors are multiplied first.
        factors = written(full(x.shape, 1, x.dtype), _make_combine("multiply", None))
        return emit(_AFTERWARDS[how], x, factors)
    return written(strong(x), _make_combine(how, function))


_AT = {"mode": None, "sorted_": False, "unique": False}
_PLAIN = (Array, np.ndarray, bool, int, float, complex)
_VALUES = (*_PLAIN, np.generic)
_IN_PLACE = {update: update.donating_first() for update in (update_at, update_where)}
"""The same operations, with ``x`` donated."""
_AFTERWARDS = {"divide": hlo.divide, "power": hlo.power}


def _make_combine(
    how: str, function: Callable[[Any], object] | None
) -> Callable[[Tracer, Tracer], Tracer]:
    if how == "set":
        return lambda old, new: new
    if function is not None:
        applied = function

        def apply(old: Tracer, new: Tracer) -> Tracer:
            result = applied(old)
            if not isinstance(result, Tracer) or result.shape != old.shape:
                raise ShapeError(
                    f"the function of x.at[key].apply returned {result!r} for {old!r}; it must "
                    "keep the shape"
                )
            return convert(result, old.dtype)

        return apply
    builder = _COMBINE.get(how) or _AFTERWARDS[how]
    return lambda old, new: emit(builder, old, new)


def _cast_values(x: Tracer, value: Tracer, how: str) -> Tracer:
    """Returns the values in the dtype of ``x``; `DtypeError` for values of a higher dtype kind."""
    if kind_rank(value.dtype) > kind_rank(x.dtype):
        raise DtypeError(
            f"x.at[key].{how} got values of dtype {value.dtype.name} for x of dtype "
            f"{x.dtype.name}, which cannot hold them; convert one with array_api.astype"
        )
    return convert(value, x.dtype)
