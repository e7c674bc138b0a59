"""NumPy's functions that call methods of their arguments, with all parameters that NumPy passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt.array_api as xp
from plugrt import lax
from plugrt.errors import Unimplemented

A = np.array([[1, 2, 3], [4, 5, 7]], np.float32)


@pytest.mark.parametrize("name", ["sum", "mean", "std", "max", "all", "argmin", "cumulative_sum"])
def test_nothing_is_written_into_an_array(name: str) -> None:
    with pytest.raises(Unimplemented, match=f"{name} cannot write into out"):
        getattr(xp.asarray(A), {"cumulative_sum": "cumsum"}.get(name, name))(out=np.zeros(()))


@pytest.mark.parametrize("function", [xp.any, xp.all])
def test_no_out_is_passed_as_numpy_does_through_other_arrays(function: Any) -> None:
    assert function(xp.asarray(A), axis=1, out=None).tolist() == [True, True]
    with pytest.raises(Unimplemented, match="cannot write into out"):
        function(xp.asarray(A), out=xp.zeros((), bool))


def test_unknown_parameters_are_named() -> None:
    x = xp.asarray(A)
    with pytest.raises(TypeError, match=r"mean has no parameter 'dtype'.*astype"):
        xp.mean(x, dtype=xp.float32)
    with pytest.raises(TypeError, match=r"sum takes 3 arguments by position.*x, axis, dtype"):
        xp.sum(x, 1, None, True)
    assert xp.expand_dims(x, 1).shape == (2, 1, 3)


@pytest.mark.parametrize("make", [xp.zeros_like, xp.ones_like, xp.empty_like])
def test_like_what_is_no_array_of_ours(make: Callable[..., Any]) -> None:
    assert make(A).shape == A.shape
    assert make(np.float16(2)).dtype == np.float16
    for wrong in (None, "text", [1.0]):
        with pytest.raises(TypeError, match="x is"):
            make(wrong)
    assert xp.full_like(A, 3).dtype == A.dtype
    assert xp.astype(A, xp.int8).dtype == np.int8


def test_scalars_by_keyword_are_arguments_of_each_call() -> None:
    x = xp.asarray(A)
    for high in (3, 3, 5):  # earlier, the second call ran a program without bounds
        assert xp.max(xp.clip(x, min=2, max=high)).item() == high
    for _ in range(2):
        assert lax.abs(x=-1).item() == 1
