"""Pytrees: functions on nested containers of arrays, by the names of ``jax.tree``.

None is a container without leaves. Whatever does not fit raises an `ArgumentError`.
"""

from __future__ import annotations

from plugrt.execution.trees import pytrees as _pytrees
from plugrt.execution.trees.pytrees import PyTreeSpec as PyTreeSpec
from plugrt.frames.argument_errors import with_argument_errors

# The runtime itself calls `pytrees`, without the translation of argument errors.
all = with_argument_errors(_pytrees.all)
broadcast_prefix = with_argument_errors(_pytrees.broadcast_prefix)
flatten = with_argument_errors(_pytrees.flatten)
flatten_with_none = with_argument_errors(_pytrees.flatten_with_none)
flatten_with_paths = with_argument_errors(_pytrees.flatten_with_paths)
is_leaf_spec = with_argument_errors(_pytrees.is_leaf_spec)
leaves = with_argument_errors(_pytrees.leaves)
map = with_argument_errors(_pytrees.map)
reduce = with_argument_errors(_pytrees.reduce)
register_dataclass = with_argument_errors(_pytrees.register_dataclass)
register_node = with_argument_errors(_pytrees.register_node)
structure = with_argument_errors(_pytrees.structure)
unflatten = with_argument_errors(_pytrees.unflatten)

__all__ = _pytrees.__all__


def __dir__() -> list[str]:
    # Without the modules that are imported here.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
