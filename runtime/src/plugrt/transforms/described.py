"""Arguments that are described rather than given: `ShapeDtypeStruct` and its like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrt.errors import NotAnArray
from plugrt.execution.array import Array
from plugrt.execution.placement import default_device
from plugrt.execution.sharding import Sharding, SingleDeviceSharding
from plugrt.execution.signature import Signature, signature_of
from plugrt.execution.transfer import check_dtype, host_array, narrowed
from plugrt.tracing.scalars import python_scalar
from plugrt.tracing.staging import Parameter


@dataclass(frozen=True, slots=True)
class ShapeDtypeStruct:
    """Stands in for an array where only its shape and dtype (and placement) matter."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sharding: Sharding | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(int(n) for n in self.shape))
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))


def call_parameters(
    leaves: Sequence[Any], names: Sequence[str], donated: frozenset[int]
) -> list[tuple[Parameter, Signature]]:
    """Returns what arguments, or things with shape and dtype, mean for tracing.

    The signatures say where a program for them would run; nothing is put on a device.
    """
    found = [
        parameter_of(x, n, i in donated) for i, (x, n) in enumerate(zip(leaves, names, strict=True))
    ]
    if any(s.dtype.char in "dD" for _, s in found):  # then Python floats keep their 64 bits, too
        found = [
            parameter_of(np.result_type(x, np.float64).type(x), n, i in donated, True)
            if type(x) in (float, complex)
            else found[i]
            for i, (x, n) in enumerate(zip(leaves, names, strict=True))
        ]
    return found


def parameter_of(
    leaf: Any, name: str, donated: bool, weak: bool = False
) -> tuple[Parameter, Signature]:
    """Returns what one argument means for tracing; ``weak`` if it stands for a Python scalar."""
    plain = python_scalar(leaf)
    leaf = leaf if plain is None else plain
    if type(leaf) is Array:
        signature = leaf._signature
    else:
        weak = weak or type(leaf) in (bool, int, float, complex)
        if weak or isinstance(leaf, np.ndarray | np.generic):
            host = host_array(leaf, f"argument {name}")
            shape, dtype = host.shape, host.dtype
        elif hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
            shape, dtype = tuple(leaf.shape), narrowed(np.dtype(leaf.dtype))
            check_dtype(dtype, f"argument {name}")
        else:
            raise NotAnArray(
                f"argument {name} is {leaf!r:.60}; expected an array, or anything with shape and "
                "dtype such as plugrt.ShapeDtypeStruct"
            )
        sharding = getattr(leaf, "sharding", None)
        committed = isinstance(sharding, SingleDeviceSharding)
        if not isinstance(sharding, SingleDeviceSharding):
            sharding = SingleDeviceSharding(default_device())
        signature = signature_of(shape, dtype, sharding, committed, weak)
    return Parameter(signature.tensor_type, signature.weak, name, donated), signature
