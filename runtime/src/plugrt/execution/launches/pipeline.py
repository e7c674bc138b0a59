"""`Pipeline`: the path from a call to a launch, and its caches."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from plugrt import monitoring
from plugrt.base import bounded_cache
from plugrt.base.bounded_cache import BoundedCache
from plugrt.execution.arrays.arguments import TracedType, as_arrays, traced_types
from plugrt.execution.arrays.aval import Aval, is_placed
from plugrt.execution.arrays.sharers import count_ended, trace_state
from plugrt.execution.arrays.transfer_guard import Direction, check_transfer, is_transfer
from plugrt.execution.executables.launch_log import LaunchLog
from plugrt.execution.launches.float_checks import Rerun, add_float_checks
from plugrt.execution.launches.loaded_program import LoadedProgram, Run
from plugrt.execution.launches.native_runner import compile_runner
from plugrt.execution.launches.programs import TracedProgram, load
from plugrt.execution.placement.placement import Launch
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.native.native_core import core
from plugrt.settings.declarations import config
from plugrt.settings.options import Token


@with_argument_errors
def clear_caches() -> None:
    """Empties every cache of traced and compiled programs; the next calls compile again.

    >>> plugrt.clear_caches()
    """
    bounded_cache.clear(interned=False)


RunnerCache = BoundedCache[object, Callable[[Sequence[object]], Any]]
if core is not None and not TYPE_CHECKING:

    class RunnerCache(BoundedCache):
        """A cache that tells the core about evictions: it keeps the runner of the last call."""

        __slots__ = ()

        def pop(self, *args):
            found = super().pop(*args)
            core.forget_runners(self)
            return found

        def clear(self):
            super().clear()
            core.forget_runners(self)


T = TypeVar("T", bound=TracedProgram)

Changes: TypeAlias = tuple[int, object]
Runner = Callable[[Sequence[object]], Any]
"""Takes the flat arguments of a call and returns the pytree of results."""


class Pipeline(Generic[T]):
    """The cached traces and runners of one function under one set of options.

    The keys of ``calls`` have all settings and the structure, static values and avals of the
    arguments; its values are `Runner` functions. The keys of ``traces`` have the settings that
    affect tracing, and types instead of avals, without the arguments' devices; its values are
    traced functions. A function that is traced at each call uses ``compiled`` alone, which holds
    the executables of equal programs.
    """

    __slots__ = ("__weakref__", "_has_reads", "calls", "compiled", "traces")

    def __init__(self) -> None:
        self._has_reads = False
        self.calls = RunnerCache(4096)
        self.traces: BoundedCache[Any, T] = BoundedCache(1024)
        self.compiled: BoundedCache[Any, object] = BoundedCache(64)

    def get_runner(
        self,
        key: tuple[Any, ...],
        head: Hashable,
        avals: Sequence[Aval],
        trace: Callable[[Sequence[TracedType]], T],
        place: Callable[[T, Sequence[Aval]], Launch],
        what: str,
        rerun: Rerun | None = None,
        is_operation: bool = False,
    ) -> Runner:
        """Returns the cached runner for a key, for calls with arguments of these avals.

        ``head`` represents the structure and the static values of the call. If nothing is cached,
        ``trace`` returns the traced function for the arguments' types and ``place`` its launch.
        ``what``, ``rerun`` and ``is_operation`` serve the debug checks.
        """

        def make() -> Runner:
            traced = self._find_traced(token, head, avals, trace)
            program = load(traced, place(traced, avals))
            tree = traced.out_tree
            return make_runner(program, tree, avals, what, rerun, is_operation, token)

        before, token = count_changes(), key[0]
        try:
            return self.calls.get_or_make(key, make)
        finally:  # a trace is also kept if placing or compiling it fails
            self.forget_since(before, token)

    def trace_anew(
        self,
        avals: Sequence[Aval],
        trace: Callable[[Sequence[TracedType]], T],
        place: Callable[[T, Sequence[Aval]], Launch],
        what: str,
        rerun: Rerun | None = None,
    ) -> Runner:
        """Returns the runner of one call; the values that its function captures may have changed.

        As `get_runner`, but always traces the function. A program that equals one of an earlier
        call is not compiled again.
        """
        traced = trace(traced_types(avals)).sharing_compiled(self.compiled)
        program = load(traced, place(traced, avals))
        return make_runner(program, traced.out_tree, avals, what, rerun)

    def get_traced(
        self,
        head: Hashable,
        avals: Sequence[Aval],
        trace: Callable[[Sequence[TracedType]], T],
    ) -> T:
        """Returns the function traced for arguments of these avals."""
        before, token = count_changes(), config.token()
        traced = self._find_traced(token, head, avals, trace)
        self.forget_since(before, token)
        return traced

    def _find_traced(
        self,
        token: Token,
        head: Hashable,
        avals: Sequence[Aval],
        trace: Callable[[Sequence[TracedType]], T],
    ) -> T:
        """Returns the traced function; the caller calls `forget_since`."""
        types = traced_types(avals)
        key = (token.trace, head, *types)
        traced = self.traces.get_or_make(key, lambda: self.remember_reads(trace(types)))
        if trace_state.trace is not None:
            trace_state.trace.reads.update(traced.plan.reads)
        return traced

    def remember_reads(self, traced: T) -> T:
        """Registers these caches to be emptied when an array that was read is assigned to."""
        for life in traced.plan.reads:
            self._has_reads = True
            life.add_reader(self)
        return traced

    def forget_since(self, before: Changes, token: Token) -> None:
        """Empties all caches if an array or a setting changed while a trace may have read it.

        ``before`` is the result of `count_changes` before the trace; ``token`` is in its key.
        """
        ended, moment = before
        is_assigned = self._has_reads and ended != count_ended()
        if is_assigned or moment is not config.moment or token is not config.token():
            self.clear()

    def clear(self) -> None:
        """Empties all caches."""
        self.calls.clear()
        self.traces.clear()
        self.compiled.clear()


def count_changes() -> Changes:
    """Returns the count of assignments to arrays that were read, and the settings' `moment`."""
    return count_ended(), config.moment


