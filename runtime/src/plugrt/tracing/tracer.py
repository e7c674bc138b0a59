"""`Tracer`: the value that stands for an array while a function is traced."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from plugrt.errors import ArgumentTypeError, ConcretizationError, InvalidArgument, LeakedTracer
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_methods import Methods
from plugrt.execution.arrays.aval import Aval, intern_aval, intern_host_aval
from plugrt.execution.placement.device_claims import sharding_claim
from plugrt.execution.shardings.gspmd_sharding import buffer_sharding
from plugrt.execution.shardings.manual_types import NO_MAT, ManualAxisType
from plugrt.execution.shardings.named_sharding import NamedSharding, explicit_part
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.execution.shardings.shardy_text import shardy_text
from plugrt.execution.trees import pytrees
from plugrt.frames.traceback_filter import describe_call_site
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.diagnostics import file_and_line, name_at
from plugrt.stablehlo.shardings import constrain
from plugrt.tracing.trace import Scope, Trace, current_trace, leak_message


def check_constraint(trace: Trace, sharding: Sharding, what: str) -> None:
    """Raises `InvalidArgument` for a constraint that the surrounding shard_map contradicts.

    Within it a value is one device's part along the mapped axes: the compiler can divide it only
    over the other axes of that mesh.
    """
    mesh = trace.mesh
    if mesh is None or not trace.axes or sharding.num_devices == 1:
        return
    around, free = [*trace.axes], [n for n in mesh.axis_names if n not in trace.axes]
    cure = f"name {free} of it, which the compiler divides over" if free else "leave it out"
    if isinstance(sharding, NamedSharding) and sharding.mesh.shape == mesh.shape:
        taken = [name for name in sharding.spec.axis_names if name in trace.axes]
        if taken:
            raise InvalidArgument(
                f"{what} with {sharding!r} within shard_map over {around}: a value there is one "
                f"device's part along {taken[0]!r}; {cure}"
            )
    elif not sharding.is_fully_replicated:
        raise InvalidArgument(
            f"{what} with {sharding!r} within shard_map over {around} of {mesh.brief}: it is not "
            f"over that mesh; {cure}"
        )


class Tracer(Methods):
    """An array whose value is not known yet: a StableHLO value with a shape and a dtype.

    Operators and indexing are installed by `plugrt.array_api`, from the same table as `Array`'s.
    Asking for its value (``if x``, ``int(x)``, ``np.asarray(x)``) raises `ConcretizationError`.
    """

    __slots__ = (
        "__weakref__",
        "_value",
        "dtype",
        "memory_kind",
        "origin",
        "scalar",
        "scope",
        "shape",
        "trace",
        "weak",
    )

    __array_priority__ = 200

    def __init__(
        self, value: ir.Value, trace: Trace, *, weak: bool = False, origin: str = ""
    ) -> None:
        if trace.scope is None:
            raise LeakedTracer(f"{trace.name!r} is not being traced any more")
        tensor_type = trace.tensor_type(value)
        if trace.types is not None:
            value = trace.types.settle(value, trace.location)
        self._value: ir.Value | None = value
        self.trace = trace
        self.scope: Scope = trace.scope
        self.shape: tuple[int, ...] = tensor_type.shape
        self.dtype: np.dtype[Any] = tensor_type.dtype
        self.weak = weak
        """Whether it represents a Python scalar, whose dtype yields to other operands'."""
        self.scalar: Any = None
        """Its 0-d host value, if that is known."""
        self.memory_kind: str | None = None
        """The kind of memory that it is in as a result of the whole program; None: the default."""
        self.origin = origin
        """Which argument it is, such as ``argument x[0] of 'f'``; empty for computed values."""

    @classmethod
    def from_literal(
        cls, trace: Trace, scalar: bool | int | float | complex, dtype: np.dtype[np.generic]
    ) -> Tracer:
        """Returns a Python scalar of the traced function; it is a constant once it is used."""
        if trace.scope is None:
            raise LeakedTracer(f"{trace.name!r} is not being traced any more")
        tracer = object.__new__(cls)
        tracer._value = None
        tracer.trace = trace
        tracer.scope = trace.scope
        tracer.shape = ()
        tracer.dtype = dtype
        tracer.weak = type(scalar) is not bool
        tracer.scalar = scalar
        tracer.memory_kind = None
        tracer.origin = ""
        return tracer

    def duplicate(self) -> Tracer:
        """Returns another tracer of the same value; an assignment changes only one of them."""
        made = object.__new__(Tracer)
        for name in _SLOTS:
            setattr(made, name, getattr(self, name))
        return made

    @property
    def value(self) -> ir.Value:
        """The MLIR value in the current scope; raises `LeakedTracer` if it has none there."""
        trace = current_trace()
        if trace is None:
            raise LeakedTracer(leak_message(self))
        return trace.mlir_value(self)

    def in_memory(self, kind: str | None) -> Tracer:
        """Returns a tracer of the value that is put in a kind of memory if it is a result."""
        placed = self.duplicate()
        placed.memory_kind = kind
        return placed

    def constrained(self, sharding: Sharding, what: str) -> Tracer:
        """Returns the value constrained to a sharding, on whose devices the program then runs.

        ``what`` names the calling function, for messages. Raises `ShapeError` where the shape does
        not divide, and `InvalidArgument` if a surrounding shard_map contradicts. Over a mesh of
        Explicit axes this is the type of the value.
        """
        trace = self.trace
        check_constraint(trace, sharding, what)
        sharding.check_shape(self.shape)
        source = f"{what}{describe_call_site()}"
        claim = sharding_claim(lambda: source, sharding)
        if isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes:
            own = explicit_part(sharding.mesh, sharding.spec, self.ndim)
            types = trace.typed_over(sharding.mesh)
            value = types.constrained(self.value, own, sharding, trace.location())
            trace.claims.add_to(value.owner, [claim])
        elif sharding.num_devices > 1:
            text = shardy_text(*buffer_sharding(sharding, self.shape, self.dtype))
            value = constrain(self.value, text, trace.location())
            if trace.types is not None:
                trace.types.copy(value, self.value)
            trace.claims.add_to(value.owner, [claim])
        elif self.scalar is None:
            value = trace.claims.add_to_value(self.value, claim, trace.location())
        else:  # stays a number, with a weak dtype
            trace.claims.add(claim)
            return self.duplicate()
        return Tracer(value, trace, weak=self.weak, origin=self.origin)

    @property
    def aval(self) -> Aval:
        """Shape, dtype and weak type, as one object. Equal ones are the same.

        Over a mesh of Explicit axes it has the sharding.
        """
        if (types := self.trace.types) is not None:
            sharding = types.of(self._value, self.ndim)
            return intern_aval(self.shape, self.dtype, sharding, False, self.weak)
        return intern_host_aval(self.shape, self.dtype, self.weak)

    @property
    def sharding_type(self) -> NamedSharding | None:
        """The sharding in its type, over a mesh with Explicit or Manual axes; else None."""
        types = self.trace.types
        return None if types is None else types.of(self._value, self.ndim)

    @property
    def mat(self) -> ManualAxisType:
        """How it differs between devices along the axes that `plugrt.shard_map` has bound."""
        types = self.trace.types
        return NO_MAT if types is None else types.mat(self._value)

    @property
    def weak_type(self) -> bool:
        """Whether the dtype yields to other operands', as a Python scalar's does."""
        return self.weak

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element on the host."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array on the host."""
        return self.size * self.dtype.itemsize

    @property
    def device(self) -> NoReturn:
        """Not known while tracing."""
        self._refuse("its device was requested", "ask outside of the traced function")

    def block_until_ready(self) -> Tracer:
        """Does nothing while tracing."""
        return self

    def _live(self) -> ir.Value:
        """Raises `LeakedTracer` unless it can be used here, as `Array` does when deleted."""
        return self.value

    def _refuse(self, what: str, cure: str) -> NoReturn:
        if not self.scope.open:
            raise LeakedTracer(leak_message(self))
        raise ConcretizationError(
            f"{what} of the traced array {self!r}{describe_origin(self)} while "
            f"{self.trace.name!r} is "
            f"traced, where arrays have no values yet: {cure}"
        )

    def __bool__(self) -> bool:
        self._refuse(
            "the truth value was requested (if, while, and, or, assert)",
            "use lax.cond, lax.while_loop or array_api.where, or make the argument static "
            "(static_argnums, static_argnames)",
        )

    def _scalar(self, target: str) -> NoReturn:
        self._refuse(
            f"a Python {target} was requested",
            "keep it an array, or make the argument static (static_argnums, static_argnames)",
        )

    def __int__(self) -> int:
        self._scalar("int")

    def __float__(self) -> float:
        self._scalar("float")

    def __complex__(self) -> complex:
        self._scalar("complex")

    def __index__(self) -> int:
        self._scalar("index")

    def item(self, *index: int) -> NoReturn:
        """Refused: there is no value yet."""
        self._scalar("scalar (item)")

    def tolist(self) -> NoReturn:
        """Refused: there is no value yet."""
        self._scalar("list (tolist)")

    def __array__(self, *_: object, **__: object) -> NoReturn:
        self._refuse(
            "a NumPy array was requested",
            "use functions of plugrt.array_api instead of NumPy's, or leave this part outside",
        )

    def __dlpack__(self, *_: object, **__: object) -> NoReturn:
        self._refuse("a DLPack capsule was requested", "leave this part outside")

    def __dlpack_device__(self) -> NoReturn:
        self._refuse("its DLPack device was requested", "ask outside of the traced function")

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentTypeError("len() of a 0-d array")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise ArgumentTypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __format__(self, spec: str) -> str:
        return self._scalar("formatted number") if spec else str(self)

    def __copy__(self) -> Tracer:
        return self.duplicate()

    def __deepcopy__(self, memo: dict[int, object]) -> Tracer:
        return self.duplicate()

    def __reduce__(self) -> tuple[object, ...]:
        self._refuse("a pickle was requested", "leave this part outside")

    def __repr__(self) -> str:
        weak = ", weak" if self.weak else ""
        return f"Tracer<{repr(self.aval).removeprefix('weak ')}{weak}>"


