"""Cache keys of calls that are made without flattening them as pytrees."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from plugrt.execution.arrays.arguments import avals_of_arrays, quick_avals
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.aval import Aval
from plugrt.execution.trees import pytrees
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
    spec: pytrees.PyTreeSpec,
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


# Calls are flattened without a pytree of them, as in `runtime/core/calls/flatten.c`.

# Process-wide: the answer for a type is the same for all callers; types are the process's.
_named: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def quick_leaves(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], list[Any]]:
    """Returns a key for the structure of a call, and its leaves, from the first level alone.

    Built-in containers are opened, but not the containers in them; the leaves of a dict come in
    insertion order. This costs a quarter of flattening the whole pytree.
    """
    structure: list[Any] = []
    leaves: list[Any] = []
    for x in args:
        cls = type(x)
        if cls is dict:
            copy = {**x}  # of one moment: another thread may change it, or a finaliser
            structure.append(tuple(copy))
            leaves += copy.values()
        elif cls is list:  # a number, since a dict may have any keys
            parts = [*x]
            structure.append(len(parts))
            leaves += parts
        elif cls is tuple:
            structure.append(~len(x))
            leaves += x
        else:
            structure.append(None)
            leaves.append(x)
    if kwargs:
        structure.append(("**", *kwargs))
        leaves += kwargs.values()
    return tuple(structure), leaves


def nested_leaves(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], list[Any]]:
    """Returns what `quick_leaves` does of calls whose containers have containers in them.

    Named tuples and objects of registered classes are opened as well. Containers are iterated over
    as copies: what opens an object in one of them may change it.
    """
    structure: list[Any] = ["nested"]  # no key of `quick_leaves` begins so
    leaves: list[Any] = []
    _open_all(args, structure.append, leaves.append)
    if kwargs:
        structure.append(("**", *kwargs))
        _open_all(kwargs.values(), structure.append, leaves.append)
    return tuple(structure), leaves


def _open_all(
    values: Iterable[Any], mark: Callable[[Any], None], keep: Callable[[Any], None]
) -> None:
    # No function of `nested_leaves`: it would be in a cycle with the leaves, and keep their memory.
    for x in values:
        cls = type(x)
        if cls is dict:
            copy = {**x}  # as above
            mark((dict, *copy))
            _open_all(copy.values(), mark, keep)
        elif cls is tuple or cls is list:
            parts = [*x]
            mark((cls, len(parts)))
            _open_all(parts, mark, keep)
        elif cls is not Array and (node := open_node(x)) is not None:
            mark(node[1])
            _open_all([*node[0]], mark, keep)
        else:
            mark(None)
            keep(x)


def shorten(structure: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Returns what `quick_leaves` has for a structure of `nested_leaves`, if it opens all of it.

    Of a call without containers, the names of its keywords, or None without any.
    """
    marks = iter(structure[1:])
    short: list[Any] = []
    names: tuple[Any, ...] | None = None
    is_flat = True
    for mark in marks:
        parts = 0
        if mark is None:
            short.append(None)
        elif type(mark[0]) is str:  # the keywords, which come last
            short.append(mark)
            names = mark[1:]
            parts = len(names)
        elif mark[0] is dict:
            short.append(mark[1:])
            parts = len(mark) - 1
            is_flat = False
        elif mark[0] is list or mark[0] is tuple:
            cls, parts = mark
            short.append(parts if cls is list else ~parts)
            is_flat = False
        else:
            return structure
        if any(next(marks) is not None for _ in range(parts)):
            return structure
    return names if is_flat else tuple(short)


def open_node(x: Any) -> tuple[Sequence[Any], tuple[Any, ...]] | None:
    """Returns the parts of a named tuple or an object of a `tree.registered` class, and its mark.

    That stands for it in the key of a call. None for anything else, and for one of which only the
    flattening of pytrees knows what to do.
    """
    cls = type(x)
    if (opener := pytrees.registered.get(cls)) is not None:
        return _open_registered(x, opener)
    if not issubclass(cls, tuple):
        return None
    if (is_named := _named.get(cls)) is None:  # classes may be registered otherwise with optree
        is_named = _named[cls] = pytrees.is_named_tuple(x)
    parts = [*tuple.__iter__(x)]  # as optree does: the class may have another way to iterate
    return (parts, (cls, len(parts))) if is_named else None


def _open_registered(
    x: Any, opener: pytrees.Opener
) -> tuple[Sequence[Any], tuple[Any, ...]] | None:
    metadata: Any
    if isinstance(opener, tuple):
        data, meta = opener
        parts = [getattr(x, name) for name in data]
        metadata = tuple([getattr(x, name) for name in meta])
    else:
        opened = opener(x)
        if type(opened) is not tuple or len(opened) != 2:
            return None
        parts, metadata = opened
        if type(parts) is not tuple and type(parts) is not list:
            return None
    return parts, (type(x), len(parts), metadata)
