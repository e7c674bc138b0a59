"""`CachedFunction`: the program cache and fast path shared by `jit` and `pmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from plugrt.base.weak_keys import WeakKeys
from plugrt.execution.arrays.arguments import ParameterType, read_arguments
from plugrt.execution.arrays.aval import Aval
from plugrt.execution.launches.float_checks import Rerun
from plugrt.execution.launches.pipeline import Pipeline, Runner
from plugrt.execution.placement.placement import Launch
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.frames.traceback_filter import filter_traceback
from plugrt.native.native_core import core
from plugrt.settings.declarations import config
from plugrt.settings.options import Token
from plugrt.tracing.cache_misses import explaining
from plugrt.tracing.staged import Staged
from plugrt.tracing.static_args import static_key
from plugrt.tracing.trace import Trace, _state, current_trace
from plugrt.transforms.call_arguments import ArgumentRules, Bound


def _filter_outside_traces(error: Exception) -> None:
    if current_trace() is None:
        filter_traceback(error)


class PythonCalls:
    """Calls in Python: read the arguments, find the runner or make it, run."""

    _general: Callable[[tuple[Any, ...], dict[str, Any], Token | None, Sequence[Any]], Any]
    _runners: dict[Any, Any]

    def _set_statics(self, numbers: frozenset[int], names: frozenset[str]) -> None:
        """Takes which arguments are static, for the core."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call_read(args, kwargs)

    def _call_read(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        token: Token | None = None,
        *read: Any,
    ) -> Any:
        """Makes a call. The core may have read the settings and the arguments."""
        try:  # costs nothing unless something is raised
            return self._general(args, kwargs or {}, token, read)
        except Exception as error:  # raised again without plugrt's frames
            _filter_outside_traces(error)
            raise


CallBase = PythonCalls
if core is not None and not TYPE_CHECKING:

    class CoreCalls(core.Calls):
        """The core's calls; those that it leaves to Python are `PythonCalls`'."""

        _call_in_python, _call_read = PythonCalls.__call__, PythonCalls._call_read

    CallBase = CoreCalls
    core.set_call_hooks(
        _state, _filter_outside_traces, static_key, pytrees.registered, pytrees.order_keys
    )
"""The first base of `plugrt.transforms.cached_function.CachedFunction`: the core's looks up the
runners of calls with arrays, host values and static ones, and leaves others to `PythonCalls`."""


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
Rest = ParamSpec("Rest")
_token = config.token
# Process-wide: a cache by the user's functions, which two jits share; goes with them.
_pipelines: WeakKeys[Any, dict[Any, Pipeline[Staged]]] = WeakKeys()


def shared_pipeline(function: object, options: tuple[object, ...]) -> Pipeline[Staged]:
    """Returns what all wrappers of a function with these options share; it is held weakly."""
    try:
        by_options = _pipelines.keep(function, {})
    except TypeError:  # neither weakly referable nor hashable: the wrapper keeps its own
        by_options = {}
    found = by_options.get(options)
    return by_options.setdefault(options, Pipeline()) if found is None else found


