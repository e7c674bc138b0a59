"""`Trace`: one StableHLO module under construction, and the scopes of its tracers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from plugrt.errors import LeakedTracer
from plugrt.execution.arrays.casting import cast
from plugrt.execution.arrays.sharers import Life, trace_state
from plugrt.execution.placement.launch_shardings import AskedShardings
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.frames.traceback_filter import user_frame
from plugrt.interface import HostCallback, TensorType
from plugrt.native.finalizers import is_collecting_here, running
from plugrt.native.known_dtypes import is_key_dtype
from plugrt.settings.options import surroundings
from plugrt.stablehlo.bindings import ir, new_context
from plugrt.stablehlo.types import ir_type_to_tensor_type, tensor_type
from plugrt.tracing.mapped_axes import AxisKey, MappedAxes
from plugrt.tracing.mlir_constants import constant_value
from plugrt.tracing.operation_claims import AnyClaim, OperationClaims
from plugrt.tracing.sharding_types import ShardingTypes

R = TypeVar("R")


class Scope:
    """A region of the module that operations are being added to.

    A tracer belongs to the scope it was made in; it may be used there and in scopes nested within
    it, for as long as they are open. ``isolated`` scopes (function bodies) see outer tracers only
    as further arguments, which `Trace.mlir_value` adds.
    """

    __slots__ = (
        "block",
        "captured",
        "constants",
        "depth",
        "insertion",
        "isolated",
        "open",
        "parent",
    )

    def __init__(self, block: ir.Block, parent: Scope | None, isolated: bool) -> None:
        self.block = block
        self.parent = parent
        self.isolated = isolated
        self.open = True
        self.insertion = ir.InsertionPoint(block)
        self.captured: dict[int, tuple[object, ir.Value]] = {}
        self.constants: dict[object, ir.Value] = {}
        self.depth: int = 0 if parent is None else parent.depth + 1

    def is_around(self, other: Scope | None) -> bool:
        """Whether ``other`` is this scope or is nested in it."""
        while other is not None and other.depth >= self.depth:
            if other is self:
                return True
            other = other.parent
        return False


class Captured(NamedTuple):
    """A value captured by the traced function, and the parameter that it becomes."""

    source: object
    """The captured object, kept alive so that its id stays unique."""
    data: Any
    """An `Array`, a host array, or a tracer of a trace around this one."""
    value: ir.Value
    tracer: Any = None
    """The parameter as a tracer of this trace, unless ``data`` is a tracer."""


def current_trace() -> Trace | None:
    """Returns the trace that this thread is building, or None; in a finaliser its own.

    The garbage collector may run finalisers at any place, also while the module is inconsistent.
    Functions that they call run as outside of the interrupted trace: added to its module, their
    operations made programs invalid, and crashed.
    """
    trace: Trace | None = trace_state.trace
    if trace is None or not running or not is_collecting_here() or trace.of_finalizer:
        return trace
    return None


class Trace(MappedAxes):
    """A module that one thread builds, within `run`."""

    def __init__(
        self,
        name: str,
        axes: Mapping[AxisKey, int] | None = None,
        mesh: AbstractMesh | None = None,
    ) -> None:
        self.name = name
        super().__init__(axes or {}, mesh)
        self.context = new_context()
        self._unknown = ir.Location.unknown(self.context)
        with self.context, self._unknown:
            self.module = ir.Module.create()
        self.scope: Scope | None = None
        self.root: Scope
        """The body of ``main``."""
        self.captured: dict[object, Captured] = {}
        """The captured values, which are trailing parameters of the program: by id, an array by the
        ids of its buffers and of its aval."""
        self.reads: set[Life] = set()
        """The lives of the arrays whose values the function read; an assignment ends each."""
        self.aliases: dict[int, Captured] = {}
        """Other objects that equal a captured one, by id."""
        self.callbacks: dict[int, HostCallback] = {}
        """The Python functions that the program calls, by number."""
        self.claims = OperationClaims()
        """The facts within the program that determine its devices, and its pmaps."""
        self.asked: AskedShardings | None = None
        """The shardings that the program states for its arguments and results."""
        self.uses_chlo = False
        """Whether any operation is CHLO's, which backends need not support."""
        self.has_keys = False
        """Whether any value is an array of random keys."""
        self.asks_platform = False
        """Whether it has operations to resolve once the platform is known: conditionals on it, and
        plugrt's own operations."""
        self._types: dict[ir.Type, TensorType] = {}
        self._mlir_types: dict[tuple[tuple[int, ...], np.dtype[np.generic]], ir.Type] = {}
        self._locations: dict[tuple[int, int], tuple[ir.Location, CodeType]] = {}
        """By id of the code object, which is kept alive, since its hash would hash its constants.
        """
        self._outer: Trace | None = None
        """The trace within which this one is built; its tracers can be captured."""
        self.of_finalizer = False
        """Whether it is built in a finaliser that the garbage collector runs."""
        self.types: ShardingTypes | None = None
        """The types of values over a mesh; None outside of shard_map without Explicit axes."""
        self.has_casts = False
        """Whether the module has casts that change only `types`."""
        self.inner_count = 0
        self.channels = 0
        """The number of collectives of partitions: each has a channel."""
        self.functions: dict[int, tuple[object, str, Sequence[AnyClaim]]] = {}
        """Inner jitted functions in the module: the traced function, by id, its name, and the
        claims of each of its calls."""

    def typed_over(self, mesh: AbstractMesh) -> ShardingTypes:
        """Returns `types`, which it creates over ``mesh`` if the trace has none."""
        if self.types is None:
            self.types = ShardingTypes(mesh.abstract_mesh)
        return self.types

    def run(self, build: Callable[[], R]) -> R:
        """Calls ``build`` with this as the thread's trace, and returns its result.

        Python runs signal handlers where a Python function begins and after each call. So the code
        that reverts a change is written inline here, and calls only C functions: no interrupt can
        occur between a change and its ``try``, or before the last step of a ``finally``.
        """
        before = trace_state.trace
        self.of_finalizer = bool(running) and is_collecting_here()
        self._outer = current_trace()
        try:
            self._unknown.__enter__()
            surroundings.change(trace_state, "trace", self)
            result = build()
            if self._outer is not None:
                self._outer.reads |= self.reads
            return result
        finally:
            try:
                surroundings.change(trace_state, "trace", before)
            finally:
                self._unknown.__exit__(None, None, None)

    def run_inside(
        self, block: ir.Block, build: Callable[[Scope], R], *, isolated: bool = False
    ) -> R:
        """Calls ``build``, which adds operations to ``block``, and returns its result.

        An interrupt leaves nothing behind, as in `run`.
        """
        outer = self.scope
        scope = Scope(block, outer, isolated)
        if outer is None:
            self.root = scope
        try:
            scope.insertion.__enter__()
            self.scope = scope
            return build(scope)
        finally:
            scope.open = False
            self.scope = outer
            scope.insertion.__exit__(None, None, None)

    def mlir_value(self, tracer: Any) -> ir.Value:
        """Returns the MLIR value of a tracer as seen from here.

        Raises `LeakedTracer` if the tracer belongs to another trace or to a scope that is closed.
        """
        if tracer.trace is not self:
            return self._value_from_outside(tracer)
        scope = self.scope
        # A closed scope encloses no open one, so one check also covers closed scopes.
        if tracer.scope is not scope and not tracer.scope.is_around(scope):
            raise LeakedTracer(leak_message(tracer))
        if tracer._value is None:  # a Python scalar: a constant wherever it is used
            return constant_value(self, cast(tracer.scalar, tracer.dtype))
        if tracer.scope is scope:
            return tracer._value
        return self._find_captured_value(tracer, scope)

    def _value_from_outside(self, tracer: Any) -> ir.Value:
        """Returns a value of a trace around this one as a trailing parameter of this one's."""
        outer = self._outer
        while outer is not None and outer is not tracer.trace:
            outer = outer._outer
        if outer is None or not tracer.scope.is_around(outer.scope):
            raise LeakedTracer(leak_message(tracer))
        if tracer._value is None:
            return constant_value(self, cast(tracer.scalar, tracer.dtype))
        found = self.captured.get(id(tracer))
        if found is None:
            parameter_type = self.mlir_type(tracer.shape, tracer.dtype)
            value = self.root.block.add_argument(parameter_type, self._unknown)
            found = self.captured[id(tracer)] = Captured(tracer, tracer, value)
            if self.types is not None:
                self.types.copy(value, tracer._value, tracer.trace.types)
        return found.value

    def _find_captured_value(self, tracer: Any, scope: Scope | None) -> ir.Value:
        # Walks out to the tracer's scope; each isolated scope between adds it as an argument.
        if scope is None or tracer.scope is scope:
            return tracer._value
        if not scope.isolated:
            return self._find_captured_value(tracer, scope.parent)
        found = scope.captured.get(id(tracer))
        if found is None:
            argument = scope.block.add_argument(tracer._value.type, self._unknown)
            found = scope.captured[id(tracer)] = (tracer, argument)
            if self.types is not None:
                self.types.copy(argument, tracer._value)
        return found[1]

    def tensor_type(self, value: ir.Value) -> TensorType:
        """Returns the shape and dtype of an MLIR value."""
        mlir_type = value.type
        found = self._types.get(mlir_type)
        if found is None:
            found = self._types[mlir_type] = ir_type_to_tensor_type(mlir_type)
            self.has_keys |= is_key_dtype(found.dtype)
        return found

    def mlir_type(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> ir.Type:
        """Returns ``tensor<SHAPExDTYPE>`` in the trace's context."""
        key = (shape, dtype)
        found = self._mlir_types.get(key)
        if found is None:
            found = self._mlir_types[key] = tensor_type(shape, dtype, self._unknown)
            self.has_keys |= is_key_dtype(dtype)
        return found

    def location(self) -> ir.Location:
        """Returns the line of the user's code that is running, as an MLIR location."""
        frame = user_frame()
        if frame is None:
            return self._unknown
        code = frame.f_code
        key = (id(code), frame.f_lasti)
        found = self._locations.get(key)
        if found is None:
            where = ir.Location.file(code.co_filename, frame.f_lineno or 0, 0, context=self.context)
            location = ir.Location.name(code.co_qualname, where, context=self.context)
            found = self._locations[key] = location, code
        return found[0]


def leak_message(tracer: Any) -> str:
    """Says where a leaked tracer came from."""
    return (
        f"the traced array {tracer!r}, made while {tracer.trace.name!r} was traced"
        f"{f' ({tracer.origin})' if tracer.origin else ''}, was used outside of that call. A "
        "traced array has no value of its own: return it from the function instead of keeping it "
        "in a global, an attribute or a container"
    )
