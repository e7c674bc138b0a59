"""`Precision`, `DotAlgorithm` and the ``precision`` arguments of products."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np

from plugrt.array_api.dtypes import as_dtype
from plugrt.errors import ArgumentError, DtypeError
from plugrt.settings.declarations import config
from plugrt.stablehlo.bindings import hlo, ir
from plugrt.stablehlo.types import element_type
from plugrt.typing import DTypeLike

Dtype: TypeAlias = np.dtype[Any]
_DTYPES = {
    "F16": np.dtype(np.float16), "BF16": np.dtype(ml_dtypes.bfloat16),
    "TF32": np.dtype(np.float32), "F32": np.dtype(np.float32), "F64": np.dtype(np.float64),
}  # fmt: skip
"""The dtypes that store the types in presets' names: there is no dtype of 19 bits."""


class ComputeTypes(NamedTuple):
    """The dtypes to which an algorithm converts operands, and the dtype of its sums."""

    lhs: Dtype
    rhs: Dtype
    accumulation: Dtype


class DotAlgorithm(NamedTuple):
    """The algorithm of a product; the argument ``precision`` of `dot`, `dot_general` and others.

    Operands are rounded to the first two dtypes and summed up in the third. Algorithms that split
    numbers into components state the number of components, and the number of products. Fields and
    defaults are the same as in ``jax.lax.DotAlgorithm``. The backend determines the available
    algorithms: XLA's CPU backend ignores them and computes in the operands' dtype.
    """

    lhs_precision_type: DTypeLike
    rhs_precision_type: DTypeLike
    accumulation_type: DTypeLike
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False

    def compute_types(self, lhs: Dtype, rhs: Dtype, result: Dtype) -> ComputeTypes:
        """Returns the dtypes that the operands are converted to, and the dtype of the sums."""
        return ComputeTypes(*(as_dtype(dtype) for dtype in self[:3]))

    def attribute(self, lhs: Dtype, rhs: Dtype) -> Any:
        """Returns StableHLO's attribute of the algorithm."""
        types = [element_type(as_dtype(dtype)) for dtype in self[:3]]
        return hlo.DotAlgorithm.get(*types, *(int(n) for n in self[3:6]), bool(self[6]))


class DotAlgorithmPreset(enum.Enum):
    """Algorithms by name: the types of both operands and of the sums, and the number of products.

    As ``jax.lax.DotAlgorithmPreset``. JAX refuses on CPU the presets that XLA's CPU backend ignores
    (see `DotAlgorithm`); a trace here has no platform.
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def compute_types(self, lhs: Dtype, rhs: Dtype, result: Dtype) -> ComputeTypes:
        """Returns the dtypes to which operands are converted, for these operands and this result.

        Raises `DtypeError` if the preset accepts only floats of 8 bits.
        """
        if self is DotAlgorithmPreset.DEFAULT:
            return ComputeTypes(lhs, rhs, result)
        parts = self.name.split("_")
        if parts[0] == "ANY":
            self._check_eight_bits(lhs, rhs)
            kept = parts[4] == "ANY" or result.itemsize < 4
            return ComputeTypes(lhs, rhs, result if kept else _DTYPES["F32"])
        operand, accumulation = _DTYPES[parts[0]], _DTYPES[parts[2]]
        splits = len(parts) > 3
        stored = _DTYPES["F32"] if splits else operand
        wide = parts[0] == "BF16" and not splits  # these algorithms round float32 themselves

        def pick(dtype: Dtype) -> Dtype:
            return dtype if wide and dtype == np.float32 else stored

        types = ComputeTypes(pick(lhs), pick(rhs), accumulation)
        rounds = types.lhs == types.rhs == result and accumulation == np.float32
        return types._replace(accumulation=result) if rounds else types

    def attribute(self, lhs: Dtype, rhs: Dtype) -> Any:
        """Returns StableHLO's attribute of the algorithm for operands of such dtypes, or None."""
        if self is DotAlgorithmPreset.DEFAULT:
            return None
        parts = self.name.split("_")
        if parts[0] == "ANY":
            types = [element_type(lhs), element_type(rhs), ir.F32Type.get()]
            fast = (
                self is DotAlgorithmPreset.ANY_F8_ANY_F8_F32_FAST_ACCUM
            )  # as JAX: not for ..._ANY
            return hlo.DotAlgorithm.get(*types, 1, 1, 1, fast)
        products = int(parts[3][1:]) if len(parts) > 3 else 1
        types = [
            ir.FloatTF32Type.get() if part == "TF32" else element_type(_DTYPES[part])
            for part in parts[:3]
        ]
        return hlo.DotAlgorithm.get(*types, 1, 1, products, False)

    def _check_eight_bits(self, lhs: Dtype, rhs: Dtype) -> None:
        if any(not d.name.startswith("float8") for d in (lhs, rhs)):
            raise DtypeError(
                f"the dot algorithm {self.name} takes operands of float8 dtypes; found {lhs.name} "
                f"and {rhs.name}"
            )


_NAMES: dict[object, str] = {
    "default": "DEFAULT", "bfloat16": "DEFAULT", "fastest": "DEFAULT", None: "DEFAULT",
    "high": "HIGH", "bfloat16_3x": "HIGH", "tensorfloat32": "HIGH",
    "highest": "HIGHEST", "float32": "HIGHEST",
}  # fmt: skip
"""JAX's names of the precisions, besides numbers."""


class Precision(enum.Enum):
    """The precision of products, on devices that trade precision for speed.

    ``Precision("high")`` accepts JAX's names, and raises `ArgumentError` for others.
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision:
        try:
            return cls[_NAMES[value]]
        except (KeyError, TypeError):  # TypeError: for an object that cannot be hashed
            names = ", ".join(repr(name) for name in _NAMES if name)
            raise ArgumentError(
                f"{value!r:.60} is not a lax.Precision; it takes {names}, or 0, 1 and 2 (products "
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
"""The precision of a product: one or its name for both operands, or for each.

Or an algorithm, or the name of a preset.
"""


def dot_algorithm(precision: PrecisionLike | object) -> DotAlgorithm | DotAlgorithmPreset | None:
    """Returns the algorithm in ``precision`` (plugrt's, JAX's, or by name); None for others."""
    if isinstance(precision, tuple) and hasattr(precision, "accumulation_type"):
        return DotAlgorithm(*precision)
    name = getattr(precision, "name", precision)
    presets = DotAlgorithmPreset.__members__
    # Precision has a DEFAULT, too.
    is_preset = type(precision).__name__ == "DotAlgorithmPreset" or name != "DEFAULT"
    return presets.get(name) if isinstance(name, str) and is_preset else None


def precision_config(precision: PrecisionLike | object) -> ir.ArrayAttr:
    """Returns the precision of both operands as StableHLO's attribute.

    ``precision`` is None (``config.default_matmul_precision``), a member of `Precision` (or of
    JAX's), its name, a pair of them, or an algorithm, with which the attribute is the default.
    """
    if dot_algorithm(precision) is not None:
        precision = Precision.DEFAULT
    pair = precision if isinstance(precision, tuple | list) else (precision, precision)
    if len(pair) != 2:
        raise ArgumentError(f"precision is one or a pair of precisions; got {precision!r}")
    found = [hlo.PrecisionAttr.get(_name_of(one)) for one in pair]
    return ir.ArrayAttr.get(found)


def _name_of(one: object) -> str:
    """Returns StableHLO's name of one operand's precision; raises `ArgumentError`."""
    name = config.default_matmul_precision if one is None else getattr(one, "name", one)
    return Precision(name.lower() if isinstance(name, str) else name).name
