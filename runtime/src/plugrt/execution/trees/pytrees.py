"""Pytrees: nested containers of arrays, through optree.

optree was chosen over jaxlib's own registry because it is public API and works without jaxlib.
jaxlib's is two to three times as fast (measured: 0.9 against 2.7 µs for a dict of eight leaves);
calls whose arguments are all arrays never flatten anything.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import dataclasses
import functools
import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from plugrt.errors import ArgumentError, ArgumentTypeError, FailedPrecondition
from plugrt.lifetime.main_interpreter import (
    is_entered,
    require_main_interpreter,
    wait_while,
)
from plugrt.lifetime.uninterrupted_imports import import_native

require_main_interpreter("optree")
import_native("optree")

# Process-wide: imported when first needed, to keep `import plugrt` fast.
import optree  # noqa: E402
from optree import PyTreeSpec  # noqa: E402

__all__ = [
    "PyTreeSpec",
    "all",
    "broadcast_prefix",
    "flatten",
    "flatten_with_none",
    "flatten_with_paths",
    "is_leaf_spec",
    "leaves",
    "map",
    "reduce",
    "register_dataclass",
    "register_node",
    "structure",
    "unflatten",
]

NAMESPACE = "plugrt"
_NONE = object()
T = TypeVar("T")


class _AtExit:
    """Replaces optree while the interpreter ends.

    optree's own exit handler empties its registry; after that it would treat every container as a
    leaf. So this class ends daemon threads before. In exit handlers it forwards to optree, later
    only for certain leaves and known structures.
    """

    def __init__(self, functions: Any) -> None:
        self._functions = functions

    def __getattr__(self, name: str) -> Any:
        if threading.current_thread().daemon:
            raise SystemExit  # ends a daemon thread without a traceback
        function = getattr(self._functions, name)
        if name == "tree_unflatten" or not self._functions.tree_is_leaf(()):
            return function

        def call(*given: object, **options: object) -> Any:
            tree = given[name == "tree_map"]  # the one that has the function
            if hasattr(type(tree), "__array__") or isinstance(tree, bool | int | float | complex):
                return function(*given, **options)
            raise FailedPrecondition(
                "the interpreter is ending: optree, with which plugrt flattens its arguments "
                "and results, is unloaded; call plugrt earlier, as in an exit handler that is "
                "registered after plugrt was imported (atexit.register)"
            )

        return call


def _foresee_the_end() -> None:
    global optree  # only now, since each indirection costs time
    folder = str(optree.__file__).removesuffix("__init__.py")
    optree = _AtExit(optree)  # type: ignore[assignment]
    # Meanwhile daemon threads leave optree, with correct results; a container's own function may
    # keep it there for longer.
    wait_while(lambda: is_entered(lambda frame: frame.f_code.co_filename.startswith(folder)), 1)


atexit.register(_foresee_the_end)  # after optree's: handlers run in reverse order

IsLeaf = Callable[[Any], bool] | None


def sort_keys(keys: Iterable[object]) -> list[Any]:
    """Returns the keys of a dict in the order of pytrees, as optree sorts them.

    Sorts by classes if the keys have no order, and keeps their order if that fails, too.
    """
    ordered = [*keys]
    try:
        ordered.sort()
    except TypeError:
        with contextlib.suppress(TypeError):
            ordered.sort(key=lambda key: (f"{type(key).__module__}.{type(key).__qualname__}", key))
    return ordered


def order_keys(keys: Sequence[object]) -> list[int]:
    """Returns the numbers of the keys of a dict in the order of pytrees."""
    numbers = {id(key): i for i, key in enumerate(keys)}
    return [numbers[id(key)] for key in sort_keys(keys)]


def sort_items(given: dict[Any, object]) -> tuple[list[Any], list[Any]]:
    """Returns the keys and the values of a dict without other references, in the order of
    pytrees.
    """
    keys = sort_keys(given)
    values = {id(key): value for key, value in given.items()}  # needs no hashes
    return keys, [values[id(key)] for key in keys]


def _open_default_dict(x: defaultdict[object, object]) -> tuple[list[object], tuple[object, ...]]:
    keys, values = sort_items({**x})
    return values, (x.default_factory, *keys)


Opener = Callable[[Any], Any] | tuple[tuple[str, ...], tuple[str, ...]]
registered: dict[type, Opener] = {
    OrderedDict: lambda x: ([*x.values()], tuple(x)),
    defaultdict: _open_default_dict,
    deque: lambda x: ([*x], x.maxlen),
}
"""Opens containers by class: a `register_node` function, or names of attributes.

