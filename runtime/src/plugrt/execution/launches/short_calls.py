"""Cache keys of calls that are made without flattening them as pytrees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from plugrt.execution.arrays.arguments import Aval, avals_of_arrays, quick_avals
from plugrt.execution.launches.call_forms import nested_leaves, quick_leaves, shorten
from plugrt.execution.trees import tree
from plugrt.execution.trees.leaf_order import order_leaves
from plugrt.native.native_core import core
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


def match_short_call(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    statics: tuple[Any, ...],
    spec: tree.PyTreeSpec,
    avals: Sequence[Aval],
) -> tuple[tuple[Any, ...], list[int], int] | None:
    """Returns the key of a call that was flattened, and what `reorder_leaves` takes.

    That is `find_short_call`'s where the arguments still are what ``spec`` and ``avals`` are of.
    None where they are not, as where another thread changes a container: what was traced would be
    kept under the key of another call.
    """
    try:
        structure, leaves = nested_leaves(args, kwargs)
        order = order_leaves(structure, spec)
    except RecursionError:
        return None
    found = avals_of_arrays(leaves) or quick_avals(leaves, _NONE)
    if found is None or order is None or [found[i] for i in order] != avals:
        return None
    short = shorten(structure)
    if short is None and not statics:
        return (_token(), *found), order, len(leaves)
    return (_token(), short, statics, *found), order, len(leaves)


def reorder_leaves(run: Run, order: list[int], count: int) -> Run:
    """Returns ``run`` for the leaves of `find_short_call`, so many, instead of the pytree's.

    Those of dicts have another order there, and None is among them.
    """
    if order == [*range(count)]:
        return run
    if core is not None:
        reordered: Run = core.Reordered(tuple(order), count, run)
        return reordered
    if len(order) < 2:  # of which `itemgetter` makes no tuple
        return lambda values: run([values[i] for i in order])
    take = itemgetter(*order)
    return lambda values: run(take(values))
