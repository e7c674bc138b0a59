"""The pytrees of an export's arguments and results, and the registered classes in them."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

from plugrt.errors import ArgumentError, ArgumentTypeError, StructureError
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors

T = TypeVar("T")
FromChildren = Callable[[Any, Sequence[Any]], Any]
"""Makes a container from its metadata and its children."""


@dataclass(frozen=True, slots=True)
class ExportedTree:
    """A node of a pytree: ``leaf``, ``none``, ``tuple``, ``list``, ``dict`` or ``custom``.

    ``names`` are the keys of a dict. A custom node has the name that its class is registered under,
    and its metadata as bytes.
    """

    kind: str
    children: tuple[ExportedTree, ...] = ()
    names: tuple[str, ...] = ()
    custom_name: str = ""
    auxdata: bytes = b""

    @property
    def num_leaves(self) -> int:
        """The number of leaves of the pytree."""
        return 1 if self.kind == "leaf" else sum(child.num_leaves for child in self.children)

    def build(self) -> Any:
        """Returns the pytree, with the numbers 0, 1, 2, … as its leaves.

        Raises `StructureError` for a class that is not registered here.
        """
        built = _build(self, count())
        leaves, spec = pytrees.flatten(built)
        if leaves != list(range(self.num_leaves)):
            raise StructureError(
                f"the export's pytree {spec} has its leaves in another order here: {leaves}"
            )
        return built


def _build(node: ExportedTree, numbers: Iterator[int]) -> object:
    if node.kind == "leaf":
        return next(numbers)
    children = [_build(child, numbers) for child in node.children]
    if node.kind == "none":
        return None
    if node.kind == "dict":
        return dict(zip(node.names, children, strict=True))
    if node.kind == "custom":
        return _build_custom(node, children)
    return tuple(children) if node.kind == "tuple" else children


def _build_custom(node: ExportedTree, children: Sequence[object]) -> object:
    found = _registered.get(node.custom_name)
    if found is None:
        raise StructureError(
            f"the export has arguments or results in a container that it calls "
            f"{node.custom_name!r}, which is not registered here (there are "
            f"{', '.join(_registered)}). Fix: plugrt.export.register_namedtuple_serialization or "
            "register_pytree_node_serialization, with that serialized_name, before the export is "
            "compiled"
        )
    _, read, build = found
    try:
        return build(read(node.auxdata), children)
    except Exception as error:  # a user's function, called with data of a file
        raise StructureError(
            f"the container {node.custom_name!r} of an export cannot be made of its metadata "
            f"{node.auxdata!r:.80} and {len(children)} children: {type(error).__name__}: {error}"
        ) from error


@with_argument_errors
def register_pytree_node_serialization(
    nodetype: type[T],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes] | None = None,
    deserialize_auxdata: Callable[[bytes], object],
    from_children: FromChildren,
) -> type[T]:
    """Registers a class that exports refer to as ``serialized_name``; returns the class.

    ``deserialize_auxdata`` makes metadata of the bytes in a file, ``from_children`` an object of
    that and its children. The class is a container for plugrt too (`plugrt.tree.register_node`).
    ``serialize_auxdata`` is not used: plugrt writes no exports. Can be called after JAX's function
    of this name, or instead of it.

    Raises `ArgumentError` for a class or a name that is registered already, `ArgumentTypeError` for
    an argument that is not a class, a string or a function. As in ``jax.export``, but for
    ``from_children``, which must be given.
    """
    if not isinstance(nodetype, type) or not isinstance(serialized_name, str):
        raise ArgumentTypeError(
            "register_pytree_node_serialization takes a class and a serialized_name as text; got "
            f"{nodetype!r:.60} and {serialized_name!r:.60}"
        )
    if not callable(deserialize_auxdata) or not callable(from_children):
        raise ArgumentTypeError(
            f"deserialize_auxdata and from_children of {serialized_name!r} are functions; got "
            f"{deserialize_auxdata!r:.60} and {from_children!r:.60}"
        )
    for name, (known, _, _) in _registered.items():
        if name == serialized_name or known is nodetype:
            raise ArgumentError(
                f"exports name the class {known.__qualname__} {name!r} already; "
                f"{nodetype.__qualname__} cannot be registered as {serialized_name!r}"
            )
    _registered[serialized_name] = (nodetype, deserialize_auxdata, from_children)
    return nodetype


@with_argument_errors
def register_namedtuple_serialization(nodetype: type[T], *, serialized_name: str) -> type[T]:
    """Registers a named tuple that exports refer to as ``serialized_name``; returns the class.

    Raises `ArgumentError` for another class, and as `register_pytree_node_serialization`.
    As in ``jax.export``.
    """
    fields = getattr(nodetype, "_fields", None)
    if not isinstance(nodetype, type) or not issubclass(nodetype, tuple) or fields is None:
        raise ArgumentError(
            f"register_namedtuple_serialization takes a named tuple; got {nodetype!r:.80}; others "
            "have register_pytree_node_serialization"
        )

    def build(names: Any, children: Sequence[object]) -> Any:
        return nodetype(**dict(zip(names, children, strict=True)))

    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        deserialize_auxdata=json.loads,
        from_children=build,
    )


def _make_ordered_dict(keys: Any, children: Sequence[object]) -> object:
    return OrderedDict(zip(keys, children, strict=True))


_registered: dict[str, tuple[type, Callable[[bytes], object], FromChildren]] = {
    "collections.OrderedDict": (OrderedDict, json.loads, _make_ordered_dict)
}
