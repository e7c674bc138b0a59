"""If a call does not fit an operation's parameters, the error names the parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax

X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("array", [True, False], ids=["array", "numpy"])
@pytest.mark.parametrize(("call", "says"), [
    (lambda x: xp.mean(x, dtype="float32"), "mean has no parameter 'dtype'; it takes x, axis"),
    (
        lambda x: xp.sum(x, 1, None, True),
        "sum takes 3 arguments by position (x, axis, dtype); got 4. By name it takes keepdims",
    ),
    (lambda x: xp.sort(x, 0, True), "sort takes 2 arguments by position (x, axis); got 3. By"),
    (lambda x: xp.sin(x, out=x), "unexpected keyword argument 'out'"),
    (lambda x: xp.add(x, x, x), "add takes 2 arguments by position (x1, x2); got 3"),
    (lambda x: xp.concat([x, x], axes=0), "unexpected keyword argument 'axes'"),
    (lambda x: lax.rev(x, (0,), axis=1), "unexpected keyword argument 'axis'"),
])  # fmt: skip
def test_it_names_the_parameter(
    call: Callable[[Any], Any], says: str, array: bool, traced: bool
) -> None:
    x = plugrt.device_put(X) if array else X
    with pytest.raises(TypeError) as caught:
        plugrt.jit(call)(x) if traced else call(x)
    assert says in str(caught.value)
