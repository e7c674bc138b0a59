"""`order_leaves`: matches the leaves of a flattened call to its pytree's leaves.

A call is read twice: flattened for its key, and as a pytree for tracing. What is in its
containers may change between the two, by the hash of a key, a function that opens an object, a
finaliser or another thread. So the two are compared before one is kept for the other.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from plugrt.execution.trees import pytrees

_NONE = type(None)


def order_leaves(marks: Sequence[Any], spec: pytrees.PyTreeSpec) -> list[int] | None:
    """Returns for each leaf of the pytree its number among those that `nested_leaves` found.

    ``marks`` are what it returned for the containers. Those of dicts have another order in the
    pytree, and None is no leaf there. None where ``spec``, of (args, kwargs), is of another call.
    """
    args, (_, names, named) = spec.walk(range(spec.num_leaves), lambda *node: node)[2]
    matching = _Matching(iter(marks[1:]))
    if not all(map(matching.is_alike, args[2])):
        return None
    if named and not matching.are_alike(next(matching.marks)[1:], names, named):
        return None
    return [matching.order[i] for i in range(spec.num_leaves)]


class _Matching:
    """The marks of a call, and, of the pytree's leaves that were met, which numbers they have."""

    __slots__ = ("_numbers", "marks", "order")

    def __init__(self, marks: Iterator[Any]) -> None:
        self.marks = marks
        self.order: dict[int, int] = {}
        self._numbers = count()

    def is_alike(self, part: Any) -> bool:
        """Whether a part of the pytree is what the next marks are of.

        It is a leaf's number, or a container's class, what it has beside its parts, and these.
        """
        mark = next(self.marks)
        if mark is None:
            number = next(self._numbers)
            if type(part) is int:
                self.order[part] = number
                return True
            return bool(part[0] is _NONE)
        if type(part) is int or part[0] is not mark[0]:
            return False
        cls, data, parts = part
        if cls is dict:
            return self.are_alike(mark[1:], data, parts)
        if cls is defaultdict:
            factory, *keys = mark[2]
            return (factory,) == (data[0],) and self.are_alike(keys, data[1], parts)
        if cls is OrderedDict:  # whose order is part of what it is
            return [*mark[2]] == [*data] and all(map(self.is_alike, parts))
        # In a tuple, as in a key: NaN is equal to itself there.
        if len(parts) != mark[1] or (len(mark) == 3 and mark[2:] != (data,)):
            return False
        return all(map(self.is_alike, parts))

    def are_alike(self, keys: Sequence[Any], names: Sequence[Any], parts: Sequence[Any]) -> bool:
        """Whether parts of the pytree with these names are those of the next marks, by key."""
        named = dict(zip(names, parts, strict=True))
        if len(keys) != len(named) or any(key not in named for key in keys):
            return False
        return all(map(self.is_alike, [named[key] for key in keys]))
