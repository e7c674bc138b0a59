"""Exports of JAX: how `plugrt.load_program` and `plugrt.compile` read them without JAX.

The names are those in ``jax.export``; plugrt writes no exports.
"""

from __future__ import annotations

from plugrt.programs.export_file import deserialize
from plugrt.programs.exported import (
    Exported,
    ExportedProgram,
)
from plugrt.programs.exported_trees import (
    ExportedTree,
    register_namedtuple_serialization,
    register_pytree_node_serialization,
)

__all__ = [
    "Exported",
    "ExportedProgram",
    "ExportedTree",
    "deserialize",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
]
