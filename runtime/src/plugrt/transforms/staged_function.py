"""`StagedFunction`: how `jit` and `pmap` trace a function, place it, and stop before the call."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from plugrt.execution.arrays.arguments import ParameterType
from plugrt.execution.launches.float_checks import Rerun, put_host_arrays
from plugrt.execution.placement.placement import CompilerOptions
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.frames.traceback_filter import with_user_frames
from plugrt.interface import Device
from plugrt.settings.declarations import config
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.mapped_axes import AxisKey
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace_function import make_parameters, stage
from plugrt.tracing.tracer import Tracer
from plugrt.transforms.cached_function import CachedFunction, P, R
from plugrt.transforms.call_arguments import ArgumentRules, Bound
from plugrt.transforms.shape_dtype_struct import describe_avals
from plugrt.transforms.stages import Lowered, Traced


class StagedFunction(CachedFunction[P, R]):
    """A function that is traced, placed by a `Launch`, and compiled: one way for all of them.

    What a kind of them adds is what is traced (`_make_stager`), and where it is launched
    (`_launch`).
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
        super().__init__(function, rules, (*options, keep_unused, compiler_options))

    @with_user_frames
    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """Returns the function traced for these arguments, ready to be compiled.

        Arrays may be stood in for by anything with ``shape`` and ``dtype``.
        """
        return self.trace(*args, **kwargs).lower()

    @with_user_frames
    def trace(self, *args: object, **kwargs: object) -> Traced:
        """Returns the function traced for these arguments (see `lower`); of pmap, one replica."""
        bound = self._bind(args, kwargs)
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

        They have the shardings that are known before the call: those of pmap, and of
        ``out_shardings``.
        """
        return self.trace(*args, **kwargs).out_info

    def __repr__(self) -> str:
        return f"<{self._kind} {self._rules.title}>"

    # --- what kinds of them differ in -------------------------------------------------------

    def _widen(self, bound: Bound, types: Sequence[ParameterType]) -> Sequence[ParameterType]:
        """Returns the types that one trace has for those of the arguments."""
        return types

    def _is_placed(self) -> bool:
        """Whether it is known without devices for the arguments where it runs."""
        return False

    def _where(self) -> Device | None:
        """Returns the device that the options name, None where they name none."""
        return None

    def _donated(self, bound: Bound, types: Sequence[ParameterType]) -> frozenset[int]:
        """Returns the numbers of the leaves that are donated."""
        return self._rules.donated(bound)

    def _run_operations(self, bound: Bound) -> Any:
        """Calls the function operation by operation."""
        return self._make_flat(bound)(*bound.leaves)

    # --- what they share --------------------------------------------------------------------

    def _make_stager(self, bound: Bound) -> Callable[[Sequence[ParameterType]], Staged]:
        def trace(types: Sequence[ParameterType]) -> Staged:
            types = self._widen(bound, types)
            donated = self._donated(bound, types)
            return self._stage(self._make_flat(bound), bound, types, {}, donated=donated)

        return trace

    def _stage(
        self,
        function: Callable[..., Any],
        bound: Bound,
        types: Sequence[ParameterType],
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

    def _tracers(self, bound: Bound) -> list[Tracer]:
        """Returns the leaves of a call while another function is traced."""
        title, names = self._rules.title, self._rules.names(bound)
        return [
            as_tracer(leaf, f"argument {name} of {title!r}")
            for leaf, name in zip(bound.leaves, names, strict=True)
        ]

    def _make_rerun(self, bound: Bound, keep: Any = None) -> Rerun | None:
        """Returns a function that repeats a call operation by operation: the one at fault raises.

        It holds what it needs of the call, and the function weakly, unless ``keep`` is that.
        """
        structure, statics, nodes = bound.structure, bound.statics, bound.nodes
        function = weakref.ref(self)

        def rerun(values: Sequence[Any]) -> None:
            again = keep or function()
            if again is not None:
                arrays = put_host_arrays(values)
                call = Bound(arrays, structure, statics, nodes)
                with config.override(disable_jit=True):
                    again._run_operations(call)

        return rerun
