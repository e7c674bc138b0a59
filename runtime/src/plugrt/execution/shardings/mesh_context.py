"""`MeshContext`: the mesh that surrounds the calls of a thread."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from plugrt.errors import FailedPrecondition
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.settings.declarations import config


@dataclass(frozen=True, slots=True)
class MeshContext:
    """The mesh that a `PartitionSpec` by itself means, and the one whose devices programs run on.

    Both are the same within `plugrt.set_mesh`; ``with mesh:`` changes the first alone.
    """

    specs: AbstractMesh | None = None
    programs: AbstractMesh | None = None

    def __repr__(self) -> str:
        return repr(self.specs)


_NONE = MeshContext()


class _Entered(threading.local):
    """What surrounded each ``with mesh:`` that this thread is in."""

    def __init__(self) -> None:
        self.outer: list[Any] = []


_entered = _Entered()


def current() -> MeshContext:
    """Returns the context of this thread."""
    return config.surroundings or _NONE


def swap(context: MeshContext) -> MeshContext:
    """Sets the context of this thread, and returns the one before."""
    before: MeshContext | None = config.swap_surroundings(None if context == _NONE else context)
    return before or _NONE


def begin(mesh: AbstractMesh) -> None:
    """Begins a ``with mesh:``."""
    _entered.outer.append(swap(MeshContext(mesh, current().programs)))


def end() -> None:
    """Ends the innermost one; `FailedPrecondition` where this thread is in none."""
    if not _entered.outer:
        raise FailedPrecondition(
            "Mesh.__exit__ was called, and this thread is in no `with mesh:` block that it could "
            "end; plugrt.set_mesh(None) ends what plugrt.set_mesh(mesh) began"
        )
    swap(_entered.outer.pop())
