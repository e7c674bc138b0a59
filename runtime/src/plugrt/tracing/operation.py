"""`operation`: turns a function that emits StableHLO into an eager and traceable operation."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MethodType
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar, overload

import numpy as np

from plugrt.errors import (
    ArgumentTypeError,
    DtypeError,
    NotAnArray,
    UnhashableStaticArgument,
    Unimplemented,
)
from plugrt.execution.arrays.arguments import (
    TracedType,
    as_arrays,
    quick_avals,
    read_arguments,
)
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_types import is_registered
from plugrt.execution.arrays.aval import Aval
from plugrt.execution.arrays.host_data import needs_unsigned
from plugrt.execution.launches.flat_calls import FlatCall, static_key
from plugrt.execution.launches.pipeline import Pipeline, Runner
from plugrt.execution.launches.programs import resolve_launch
from plugrt.execution.placement.placement import Launch
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import PYTHON_ERRORS, refuse
from plugrt.native.known_dtypes import is_key_dtype
from plugrt.settings.options import Token
from plugrt.stablehlo.bindings import MLIRError
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import active_trace, refuse_keys, strong, with_weakness
from plugrt.tracing.explicit_axes import read_sharding
from plugrt.tracing.key_words import by_words, is_key
from plugrt.tracing.promotion import is_weak_result
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace import Trace, current_trace
from plugrt.tracing.trace_function import make_parameters, stage
from plugrt.tracing.traceable import P, R, Traceable, public_signature
from plugrt.tracing.tracer import Tracer, with_own_tracers

X = TypeVar("X")
_ONE_ARRAY = ("Tracer", "Array")
"""The annotations of parameters that accept one array, and no container of arrays."""
_FROM_INSIDE = (*PYTHON_ERRORS, MLIRError, RuntimeError)
_CONTAINERS = (type(None), list, tuple, dict)
ARRAYS = (Tracer, Array, np.ndarray, np.generic, bool, int, float, complex)
"""The types accepted as arrays."""
_SCALARS = (float, int, bool, complex)
_ONLY_TRACERS = {Tracer}
_OF_ARRAYS = (Tracer, Array, np.ndarray)

_UINT64 = "LQ"
_OUT = "out_sharding"

OfKeys: TypeAlias = Literal["none", "body", "each", "all", "any"]
"""How an operation treats random keys; see `operation`."""
WeakBy: TypeAlias = Sequence[str] | Literal["all", "none", "body"]
"""The rules by which the results of an operation are weak or not; see `operation`."""


class Operation(Traceable[P, R]):
    """A function of arrays that emits StableHLO, callable on arrays and on tracers.

    On tracers its body runs in place. On arrays it is staged, compiled and run, and the program is
    kept for arguments with the same avals and the same static values: an operation is one
    launch, however many StableHLO operations it emits.
    """

    __name__: str  # `update_wrapper` sets it

    def __init__(
        self,
        body: Callable[P, R],
        static: Sequence[str],
        eager: bool,
        weak_by: WeakBy,
        title: str = "",
        shards: bool = False,
        keys: OfKeys = "none",
        keyed: Sequence[str] = (),
    ) -> None:
        functools.update_wrapper(self, body)
        self._body = body
        self._title = title or body.__name__.lstrip("_")
        self._static = frozenset(static)
        self._shards = shards
        self._keys = keys
        self._eager_only = eager
        self._donates: frozenset[int] = frozenset()
        self._options = (static, eager, weak_by, title, shards, keys, keyed)
        signature = inspect.signature(body)
        self.__signature__ = public_signature(body, shards)
        if shards:
            self._static |= {_OUT}
        self._names = [
            p.name
            for p in signature.parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        self._single = {
            p.name
            for p in signature.parameters.values()
            if p.annotation in _ONE_ARRAY and p.kind is not p.VAR_POSITIONAL
        }
        rest = [p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL]
        self._rest = rest[0] if rest else ""
        self._has_containers = bool(self._rest) or any(
            p.annotation not in _ONE_ARRAY and p.name not in self._static
            for p in signature.parameters.values()
        )
        self._body_decides = weak_by == "body"
        named = () if weak_by in ("body", "none") else weak_by
        self._weak_by = frozenset(signature.parameters if named == "all" else named) - self._static
        self._keyed = frozenset(keyed) or self._weak_by or frozenset(signature.parameters)
        self._all_decide = self._weak_by == set(signature.parameters) - self._static
        unknown = (self._static | self._weak_by) - set(self.__signature__.parameters)
        if unknown:
            raise TypeError(f"{body.__qualname__} has no parameter {sorted(unknown)}")
        numbers = (i for i, name in enumerate(self._names) if name in self._static)
        self._keep_in(Pipeline(), frozenset(numbers), self._static)

    def clear(self) -> None:
        """Forgets the compiled programs."""
        self._pipeline.clear()

    def donating_first(self) -> Operation[P, R]:
        """Returns the same operation with its first argument, an array, donated."""
        made = Operation(self._body, *self._options)
        made._donates = frozenset((0,))
        return made

    def __get__(self, instance: Any, owner: object = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<operation {self.__name__}>"

    def _flatten(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], read: Sequence[Any] = ()
    ) -> FlatCall:
        return FlatCall.read(args, kwargs, *self._statics, read)

    def _read(self, call: FlatCall, token: Token) -> tuple[Sequence[Any], list[Aval]]:
        for where, value in call.statics:
            self._must_hash(where, value)
        leaves = _with_unsigned(call.leaves)
        if (avals := quick_avals(leaves, token)) is not None:
            return as_arrays(leaves), avals
        names = self._check(call)
        title = self._title
        return read_arguments(leaves, lambda i: f"argument {names[i]!r} of {title}", token)

    def _make_runner(self, key: Any, call: FlatCall, avals: Sequence[Aval]) -> Runner:
        names = self._check(call)
        head = (call.spec, call.static_key)
        trace = functools.partial(self._trace, call, names)
        return self._pipeline.get_runner(
            key, head, avals, trace, _place, self._title, is_operation=True
        )

    def _check(self, call: FlatCall) -> list[str]:
        """Returns the name of each leaf's parameter; raises for a call that cannot be traced."""
        names: list[str] = []
        for name, value in self._bind_names(*call.rebuild(call.leaves)):
            if name in self._static:
                continue
            if type(value) in _CONTAINERS and name in self._single:
                raise self._make_not_an_array(name, value)
            for leaf in pytrees.leaves(value):
                if not isinstance(leaf, ARRAYS) and not is_registered(leaf):
                    raise self._make_not_an_array(name, leaf)
                names.append(name)
        return names

    def _must_hash(self, where: int | str, value: object) -> None:
        try:
            hash(static_key(value))
        except TypeError as error:
            name = self._names[where] if isinstance(where, int) else where
            raise UnhashableStaticArgument(
                f"argument {name!r} of {self!r} must be known when the program is made, and "
                f"{type(value).__qualname__} cannot be hashed; pass Python numbers, strings, tuples"
            ) from error

    def _bind_names(self, args: Sequence[object], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
        if len(args) > len(self._names) and not self._rest:
            others = [name for name in self.__signature__.parameters if name not in self._names]
            raise ArgumentTypeError(
                f"{self._title} takes {len(self._names)} arguments by position "
                f"({', '.join(self._names)}); got {len(args)}"
                + (f". By name it takes {', '.join(others)}" if others else "")
            )
        named = list(zip(self._names, args, strict=False))
        if len(args) > len(self._names):
            named.append((self._rest, list(args[len(self._names) :])))
        named.extend(kwargs.items())
        return named

    def _make_not_an_array(self, name: str, leaf: object) -> ArgumentTypeError | NotAnArray:
        parameters = list(self.__signature__.parameters)
        if name not in parameters:
            return ArgumentTypeError(
                f"{self._title} has no parameter {name!r}; it takes {', '.join(parameters)}"
                + (" (array_api.astype converts)" if name == "dtype" else "")
            )
        return NotAnArray(
            f"argument {name!r} of {self._title} is {leaf!r:.60} of type "
            f"{type(leaf).__module__}.{type(leaf).__qualname__}, which is not an array; pass "
            "arrays or scalars (array_api.asarray makes an array of nested lists)"
        )

    def _refuse(self, error: Exception, args: Sequence[object], kwargs: dict[str, Any]) -> NoReturn:
        """Raises `ArgumentTypeError` for an argument of a kind that the body did not expect."""
        passed = [
            (n, v) for n, v in self._bind_names(args, kwargs) if not isinstance(v, _OF_ARRAYS)
        ]
        refuse(self._title, error, passed)

    def _call_in_trace(self, trace: Trace, args: tuple[object, ...], kwargs: dict[str, Any]) -> R:
        if self._eager_only or (not kwargs and {*map(type, args)} == _ONLY_TRACERS):
            if trace.has_keys:
                return self._apply_to_keys(args, kwargs, (args, kwargs))
            return self._apply(args, kwargs, (args, kwargs))
        new_args = [
            self._convert_leaves(self._names[i] if i < len(self._names) else self._rest, a)
            for i, a in enumerate(args)
        ]
        new_kwargs = {name: self._convert_leaves(name, a) for name, a in kwargs.items()}
        apply = self._apply_to_keys if trace.has_keys else self._apply
        return apply(new_args, new_kwargs, (args, kwargs))

    def _apply_to_keys(
        self, args: Sequence[Any], kwargs: dict[str, Any], given: tuple[Any, dict[str, Any]]
    ) -> R:
        """Returns what `_apply` does, in a trace that has arrays of random keys."""
        if self._eager_only or self._keys == "body":
            return self._apply(args, kwargs, given)
        deciding: list[Tracer] = []
        for name, value in self._bind_names(tuple(args), kwargs):
            if name in self._static:
                continue
            leaves = [x for x in pytrees.leaves(value) if type(x) is Tracer]
            if self._keys == "none" or name not in self._keyed:
                refuse_keys(self._title, leaves)
            else:
                deciding += leaves
        if any(map(is_key, deciding)) and not all(map(is_key, deciding)):
            found = ", ".join(dict.fromkeys(x.dtype.name for x in deciding))
            raise DtypeError(
                f"{self._title} does not accept random keys together with numbers: got {found}"
            )
        result: R = by_words(self._keys, lambda *a, **k: self._apply(a, k, given), *args, **kwargs)
        return result

    def _apply(
        self, args: Sequence[Any], kwargs: dict[str, Any], given: tuple[Any, dict[str, Any]]
    ) -> R:
        """Returns the body's results; weak where the common dtype of its operands is.

        ``given`` is the call as it was made, for messages.
        """
        if self._shards and _OUT in kwargs:
            kwargs = dict(kwargs)
            if (out := kwargs.pop(_OUT)) is not None:
                return self._apply_divided(args, kwargs, given, out)
        try:
            result: R = self._body(*args, **kwargs)
        except _FROM_INSIDE as error:
            self._refuse(error, *given)
        result = with_own_tracers(result, (*args, *kwargs.values()) if kwargs else args)
        if self._eager_only or self._body_decides:
            return result
        return in_weakness(result, self._is_weak(args, kwargs))

    def _apply_divided(
        self,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        given: tuple[Any, dict[str, Any]],
        out: object,
    ) -> R:
        """Returns results with the sharding ``out_sharding``; inside, the compiler chooses."""
        what = f"out_sharding of {self._title}"
        sharding = read_sharding(out, what, current_trace())
        trace = active_trace()
        types, location = trace.typed_over(sharding.mesh), trace.location()
        leaves = pytrees.flatten((tuple(args), kwargs))[0]
        values = {x.value for x in leaves if type(x) is Tracer and x.scalar is None}
        try:
            with types.leaving_open():
                results, structure = pytrees.flatten(self._apply(args, kwargs, given))
                asked = [types.asked(x.value, sharding, values, location) for x in results]
        except Unimplemented:
            summed, own = _add_up((tuple(args), kwargs), what)
            if not summed:
                raise
            return self._apply_divided(own[0], own[1], given, out)
        made = [
            (x if value is x.value else Tracer(value, trace, weak=x.weak)).constrained(one, what)
            for x, (value, one) in zip(results, asked, strict=True)
        ]
        result: R = pytrees.unflatten(structure, made)
        return result

    def _is_weak(self, args: Sequence[object], kwargs: dict[str, Any]) -> bool:
        if not self._weak_by or kwargs.get("dtype") is not None:
            return False
        deciding: Any = args
        if kwargs or not self._all_decide:
            deciding = [x for n, x in self._bind_names(tuple(args), kwargs) if n in self._weak_by]
        if self._has_containers:
            deciding = pytrees.flatten(deciding)[0]
        for x in deciding:
            if type(x) is Tracer and (x.weak or x.dtype.char in _UINT64):
                return is_weak_result([(x.dtype, x.weak) for x in deciding if type(x) is Tracer])
        return False  # most operations have neither weak operands nor uint64

    def _convert_leaves(self, name: str, value: object) -> Any:
        if type(value) is Tracer or name in self._static:
            return value
        if type(value) in _SCALARS:
            return as_tracer(value)
        if value is None or isinstance(value, tuple | list | dict):
            if name in self._single:
                raise self._make_not_an_array(name, value)
            return pytrees.map(lambda leaf: self._convert_leaves(name, leaf), value)
        if not isinstance(value, ARRAYS) and not is_registered(value):
            raise self._make_not_an_array(name, value)
        return as_tracer(value, f"argument {name!r} of {self._title}")

    def _trace(self, call: FlatCall, names: list[str], types: Sequence[TracedType]) -> Staged:
        def apply(*tracers: Tracer) -> Any:
            args, kwargs = call.rebuild(tracers)
            apply = self._apply_to_keys if any(map(is_key, tracers)) else self._apply
            return apply(args, kwargs, call.rebuild(call.leaves))

        staged = stage(apply, make_parameters(types, names, self._donates), name=self._title)
        if not staged.plan.unpaired:
            return staged
        return replace(staged, plan=replace(staged.plan, unpaired=()))  # the user cannot avoid it


def _with_unsigned(leaves: Sequence[Any]) -> Sequence[Any]:
    """Returns leaves with Python integers beyond int32 as uint32, beside an array of that or keys.

    As parameters they would be of 64 bits, and nothing would be known of their values.
    """
    if not any(map(needs_unsigned, leaves)):
        return leaves
    dtypes = [getattr(x, "dtype", None) for x in leaves]
    if not any(dtype == np.uint32 or is_key_dtype(dtype) for dtype in dtypes):
        return leaves
    return [np.uint32(x) if needs_unsigned(x) else x for x in leaves]


def _add_up(given: Any, what: str) -> tuple[bool, Any]:
    """Returns whether any argument is unreduced, and the arguments with their sums instead."""
    leaves, structure = pytrees.flatten(given)
    changed = False
    for i, x in enumerate(leaves):
        found = x.sharding_type if type(x) is Tracer else None
        if found is not None and found.spec.unreduced:
            whole = NamedSharding(found.mesh, found.spec.update(unreduced=frozenset()))
            leaves[i], changed = x.constrained(whole, what), True
    return changed, pytrees.unflatten(structure, leaves)


def in_weakness(result: X, weak: bool) -> X:
    """Returns arrays as weak ones, whose dtype yields in promotion, or as strong ones.

    Arrays that change are new objects, since a body may return one of its arguments.
    """
    made: Any = result
    if type(made) is Tracer and made.weak != weak:
        made = with_weakness(strong(made), weak)
    elif type(made) in (tuple, list):
        made = type(made)(in_weakness(part, weak) for part in made)
    weakened: X = made
    return weakened


def _place(staged: Staged, avals: Sequence[Aval]) -> Launch:
    return resolve_launch(staged, avals, all_count=True)


# Operation[..., Any]: bodies receive tracers, and callers pass arrays and scalars as well.
@overload
def operation(body: Callable[..., object]) -> Operation[..., Any]: ...


@overload
def operation(
    *,
    static: Sequence[str] = (),
    eager: bool = False,
    weak_by: WeakBy = "all",
    title: str = "",
    shards: bool = False,
    keys: OfKeys = "none",
    keyed: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Operation[..., Any]]: ...


def operation(
    body: Callable[..., object] | None = None,
    *,
    static: Sequence[str] = (),
    eager: bool = False,
    weak_by: WeakBy = "all",
    title: str = "",
    shards: bool = False,
    keys: OfKeys = "none",
    keyed: Sequence[str] = (),
) -> Any:
    """Decorator: makes an `Operation` of a function that emits StableHLO on its array arguments.

    In the body, array parameters (also those inside lists, tuples and dicts) are tracers. The
    parameters named in ``static`` arrive as they were passed and must be hashable (lists count).
    Bodies may call other operations. With ``eager`` the function itself also runs for tracers,
    untouched.

    Results are weak if the common dtype of the arguments named in ``weak_by`` is
    (`is_weak_result`); "all" stands for all arguments that are arrays, "none" for results that are
    never weak; with "body" the body decides. ``title`` is the operation's name for users, in
    messages and as the program's name, if the function has another name. With ``shards`` it has a
    parameter ``out_sharding``, the sharding of its result over Explicit axes.

    ``keys`` selects the treatment of arrays of random keys: "none" refuses them, "body" leaves
    them to the body; for the other values the body is called once for each word: "each" makes keys
    of the results, "all" and "any" join booleans (`by_words`). Then all or none of the arguments
    named in ``keyed``, or else in ``weak_by``, are keys; other arguments never are.
    """
    if body is None:
        return lambda f: Operation(f, static, eager, weak_by, title, shards, keys, keyed)
    return Operation(body, static, eager, weak_by, title, shards, keys, keyed)