class CachedFunction(CallBase, Generic[P, R]):
    """A function whose calls are found by the avals of their arguments and launched.

    Calls with arrays alone find their program by one look-up; everything else goes through
    `_general`, which keeps runners in the pipeline's ``calls`` for both.
    """

    def __init__(
        self, function: Callable[P, R], rules: ArgumentRules, options: tuple[Any, ...]
    ) -> None:
        own = {**self.__dict__}  # those of a function that is jitted already are its own
        functools.update_wrapper(self, function)
        self.__dict__.update(own)
        self.__name__ = rules.title  # a partial has none
        self._function = function
        self._rules = rules
        self._pipeline = shared_pipeline(function, options)
        self._find = self._pipeline.calls.get
        self._runners = self._pipeline.calls
        self._set_statics(rules.static_nums, rules.static_names)

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    # --- slow path ----------------------------------------------------------------------

    def _general(
        self,
        args: tuple[object, ...],
        kwargs: dict[str, Any],
        token: Token | None,
        read: Sequence[Any],
    ) -> Any:
        if token is None:
            trace = current_trace()
            if trace is not None:
                return self._call_in_trace(trace, args, kwargs)
            token = _token()
        if self._may_be_disabled and token.settings["disable_jit"]:
            return self._run_disabled(args, kwargs)
        bound = self._bind(args, kwargs, read)
        values, avals = self._read(bound, token)
        if not self._reads_once:
            return self._trace_anew(bound, avals)(values)
        key = (token, bound.structure, *avals)
        try:
            run = self._find(key)
        except TypeError:  # metadata without a hash
            key = (token, (bound.spec, bound.static_key), *avals)
            run = self._find(key)
        return (run or self._make_runner(key, bound, avals))(values)

    def _make_runner(self, key: object, bound: Bound, avals: Sequence[Aval]) -> Runner:
        head = (bound.spec, bound.static_key)
        trace, rerun = self._stager(bound, head), self._make_rerun(bound)
        place = functools.partial(self._launch, bound)
        return self._pipeline.get_runner(key, head, avals, trace, place, self._what, rerun)

    def _trace_anew(self, bound: Bound, avals: Sequence[Aval]) -> Runner:
        trace, rerun = self._make_stager(bound), self._make_rerun(bound)
        place = functools.partial(self._launch, bound)
        return self._pipeline.trace_anew(avals, trace, place, self._what, rerun)

    def _bind(
        self, args: tuple[object, ...], kwargs: dict[str, Any], read: Sequence[Any] = ()
    ) -> Bound:
        """Returns the leaves of a call, their structure, and its static values."""
        return self._rules.bind(args, kwargs, read)

    def _read(self, bound: Bound, token: Token) -> tuple[Sequence[Any], list[Aval]]:
        """Returns the leaves of a call as launches take them, and their avals."""
        title = self._rules.title
        return read_arguments(
            bound.leaves, lambda i: f"argument {self._rules.names(bound)[i]} of {title!r}", token
        )

    _what: str
    """What was launched, in messages."""

    _reads_once = True
    """Whether what the function closes over is what it was when the function was first traced."""

    _may_be_disabled = True
    """Whether ``config.disable_jit`` has the function run operation by operation."""

    def _run_disabled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the function operation by operation, under ``config.disable_jit``."""
        return self._function(*args, **kwargs)

    def _call_in_trace(self, trace: Trace, args: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the function while another one is traced."""
        raise NotImplementedError

    def _stager(self, bound: Bound, head: object) -> Callable[[Sequence[ParameterType]], Staged]:
        """Returns `_make_stager`, which explains itself where that is asked for."""
        make = self._make_stager(bound)
        if not config.explain_cache_misses:
            return make
        traces, names = self._pipeline.traces, self._rules.names(bound)
        return explaining(make, self._function, head, traces, names)

    def _make_stager(self, bound: Bound) -> Callable[[Sequence[ParameterType]], Staged]:
        """Returns a function that traces this one for calls like ``bound``."""
        raise NotImplementedError

    def _launch(self, bound: Bound, staged: Staged, avals: Sequence[Aval]) -> Launch:
        """Returns where the traced function runs for such a call."""
        raise NotImplementedError

    def _make_rerun(self, bound: Bound) -> Rerun | None:
        """Returns a function that repeats a call to find the operation that made a NaN, if any."""
        return None

    @with_argument_errors
    def clear_cache(self) -> None:
        """Forgets the programs compiled for this function."""
        self._pipeline.clear()

    def _cache_size(self) -> int:
        return len(self._pipeline.traces)

    def _make_flat(self, bound: Bound) -> Callable[..., Any]:
        """Returns the function of the flat leaves of a call like ``bound``."""

        def call(*leaves: object) -> Any:
            args, kwargs = bound.rebuild(leaves)
            return self._function(*args, **kwargs)

        return call

    def __reduce__(self) -> str:
        # By name, as functions are: the module must hold this very object under it.
        return str(getattr(self, "__qualname__", repr(self)))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # as functions are

    @overload
    def __get__(self, instance: None, owner: object = None) -> Self: ...
    @overload
    def __get__(
        self: CachedFunction[Concatenate[S, Rest], R], instance: S, owner: object = None
    ) -> Callable[Rest, R]: ...
    def __get__(self, instance: object, owner: object = None) -> Any:
        return self if instance is None else MethodType(self, instance)
