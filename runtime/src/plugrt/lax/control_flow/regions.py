"""Traces the bodies of regions before the operation that owns them exists.

The result types of a loop or a branch are known only when its body has been traced, and an MLIR
operation cannot change its types. So bodies are traced into a temporary operation, and their
blocks are moved from there to the final one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from plugrt.errors import TracingError
from plugrt.execution.shardings.manual_types import with_mat
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.interface import TensorType
from plugrt.stablehlo.bindings import hlo, ir
from plugrt.tracing.emit import active_trace
from plugrt.tracing.trace import Scope, Trace
from plugrt.tracing.tracer import Tracer


class Body:
    """A traced block without its terminator, and the tracers that it is going to return."""

    def __init__(self, block: ir.Block, outputs: Sequence[Tracer], values: list[ir.Value]) -> None:
        self.block = block
        self.outputs = tuple(outputs)
        self._values = values

    def convert(self, position: int, to: TensorType) -> None:
        """Converts one output of the block to another dtype."""
        trace = active_trace()
        with ir.InsertionPoint(self.block):
            self._values[position] = hlo.convert(
                trace.mlir_type(to.shape, to.dtype), self._values[position], loc=trace.location()
            )

    def move(self, region: ir.Region) -> None:
        """Adds the terminator to the block and moves it into an operation's region."""
        with ir.InsertionPoint(self.block):
            hlo.return_(self._values, loc=active_trace().location())
        self.block.append_to(region)


def new_argument(count: int, like: Tracer) -> Tracer:
    """Adds an argument to the traced block: ``count`` arrays of a type, stacked."""
    trace = active_trace()
    assert trace.scope is not None
    argument_type = trace.mlir_type((count, *like.shape), like.dtype)
    argument = trace.scope.block.add_argument(argument_type, trace.location())
    if (of_one := like.sharding_type) is not None and trace.types is not None:
        spec = of_one.spec.update(partitions=(None, *of_one.spec))
        trace.types.set(argument, with_mat(NamedSharding(of_one.mesh, spec), like.mat))
    return Tracer(_enter(trace, argument), trace)


def _enter(trace: Trace, argument: ir.Value) -> ir.Value:
    """Constrains an argument of a loop's body to its type, since the compiler sums terms there."""
    if trace.types is None:
        return argument
    found = trace.types.of(argument, ir.RankedTensorType(argument.type).rank)
    if not found.spec.unreduced:
        return argument
    # Workaround for shardy-unreduced
    return trace.types.constrained(argument, found, found, trace.location())


class RegionHolder:
    """Traces bodies into the regions of a temporary operation."""

    def __init__(self, operation: ir.Operation) -> None:
        self._free = list(operation.regions)

    def trace(self, like: Sequence[Tracer], body: Callable[..., Sequence[Tracer]]) -> Body:
        """Returns the block that ``body`` fills, with an argument like each of ``like``.

        ``body`` is called with a tracer for each argument and returns the block's results.
        """
        trace = active_trace()
        types = [trace.mlir_type(x.shape, x.dtype) for x in like]
        where = [trace.location()] * len(types)
        block = ir.Block.create_at_start(self._free.pop(), types, where)

        if trace.types is not None:
            for argument, x in zip(block.arguments, like, strict=True):
                trace.types.set(argument, x.sharding_type)

        def build(_: Scope) -> Body:
            pairs = zip(block.arguments, like, strict=True)
            arguments = [Tracer(_enter(trace, a), trace, weak=x.weak) for a, x in pairs]
            outputs = body(*arguments)
            return Body(block, outputs, [o.value for o in outputs])

        return trace.run_inside(block, build)


def closed_region(
    title: str,
    operation: ir.OpView,
    dtypes: Sequence[np.dtype[np.generic]],
    body: Callable[..., Sequence[Tracer]],
) -> None:
    """Fills an operation's region with a block on scalars that captures no values.

    XLA has no such computations with captured values; raises `TracingError` with the first one.
    """
    trace = active_trace()
    types = [trace.mlir_type((), d) for d in dtypes]
    block = ir.Block.create_at_start(operation.regions[0], types, [trace.location()] * len(types))

    def build(scope: Scope) -> None:
        outputs = body(*[Tracer(a, trace) for a in block.arguments])
        hlo.return_([o.value for o in outputs], loc=trace.location())
        if scope.captured:
            used, _ = next(iter(scope.captured.values()))
            raise TracingError(
                f"the computation of lax.{title} uses {used!r} from around it; it may use its "
                "arguments and Python or NumPy constants only"
            )

    trace.run_inside(block, build, isolated=True)


@contextmanager
def region_holder(bodies: int) -> Iterator[RegionHolder]:
    """Context manager: yields a temporary operation for up to ``bodies`` blocks, and erases it."""
    trace = active_trace()
    operation = ir.Operation.create("stablehlo.case", regions=bodies, loc=trace.location())
    try:
        yield RegionHolder(operation)
    finally:
        if trace.types is not None:
            trace.types.forget(operation)
        operation.erase()
