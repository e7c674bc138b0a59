"""`platform_dependent`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plugrt.errors import ArgumentError, ArgumentTypeError, Unimplemented
from plugrt.execution.arrays.array import Array
from plugrt.execution.placement.default_device import default_device
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lax.control_flow.conditionals import trace_branches
from plugrt.lax.control_flow.eager import launch
from plugrt.plugins.selection.backends import process_backends
from plugrt.plugins.selection.platform_names import expand_platform_alias
from plugrt.stablehlo.bindings import hlo
from plugrt.stablehlo.platform_cases import BranchPlatforms, choose_branch, platform_index
from plugrt.tracing.emit import active_trace
from plugrt.tracing.trace import current_trace

_TITLE = "platform_dependent"


@with_argument_errors
def platform_dependent(
    *args: object,
    default: Callable[..., object] | None = None,
    **per_platform: Callable[..., object],
) -> Any:
    """Returns ``per_platform[platform](*args)`` for the computation's platform.

    The names are platforms (``cpu``, ``tpu``, ``cuda``), and in plugrt also plugins (``xla_cpu``),
    which precede platforms; ``default`` is for all others. While a function is traced all are
    called, and must return the same structure, shapes and dtypes, as with `switch`; the program for
    a platform contains only its function. Otherwise only the platform's function is called. Raises
    `ArgumentTypeError` for an object that is no function, `ArgumentError` for ``gpu``, which is an
    alias of several platforms, and `Unimplemented` if there is no function for the platform: for a
    traced function when its program is lowered for the platform. As ``jax.lax.platform_dependent``.

    >>> lax.platform_dependent(xp.asarray(1.0), cpu=lambda x: x + 1, default=lambda x: x)
    Array(2., dtype=float32)
    """
    branches, functions = _join(per_platform, default)
    if not functions:
        raise Unimplemented(f"{_TITLE} got no function: give it default=, or one for a platform")
    if current_trace() is None:
        return functions[choose_branch(branches, _platforms(args), _TITLE)](*args)

    def run(args: object) -> Any:
        trace = active_trace()
        trace.asks_platform = True

        def make(types: Sequence[object]) -> Any:
            where = trace.location()
            return hlo.CaseOp(types, platform_index(branches, where), len(branches), loc=where)

        names = ["default" if names is None else names[0] for names in branches]
        return trace_branches(_TITLE, names, functions, args, make)

    return launch(_TITLE, functions, branches, {"args": args}, run, reads_once=False)


def _join(
    per_platform: Mapping[str, Callable[..., object]], default: Callable[..., object] | None
) -> tuple[BranchPlatforms, list[Callable[..., object]]]:
    """Returns the platforms of each function, and the functions; omits the default if None."""
    named = {**per_platform, **({} if default is None else {"default": default})}
    for name, function in named.items():
        if not callable(function):
            raise ArgumentTypeError(
                f"{_TITLE} takes a function for {name!r}; got {function!r:.60} of type "
                f"{type(function).__qualname__}"
            )
    if "gpu" in per_platform:
        meant = ", ".join(map(repr, expand_platform_alias("gpu")))
        raise ArgumentError(f"{_TITLE} takes {meant}; 'gpu' may be any of them")
    functions: list[Callable[..., object]] = []
    platforms: list[tuple[str, ...] | None] = []
    for name, function in per_platform.items():
        known = next((i for i, other in enumerate(functions) if other == function), None)
        if known is None:
            functions.append(function)
            platforms.append((name,))
        else:
            platforms[known] = (*(platforms[known] or ()), name)
    if default is not None:
        functions.append(default)
        platforms.append(None)
    return tuple(platforms), functions


def _platforms(args: object) -> tuple[str, ...]:
    """Returns the names of the platform that a computation on these arguments runs on."""
    arrays = [x for x in pytrees.leaves(args) if type(x) is Array and x.committed]
    device = arrays[0].sharding.devices[0] if arrays else default_device()
    return process_backends().platforms_of(device.client)
