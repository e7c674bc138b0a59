"""Tokens: `create_token`, `after_all`, and the two halves of an exchange, `psend` and `precv`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    DtypeError,
    NotAnArray,
    ShapeError,
    UnboundAxis,
    Unimplemented,
)
from plugrt.lax.tokens import Token
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.jax_oracle import jax, same

X = np.arange(8, dtype=np.float32).reshape(4, 2)
RING = [(0, 1), (1, 2), (2, 3), (3, 0)]
SOME = [(0, 2), (3, 1)]


def exchange(v: Any, pairs: Any = RING) -> Any:
    return lax.precv(lax.psend(v, "i", pairs), v, "i", pairs)


@behaviour(104, "tokens are arguments and results of `jit`, `pmap`, loops and conditionals",
           jax="of `jit` alone: its pmap, loops and conditionals raise AttributeError")  # fmt: skip
def test_tokens_go_in_and_out() -> None:
    token = lax.create_token()
    same(jax.jit(lambda t, v: (t, v + 1)[1])(jax.lax.create_token(), X), X + 1)
    f = plugrt.jit(lambda t, v: (lax.after_all(t, lax.create_token()), v + 1))
    kept, found = f(token, X)
    assert type(kept) is Token
    same(found, X + 1)
    assert type(f(kept, X)[0]) is Token
    assert len(f.lower(token, X).compile().input_shardings[0]) == 2
    inner = plugrt.jit(lambda t, v: f(t, v)[0])
    assert type(inner(token, X)) is Token
    mapped = plugrt.pmap(lambda t, v: (t, v * 2))
    out, doubled = mapped(token, X)
    assert type(out) is Token
    same(doubled, X * 2)
    assert type(lax.fori_loop(0, 3, lambda _, t: lax.after_all(t, t), token)) is Token
    assert type(lax.cond(True, lambda t: t, lambda t: lax.create_token(), token)) is Token
    barred, y = plugrt.jit(lambda t, v: lax.optimization_barrier((t, v)))(token, X)
    assert type(barred) is Token
    same(y, X)
    assert type(plugrt.device_put(token)) is Token
    assert type(plugrt.block_until_ready(token)) is Token
    assert type(lax.create_token(X)) is type(lax.after_all()) is Token


def test_a_token_costs_no_parameter_and_no_compilation() -> None:
    seen = []

    @plugrt.jit
    def f(t: Any, v: Any) -> Any:
        seen.append(t)
        return v + 1

    for _ in range(3):
        f(lax.create_token(), X)
    assert len(seen) == 1
    assert f.lower(lax.create_token(), X).as_text().count("%arg") == 2  # declared and used


@behaviour(108, "`lax.psend` and `precv` are one exchange, in pmap, in shard_map and operation by "
           "operation", jax="on GPUs alone")  # fmt: skip
@pytest.mark.parametrize("pairs", [RING, SOME, []], ids=["ring", "some", "none"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "float32", "complex64"])
def test_psend_and_precv_exchange_arrays(pairs: Any, dtype: str) -> None:
    x = X.astype(getattr(ml_dtypes, dtype, dtype))
    expected = np.zeros_like(x)
    for source, target in pairs:
        expected[target] = x[source]
    same(plugrt.pmap(lambda v: exchange(v, pairs), "i")(x), expected)


def test_an_exchange_within_shard_map_loops_and_inner_functions() -> None:
    mesh = plugrt.make_mesh((4,), ("i",))
    over = {"mesh": mesh, "in_specs": P("i"), "out_specs": P("i")}
    same(plugrt.shard_map(exchange, **over)(X), np.roll(X, 1, axis=0))
    with plugrt.disable_jit():
        same(plugrt.pmap(exchange, "i")(X), np.roll(X, 1, axis=0))
    send = plugrt.jit(lambda v: lax.psend(v, "i", RING))

    def through(v: Any) -> Any:
        def step(_: Any, carry: Any) -> Any:
            return lax.precv(lax.after_all(lax.create_token(), send(carry)), carry, "i", RING)

        return lax.fori_loop(0, 3, step, v)

    same(plugrt.pmap(through, "i")(X), np.roll(X, 3, axis=0))


def test_each_array_of_a_tree_has_a_token() -> None:
    def swap(v: Any) -> Any:
        tokens = lax.psend({"a": v, "b": 2 * v[0]}, "i", RING)
        like = plugrt.ShapeDtypeStruct((2,), np.float32)
        return lax.precv(tokens["a"], like, "i", RING), lax.precv(tokens["b"], v[0], ("i",), RING)

    rows, firsts = plugrt.pmap(swap, "i")(X)
    same(rows, np.roll(X, 1, axis=0))
    same(firsts, 2 * np.roll(X[:, 0], 1))


def test_tokens_joined_keep_what_was_sent_with_each() -> None:
    def both(v: Any) -> Any:
        first, second = lax.psend(v, "i", RING), lax.psend(v + 1, "i", SOME)
        joined = lax.after_all(first, second, first)
        return lax.precv(joined, v, "i", RING), lax.precv(joined, v, "i", SOME)

    found, some = plugrt.pmap(both, "i")(X)
    same(found, np.roll(X, 1, axis=0))
    same(some, np.stack([0 * X[0], X[3] + 1, X[0] + 1, 0 * X[0]]))


def mapped(function: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: plugrt.pmap(function, "i")(X)


def twice(v: Any) -> Any:
    token = lax.after_all(lax.psend(v, "i", RING), lax.psend(v + 1, "i", RING))
    return lax.precv(token, v, "i", RING)


def received(token: Token) -> Callable[[Any], Any]:
    return lambda v: lax.precv(token, v, "i", RING[:0])


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "an array among tokens": (
        lambda: lax.after_all(lax.create_token(), X), ArgumentTypeError, "argument 1 is array"),
    "no token": (mapped(lambda v: lax.precv(v, v, "i", RING)), ArgumentTypeError, "takes the tok"),
    "a token of no psend": (
        mapped(lambda v: lax.precv(lax.create_token(), v, "i", RING)),
        Unimplemented, "comes after no psend"),
    "other pairs": (
        mapped(lambda v: lax.precv(lax.psend(v, "i", RING), v, "i", SOME)),
        ArgumentError, r"along \[\(0, 2\), \(3, 1\)\] needs a token of one psend"),
    "two of the same pairs": (mapped(twice), ArgumentError, "of one psend"),
    "another shape": (
        mapped(lambda v: lax.precv(lax.psend(v, "i", RING), v[0], "i", RING)),
        ShapeError, r"out_shape float32\[\] gets the float32\[2\]"),
    "another dtype": (
        mapped(lambda v: lax.precv(lax.psend(v, "i", RING), v.astype(int), "i", RING)),
        DtypeError, "that psend sent"),
    "a dtype for a shape": (
        mapped(lambda v: lax.precv(lax.psend(v, "i", RING), np.float32, "i", RING)),
        ArgumentTypeError, "ShapeDtypeStruct"),
    "an index too far": (
        mapped(lambda v: lax.psend(v, "i", [(0, 4)])), ArgumentError, "psend over axis 'i' of si"),
    "an index twice": (
        mapped(lambda v: lax.psend(v, "i", [(0, 1), (2, 1)])), ArgumentError, "psend sends from"),
    "indices that are no whole numbers": (
        mapped(lambda v: lax.psend(v, "i", [(0.5, 1)])), ArgumentTypeError, "psend takes .*0.5"),
    "no pairs": (
        mapped(lambda v: lax.ppermute(v, "i", [1, 0])), ArgumentTypeError, r"pairs of .*\[1, 0\]"),
    "a token of an axis that is shadowed": (
        mapped(lambda v: plugrt.pmap(received(lax.psend(v[0], "i", RING[:0])), "i")(v)),
        ArgumentError, "axes that others of the same name shadow"),
    "data of a token": (lambda: np.asarray(lax.create_token()), NotAnArray, "has no data"),
    "no mapped axis": (lambda: lax.psend(X, "i", RING), UnboundAxis, "unbound axis name: 'i'"),
    "a token received outside": (
        lambda: lax.precv(lax.create_token(), X, "i", RING), UnboundAxis, "'i'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_calls_are_named(case: str) -> None:
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call()


def test_tokens_are_told_apart_in_words() -> None:
    assert repr(lax.create_token()) == "Token()"
    shown = []
    plugrt.pmap(lambda v: (shown.append(lax.psend(v, "i", RING)), v)[1], "i")(xp.asarray(X))
    assert repr(shown[0]) == "Token(of 1 psend)"


def test_a_psend_without_a_precv_is_dropped() -> None:
    mapped = plugrt.pmap(lambda v: (lax.psend(v, "i", RING), v + 1)[1], "i")
    assert "collective_permute" not in mapped.lower(X).as_text()
    assert plugrt.pmap(exchange, "i").lower(X).as_text().count("collective_permute") == 1
