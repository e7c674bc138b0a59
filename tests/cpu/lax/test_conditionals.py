from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrt import jit, lax
from plugrt.errors import ArgumentError, DtypeError, ShapeError, StructureError
from support.jax_oracle import same

X = np.arange(3, dtype=np.float32)


def test_cond_runs_one_branch_only() -> None:
    def forever(x: Any) -> Any:
        return lax.while_loop(lambda _: True, lambda v: v, x)

    same(lax.cond(True, lambda x: x, forever, X), X)


def test_cond_takes_one_operand_by_name() -> None:
    same(lax.cond(True, lambda x: x, lambda x: lax.neg(x), operand=X), X)
    with pytest.raises(ArgumentError, match="not both"):
        lax.cond(True, lambda x: x, lambda x: x, X, operand=X)


def test_python_scalars_from_a_branch_take_the_others_dtype() -> None:
    same(lax.cond(False, lambda: np.float16(1), lambda: 3), np.float16(3))
    same(lax.switch(0, [lambda: 1, lambda: np.int8(2), lambda: 3]), np.int8(1))


@pytest.mark.parametrize(("index", "expected"), [(-5, 0), (0, 0), (1, 10), (2, 20), (7, 20)])
def test_switch_clamps_the_index(index: int, expected: int) -> None:
    branches = [lambda x, k=k: lax.add(x, 10 * k) for k in range(3)]
    assert int(lax.switch(index, branches, np.int32(0))) == expected
    assert int(jit(lambda i: lax.switch(i, branches, np.int32(0)))(index)) == expected


@pytest.mark.parametrize("index", [np.uint32(2**32 - 1), np.int64(2**40), np.uint8(200)])
def test_switch_clamps_indices_that_int32_cannot_hold(index: Any) -> None:
    assert int(lax.switch(index, [lambda: 0, lambda: 1])) == 1


def test_branches_that_differ_are_refused_with_all_types() -> None:
    with pytest.raises(ShapeError, match=r"true_fun returns float32\[3\], false_fun .*float32\[\]"):
        lax.cond(True, lambda x: x, lambda x: np.float32(0), X)
    with pytest.raises(DtypeError, match=r"output\['k'\] of branches\[1\] differs"):
        lax.switch(0, [lambda: {"k": np.int32(1)}, lambda: {"k": np.float32(1)}])
    with pytest.raises(StructureError, match=r"true_fun returns .*, false_fun returns"):
        lax.cond(True, lambda x: (x, x), lambda x: x, X)


def test_arguments_that_cannot_be_are_refused() -> None:
    with pytest.raises(ShapeError, match="pred of cond"):
        lax.cond(np.ones(2, bool), lambda: 1, lambda: 2)
    with pytest.raises(DtypeError, match="index of switch"):
        lax.switch(1.5, [lambda: 1, lambda: 2])
    with pytest.raises(ShapeError, match="index of switch"):
        lax.switch(np.zeros(1, np.int32), [lambda: 1, lambda: 2])
    with pytest.raises(ArgumentError, match="at least one branch"):
        lax.switch(0, [])
    with pytest.raises(ArgumentError, match="takes functions as its branches; found 3"):
        lax.cond(True, 3, lambda: 2)
