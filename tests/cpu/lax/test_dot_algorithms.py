"""`DotAlgorithm` and its presets: the programs are identical to JAX's."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt import lax
from plugrt.errors import ArgumentError, DtypeError, TracingError
from support.behaviour import behaviour
from support.effort import some_of
from support.jax_oracle import jax, same

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32]
EIGHT_BITS = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
CASES = [
    *((dtype, dtype, preferred) for dtype in FLOATS for preferred in (None, np.float16)),
    (ml_dtypes.bfloat16, np.float32, None),
    (np.float32, np.float32, ml_dtypes.bfloat16),
]
EIGHT = [(EIGHT_BITS[0], rhs, preferred) for rhs in EIGHT_BITS for preferred in (None, np.float32)]
HALVES: dict[str, Any] = {
    "lhs_precision_type": np.float16, "rhs_precision_type": np.float16,
    "accumulation_type": np.float32,
}  # fmt: skip
BRAINS: dict[str, Any] = {
    "lhs_precision_type": ml_dtypes.bfloat16, "rhs_precision_type": ml_dtypes.bfloat16,
    "accumulation_type": np.float32, "num_primitive_operations": 3,
}  # fmt: skip


def steps(text: str) -> list[str]:
    """Returns a program's conversions and products, with types and algorithm, without names."""
    lines = [line for line in text.splitlines() if "stablehlo.convert" in line or "dot_gen" in line]
    return [re.sub(r"%\w+|precision = \[\w+, \w+\]|, +", "", line).strip() for line in lines]


def programs(x: Any, y: Any, namespace: Any, **options: Any) -> list[str]:
    def product(x: Any, y: Any) -> Any:
        return namespace.dot(x, y, **options)

    if namespace is lax:
        return steps(plugrt.jit(product).lower(x, y).as_text())
    traced = jax.jit(product).trace(x, y)
    return steps(traced.lower(lowering_platforms=("cuda",)).as_text())


@behaviour(19, "A dot algorithm gives the program that JAX makes of it for GPUs")
@pytest.mark.parametrize("name", some_of([p.name for p in jax.lax.DotAlgorithmPreset], 6))
def test_programs_of_presets_are_jaxs(name: str) -> None:
    for lhs, rhs, preferred in EIGHT if name.startswith("ANY") else CASES:
        x, y = np.ones((2, 3), lhs), np.ones((3, 2), rhs)
        theirs = programs(x, y, jax.lax, precision=name, preferred_element_type=preferred)
        for precision in (name, lax.DotAlgorithmPreset[name], jax.lax.DotAlgorithmPreset[name]):
            if name == "DEFAULT" and isinstance(precision, str):
                continue  # here the string names a precision, in JAX a preset
            ours = programs(x, y, lax, precision=precision, preferred_element_type=preferred)
            if name == "DEFAULT" and lhs != rhs:  # JAX leaves these operands to the compiler
                assert not any("algorithm" in step for step in ours)
            else:
                assert ours == theirs, (lhs, rhs, preferred)


def test_presets_are_jaxs() -> None:
    found = {preset.name: preset.value for preset in lax.DotAlgorithmPreset}
    assert found == {preset.name: preset.value for preset in jax.lax.DotAlgorithmPreset}


def test_an_algorithm_of_ones_own() -> None:
    x, y = np.full((2, 300), 0.1, np.float16), np.full((300, 2), 0.1, np.float16)
    for given in (HALVES, BRAINS):
        theirs = jax.lax.DotAlgorithm(**given)
        expected = programs(x, y, jax.lax, precision=theirs)
        for precision in (lax.DotAlgorithm(**given), theirs):
            assert programs(x, y, lax, precision=precision) == expected
    assert lax.dot(x, y, precision=lax.DotAlgorithm(**HALVES)).dtype == np.float16
    with pytest.raises(TracingError, match=r"algorithm not known .* primitive_ops:7"):
        lax.dot(x, y, precision=lax.DotAlgorithm(**HALVES, num_primitive_operations=7))


def test_products_with_an_algorithm_run() -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    for name in ("F32_F32_F32", "BF16_BF16_F32", "BF16_BF16_F32_X3", "F16_F16_F16"):
        same(lax.dot(x, x, precision=name), x @ x)
        same(lax.dot(x, x, precision=name, preferred_element_type=np.float64),
             (x @ x).astype(np.float64))  # fmt: skip
    same(lax.batch_matmul(x[None], x[None], "F32_F32_F32"), (x @ x)[None])
    convolved = lax.conv(x[None, :1], x[None, :1, :1], (1,), "VALID", precision="F32_F32_F32")
    same(convolved, x[None, :1])


def test_wrong_algorithms() -> None:
    x = np.ones((2, 2), np.float32)
    with pytest.raises(DtypeError, match="ANY_F8_ANY_F8_F32 takes operands of float8 dtypes"):
        lax.dot(x, x, precision="ANY_F8_ANY_F8_F32")
    with pytest.raises(ArgumentError, match=r"not a lax.Precision; .*DotAlgorithmPreset"):
        lax.dot(x, x, precision="F32_F32_F16")
    with pytest.raises(DtypeError, match=r"preferred_element_type .* int8, of fewer bits"):
        lax.dot(np.ones(2, np.int32), np.ones(2, np.int32), preferred_element_type=np.int8)
    with pytest.raises(ArgumentError, match=r"batch_matmul takes arrays of one rank .* \(2, 2\)"):
        lax.batch_matmul(x, x[0])
