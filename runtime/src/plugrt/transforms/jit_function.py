"""`JitFunction`: the result of `jit`, with a compiled program for each set of argument types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from plugrt.errors import ArgumentError
from plugrt.execution.arrays.arguments import TracedType
from plugrt.execution.arrays.aval import Aval
from plugrt.execution.launches.flat_calls import FlatCall
from plugrt.execution.launches.pipeline import count_changes
from plugrt.execution.launches.programs import resolve_launch
from plugrt.execution.placement.default_device import default_device_of
from plugrt.execution.placement.placement import CompilerOptions, Launch
from plugrt.execution.shardings import mesh_context
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.sharding_base import SingleDeviceSharding
from plugrt.execution.trees import pytrees
from plugrt.interface import Device
from plugrt.plugins.selection import backends
from plugrt.settings.declarations import config
from plugrt.tracing.inner_calls import call_in_trace, types_in_trace
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace import Trace
from plugrt.tracing.traceable import P, R
from plugrt.tracing.tracer import Tracer, with_own_tracers
from plugrt.transforms.call_arguments import ArgumentRules
from plugrt.transforms.jit_formats import (
    FormatPrefix,
    ask_shardings,
    constrain_arguments,
    constrain_results,
    constrain_sums,
    divide_types,
    place_formats,
    spread_arguments,
)
from plugrt.transforms.staged_function import StagedFunction

_token = config.token


class JitFunction(StagedFunction[P, R]):
    """A jitted function: calls trace, compile and launch; `lower` and `trace` stop earlier."""

    def __init__(
        self,
        function: Callable[P, R],
        rules: ArgumentRules,
        *,
        keep_unused: bool,
        device: Device | None,
        backend: str | None,
        inline: bool,
        compiler_options: CompilerOptions = (),
        formats: tuple[FormatPrefix, FormatPrefix] | None = None,
        of_with: bool = False,
        kind: tuple[Any, ...] = (),
    ) -> None:
        """``formats`` are the Formats of arguments and results, if there are layouts or memories.

        It runs on the mesh of ``with mesh:`` if ``of_with``. Functions of one ``kind`` share
        programs.
        """
        self._of_with = of_with
        self._formats = formats
        self._device = device
        self._backend = backend
        self._inline = inline
        options = (
            rules.static_nums,
            rules.static_names,
            rules.donate_nums,
            rules.donate_names,
            device,
            backend,
            formats and tuple(prefix.key for prefix in formats),
            of_with,
            *kind,
        )
        super().__init__(
            function,
            rules,
            options,
            kind="jitted",
            keep_unused=keep_unused,
            forward=formats is None or all(prefix.is_plain for prefix in formats),
            compiler_options=compiler_options,
        )

    def _call_in_trace(self, trace: Trace, args: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
        if self._compiler_options:
            raise ArgumentError(
                f"{self!r} was called while {trace.name!r} is traced, and has compiler_options "
                f"{dict(self._compiler_options)}: a program has one set of them, that of the "
                "outermost jit. Give them to that"
            )
        bound = self._flatten(args, kwargs)
        tracers, title = self._tracers(bound), self._rules.title
        device = self._device
        if self._backend is not None:  # traces do not depend on the default device
            device = backends.get_backend(self._backend).addressable_devices()[0]
        if device is not None:
            option = "device" if self._backend is None else "backend"
            here, what = SingleDeviceSharding(device), f"{option}= of jitted {title!r}"
            tracers = [tracer.constrained(here, what) for tracer in tracers]
        if self._formats is not None:
            tracers = constrain_arguments(self._formats[0], bound, tracers, title)
        if self._inline:
            given = [tracer.duplicate() for tracer in tracers]  # which the function may assign to
            results = with_own_tracers(self._make_flat(bound)(*given), given)
        else:
            results = call_in_trace(trace, self._trace_within(trace, bound, tracers), tracers)
        if self._formats is not None:
            results = constrain_results(self._formats[1], results, title)
        if device is not None:
            results = pytrees.map(lambda tracer: tracer.constrained(here, what), results)
        return results

    def _make_flat(self, bound: FlatCall) -> Callable[..., Any]:
        function = super()._make_flat(bound)
        if self._formats is None or not self._formats[1].has_sums:
            return function
        after, title = self._formats[1], self._rules.title
        return lambda *tracers: constrain_sums(after, function(*tracers), title)

    def _trace_within(self, trace: Trace, bound: FlatCall, tracers: Sequence[Tracer]) -> Staged:
        """Traces as a call outside of a trace does, but without donation and with bound axes."""
        types = self._widen(bound, types_in_trace(tracers))
        head: Any = (bound.spec, bound.static_key)
        if trace.axes or self._rules.donate_nums or self._rules.donate_names:
            checks = trace.types is not None and trace.types.checks
            head = (*head, "within", trace.mesh, checks, *trace.axes.items())
        before, token = count_changes(), _token()
        key = (token.trace, head, *types)
        staged = self._pipeline.traces.get(key)
        if staged is None:
            function = self._make_flat(bound)
            staged = self._stage(function, bound, types, trace.axes, trace.mesh)
            if not any(type(constant) is Tracer for constant in staged.plan.constants):
                self._pipeline.traces.keep(key, self._pipeline.remember_reads(staged))
                self._pipeline.forget_since(before, token)
        return staged

    def _make_stager(self, bound: FlatCall) -> Callable[[Sequence[TracedType]], Staged]:
        if self._formats is not None:  # before the function's own errors
            spread_arguments(self._formats[0], bound, len(bound.leaves))
        stager = super()._make_stager(bound)
        if self._formats is None:
            return stager
        before = self._formats[0]

        def trace(types: Sequence[TracedType]) -> Staged:
            return stager(divide_types(before, bound, types))

        return trace

    _not_an_array_hint = "; or make it static (static_argnums, static_argnames)"

    def _launch(self, bound: FlatCall, staged: Staged, avals: Sequence[Aval]) -> Launch:
        asked, formats = None, self._formats
        if formats is not None:
            results = pytrees.unflatten(staged.out_tree, staged.output_types)
            formats = formats[0].in_context(), formats[1].in_context()
            asked = ask_shardings(bound, len(avals), results, formats)
        mesh, where = self._mesh(), self._where()
        if mesh is not None and where is not None:
            raise ArgumentError(
                f"{self!r} has a device or a backend, and is called within a mesh, {mesh.brief}: "
                "leave one of them out"
            )
        launch = resolve_launch(staged, avals, where, asked=asked, mesh=mesh)
        if self._compiler_options:
            launch = replace(launch, compiler_options=self._compiler_options)
        if formats is None:
            return launch
        return place_formats(launch, bound, avals, results, staged, formats)

    def _is_placed(self) -> bool:
        named = self._formats is not None or self._device is not None
        return named or (self._mesh() or mesh_context.current().programs) is not None

    def _mesh(self) -> AbstractMesh | None:
        """Returns the mesh of ``with mesh:`` that it runs on."""
        return mesh_context.current().specs if self._of_with else None

    def _where(self) -> Device | None:
        if self._device is not None:
            return self._device
        if self._backend is not None:
            return default_device_of(backends.get_backend(self._backend))
        return None
