"""`copy_containers`: the containers of a call's arguments as they are at one moment."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any


def copy_containers(tree: Any) -> Any:
    """Returns a pytree with copies of its containers, as far as these are Python's own.

    For optree 0.20, which lists the keys of a dict and then takes its values, and up to Python 3.12
    goes on with NULL where a key has gone meanwhile: another thread may change an argument, or a
    function that opens an object. Those of one nested too deeply are left to optree, which says so.
    """
    try:
        return _copy(tree)
    except RecursionError:
        return tree


def _copy(x: Any) -> Any:
    cls = type(x)
    copier = _COPIERS.get(cls)
    if copier is not None:
        return copier(x)
    if isinstance(x, tuple) and hasattr(cls, "_fields") and not hasattr(x, "__dict__"):
        return tuple.__new__(cls, map(_copy, tuple.__iter__(x)))  # by no code of its class
    return x


def _copy_dict(given: dict[Any, Any]) -> dict[Any, Any]:
    copy = {**given}  # in one piece, and without asking keys for their hash
    for value in copy.values():
        if type(value) in _COPIERS or isinstance(value, tuple):
            return {key: _copy(value) for key, value in copy.items()}
    return copy


def _copy_default_dict(given: defaultdict[Any, Any]) -> defaultdict[Any, Any]:
    return defaultdict(given.default_factory, _copy_dict(given))


def _copy_ordered_dict(given: OrderedDict[Any, Any]) -> OrderedDict[Any, Any]:
    return OrderedDict([(key, _copy(value)) for key, value in given.copy().items()])


def _copy_list(given: list[Any]) -> list[Any]:
    return [*map(_copy, given.copy())]


def _copy_tuple(given: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(_copy, given))


def _copy_deque(given: deque[Any]) -> deque[Any]:
    return deque(map(_copy, given.copy()), given.maxlen)


_COPIERS: dict[type, Callable[[Any], Any]] = {
    dict: _copy_dict,
    defaultdict: _copy_default_dict,
    OrderedDict: _copy_ordered_dict,
    list: _copy_list,
    tuple: _copy_tuple,
    deque: _copy_deque,
}
