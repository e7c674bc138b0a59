"""`Precision` and the ``precision`` arguments of products."""

from __future__ import annotations

import enum
from typing import Any, TypeAlias

from plugrt.errors import ArgumentError
from plugrt.lax.dot_algorithms import DotAlgorithm, DotAlgorithmPreset
from plugrt.settings.declarations import config
from plugrt.stablehlo.bindings import hlo, ir

_NAMES = {
    "default": "DEFAULT", "bfloat16": "DEFAULT", "fastest": "DEFAULT", None: "DEFAULT",
    "high": "HIGH", "bfloat16_3x": "HIGH", "tensorfloat32": "HIGH",
    "highest": "HIGHEST", "float32": "HIGHEST",
}  # fmt: skip
"""What JAX calls the precisions, besides the numbers."""


class Precision(enum.Enum):
    """The precision of products, on devices that trade precision for speed.

    ``Precision("high")`` takes JAX's names, and raises `ArgumentError` for what is none of them.
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision:
        try:
            return cls[_NAMES[value]]  # type: ignore[index]
        except (KeyError, TypeError):  # TypeError: of what cannot be hashed
            names = ", ".join(repr(name) for name in _NAMES if name)
            raise ArgumentError(
                f"{value!r:.60} is no lax.Precision; it takes {names}, or 0, 1 and 2 (products "
                f"also take a lax.DotAlgorithm or the name of a lax.DotAlgorithmPreset)"
            ) from None


PrecisionLike: TypeAlias = (
    Precision
    | DotAlgorithm
    | DotAlgorithmPreset
    | str
    | tuple[Precision | str | None, Precision | str | None]
    | None
)
"""How exact a product is to be: a precision or its name for both operands, or for each.

Or an algorithm, or the name of a preset.
"""


def dot_algorithm(precision: PrecisionLike | Any) -> DotAlgorithm | DotAlgorithmPreset | None:
    """Returns the algorithm that ``precision`` is or names (JAX's own too), None for others."""
    if isinstance(precision, tuple) and hasattr(precision, "accumulation_type"):
        return DotAlgorithm(*precision)
    name = getattr(precision, "name", precision)
    presets = DotAlgorithmPreset.__members__
    # Precision has a DEFAULT, too.
    is_preset = type(precision).__name__ == "DotAlgorithmPreset" or name != "DEFAULT"
    return presets.get(name) if isinstance(name, str) and is_preset else None


def precision_config(precision: PrecisionLike | Any) -> ir.ArrayAttr:
    """Returns the precision of both operands as StableHLO states it.

    ``precision`` is None (``config.default_matmul_precision``), a member of `Precision` (or of
    JAX's), its name, a pair of them, or an algorithm, beside which it is the default one.
    """
    if dot_algorithm(precision) is not None:
        precision = Precision.DEFAULT
    pair = precision if isinstance(precision, tuple | list) else (precision, precision)
    if len(pair) != 2:
        raise ArgumentError(f"precision is one or a pair of precisions; got {precision!r}")
    found = [hlo.PrecisionAttr.get(_name_of(one)) for one in pair]
    return ir.ArrayAttr.get(found)


def _name_of(one: Any) -> str:
    """Returns StableHLO's name of one operand's precision; raises `ArgumentError`."""
    name = config.default_matmul_precision if one is None else getattr(one, "name", one)
    return Precision(name.lower() if isinstance(name, str) else name).name
