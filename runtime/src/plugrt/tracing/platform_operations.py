"""`PlatformOperation`: one of plugrt's own operations, which each platform may lower differently.

A trace has no platform: it contains a custom call under the operation's name.
`plugrt.tracing.lowering` replaces it by the lowering of the platform's plugin (`Plugin.lowerings`),
or without one by the operation's definition. The custom call never reaches a compiler. Definitions
are traced only when needed: a program that calls LAPACK does not pay for one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plugrt.interface import TensorType
from plugrt.stablehlo.attributes import text_of
from plugrt.stablehlo.bindings import hlo, ir
from plugrt.tracing.emit import active_trace, wrap
from plugrt.tracing.tracer import Tracer

_TYPED_FFI = 4
NAMES = tuple(
    f"plugrt.linalg.{name}" for name in ("cholesky", "eigh", "lu", "qr", "svd", "triangular_solve")
)
"""The names of all of plugrt's own operations. They are listed here since plugins are checked
against them in processes that have not imported the definitions."""
# Process-wide: filled as modules are imported; any trace may hold any of them.
OPERATIONS: dict[str, PlatformOperation] = {}
"""The operations whose modules are imported, by name: a trace can contain no others."""


class PlatformOperation:
    """An operation: its name, its definition, and the types of its results.

    ``definition`` and ``results`` are called with the operands and the attributes, which are
    booleans; the first returns the results as a tuple.
    """

    def __init__(
        self,
        name: str,
        definition: Callable[..., tuple[Tracer, ...]],
        results: Callable[..., Sequence[TensorType]],
    ) -> None:
        self.name = name
        self.definition = definition
        self._results = results
        OPERATIONS[name] = self

    def __call__(self, *operands: Tracer, **attributes: bool) -> tuple[Tracer, ...]:
        """Adds the operation to the current trace; returns its results."""
        trace = active_trace()
        trace.asks_platform = True
        types = self._results(*operands, **attributes)
        made = hlo.CustomCallOp(
            [trace.mlir_type(t.shape, t.dtype) for t in types],
            [trace.mlir_value(x) for x in operands],
            call_target_name=self.name,
            backend_config=ir.DictAttr.get({k: ir.BoolAttr.get(v) for k, v in attributes.items()}),
            api_version=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), _TYPED_FFI),
            loc=trace.location(),
        )
        return wrap(made)


def find_operation(op: ir.Operation) -> PlatformOperation | None:
    """Returns the operation of a trace's custom call; None for any other call."""
    if op.name != "stablehlo.custom_call":
        return None
    return OPERATIONS.get(text_of(op.attributes["call_target_name"]))
