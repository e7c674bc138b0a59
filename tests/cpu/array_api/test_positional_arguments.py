"""Positional parameters of jax.numpy are positional here, in the same order."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from plugrt import array_api as xp
from support.jax_oracle import jax

NAMESPACES = {"": xp, "linalg": xp.linalg, "fft": xp.fft}


def _counterparts(namespace: str) -> list[tuple[str, inspect.Signature, inspect.Signature]]:
    theirs: ModuleType = getattr(jax.numpy, namespace) if namespace else jax.numpy
    ours = NAMESPACES[namespace]
    pairs = [(name, getattr(ours, name), getattr(theirs, name, None)) for name in ours.__all__]
    return [
        (name, inspect.signature(a), inspect.signature(b))
        for name, a, b in pairs
        if inspect.isroutine(b) or (callable(b) and callable(a) and not isinstance(b, type))
        if not isinstance(a, type | np.dtype)
    ]


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_positional_arguments_as_in_jax_numpy(namespace: str) -> None:
    by_keyword_alone = {}
    for name, ours, theirs in _counterparts(namespace):
        kinds = {name: p.kind for name, p in ours.parameters.items()}
        keyword_only = [n for n, kind in kinds.items() if kind is inspect.Parameter.KEYWORD_ONLY]
        place = len(kinds) - len(keyword_only)
        following = [
            n for n, p in theirs.parameters.items() if p.kind is not inspect.Parameter.KEYWORD_ONLY
        ][place:]
        if following and keyword_only and following[0] == keyword_only[0]:
            by_keyword_alone[name] = following[0]
    assert not by_keyword_alone


X = np.arange(6, dtype=np.float32).reshape(2, 3)
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda m, x: m.sum(x, 0),
    "sum of a dtype": lambda m, x: m.sum(x, 1, "int32"),
    "argmin": lambda m, x: m.argmin(x, 1),
    "roll": lambda m, x: m.roll(x, 1, 0),
    "concat": lambda m, x: m.concat([x, x], 1),
    "take": lambda m, x: m.take(x, m.asarray([2, 0]), 1),
    "tril": lambda m, x: m.tril(x, -1),
    "zeros": lambda m, x: m.zeros((2,), "int32"),
    "tensordot": lambda m, x: m.tensordot(x, x, 2),
    "fft": lambda m, x: m.fft.fft(x, 4, 0),
    "std": lambda m, x: m.std(x, 0),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_positional_arguments_mean_the_same(call: Callable[[Any, Any], Any]) -> None:
    expected = call(np, X)
    found = np.asarray(call(xp, xp.asarray(X)))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.shape == expected.shape