Array.tracer_class = Tracer
_SLOTS = [name for name in Tracer.__slots__ if name != "__weakref__"]


def with_own_tracers(result: Any, given: Sequence[Any]) -> Any:
    """Returns the results of a function, with new tracers in place of its arguments.

    So assigning to a result does not change an argument. ``given`` are the arguments: tracers, and
    containers of them.
    """
    if type(result) is Tracer:
        return result.duplicate() if _is_among(result, given) else result
    if type(result) in _CONTAINERS and any(_is_among(x, given) for x in pytrees.leaves(result)):
        return pytrees.map(lambda x: with_own_tracers(x, given), result)
    return result


def _is_among(x: object, given: Any) -> bool:
    for one in given:
        if one is x or (type(one) in _CONTAINERS and any(x is y for y in pytrees.leaves(one))):
            return True
    return False


_CONTAINERS = (tuple, list, dict)
_FAR = 1000
"""The number of operations after which the search for arguments stops."""


class HasOrigin(Protocol):
    """The attributes of a `Tracer` that these functions need."""

    @property
    def origin(self) -> str: ...
    @property
    def _value(self) -> ir.Value | None: ...


def describe_origin(tracer: HasOrigin) -> str:
    """Returns a clause such as ``, computed at train.py:12 from argument x,``; empty if unknown."""
    if tracer.origin:
        return f", which is {tracer.origin},"
    value = tracer._value
    if value is None or isinstance(value, ir.BlockArgument):
        return ""
    line = file_and_line(value.owner.location)
    names = _find_arguments(value)
    made = f" at {line[0]}:{line[1]}" if line else ""
    of = f" from argument{'s' if len(names) > 1 else ''} {', '.join(names)}" if names else ""
    return f", computed{made}{of}," if made or of else ""


def _find_arguments(value: ir.Value) -> list[str]:
    names: dict[str, None] = {}
    waiting, seen = [value], 0
    known: set[ir.Value] = set()
    while waiting and seen < _FAR:
        value = waiting.pop()
        if value in known:
            continue
        known.add(value)
        seen += 1
        if isinstance(value, ir.BlockArgument):
            if name := name_at(value.location):
                names[name] = None
        else:
            waiting += value.owner.operands
    return sorted(names)