The names are a dataclass's fields that are children, and those that are metadata. The core in C
opens containers with these; Python does it with `open_node`.
"""
_COPIED = (OrderedDict, defaultdict, deque)
LEAF: PyTreeSpec = optree.treespec_leaf(namespace=NAMESPACE)
"""The structure of a leaf."""


class Opened(NamedTuple):
    """An opened container: its parts, its structure without them, and its mark."""

    parts: list[object]
    spec: PyTreeSpec
    mark: tuple[object, ...]
    """The class, the number of parts, and metadata if there are any. Hashable if these are."""


def open_node(x: Any) -> Opened | None:
    """Returns the parts of a container that optree knows; None for a leaf.

    A function that is registered for its class is called once; its exceptions propagate.
    """
    # Workaround for optree-changed-dict
    if type(x) in _COPIED:  # optree 0.20 reads their keys and values at different times
        x = x.copy()
    parts, spec = optree.tree_flatten(x, lambda part: part is not x, namespace=NAMESPACE)
    if spec.is_leaf():
        return None
    cls, metadata, _ = spec.walk(range(len(parts)), lambda *node: node)
    mark: tuple[object, ...] = (cls, len(parts), metadata)
    if spec.kind in (optree.PyTreeKind.NAMEDTUPLE, optree.PyTreeKind.STRUCTSEQUENCE):
        mark = mark[:2]
    elif cls is OrderedDict:
        mark = (*mark[:2], tuple(metadata))
    elif cls is defaultdict:
        mark = (*mark[:2], (metadata[0], *metadata[1]))
    return Opened(parts, spec, mark)


class _Opened(threading.local):
    """The result of the registered function for the next container, if it was called already."""

    given: tuple[object, ...] | None = None


_opened = _Opened()


def structure_of_opened(
    x: Any, mark: tuple[Any, ...], names: Iterable[object] | None
) -> PyTreeSpec | None:
    """Returns the structure of an opened container, without its parts; None for a leaf.

    ``mark`` is as in `Opened`. Calls no registered function, and does not read the parts.
    """
    cls, count, *metadata = mark
    if cls is OrderedDict:
        x = OrderedDict.fromkeys(metadata[0])
    elif cls is defaultdict:
        x = defaultdict(metadata[0][0], dict.fromkeys(metadata[0][1:]))
    elif cls is deque:
        x = deque([0] * count, metadata[0])
    elif metadata:
        _opened.given = ([0] * count, *metadata, *(() if names is None else (names,)))
    try:
        spec = optree.tree_structure(x, lambda part: part is not x, namespace=NAMESPACE)
    finally:
        _opened.given = None
    return None if spec.is_leaf() else spec


def is_leaf(x: Any) -> bool:
    """Whether it is neither a container nor None. Calls no registered function."""
    return bool(optree.tree_is_leaf(x, namespace=NAMESPACE))


def fill(level: PyTreeSpec, parts: Iterable[PyTreeSpec]) -> PyTreeSpec:
    """Returns a structure whose leaves are replaced by structures, one for each, in order."""
    following = iter(parts)
    return level.transform(None, lambda _: next(following))


def structure_of_keys(keys: Sequence[object]) -> PyTreeSpec:
    """Returns the structure of a dict of leaves with these sorted keys.

    Raises `ArgumentError` if optree sorts them in another order.
    """
    found = structure(dict.fromkeys(keys, 0))
    if not builtins.all(a is b for a, b in zip(found.entries(), keys, strict=True)):
        raise ArgumentError(
            f"an argument has a dict with the keys {[*keys]!r:.200}, which compare in one way at "
            "first and then in another: their order is part of the structure of the call"
        )
    return found


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeSpec]:
    """Returns the leaves of a pytree and its structure. None is a container without leaves.

    ``is_leaf(x)`` may declare a container a leaf, here and below. As ``jax.tree.flatten``.

    Raises `ArgumentTypeError` for an ``is_leaf`` that is no function.
    """
    return optree.tree_flatten(tree, _wrap_question(is_leaf), namespace=NAMESPACE)


def _wrap_question(is_leaf: Callable[[Any], object] | None) -> IsLeaf:
    """Wraps ``is_leaf`` to return a bool, as optree requires."""
    return None if is_leaf is None else lambda x: bool(is_leaf(x))


def unflatten(treedef: PyTreeSpec, leaves: Iterable[object]) -> Any:
    """Returns the pytree of that structure with these leaves. As ``jax.tree.unflatten``.

    Raises `ArgumentTypeError` for another number of leaves.
    """
    return optree.tree_unflatten(treedef, leaves)


def leaves(tree: object, is_leaf: IsLeaf = None) -> list[Any]:
    """Returns the leaves of a pytree. As ``jax.tree.leaves``.

    Raises `ArgumentTypeError` for an ``is_leaf`` that is no function.
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: object, is_leaf: IsLeaf = None) -> PyTreeSpec:
    """Returns the structure of a pytree. As ``jax.tree.structure``.

    Raises `ArgumentTypeError` for an ``is_leaf`` that is no function.
    """
    return flatten(tree, is_leaf)[1]


