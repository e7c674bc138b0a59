"""`MeshContext`: the mesh that surrounds the calls of a thread."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.settings.declarations import config


@dataclass(frozen=True, slots=True)
class MeshContext:
    """The mesh of bare `PartitionSpec`s, and the mesh whose devices run programs.

    Both are the same within `plugrt.set_mesh`; ``with mesh:`` changes only the first.
    """

    specs: AbstractMesh | None = None
    programs: AbstractMesh | None = None

    def __repr__(self) -> str:
        return repr(self.specs)


_NONE = MeshContext()


def current() -> MeshContext:
    """Returns the context of this thread."""
    return config.surroundings or _NONE


def swap(context: MeshContext) -> MeshContext:
    """Sets the context of this thread, and returns the one before."""
    before: MeshContext | None = config.swap_surroundings(_setting(context))
    return before or _NONE


def surround(
    context: MeshContext, after: tuple[MeshContext, ...] = ()
) -> AbstractContextManager[None]:
    """Sets the context of this thread for a ``with`` block.

    ``after`` has the one to set then, where it is not the one before.
    """
    return config.surround(_setting(context), after=tuple(map(_setting, after)))


def _setting(context: MeshContext) -> MeshContext | None:
    return None if context == _NONE else context
