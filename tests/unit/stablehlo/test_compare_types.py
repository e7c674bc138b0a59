"""Comparisons get an explicit type, for any operands."""

from __future__ import annotations

import pytest

from plugrt.stablehlo.bindings import new_context
from plugrt.stablehlo.types import compare_attributes
from support.numpy_oracle import dtype_of


@pytest.mark.parametrize(
    ("kind", "dtypes"),
    [
        ("UNSIGNED", ["bool", "uint4", "uint8", "uint64"]),
        ("SIGNED", ["int2", "int8", "int64"]),
        ("FLOAT", ["float64", "bfloat16", "float8_e4m3b11fnuz", "complex64"]),
    ],
)
def test_the_type_follows_the_dtype(kind: str, dtypes: list[str]) -> None:
    with new_context():
        for dtype in dtypes:
            found = compare_attributes(dtype_of(dtype), "LE")
            assert str(found["compare_type"]) == f"#stablehlo<comparison_type {kind}>"
            assert str(found["comparison_direction"]) == "#stablehlo<comparison_direction LE>"


def test_the_total_order_is_one_of_floats() -> None:
    with new_context():
        found = compare_attributes(dtype_of("float32"), "LT", total=True)
        assert str(found["compare_type"]) == "#stablehlo<comparison_type TOTALORDER>"
