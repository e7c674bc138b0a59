"""`AUTO`: shardings that the compiler chooses, of arguments and results, over a mesh."""

from __future__ import annotations

from typing import NoReturn

from plugrt.errors import ArgumentTypeError, InvalidArgument
from plugrt.execution.shardings.mesh import Mesh
from plugrt.execution.shardings.tiled_sharding import TiledSharding
from plugrt.frames.argument_errors import with_argument_errors


class AUTO(TiledSharding):
    """In `jit`'s ``in_shardings`` and ``out_shardings``: the compiler divides it over the mesh.

    Arguments must be host data or uncommitted arrays; ``compiled.input_shardings`` states the
    choice. It needs a compiler with such a planner, and a backend or topology that declares it
    (``auto_partitioning``). No published build contains XLA's planner: neither the CPU's, nor
    libtpu's up to 0.0.51. Shardings omitted from ``in_shardings`` follow from the others with any
    compiler. As JAX had it in ``jax.experimental.pjit`` before 0.10. Raises `ArgumentTypeError` for
    an object that is no mesh.

    >>> plugrt.sharding.AUTO(plugrt.make_mesh((2, 2), ("x", "y")))
    AUTO(Mesh('x': 2, 'y': 2))
    """

    __slots__ = ("_mesh",)

    @with_argument_errors
    def __init__(self, mesh: Mesh) -> None:
        if not isinstance(mesh, Mesh):
            raise ArgumentTypeError(f"AUTO takes a Mesh; got {mesh!r:.100}")
        mesh.require_no_manual_axes()
        super().__init__(mesh.flat_devices, None)
        self._mesh = mesh

    @property
    def mesh(self) -> Mesh:
        """The mesh whose axes the compiler may divide arrays over."""
        return self._mesh

    def _make_tiling(self, ndim: int) -> NoReturn:
        raise InvalidArgument(
            f"{self!r} states no division of an array: the compiler chooses one, for arguments "
            "and results of jit. NamedSharding states one"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AUTO) and self._mesh == other._mesh

    def __hash__(self) -> int:
        return hash((AUTO, self._mesh))

    def __repr__(self) -> str:
        return f"AUTO({self._mesh.brief})"
