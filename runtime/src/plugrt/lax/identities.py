"""`stop_gradient`, `stage`, `dce_sink` and `pcast`: functions that do not change values."""

from __future__ import annotations

from typing import TypeVar

from plugrt.errors import ArgumentError, ArgumentTypeError, NotAnArray, Unimplemented
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import require_flag, with_argument_errors
from plugrt.lax.custom_calls import custom_call
from plugrt.lax.parallel.replica_groups import AxisName, group_size, names_of, state_along
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import with_manual_type
from plugrt.tracing.operation import ARRAYS, operation
from plugrt.tracing.trace import current_trace
from plugrt.tracing.tracer import Tracer

T = TypeVar("T")


@with_argument_errors
def stop_gradient(x: T) -> T:
    """Returns ``x``, a pytree of arrays, unchanged: plugrt has no gradients to stop.

    Any shapes and dtypes. Raises `NotAnArray` for other leaves. As ``jax.lax.stop_gradient``
    outside of differentiation; `plugrt.from_jax` accepts functions that JAX has differentiated.
    """
    _check_arrays("stop_gradient", x)
    return x


@operation(weak_by="all")
def stage(x: Tracer, /) -> Tracer:
    """Returns an array or number as a value of the traced program; outside of tracing as an array.

    Any shape and dtype; Python scalars stay weakly typed. Raises `NotAnArray` for any other object.
    As ``jax.lax.stage``.

    >>> lax.stage(2.5)
    Array(2.5, dtype=float32)
    """
    return x


@with_argument_errors
def dce_sink(val: object, *, prevent_mlir_dce: bool = False) -> None:
    """Uses each array in a pytree, without a result.

    With ``prevent_mlir_dce`` the program keeps the operations that compute them, for a custom call
    named ``dce_sink``, which XLA knows; without, they are removed like other dead code. Raises
    `NotAnArray` for other leaves. As ``jax.lax.dce_sink``.
    """
    require_flag("dce_sink", "prevent_mlir_dce", prevent_mlir_dce)
    _check_arrays("dce_sink", val)
    if prevent_mlir_dce:
        for leaf in pytrees.leaves(val):
            custom_call("dce_sink", [leaf], [], has_side_effect=True, api_version=1)


@with_argument_errors
def pcast(x: T, axis_name: AxisName, *, to: str) -> T:
    """Returns ``x``, a pytree of arrays, with its type changed along mapped axes.

    The values stay. Within `shard_map`, 'invarying' (the same on all devices along the axes)
    becomes 'varying' or 'reduced', 'varying' becomes 'unreduced' (terms of a sum), and 'reduced'
    becomes 'varying'. Elsewhere, and with ``check_vma=False``, types do not record it. Raises
    `UnboundAxis`, `NotAnArray`, and `ArgumentError` for an unknown ``to`` and for any other change.
    As ``jax.lax.pcast``.
    """
    if isinstance(axis_name, set | frozenset):
        raise ArgumentTypeError(f"axis_name of pcast is a name or a tuple of them; got {axis_name}")
    if to not in ("varying", "reduced", "unreduced"):
        raise ArgumentError(f"to of pcast is 'varying', 'reduced' or 'unreduced'; got {to!r:.60}")
    _check_arrays("pcast", x)
    trace = current_trace()
    if axis_name == () or (trace is None and to == "varying"):
        return x
    group_size(axis_name)  # also raises outside of a trace
    if trace is None or trace.types is None or not trace.types.checks:
        return x

    def leaf(v: object) -> Tracer:
        found = as_tracer(v)
        state = state_along("pcast", found, axis_name)
        if (state, to) not in _CASTS:
            raise ArgumentError(
                f"pcast over {axis_name!r} to {to!r} of a value that is {state}, of type "
                f"{found.mat}: the casts are {', '.join(f'{a} to {b}' for a, b in _CASTS)}"
            )
        if to != "varying" and trace.mesh is not None and len(trace.axes) < len(trace.mesh.shape):
            raise Unimplemented(
                f"pcast to {to!r} in a shard_map over some axes of {trace.mesh.brief} alone is not "
                "implemented: map over all of them (leave axis_names out)"
            )
        return with_manual_type(found, found.mat.moved(names_of(axis_name), to))

    result: T = pytrees.map(leaf, x)
    return result


_CASTS = (
    ("invarying", "varying"),
    ("invarying", "reduced"),
    ("varying", "unreduced"),
    ("reduced", "varying"),
)


def _check_arrays(function: str, x: object) -> None:
    for path, leaf in pytrees.flatten_with_paths(x):
        if not isinstance(leaf, ARRAYS):
            raise NotAnArray(
                f"{function} takes arrays and numbers; x{path} is {leaf!r:.60} of type "
                f"{type(leaf).__qualname__}"
            )
