"""`Exported`: the contents of a JAX export file, and checks of its dimension sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from plugrt.execution.arrays.aval import Aval
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.interface import Program, TensorType
from plugrt.programs.exported_trees import ExportedTree

Dimension = int | str
"""The size of a dimension, or an expression of dimension variables, such as ``2*a + b``."""


StatedSharding = NamedSharding | bytes
"""Over an `AbstractMesh`; in JAX's files until March 2026 a serialised ``xla.OpSharding``."""


def dimensions(aval: Aval) -> tuple[Dimension, ...]:
    """Returns the shape of an argument or result of an export, with symbolic dimensions."""
    return aval.shape


def is_static(aval: Aval) -> bool:
    """Whether no dimension is symbolic."""
    return all(isinstance(n, int) for n in dimensions(aval))


_OF_JAX = ("call", "vjp", "serialize", "mlir_module")
"""The methods of ``jax.export.Exported``."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The contents of ``jax.export.Exported.serialize`` without derivatives, which plugrt ignores.

    The names are the same as in ``jax.export.Exported``. Arguments and results are flat: the leaves
    of ``in_tree``, which has the structure of ``(args, kwargs)``, and of ``out_tree``.
    """

    fun_name: str
    in_tree: ExportedTree
    in_avals: tuple[Aval, ...]
    """The types on the host. Typed keys of ``jax.random`` are ``uint32`` with one more dimension,
    and ``float0`` is ``bool``, as in the module. A symbolic dimension is a `Dimension` in text."""
    out_tree: ExportedTree
    out_avals: tuple[Aval, ...]
    in_shardings: tuple[StatedSharding | None, ...]
    """The sharding of each argument; None if the export states none: replicated."""
    out_shardings: tuple[StatedSharding | None, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[str, ...]
    """The names of JAX's classes of ordered effects."""
    unordered_effects: tuple[str, ...]
    disabled_safety_checks: tuple[str, ...]
    """Each is ``platform``, or ``custom_call:`` with the name of a target."""
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    """The indices of the arguments that the module uses."""
    mlir_module_serialized: bytes = field(repr=False)
    has_vjp: bool
    """Whether the file has the derivative too. It is not read: JAX differentiates with it."""
    jax_version: str | None = None
    """The version of JAX that wrote the file, if the file states it."""

    def __getattr__(self, name: str) -> NoReturn:
        cure = ""
        if name in _OF_JAX:
            cure = (
                ": this is the file's description of the function. plugrt.compile(file) gives the "
                "function, which runs on arrays; jax.export has the rest"
            )
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}{cure}", name=name, obj=self
        )

    @property
    def is_symbolic(self) -> bool:
        """Whether the shape of an argument has dimension variables."""
        return not all(map(is_static, self.in_avals))

    @property
    def needs_refinement(self) -> bool:
        """Whether the module has other parameters than arrays of known shapes.

        These are sizes, the index of the platform, or tokens.
        """
        return self.is_symbolic or len(self.platforms) > 1 or bool(self.ordered_effects)

    def static_types(self) -> list[TensorType]:
        """Returns the types of the arguments of an export that is not symbolic."""
        return [aval.tensor_type for aval in self.in_avals]


@dataclass(frozen=True, slots=True)
class ExportedProgram(Program):
    """The module of an export as a program for `plugrt.compile`, with the export."""

    exported: Exported = None  # type: ignore[assignment]  # after fields that have defaults


_OF_ONE = re.compile(r"(?:(\d+)\*)?([A-Za-z_]\w*)(?: ([+-]) (\d+))?")
"""A dimension with one variable, such as ``a``, ``2*a`` or ``2*a + 1``."""


def explain_sizes(
    names: Sequence[str], expected: Sequence[Aval], shapes: Sequence[tuple[int, ...]]
) -> list[str]:
    """Returns one line for each size that contradicts its dimension variable.

    Assertions in the module check expressions of several variables, and powers. Without this check
    the error may instead name an operation of the module whose shapes do not fit.
    """
    found: dict[str, tuple[int, str]] = {}
    wrong = []
    for name, aval, shape in zip(names, expected, shapes, strict=True):
        for i, (stated, size) in enumerate(zip(dimensions(aval), shape, strict=True)):
            of_one = _OF_ONE.fullmatch(stated) if isinstance(stated, str) else None
            if of_one is None:
                continue
            factor, variable, sign, offset = of_one.groups()
            multiple = size - int(f"{sign}{offset}" if sign else 0)
            value, rest = divmod(multiple, int(factor or 1))
            here = f"{name}.shape[{i}]"
            if rest:
                wrong.append(
                    f"  {here}: takes {stated}, and no whole number {variable} gives {size}"
                )
                continue
            before, where = found.setdefault(variable, (value, here))
            if before != value:
                wrong.append(f"  {here}: {variable} is {value} here, and {before} in {where}")
    return wrong
