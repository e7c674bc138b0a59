"""`lax.platform_dependent`: one of several functions, by the platform of the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import jit, lax
from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    DtypeError,
    StructureError,
    Unimplemented,
)
from support.behaviour import behaviour
from support.jax_oracle import jax, same

X = np.float32([1, 2])
HERE = plugrt.default_backend()


def add(x: Any) -> Any:
    return x + 1


def subtract(x: Any) -> Any:
    return x - 1


@behaviour(23, "`platform_dependent` calls the function of the platform, traced or not")
def test_the_function_of_the_platform() -> None:
    own = {HERE: add}
    for of, oracle in (
        ({**own, "default": subtract}, {"cpu": add, "default": subtract}),
        ({"tpu": add, "default": subtract}, {"tpu": add, "default": subtract}),
        ({"tpu": subtract, **own}, {"tpu": subtract, "cpu": add}),
        ({"tpu": add, "cuda": add, **own, "default": subtract}, {"cpu": add}),
        ({"default": add}, {"default": add}),
    ):
        expected = jax.lax.platform_dependent(X, **oracle)
        same(lax.platform_dependent(X, **of), expected)
        same(jit(lambda x, of=of: lax.platform_dependent(x, **of))(X), expected)
        with plugrt.disable_jit():
            same(jit(lambda x, of=of: lax.platform_dependent(x, **of))(X), expected)
    assert float(lax.platform_dependent(default=lambda: 3.0, other=lambda: 4.0)) == 3


@behaviour(
    23,
    "a plugin's own name is a platform too, and goes before the one that its client reports",
    jax="JAX knows platforms alone",
)
def test_names_of_plugins() -> None:
    row = next(r for r in plugrt.plugins.table() if r.client is plugrt.get_backend())
    of = {HERE: subtract, row.name: add}
    same(lax.platform_dependent(X, **of), X + 1)
    same(jit(lambda x: lax.platform_dependent(x, **of))(X), X + 1)


@behaviour(
    23,
    "in jitted functions within functions, branches and loops the program holds one function alone",
)
def test_nested() -> None:
    seen = []

    @jit
    def inner(x: Any, y: Any) -> Any:
        seen.append(1)
        other = lambda x: lax.custom_call("nobody has it", [x], x)  # noqa: E731
        deeper = lambda x: lax.platform_dependent(x, **{HERE: lax.asinh}, default=other)  # noqa: E731
        return lax.platform_dependent(x + y, tpu=other, **{HERE: deeper})

    @jit
    def outer(x: Any) -> Any:
        z = xp.sum(x) * 0.5
        for_each = lax.fori_loop(0, 3, lambda i, c: inner(c, z), x)
        return lax.cond(z > 0, lambda: inner(x, z), lambda: x) + for_each

    expected = X
    for _ in range(3):
        expected = np.arcsinh(expected + np.float32(1.5))
    same(outer(X), expected + np.arcsinh(X + np.float32(1.5)), rtol=1e-6)
    same(inner(X, np.float32(1.5)), np.arcsinh(X + np.float32(1.5)), rtol=1e-6)
    text = outer.lower(X).as_text()
    assert "custom_call" not in text
    assert outer.lower(X).cost_analysis()["flops"] > 0
    assert len(seen) == 1, "one trace serves all calls: it knows no platform"


@behaviour(23, "one trace is lowered for any platform, here or not; several keep the choice open")
def test_lowered_for_other_platforms() -> None:
    traced = jit(lambda x: lax.platform_dependent(x, tpu=lax.sin, default=lax.cos)).trace(X)
    assert "stablehlo.sine" in traced.lower(lowering_platforms=("tpu",)).as_text()
    here = traced.lower().as_text()
    assert "stablehlo.cosine" in here
    assert "stablehlo.sine" not in here
    assert "case" not in here
    both = traced.lower(lowering_platforms=("tpu", "cuda")).as_text()
    assert both.count("stablehlo.sine") == both.count("stablehlo.cosine") == 1
    same(traced.lower().compile()(X), np.cos(X), rtol=1e-6)
    hlo = plugrt.xla_computation(lambda x: lax.platform_dependent(x, tpu=lax.sin, default=lax.cos))
    assert "cosine" in hlo(X).as_hlo_text()
    assert "sine(" not in hlo(X).as_hlo_text().replace("cosine(", "")


@behaviour(23, "wrong arguments and a platform without a function are refused as in JAX")
def test_wrong_use() -> None:
    for wrong, error, theirs, says in (
        ({"gpu": add}, ArgumentError, ValueError, "'cuda', 'rocm', .* may be any"),
        ({HERE: 3}, ArgumentTypeError, TypeError, f"a function for '{HERE}'; got 3"),
        ({"default": 3}, ArgumentTypeError, TypeError, "a function for 'default'; got 3"),
        ({}, Unimplemented, NotImplementedError, "no function"),
        ({"tpu": add, "cuda": add}, Unimplemented, NotImplementedError, "functions for tpu, cuda"),
    ):
        with pytest.raises(error, match=says):
            lax.platform_dependent(X, **wrong)
        with pytest.raises(error, match=says):
            jit(lambda x, wrong=wrong: lax.platform_dependent(x, **wrong))(X)
        with pytest.raises(theirs):
            jax.lax.platform_dependent(X, **wrong)
    for other, error in ((lambda x: lax.ne(x, x), DtypeError), (lambda x: (x,), StructureError)):
        with pytest.raises(error, match=f"{HERE} returns .*, default returns "):
            jit(lambda x, o=other: lax.platform_dependent(x, **{HERE: add}, default=o))(X)