def make_runner(
    program: LoadedProgram,
    out_tree: pytrees.PyTreeSpec,
    avals: Sequence[Aval],
    what: str,
    rerun: Rerun | None = None,
    is_operation: bool = False,
    token: Token | None = None,
) -> Runner:
    """Returns the runner: places arguments of these avals, launches, checks, builds results.

    The settings of ``token``, by default this thread's, determine the checks.
    """
    token = token or config.token()
    settings = token.settings
    checked = bool(settings["debug_nans"] or settings["debug_infs"])
    run = _make_unrecorded(program, out_tree, avals, what, rerun, is_operation, checked)
    if token.guarded:
        run = guard_launches(run, program, avals)
    if settings["distributed_debug"]:
        run = _log_launches(run, program, avals)
    return _record_launches(run, program) if settings["record_launches"] else run


def _record_launches(run: Runner, program: LoadedProgram) -> Runner:
    name, platform = program.plan.name, program.launch.client.platform

    def run_recorded(values: Sequence[object]) -> object:
        start = time.perf_counter()
        try:
            return run(values)
        finally:
            seconds = time.perf_counter() - start
            monitoring.record_event_duration_secs(
                monitoring.LAUNCH, seconds, fun_name=name, platform=platform
            )

    return run_recorded


def _log_launches(run: Runner, program: LoadedProgram, avals: Sequence[Aval]) -> Runner:
    plan, launch, executable = program.plan, program.launch, program.executable
    if len(launch.devices) == 1 or executable is None:
        return run
    arguments = [f"{plan.describe(i)}: {avals[i]!r}" for i in plan.needed]
    write = LaunchLog(plan.name, executable, launch.devices, arguments).write

    def run_logged(values: Sequence[object]) -> object:
        write()
        return run(values)

    return run_logged


def _make_unrecorded(
    program: LoadedProgram,
    out_tree: pytrees.PyTreeSpec,
    avals: Sequence[Aval],
    what: str,
    rerun: Rerun | None,
    is_operation: bool,
    checked: bool,
) -> Runner:
    if checked:
        checking: Any = add_float_checks(program, avals, what, rerun, is_operation)
        return _take_scalars(avals, _unflatten_results(out_tree, checking))
    return compile_runner(
        program,
        out_tree,
        avals,
        lambda: _take_scalars(avals, _unflatten_results(out_tree, program.make_runner(avals))),
    )


def _take_scalars(avals: Sequence[Aval], run: Runner) -> Runner:
    """Returns ``run`` with NumPy's scalars among the arguments converted to arrays."""
    if not any(not (is_placed(k) or k.shape or k.weak) for k in avals):
        return run
    return lambda values: run(as_arrays(values))


def _unflatten_results(spec: pytrees.PyTreeSpec, run: Run) -> Runner:
    if pytrees.is_leaf_spec(spec):
        return lambda values: run(values)[0]
    if spec.type is tuple and all(pytrees.is_leaf_spec(s) for s in spec.children()):
        return lambda values: tuple(run(values))
    return lambda values: pytrees.unflatten(spec, run(values))


def guard_launches(
    run: Callable[[Sequence[object]], object], program: LoadedProgram, avals: Sequence[Aval]
) -> Callable[[Sequence[object]], object]:
    """Returns ``run`` after a check of the transfers that arguments of these avals need."""
    plan, launch = program.plan, program.launch
    needed: list[tuple[Direction, str, bool]] = []
    for i in plan.needed:
        aval, target = avals[i], launch.in_shardings[i]
        what = f"{plan.describe(i)} of {plan.name!r}, {aval.tensor_type}"
        if not is_placed(aval):
            needed.append(("host_to_device", f"{what}, to {target!r}", not aval.tensor_type.shape))
        elif is_transfer(aval.sharding, target):
            moved = f"{what}, from {aval.sharding!r} to {target!r}"
            needed.append(("device_to_device", moved, False))
    if not needed:
        return run

    def run_guarded(values: Sequence[object]) -> object:
        for direction, what, explicit in needed:
            check_transfer(direction, what, explicit=explicit)
        return run(values)

    return run_guarded
