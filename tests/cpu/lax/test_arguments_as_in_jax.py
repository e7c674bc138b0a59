"""Arguments that plugrt.lax accepts or refuses as jax.lax does, and earlier did not.

Same as JAX: `lax` takes and refuses what `jax.lax` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plugrt import lax
from support.jax_oracle import jax, same

C = np.array([1 + 2j, 1 - 1j, 2, -3j], np.complex64)
D = np.array([1 + 1j, 3j, 2, -4j], np.complex64)
M = np.arange(6, dtype=np.float32).reshape(2, 3)

TAKEN: dict[str, Callable[[Any], Any]] = {
    "max of complex": lambda x: x.max(C, D),
    "min of complex": lambda x: x.min(C, D),
    "reduce_max of complex": lambda x: x.reduce_max(C, (0,)),
    "reduce_min of complex": lambda x: x.reduce_min(C, (0,)),
    "cummax of complex": lambda x: x.cummax(C),
    "cummin of complex": lambda x: x.cummin(C),
    "dot of integers and floats": lambda x: x.dot(M, M.T.astype(np.int32)),
    "dot of two floats": lambda x: x.dot(M, M.T.astype(np.float16)),
    "split by an array": lambda x: x.split(M[0], np.array([1, 2])),
    "scan unrolled whole": lambda x: x.scan(lambda c, y: (c + y, c), np.float32(0), M[0], unroll=0),
}


@pytest.mark.parametrize("name", TAKEN)
def test_arguments_as_in_jax(name: str) -> None:
    found, expected = TAKEN[name](lax), TAKEN[name](jax.lax)
    same(list(found) if isinstance(expected, tuple | list) else found, expected, rtol=1e-6)


def test_a_python_integer_goes_with_a_start_index_of_any_dtype() -> None:
    same(lax.dynamic_slice(M, (0, np.int8(1)), (1, 1)), M[:1, 1:2])


REFUSED: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "start indices of two dtypes": (
        lambda x: x.dynamic_slice(M, (np.int32(0), np.int8(1)), (1, 1)), TypeError),
    "pred that is a list": (lambda x: x.cond([], lambda: 1, lambda: 2), TypeError),
    "pred that is None": (lambda x: x.cond(None, lambda: 1, lambda: 2), TypeError),
    "index that is a list": (lambda x: x.switch([], [lambda: 1]), TypeError),
    "branches that are none": (lambda x: x.switch(0, 3), TypeError),
    "negative unroll": (lambda x: x.scan(lambda c, y: (c, y), 0, M[0], unroll=-1), ValueError),
    "less of complex": (lambda x: x.lt(C, D), TypeError),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_jax(name: str) -> None:
    call, cls = REFUSED[name]
    for namespace in (lax, jax.lax):
        with pytest.raises(cls):
            call(namespace)
