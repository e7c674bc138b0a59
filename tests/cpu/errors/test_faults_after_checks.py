"""An error that is raised after the checks of arguments is not blamed on the caller."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import pytest

import plugrt
from plugrt import lax


@pytest.mark.usefixtures("unraisable")  # pytest's own hook needs more frames than are left
@pytest.mark.parametrize("spare", range(60, 180, 7))
def test_functions_that_are_nested_too_deep_are_no_wrong_argument(spare: int) -> None:
    """`RecursionError` arrives unchanged from any depth. Earlier, it was an `ArgumentTypeError`."""

    def nested(x: Any) -> Any:
        return lax.cond(x[0] > 0, nested, nested, x)

    x, before = plugrt.device_put([1.0]), sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + spare)
    try:
        with pytest.raises(RecursionError):
            plugrt.jit(lambda v: nested(v))(x)
    finally:
        sys.setrecursionlimit(before)
