"""The core compares a call with the function's last one without running Python code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt

X = np.float32(3)


def test_a_dtype_whose_hash_clears_the_cache() -> None:
    what: list[Callable[[], None]] = []

    class Title:
        def __hash__(self) -> int:
            for each in what:
                each()
            return 7

    spec: Any = {"names": ["a"], "formats": ["f4"], "titles": [Title()]}
    function = plugrt.jit(lambda x, y: x + y)
    others = [plugrt.jit(lambda n, y: y * n, static_argnums=0) for _ in range(40)]
    for other in others:
        other(5, X)
        other(5, X)
    for _ in range(2):
        function(X, X)
    for _ in range(2):
        function(X, X)

    def clear() -> None:
        what.clear()
        function.clear_cache()
        for other in others:
            other(5, X)

    given = np.zeros((), np.dtype(spec))
    what.append(clear)
    with pytest.raises(plugrt.errors.NotAnArray):
        function(given, X)


def test_a_name_whose_comparison_calls_the_function() -> None:
    what: list[Callable[[], None]] = []

    class Name(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            for each in what:
                each()
            return str.__eq__(self, other)

    function = plugrt.jit(lambda x, *, n: x * n, static_argnames=(Name("n"),))

    def call() -> None:
        what.clear()
        for _ in range(4):
            function(X, n=2)

    for _ in range(3):
        function.clear_cache()
        for i in range(3):
            if i == 2:
                what.append(call)
            assert function(X, n=2) == 6
        what.clear()
