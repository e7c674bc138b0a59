"""Promotion: `result_type` and the dtypes of results, by the standard's tables and JAX's."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plugrt.array_api as xp
from plugrt.errors import DtypeError
from support.numpy_oracle import BOOL, COMPLEX, INTEGERS, dtype_of

STANDARD = [*BOOL, *INTEGERS, "float32", "float64", *COMPLEX]


def is_in_the_tables(a: str, b: str) -> bool:
    """Whether the standard defines the promotion of two dtypes."""
    if (a in BOOL) != (b in BOOL) or (a in INTEGERS) != (b in INTEGERS):
        return False
    return not ("uint64" in (a, b) and any(d.startswith("int") for d in (a, b)))


def test_the_standard_tables_match_numpy() -> None:
    pairs = [(a, b) for a, b in product(STANDARD, STANDARD) if is_in_the_tables(a, b)]
    assert len(pairs) > 70
    for a, b in pairs:
        assert xp.result_type(dtype_of(a), dtype_of(b)) == np.promote_types(a, b), (a, b)


@given(st.lists(st.sampled_from(STANDARD), min_size=1, max_size=4), st.randoms())
def test_order_does_not_matter_and_nothing_is_lost_twice(names: list[str], random: Any) -> None:
    if "uint64" in names and any(n.startswith("int") for n in names):
        # there JAX's promotion is not a lattice
        names = [n for n in names if n != "uint64"] or ["bool"]
    dtypes = [dtype_of(n) for n in names]
    result = xp.result_type(*dtypes)
    random.shuffle(dtypes)
    assert xp.result_type(*dtypes) == result
    assert xp.result_type(result, *dtypes) == result


def test_result_type_needs_something_with_a_dtype() -> None:
    with pytest.raises(TypeError, match="at least one array or dtype"):
        xp.result_type(1, 2.0)
    assert xp.result_type(np.float16(1), 2.0) == np.float16
    weak = xp.asarray(2.0)
    assert weak.weak_type
    assert xp.result_type(weak) == xp.result_type(weak, 1) == weak.dtype
    assert xp.result_type(xp.asarray(1), weak) == weak.dtype
    assert xp.result_type(weak, np.float16) == np.float16


def test_formats_without_a_common_one() -> None:
    with pytest.raises(DtypeError, match="float8_e4m3fn and float8_e5m2 have no implicit"):
        xp.result_type(xp.float8_e4m3fn, xp.float8_e5m2)
    assert not xp.can_cast(xp.float8_e4m3fn, xp.float8_e5m2)
    for a, b in [("float8_e4m3fn", "bfloat16"), ("float8_e5m2", "float32"), ("int4", "int8")]:
        with pytest.raises(DtypeError, match=f"{a} and {b} have no implicit"):
            xp.result_type(dtype_of(a), dtype_of(b))


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [("int32", "float32", "float32"), ("int64", "float16", "float16"), ("bool", "int8", "int8"),
     ("bool", "float32", "float32"), ("uint64", "int64", "float64"),
     ("int8", "complex64", "complex64"),
     ("bfloat16", "float16", "float32"), ("bfloat16", "float32", "float32"),
     ("float8_e4m3fn", "int64", "float8_e4m3fn"), ("float16", "complex64", "complex64"),
     ("float64", "complex64", "complex128"), ("bool", "int4", "int4")],
)  # fmt: skip
def test_promotions_that_the_standard_leaves_open_match_jax(a: str, b: str, result: str) -> None:
    assert xp.result_type(dtype_of(a), dtype_of(b)) == dtype_of(result)
    assert xp.result_type(dtype_of(b), dtype_of(a)) == dtype_of(result)
