"""`StagedFunction`: the base of `jit` and `pmap`, which traces, places and calls a function."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MethodType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, overload

from plugrt.base.weak_keys import WeakKeys
from plugrt.errors import NotAnArray
from plugrt.execution.arrays.arguments import TracedType, read_arguments
from plugrt.execution.arrays.array_making import with_own_arrays
from plugrt.execution.arrays.aval import Aval
from plugrt.execution.launches.flat_calls import FlatCall
from plugrt.execution.launches.float_checks import Rerun, put_host_arrays
from plugrt.execution.launches.pipeline import Pipeline, Runner
from plugrt.execution.placement.placement import CompilerOptions, Launch
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.frames.traceback_filter import with_user_frames
from plugrt.interface import Device
from plugrt.settings.declarations import config
from plugrt.settings.options import Token
from plugrt.tracing.cache_misses import explaining
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.mapped_axes import AxisKey
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace_function import make_parameters, stage
from plugrt.tracing.traceable import P, R, Traceable
from plugrt.tracing.tracer import Tracer
from plugrt.transforms.call_arguments import ArgumentRules
from plugrt.transforms.shape_dtype_struct import describe_avals
from plugrt.transforms.stages import Lowered, Traced

S = TypeVar("S")
Rest = ParamSpec("Rest")
# Process-wide: all wrappers of a function share it; an entry is removed with the function.
_pipelines: WeakKeys[Any, dict[Any, Pipeline[Staged]]] = WeakKeys()


def shared_pipeline(function: object, options: tuple[object, ...]) -> Pipeline[Staged]:
    """Returns the `Pipeline` that all wrappers of a function with these options share."""
    try:
        by_options = _pipelines.keep(function, {})
    except TypeError:  # neither weakly referable nor hashable: the wrapper keeps its own
        by_options = {}
    found = by_options.get(options)
    return by_options.setdefault(options, Pipeline()) if found is None else found


class StagedFunction(Traceable[P, R]):
    """The base of functions that are traced, placed by a `Launch`, and compiled.

    A subclass defines the function to trace (`_make_stager`) and the launch (`_launch`).
    """

    def __init__(
        self,
        function: Callable[P, R],
        rules: ArgumentRules,
        options: tuple[Hashable, ...],
        *,
        kind: str,
        keep_unused: bool = False,
        forward: bool = True,
        compiler_options: CompilerOptions = (),
    ) -> None:
        """``kind`` is the word for messages, ``forward`` is `stage`'s."""
        self._kind = kind
        self._keep_unused = keep_unused
        self._forward = forward
        self._compiler_options = compiler_options
        self._what = f"the output of {kind} {rules.title!r}"
        own = {**self.__dict__}  # a jitted function has others, which stay its own
        functools.update_wrapper(self, function)
        self.__dict__.update(own)
        self.__name__ = rules.title  # a partial has none
        self._function = function
        self._rules = rules
        pipeline = shared_pipeline(function, (*options, keep_unused, compiler_options))
        self._keep_in(pipeline, rules.static_nums, rules.static_names)

    @with_user_frames
    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """Returns the function traced for these arguments, ready to be compiled.

        Any object with ``shape`` and ``dtype`` may replace an array.
        """
        return self.trace(*args, **kwargs).lower()

    @with_user_frames
    def trace(self, *args: object, **kwargs: object) -> Traced:
        """Returns the function traced for these arguments (see `lower`); of pmap, one replica."""
        return self._trace(args, kwargs)

    def _trace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
        bound = self._flatten(args, kwargs)
        avals = describe_avals(bound.leaves, lambda i: self._rules.names(bound)[i])
        head = (bound.spec, bound.static_key)
        staged = self._pipeline.get_traced(head, avals, self._stager(bound, head))
        return Traced(
            staged,
            bound.spec,
            tuple(avals),
            self._where(),
            compiler_options=self._compiler_options,
            _rerun=self._make_rerun(bound, self),
            _placed=self._launch(bound, staged, avals) if self._is_placed() else None,
        )

    @with_user_frames
    def eval_shape(self, *args: object, **kwargs: object) -> Any:
        """Returns the pytree of results as shapes and dtypes, computing nothing.

        They have the shardings that are known before the call, from pmap or ``out_shardings``.
        """
        return self._trace(args, kwargs).out_info

    @with_argument_errors
    def clear_cache(self) -> None:
        """Drops the programs compiled for this function."""
        self._pipeline.clear()

    def _cache_size(self) -> int:
        return len(self._pipeline.traces)

    def __repr__(self) -> str:
        return f"<{self._kind} {self._rules.title}>"

    @overload
    def __get__(self, instance: None, owner: object = None) -> Self: ...
    @overload
    def __get__(
        self: StagedFunction[Concatenate[S, Rest], R], instance: S, owner: object = None
    ) -> Callable[Rest, R]: ...
    def __get__(self, instance: object, owner: object = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def _flatten(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], read: Sequence[Any] = ()
    ) -> FlatCall:
        return self._rules.bind(args, kwargs, read)

    def _read(self, call: FlatCall, token: Token) -> tuple[Sequence[Any], list[Aval]]:
        title = self._rules.title
        try:
            return read_arguments(
                call.leaves, lambda i: f"argument {self._rules.names(call)[i]} of {title!r}", token
            )
        except NotAnArray as error:
            raise NotAnArray(f"{error}{self._not_an_array_hint}") from None

    _not_an_array_hint = ""
    """The end of the message about a leaf that is no array."""

    def _make_runner(self, key: Any, call: FlatCall, avals: Sequence[Aval]) -> Runner:
        head = (call.spec, call.static_key)
        trace, rerun = self._stager(call, head), self._make_rerun(call)
        place = functools.partial(self._launch, call)
        return self._pipeline.get_runner(key, head, avals, trace, place, self._what, rerun)

    def _stager(self, bound: FlatCall, head: object) -> Callable[[Sequence[TracedType]], Staged]:
        """Returns `_make_stager`, which logs cache misses if ``explain_cache_misses`` is on."""
        make = self._make_stager(bound)
        if not config.explain_cache_misses:
            return make
        traces, names = self._pipeline.traces, self._rules.names(bound)
        return explaining(make, self._function, head, traces, names)

    _may_be_disabled = True

    def _run_disabled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the function operation by operation.

        The function gets copies, since it may assign to them, as to tracers.
        """
        args, kwargs = with_own_arrays((args, kwargs))
        return self._function(*args, **kwargs)

    def _launch(self, bound: FlatCall, staged: Staged, avals: Sequence[Aval]) -> Launch:
        """Returns the launch of the traced function for such a call."""
        raise NotImplementedError

    def _widen(self, bound: FlatCall, types: Sequence[TracedType]) -> Sequence[TracedType]:
        """Returns the wider types with which one trace serves several types of arguments."""
        return types

    def _is_placed(self) -> bool:
        """Whether its devices are known without the arguments' devices."""
        return False

    def _where(self) -> Device | None:
        """Returns the device in the options, or None."""
        return None

    def _donated(self, bound: FlatCall, types: Sequence[TracedType]) -> frozenset[int]:
        """Returns the numbers of the leaves that are donated."""
        rules = self._rules
        donates = rules.donate_nums or rules.donate_names
        return rules.donated(bound) if donates else frozenset()

    def _run_operations(self, bound: FlatCall) -> Any:
        """Calls the function operation by operation."""
        return self._make_flat(bound)(*bound.leaves)

    def _make_stager(self, bound: FlatCall) -> Callable[[Sequence[TracedType]], Staged]:
        def trace(types: Sequence[TracedType]) -> Staged:
            types = self._widen(bound, types)
            donated = self._donated(bound, types)
            return self._stage(self._make_flat(bound), bound, types, {}, donated=donated)

        return trace

    def _stage(
        self,
        function: Callable[..., Any],
        bound: FlatCall,
        types: Sequence[TracedType],
        axes: Mapping[AxisKey, int],
        mesh: AbstractMesh | None = None,
        donated: frozenset[int] = frozenset(),
    ) -> Staged:
        """Returns a function of flat arguments traced for these types, with these axes bound."""
        return stage(
            function,
            make_parameters(types, self._rules.names(bound), donated),
            name=self._rules.title,
            axes=axes,
            mesh=mesh,
            keep_unused=self._keep_unused,
            forward=self._forward,
        )

    def _make_flat(self, bound: FlatCall) -> Callable[..., Any]:
        """Returns the function of the flat leaves of a call like ``bound``."""

        def call(*leaves: object) -> Any:
            args, kwargs = bound.rebuild(leaves)
            return self._function(*args, **kwargs)

        return call

    def _tracers(self, bound: FlatCall) -> list[Tracer]:
        """Returns the leaves of a call while another function is traced."""
        title, names = self._rules.title, self._rules.names(bound)
        return [
            as_tracer(leaf, f"argument {name} of {title!r}")
            for leaf, name in zip(bound.leaves, names, strict=True)
        ]

    def _make_rerun(self, bound: FlatCall, keep: Any = None) -> Rerun | None:
        """Returns a function that repeats a call operation by operation, until one raises.

        It keeps the needed data of the call, and refers to the function weakly, unless ``keep`` is
        the function.
        """
        structure, statics, nodes = bound.structure, bound.statics, bound.nodes
        function = weakref.ref(self)

        def rerun(values: Sequence[Any]) -> None:
            again = keep or function()
            if again is not None:
                arrays = put_host_arrays(values)
                call = FlatCall(arrays, structure, statics, nodes)
                with config.override(disable_jit=True):
                    again._run_operations(call)

        return rerun
