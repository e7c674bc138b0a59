"""`FlatCall`: the leaves and the structure of a call, read once, in the order of pytrees."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, cast

import numpy as np

from plugrt.execution.arrays.array import Array
from plugrt.execution.trees import pytrees

_NONE = type(None)
_PLAIN = frozenset((Array, np.ndarray, float, int, bool, complex))
_LEAVES = (Array, np.generic)


@dataclass(slots=True)  # not frozen: each call makes one, which freezing would make twice as slow
class FlatCall:
    """A call: its leaves, its structure and its static values, read together.

    The structure is hashable if the static values and metadata are. It is None if all arguments are
    positional leaves. Else it has the number of positional arguments, the sorted names of the
    others, and a mark for each argument and each part of one, containers before their parts:

    - None for a leaf, and its class for None, which is a container without parts
    - n for a list of n parts, ~n for a tuple, ``(dict, *keys)`` with sorted keys
    - ``(class, n)`` for a named tuple, ``(class, n, metadata)`` for other containers
    - the `static_key` of a static argument

    The core in C makes the same (``runtime/core/calls/flatten.c``).
    """

    leaves: Sequence[Any]
    structure: Any
    statics: Sequence[tuple[int | str, Any]] = ()
    nodes: Sequence[pytrees.PyTreeSpec] = ()
    """The structure of each container that optree opens, without its parts."""
    _spec: pytrees.PyTreeSpec | None = field(default=None, init=False)

    @classmethod
    def read(
        cls,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        static_nums: Collection[int] = (),
        static_names: Collection[str] = (),
        read: Sequence[Any] = (),
    ) -> Self:
        """Reads the arguments of a call, unless the core did: ``read`` is its result.

        Exceptions of registered functions propagate.
        """
        if read and (taken := cls._take(read, static_nums, static_names)) is not None:
            return taken
        if not kwargs and not static_nums and _PLAIN.issuperset(map(type, args)):
            return cls(args, None)
        marks: list[Any] = []
        leaves: list[Any] = []
        nodes: list[pytrees.PyTreeSpec] = []
        statics: list[tuple[int | str, Any]] = []
        names, values = pytrees.sort_items({**kwargs}) if kwargs else ([], [])
        if not static_nums and not static_names:
            _open_all((*args, *values), marks, leaves, nodes)
        else:
            for where, x in (*enumerate(args), *zip(names, values, strict=True)):
                if where in static_nums or where in static_names:
                    statics.append((where, x))
                    marks.append(static_key(x))
                else:
                    _open_all((x,), marks, leaves, nodes)
        if not names and marks.count(None) == len(marks):
            return cls(leaves, None)
        return cls(leaves, (len(args), tuple(names), *marks), statics, nodes)

    @classmethod
    def _take(
        cls, read: Sequence[Any], static_nums: Collection[int], static_names: Collection[str]
    ) -> Self | None:
        """Wraps a call that the core has read.

        Returns None if a container is a leaf for only one of core and optree: a tuple of a class
        that is no named tuple, and classes registered with optree for all namespaces.
        """
        leaves, structure, statics, nodes = read
        opened = []
        for x, mark, names in zip(nodes[::3], nodes[1::3], nodes[2::3], strict=True):
            spec = pytrees.structure_of_opened(x, mark, names)
            if spec is None:
                return None
            opened.append(spec)
        for x in leaves:
            if type(x) not in _PLAIN and not isinstance(x, _LEAVES) and not pytrees.is_leaf(x):
                return None
        where: list[int | str] = []
        if statics:
            where += [i for i in range(structure[0]) if i in static_nums]
            where += [name for name in structure[1] if name in static_names]
        return cls(leaves, structure, [*zip(where, statics or (), strict=True)], opened)

    @property
    def spec(self) -> pytrees.PyTreeSpec:
        """The structure of (args, kwargs) without the static arguments, as optree's class."""
        if self._spec is None:
            self._spec = self._build_spec()
        return self._spec

    @property
    def static_key(self) -> tuple[Hashable, ...]:
        """The static values as part of a cache key: 1, 1.0 and True are different."""
        return tuple((where, static_key(value)) for where, value in self.statics)

    @property
    def dynamic(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that are not static, rebuilt as read: the caller's may have changed."""
        given: tuple[tuple[object, ...], dict[str, Any]] = pytrees.unflatten(self.spec, self.leaves)
        return given

    @property
    def parts(
        self,
    ) -> tuple[list[tuple[int, pytrees.PyTreeSpec]], list[tuple[str, pytrees.PyTreeSpec]]]:
        """The structures of the arguments that are not static, with the number or name of each."""
        args, kwargs = self.spec.children()
        skipped = [where for where, _ in self.statics if isinstance(where, int)]
        numbers = [i for i in range(args.num_children + len(skipped)) if i not in skipped]
        return (
            [*zip(numbers, args.children(), strict=True)],
            [*zip(kwargs.entries(), kwargs.children(), strict=True)],
        )

    def rebuild(self, leaves: Iterable[object]) -> tuple[list[Any], dict[str, Any]]:
        """Returns (args, kwargs) of the call with other leaves in place of the arrays."""
        # Sorted, since traces are found by structures that do not depend on the order.
        args, kwargs = pytrees.sort_dicts(pytrees.unflatten(self.spec, leaves))
        args = list(args)
        for where, value in self.statics:
            if isinstance(where, int):
                args.insert(where, value)
            else:
                kwargs[where] = value
        return args, kwargs

    def _build_spec(self) -> pytrees.PyTreeSpec:
        if self.structure is None:
            return pytrees.structure(((0,) * len(self.leaves), {}))
        positional, names, *rest = self.structure
        marks, nodes = iter(rest), iter(self.nodes)
        static = {where for where, _ in self.statics}
        parts: dict[int | str, pytrees.PyTreeSpec] = {}
        for where in (*range(positional), *names):
            if where in static:
                next(marks)
            else:
                parts[where] = _spec_of_next(marks, nodes)
        args = (0,) * sum(isinstance(where, int) for where in parts)
        kwargs = dict.fromkeys((where for where in parts if isinstance(where, str)), 0)
        return pytrees.fill(pytrees.structure((args, kwargs)), parts.values())


def static_key(value: object) -> Hashable:
    """Returns a key that is equal only for static values with which a function behaves alike.

    Python's ``==`` is not enough: 1 == 1.0 == True and 0.0 == -0.0, also within tuples, and NaN !=
    NaN. Keys of lists, dicts and NumPy arrays (sizes, axes, offsets) are hashable, too; other
    unhashable values have unhashable keys.
    """
    cls = type(value)
    if cls in _HASHABLE:
        return (cls, value)
    if isinstance(value, tuple) or cls is list:
        return (cls, *map(static_key, cast(Sequence[object], value)))
    if isinstance(value, _FLOATS):
        return (cls, repr(value))
    if cls is dict:
        items = sorted(cast(dict[Any, object], value).items())
        return (cls, *((static_key(name), static_key(x)) for name, x in items))
    if cls is np.ndarray:
        return (cls, static_key(cast(np.ndarray[Any, Any], value).tolist()))
    return (cls, value)


_HASHABLE = frozenset((int, bool, str, bytes, type(None)))
_FLOATS = (float, complex)  # a tuple: isinstance with a union is slower


def _open_all(
    values: Iterable[Any], marks: list[Any], leaves: list[Any], nodes: list[pytrees.PyTreeSpec]
) -> None:
    # Not nested in `read`: that would make a reference cycle, and keep the leaves' memory.
    # Containers are copied first: a function that opens one of their parts may change them, or
    # another thread.
    for x in values:
        cls = type(x)
        if cls in _PLAIN:
            marks.append(None)
            leaves.append(x)
        elif cls is dict:
            keys, parts = pytrees.sort_items({**x})
            marks.append((dict, *keys))
            _open_all(parts, marks, leaves, nodes)
        elif cls is list or cls is tuple:
            parts = [*x]
            marks.append(len(parts) if cls is list else ~len(parts))
            _open_all(parts, marks, leaves, nodes)
        elif x is None:
            marks.append(_NONE)
        elif isinstance(x, _LEAVES) or (opened := pytrees.open_node(x)) is None:
            marks.append(None)
            leaves.append(x)
        else:
            marks.append(opened.mark)
            nodes.append(opened.spec)
            _open_all(opened.parts, marks, leaves, nodes)


def _spec_of_next(marks: Iterator[Any], nodes: Iterator[pytrees.PyTreeSpec]) -> pytrees.PyTreeSpec:
    """Returns the structure of the argument, or part of one, that the next marks describe."""
    mark = next(marks)
    if mark is None:
        return pytrees.LEAF
    if mark is _NONE:
        return pytrees.structure(None)
    if isinstance(mark, int):
        level = pytrees.structure([0] * mark if mark >= 0 else (0,) * ~mark)
    elif mark[0] is dict:
        level = pytrees.structure_of_keys(mark[1:])
    else:
        level = next(nodes)
    return pytrees.fill(level, [_spec_of_next(marks, nodes) for _ in range(level.num_leaves)])
