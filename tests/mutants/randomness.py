"""Mutants of random numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mutants.results import change_where, spoil
from plugrt.stablehlo.element_names import element_name
from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.conformance.mutants.faults import Faults
from plugrt_sdk.conformance.random_bits import stored_key, variants


def _unmoving(array: Array) -> Array:
    """Returns an array filled with its first element."""
    return np.full_like(array, array.reshape(-1)[0])


MUTANTS: Mapping[str, Faults] = {
    **{
        f"random.rng_bit_generator.{stored_key(algorithm, dtype).lower()}": change_where(
            f"rng_bit_generator {algorithm} x{element_name(np.dtype(dtype))}>", spoil(0)
        )
        for algorithm, dtype in variants()
    },
    "random.rng.uniform.float32": change_where("stablehlo.rng UNIFORM f32", _unmoving),
    "random.rng.uniform.int32": change_where("stablehlo.rng UNIFORM i32", _unmoving),
    "random.rng.normal.float32": change_where("stablehlo.rng NORMAL", _unmoving),
}
