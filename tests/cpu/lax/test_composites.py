"""`lax.composite`: user-defined operations, with attributes and a definition."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import jit, lax, monitoring
from plugrt.errors import ArgumentError, ArgumentTypeError, LeakedTracer, Unimplemented
from plugrt.stablehlo.modules import parse
from plugrt.stablehlo.regions import operations_within
from support.behaviour import behaviour
from support.compiles import counting
from support.jax_oracle import jax, same

X = np.float32([[1, 2, 3], [4, 5, 6]])


def composites(text: str) -> list[tuple[str, ...]]:
    """Returns name, version, attributes, operands and results of the composites of a module."""
    module = parse(text)  # keeps its operations alive
    found = [op for op in operations_within(module.operation) if op.name == "stablehlo.composite"]
    return [
        (
            *(str(op.attributes[n]) if n in op.attributes else "" for n in
              ("name", "version", "composite_attributes")),
            *(str(v.type) for v in (*op.operands, *op.results)),
        )
        for op in found
    ]  # fmt: skip


def scaled_sum(m: Any, x: Any, *, axis: Any, scale: Any) -> Any:
    reduced = m.lax.reduce_sum(x, axes=[axis]) if m is plugrt else jax.numpy.sum(x, axis)
    return reduced * np.float32(scale)


@behaviour(23, "`composite` is one operation with name, version and attributes, and computes")
def test_as_in_jax() -> None:
    found = []
    for m in (plugrt, jax):
        total = m.lax.composite(partial(scaled_sum, m), name="my.sum", version=3)
        twice = m.jit(
            lambda x, total=total: total(x, axis=1, scale=2.0) + total(x, axis=1, scale=3)
        )
        values = [total(X, axis=0, scale=2.0), twice(X)]
        found.append((values, composites(twice.lower(X).as_text())))
    (ours, text), (theirs, expected) = found
    same(ours, theirs)
    assert text == expected
    assert [entry[0] for entry in text] == ['"my.sum"'] * 2


VALUES: tuple[Any, ...] = (
    1, 1.5, True, "text", None, [1, 2], (1, 2.5), {"a": 1, "b": [True]}, np.float32(2), np.int8(3),
    np.arange(3), np.float32([[1, 2], [3, 4]]), np.dtype("float32"), [], b"bytes", [[1, 2], [3]],
)  # fmt: skip


@behaviour(23, "attributes of a composite equal JAX's, value by value")
def test_attributes() -> None:
    def all_in_one(m: Any) -> Any:
        def call(x: Any) -> Any:
            for i, value in enumerate(VALUES):
                x = m.lax.composite(lambda x, **_: x + 1, name=f"my.x{i}")(x, v=value)
            return x

        return composites(m.jit(call).lower(np.float32(0)).as_text())

    assert all_in_one(plugrt) == all_in_one(jax)


@behaviour(
    23,
    "pytrees, scalars, effects and arrays that a composite's definition closes over",
    jax="same, but that JAX drops effects, and puts arrays that are closed over first",
)
def test_decompositions_may_have_pytrees_effects_and_closures() -> None:
    if not plugrt.get_backend().capabilities.host_callbacks:
        pytest.skip(f"{plugrt.default_backend()} does not declare host_callbacks")
    shift = plugrt.device_put(np.float32([10, 20, 30]))
    seen = []

    def decompose(tree: Any, y: Any) -> Any:
        plugrt.debug.callback(lambda v: seen.append(float(v)), tree["y"])
        return {"out": tree["x"] * y + shift, "same": tree["x"]}

    mine = lax.composite(decompose, "my.tree")
    for call in (mine, jit(mine), jit(lambda t, y: lax.cond(True, mine, mine, t, y))):
        found = call({"x": X, "y": 2.0}, 3)
        same((found["out"], found["same"]), (X * 3 + np.asarray(shift), X))
    plugrt.effects_barrier()
    assert seen == [2.0] * 3
    unused = jit(lambda x: (mine({"x": x, "y": 5.0}, 1), x)[1])
    same(unused(X), X)
    plugrt.effects_barrier()
    assert seen[3:] == [5.0], "an unused composite with an effect is called"
    unused = jit(lambda x: (lax.composite(lax.sin, "my.sin")(x), x + 1)[1])
    assert "composite" not in unused.lower(X).as_text()


def test_a_composite_may_say_which_devices_its_program_runs_on() -> None:
    mesh = plugrt.sharding.Mesh(np.array(plugrt.devices()[-2:]), ("a",))
    halves = plugrt.sharding.NamedSharding(mesh, plugrt.sharding.PartitionSpec("a"))
    put = lax.composite(lambda x: plugrt.device_put(x * 2, halves), "my.put")
    for call in (put, jit(put)):
        found = call(X)
        same(found, X * 2)
        assert found.sharding == halves


def test_calls_outside_of_jit_are_kept_by_attributes() -> None:
    def scale(x: Any, *, by: Any) -> Any:
        return x * np.float32(by)

    scaled = lax.composite(scale, "my.scale")
    with counting() as counts:
        for _ in range(2):
            same(scaled(X, by=2), X * 2)
            same(scaled(X, by=2.5), X * np.float32(2.5))
            same(scaled(X, by=np.float32([1, 2, 3])), X * np.float32([1, 2, 3]))
            same(scaled(X, by=np.float32([1, 2, 4])), X * np.float32([1, 2, 4]))
    assert counts[monitoring.COMPILE] == 4
    with plugrt.disable_jit():
        same(scaled(X, by=2), X * 2)


@behaviour(
    23,
    "wrong composites are refused by name",
    jax="JAX refuses the same, most of it when a program is compiled",
)
def test_wrong_use() -> None:
    def closes_over(x: Any) -> Any:
        return lax.composite(lambda y: y + x, "my.x")(x)

    for wrong, error, says in (
        (lambda: lax.composite(3, "my.x"), ArgumentTypeError, "a function; got 3"),
        (lambda: lax.composite(lax.sin, 3), ArgumentTypeError, "name as text; got 3"),
        (lambda: lax.composite(lax.sin, "sin"), ArgumentError, "has a dot.*got 'sin'"),
        (lambda: lax.composite(lax.sin, "a b.c"), ArgumentError, "got 'a b.c'"),
        (lambda: lax.composite(lax.sin, "a.b", "1"), ArgumentTypeError, "of 32 bits; got '1'"),
        (lambda: lax.composite(lax.sin, "a.b", 1 << 40), ArgumentTypeError, "of 32 bits"),
        (lambda: jit(closes_over)(X), LeakedTracer, "'my.x' closes over a traced array; pass it"),
        (
            lambda: jit(lambda x: lax.composite(lambda y, k: y, "my.x")(x, k=[x]))(X),
            LeakedTracer,
            "attribute 'k' of the composite 'my.x' is a traced array",
        ),
    ):
        with pytest.raises(error, match=says):
            wrong()
    for value in (xp.ones(2), object(), 1j, len, np.float32, [1, {"a": 1j}]):
        for run in (lambda f: f, jit):
            with pytest.raises(ArgumentTypeError, match=r"the attribute '[ka]' of the composite"):
                run(lambda x, v=value: lax.composite(lambda x, k: x, "my.x")(x, k=v))(X)
    if plugrt.get_backend().capabilities.host_callbacks:
        ordered = lambda x: plugrt.debug.callback(print, x, ordered=True)  # noqa: E731
        with pytest.raises(Unimplemented, match=re.escape("'my.x' calls Python in order")):
            jit(lax.composite(ordered, "my.x"))(X)
