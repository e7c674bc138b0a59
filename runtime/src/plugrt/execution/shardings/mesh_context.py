"""`MeshContext`: the mesh that surrounds the calls of a thread."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.settings.declarations import config


@dataclass(frozen=True, slots=True)
class MeshContext:
    """Up to three meshes: for bare `PartitionSpec`s, for traced programs, and for devices.

    All are the same within `plugrt.set_mesh`; ``with mesh:`` changes only the first, and
    `plugrt.sharding.use_abstract_mesh` the first two.
    """

    specs: AbstractMesh | None = None
    programs: AbstractMesh | None = None
    devices: Any = None  # a `Mesh`, whose module imports this one

    def __repr__(self) -> str:
        return repr(self.specs)


_NONE = MeshContext()


def current() -> MeshContext:
    """Returns the context of this thread."""
    return config.surroundings or _NONE


def swap(context: MeshContext) -> MeshContext:
    """Sets the context of this thread, and returns the previous one."""
    before: MeshContext | None = config.swap_surroundings(_setting(context))
    return before or _NONE


def surround(
    context: MeshContext, after: tuple[MeshContext, ...] = ()
) -> AbstractContextManager[None]:
    """Sets the context of this thread for a ``with`` block.

    At its end it sets the context in ``after``, if given, else the previous one.
    """
    return config.surround(_setting(context), after=tuple(map(_setting, after)))


def _setting(context: MeshContext) -> MeshContext | None:
    return None if context == _NONE else context
