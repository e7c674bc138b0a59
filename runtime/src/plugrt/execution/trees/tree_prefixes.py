"""`spread_prefix`: applies users' pytree prefixes, and describes where one does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plugrt.errors import StructureError
from plugrt.execution.trees import pytrees


def spread_prefix(
    prefix: object, full: object, what: str, of: str, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any]:
    """Applies `tree.broadcast_prefix` to an argument that users pass as a prefix.

    ``what`` is its name and ``of`` describes ``full``, for the `StructureError` that is raised if
    it is no prefix.
    """
    try:
        return pytrees.broadcast_prefix(prefix, full, is_leaf)
    except ValueError as error:
        leaves, spec = pytrees.flatten_with_none(prefix, is_leaf)
        difference = _describe_difference(pytrees.unflatten(spec, range(len(leaves))), full, "")
        raise StructureError(
            f"{what}={prefix!r:.300} is not a pytree prefix of {of}, {pytrees.structure(full)}"
            f"{difference or f': {error}'}"
        ) from error


def _describe_difference(prefix: object, full: object, path: str) -> str:
    """Describes where a pytree is no prefix of another, without values, which may be large."""
    ours, theirs = pytrees.entries(prefix), pytrees.entries(full)
    if ours is None:
        return ""
    if theirs is None or [*ours] != [*theirs]:
        where = f" at {path}" if path else ""
        return (
            f": it has {_describe(prefix, ours)}{where}, where they have {_describe(full, theirs)}"
        )
    below = (_describe_difference(ours[key], theirs[key], f"{path}[{key!r}]") for key in ours)
    return next(filter(None, below), "")


def _describe(container: object, parts: dict[object, object] | None) -> str:
    name = type(container).__name__
    if parts is None:
        return "one value"
    if isinstance(container, dict):
        return f"a {name} with the keys {[*parts]!r:.200}"
    return f"a {name} of {len(parts)}"
