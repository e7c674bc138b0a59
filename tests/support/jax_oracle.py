"""JAX as the oracle of lax and random: on the CPU, in the same process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

import plugrt

__all__ = ["jax", "same", "same_at_once"]

# JAX runs on the CPU, also where plugrt uses another platform.
jax.config.update("jax_platforms", "cpu")


def same(found: Any, expected: Any, *, rtol: float = 0, atol: float = 0) -> None:
    """Asserts equal structure, shapes, dtypes and values; values to a tolerance if one is given."""
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            same(f, e, rtol=rtol, atol=atol)
        return
    f, e = np.asarray(found), np.asarray(expected)
    assert (f.shape, f.dtype) == (e.shape, e.dtype)
    if f.dtype.kind == "V" or f.dtype == np.float16:
        f, e = f.astype(np.float32), e.astype(np.float32)
    np.testing.assert_allclose(f, e, rtol=rtol, atol=atol)


def same_at_once(results: Callable[..., Any], *arguments: Any) -> None:
    """Asserts that ``results(lax, *arguments)`` is the same with either library's ``lax``.

    Each library compiles one program, since compiling costs far more than running.
    """
    found, expected = (
        library.jit(partial(results, library.lax))(*arguments) for library in (plugrt, jax)
    )
    same(found, expected)