def map(f: Callable[..., object], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Returns the pytree with ``f`` applied to each leaf, and the leaves of ``rest`` that match.

    Raises `ArgumentTypeError` where one of ``rest`` does not have the structure of ``tree`` at its
    top. As ``jax.tree.map``.
    """
    return optree.tree_map(f, tree, *rest, is_leaf=_wrap_question(is_leaf), namespace=NAMESPACE)


def all(tree: object, *, is_leaf: IsLeaf = None) -> bool:
    """Whether every leaf is true. As ``jax.tree.all``.

    Raises `ArgumentTypeError` for an ``is_leaf`` that is no function.
    """
    return builtins.all(leaves(tree, is_leaf))


def reduce(
    function: Callable[[Any, Any], object], tree: object, initializer: object = _NONE,
    is_leaf: IsLeaf = None,
) -> Any:  # fmt: skip
    """Returns the leaves combined from left to right. As ``jax.tree.reduce``.

    Raises `ArgumentTypeError` for an ``is_leaf`` that is no function.
    """
    start = () if initializer is _NONE else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *start)


def flatten_with_paths(tree: Any) -> list[tuple[str, Any]]:
    """Returns (path, leaf) pairs; a path reads like code, such as ``[0]['w']``.

    Raises nothing: whatever is no container is a leaf.
    """
    accessors, found, _ = optree.tree_flatten_with_accessor(tree, namespace=NAMESPACE)
    return [(a.codify(""), leaf) for a, leaf in zip(accessors, found, strict=True)]


def paths(treedef: PyTreeSpec) -> list[str]:
    """Returns the paths of the leaves of a structure, as `flatten_with_paths` does.

    Raises `ArgumentTypeError` for an object that is no structure.
    """
    return [accessor.codify("") for accessor in treedef.accessors()]


def entries(tree: Any) -> dict[Any, Any] | None:
    """Returns the parts of a container by their index, key or attribute; None for a leaf.

    Raises nothing: whatever is no container is a leaf.
    """
    if optree.tree_is_leaf(tree, namespace=NAMESPACE):
        return None
    level = optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    return dict(zip(level.entries, level.children, strict=True))


def flatten_with_none(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeSpec]:
    """Returns the leaves and the structure, with None as a leaf, as in a prefix of axes.

    Raises nothing: whatever is no container is a leaf.
    """
    return optree.tree_flatten(
        tree, _wrap_question(is_leaf), none_is_leaf=True, namespace=NAMESPACE
    )


def broadcast_prefix(prefix: Any, full: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Returns for each leaf of ``full`` the corresponding leaf of ``prefix``.

    None is a leaf in ``prefix``, and a container without leaves in ``full``; ``is_leaf(x)`` may
    declare a container in ``prefix`` a leaf. Raises `ArgumentTypeError` if ``prefix`` is not a
    prefix of the structure of ``full``.
    """
    found, spec = flatten_with_none(prefix, is_leaf)
    numbers = optree.tree_unflatten(spec, range(len(found)))
    return [found[i] for i in optree.broadcast_prefix(numbers, full, namespace=NAMESPACE)]


def sort_dicts(value: Any) -> Any:
    """Returns nested built-in containers with sorted keys of dicts, as JAX does."""
    cls = type(value)
    if cls is tuple or cls is list:
        return cls([sort_dicts(part) for part in value])
    if cls is not dict:
        return value
    try:
        keys = sorted(value)
    except TypeError:  # keys of several types have no order
        keys = list(value)
    return {key: sort_dicts(value[key]) for key in keys}


def is_of_builtins(spec: PyTreeSpec, most: int = 40) -> bool:
    """Whether all containers are tuples, named tuples, lists, dicts and None, to this depth.

    Raises `ArgumentTypeError` for an object that is no structure.
    """
    if spec.kind not in _BUILTINS or most == 0:
        return False
    return builtins.all(is_of_builtins(child, most - 1) for child in spec.children())


_BUILTINS = frozenset(
    (
        optree.PyTreeKind.LEAF,
        optree.PyTreeKind.NONE,
        optree.PyTreeKind.TUPLE,
        optree.PyTreeKind.NAMEDTUPLE,
        optree.PyTreeKind.LIST,
        optree.PyTreeKind.DICT,
    )
)


def is_leaf_spec(spec: PyTreeSpec) -> bool:
    """Whether the structure is exactly one leaf.

    Raises `ArgumentTypeError` for an object that is no structure.
    """
    return spec.is_leaf()


def register_node(
    cls: type[T],
    flatten_node: Callable[[T], tuple[Iterable[object], object]],
    unflatten_node: Callable[[Any, Iterable[Any]], T],
) -> type[T]:
    """Makes a class a pytree container.

    ``flatten_node(x)`` returns (children, hashable metadata) and ``unflatten_node(metadata,
    children)`` builds it again, as in ``jax.tree_util.register_pytree_node``.

    Raises `ArgumentTypeError` for an object that is no class, and for a class that is already
    registered.
    """

    def open_once(x: T) -> Any:
        given, _opened.given = _opened.given, None
        return flatten_node(x) if given is None else given

    optree.register_pytree_node(cls, open_once, unflatten_node, namespace=NAMESPACE)  # type: ignore[arg-type]
    registered[cls] = flatten_node
    return cls


def register_dataclass(
    cls: type[T],
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] = (),
) -> type[T]:
    """Makes a dataclass a pytree container: ``data_fields`` are children, ``meta_fields`` static.

    As ``jax.tree_util.register_dataclass``; with no fields named, all but ``meta_fields`` are data.
    For a class that is no dataclass, the named attributes are used. Can be used as a class
    decorator.

    Raises `ArgumentTypeError` for a class that is no dataclass without ``data_fields``, and
    `ArgumentError` for fields that a dataclass does not have.
    """
    if dataclasses.is_dataclass(cls):
        names = [f.name for f in dataclasses.fields(cls)]
    elif isinstance(cls, type) and data_fields is not None:
        names = [*data_fields, *meta_fields]
    else:
        raise ArgumentTypeError(
            f"register_dataclass takes a dataclass, or data_fields; got {cls!r}"
        )
    data = [n for n in names if n not in meta_fields] if data_fields is None else list(data_fields)
    if sorted([*data, *meta_fields]) != sorted(names):
        raise ArgumentError(
            f"{cls.__name__} has the fields {names}; data_fields {data} and meta_fields "
            f"{list(meta_fields)} must name each of them once"
        )

    meta = tuple(meta_fields)

    def flatten_node(value: T) -> tuple[list[Any], tuple[Any, ...]]:
        return [getattr(value, n) for n in data], tuple([getattr(value, n) for n in meta])

    def unflatten_node(metadata: tuple[object, ...], children: Iterable[object]) -> T:
        value = object.__new__(cls)  # __init__ may check types that tracers do not have
        for name, child in zip(data, children, strict=True):
            object.__setattr__(value, name, child)
        for name, static in zip(meta, metadata, strict=True):
            object.__setattr__(value, name, static)
        return value

    made: type[T] = register_node(cls, flatten_node, unflatten_node)
    registered[cls] = (tuple(data), meta)
    return made
