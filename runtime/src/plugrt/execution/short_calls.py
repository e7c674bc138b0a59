"""`find_short_call`: cache keys of calls that are made without flattening them as pytrees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from plugrt.compiled_core import core
from plugrt.execution import tree
from plugrt.execution.arguments import avals_of_arrays, quick_avals
from plugrt.execution.call_forms import nested_leaves, number_leaves, quick_leaves
from plugrt.settings.declarations import config

_token = config.token
_NONE = type(None)
Run = Callable[[Sequence[Any]], Any]


def find_short_call(
    args: tuple[Any, ...], kwargs: dict[str, Any], statics: tuple[Any, ...] = ()
) -> tuple[tuple[Any, ...], Sequence[Any]] | None:
    """Returns a cache key and the leaves of a call whose containers are known.

    Known are Python's, named tuples and objects of registered classes. None for other calls. The
    core makes the same keys. ``statics`` stands for static arguments, which are none of the others.
    None is among the leaves, with its class for an aval. Raises what a registered function raises.
    """
    structure: tuple[Any, ...] | None = None
    leaves: Sequence[Any] = args
    if kwargs:
        structure, leaves = (*kwargs,), (*args, *kwargs.values())
    # A container in the first place decides without a look at the others.
    first = type(args[0]) if args else None
    avals = None if first is dict or first is list or first is tuple else quick_avals(leaves, _NONE)
    if avals is None:  # there are containers, or leaves of other types
        structure, leaves = quick_leaves(args, kwargs)
        avals = avals_of_arrays(leaves) or quick_avals(leaves, _NONE)
        if avals is None:
            try:
                structure, leaves = nested_leaves(args, kwargs)
            except RecursionError:  # the flattening of pytrees goes deeper, or says so
                return None
            avals = avals_of_arrays(leaves) or quick_avals(leaves, _NONE)
        if avals is None:
            return None
    elif structure is None and not statics:
        return (_token(), *avals), args
    return (_token(), structure, statics, *avals), leaves


def reorder_leaves(
    args: tuple[Any, ...], kwargs: dict[str, Any], run: Run, found: int, values: int
) -> Run | None:
    """Returns ``run`` for the leaves of `find_short_call` instead of the pytree's.

    Those of dicts have another order there, and None is among them. It ``found`` so many, and
    ``run`` takes so many ``values``: None where that is not so any more, as where what opens an
    object changes the container that it is in. Their key would then be that of another call.
    """
    numbered, count = number_leaves(args, kwargs)
    order, _ = tree.flatten(numbered)
    if (count, len(order)) != (found, values):
        return None
    if order == [*range(count)]:
        return run
    if core is not None:
        reordered: Run = core.Reordered(tuple(order), count, run)
        return reordered
    if len(order) < 2:  # of which `itemgetter` makes no tuple
        return lambda values: run([values[i] for i in order])
    take = itemgetter(*order)
    return lambda values: run(take(values))
