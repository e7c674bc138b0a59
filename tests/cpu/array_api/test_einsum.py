"""`einsum` against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import errors
from support.behaviour import behaviour
from support.numpy_oracle import same

SIZES = {"b": 6, "i": 2, "j": 3, "k": 4, "l": 5}
CASES = [
    "ij,jk->ik", "ij,jk", "ij->ji", "ii->i", "ii", "iij->j", "ij->", "ij,ij->", "ij,ij->ij", "i,i",
    "i,->i", "i,j,k->kji", "ij,jk,kl->il", "ij,jk,kl", "bi,bj,bk->ijk", "ijk,kji->", "bij,bjk->bik",
    "...->...", "...i,i", "...ij,...jk->...ik", "b...i,b...j->b...ij",
]  # fmt: skip


def operands(subscripts: str) -> list[Any]:
    def shape(part: str) -> list[int]:
        before, dots, after = part.partition("...")
        return [*(SIZES[x] for x in before), *([2, 3] if dots else []), *(SIZES[x] for x in after)]

    random = np.random.default_rng(0)
    parts = subscripts.partition("->")[0].split(",")
    return [random.standard_normal(shape(part)).astype("f") for part in parts]


@behaviour(19, "`einsum` with subscripts as text is NumPy's, for any number of operands")
def test_as_numpy() -> None:
    given = {case: operands(case) for case in CASES}
    found = plugrt.jit(lambda given: {case: xp.einsum(case, *given[case]) for case in given})(given)
    for case in CASES:
        same(found[case], np.einsum(case, *given[case]), tolerance=2e-5)


@pytest.mark.parametrize("optimize", [True, False, "greedy"])
def test_any_order_gives_the_same(optimize: Any) -> None:
    arrays = operands("ij,jk,kl,ib->lb")
    expected = np.einsum("ij,jk,kl,ib->lb", *arrays)
    same(xp.einsum("ij,jk,kl,ib->lb", *arrays, optimize=optimize), expected, tolerance=2e-5)


def test_dtypes_and_axes_of_size_1() -> None:
    whole = np.arange(6, dtype=np.int16).reshape(2, 3)
    same(xp.einsum("ij,kj", whole, whole), np.einsum("ij,kj", whole, whole))
    truth = whole > 2
    same(xp.einsum("ij,kj->ik", truth, truth), np.einsum("ij,kj->ik", truth, truth))
    row = np.ones((1, 3), "f")
    same(xp.einsum("ij,ij->ij", row, whole.astype("f")), whole.astype("f"))
    same(xp.einsum("ii->i", truth[:, :2]), truth[:, :2].diagonal())


WRONG: dict[str, tuple[tuple[Any, ...], type[Exception], str]] = {
    "too few": (("ij,jk", np.eye(2)), errors.ArgumentError, "of 2 operands; got 1 arrays"),
    "dimensions": (("ij", np.ones(3)), errors.ArgumentError, "an array of 1 dimensions"),
    "a letter of none": (("ij->k", np.eye(2)), errors.ArgumentError, "the result has 'k'"),
    "twice": (("ij->ii", np.eye(2)), errors.ArgumentError, "the result has 'i'"),
    "no letter": (("i?", np.eye(2)), errors.ArgumentError, "it takes a letter for each"),
    "sizes": (("ij,ij", np.ones((2, 3)), np.ones((2, 4))), errors.ShapeError, "sizes 3 and 4"),
    "no text": ((np.eye(2), np.eye(2)), errors.ArgumentError, "subscripts first, as text"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_calls_are_named(case: str) -> None:
    arguments, error, words = WRONG[case]
    with pytest.raises(error, match=words):
        xp.einsum(*arguments)
