"""Dead code: arguments that no result needs are neither parameters nor transferred."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import device_put, devices, jit, lax, monitoring, pmap
from plugrt.errors import PlugrtError
from support.compiles import counting
from support.effort import seeds
from support.jax_oracle import jax
from support.traffic import Traffic

jnp: Any = jax.numpy
X = np.arange(4, dtype=np.float32)

inner = jit(lambda x, y: (x + 1, y * 2))
unused = jit(lambda x, y: x * 2)

# Functions of (x, dead) whose result does not depend on the second.
FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "dead code": lambda x, dead: (x + 1, xp.sin(dead) @ dead)[0],
    "dead reduction": lambda x, dead: (x + 1, xp.sort(xp.cumulative_sum(dead)))[0],
    "unused parameter of an inner function": lambda x, dead: unused(x, dead),
    "unused result of an inner function": lambda x, dead: inner(x, dead)[0],
    "inner functions within inner functions": lambda x, dead: jit(
        lambda a, b: (inner(b, a)[1], inner(b, b))
    )(x, dead)[0],
    "fori_loop": lambda x, dead: lax.fori_loop(0, 3, lambda i, c: (c[0] + i, c[1]), (x, dead))[0],
    "fori_loop, changed": lambda x, dead: lax.fori_loop(
        0, 3, lambda i, c: (c[0] + i, c[1] * 2, c[2] + c[1]), (x, dead, dead)
    )[0],
    "fori_loop, one step": lambda x, dead: lax.fori_loop(
        0, 1, lambda i, c: (c[0] + i, c[1] * 2), (x, dead)
    )[0],
    "while_loop": lambda x, dead: lax.while_loop(
        lambda c: xp.sum(c[0]) < 9, lambda c: (c[0] + 1, c[2], c[1]), (x, dead, dead)
    )[0],
    "dead loop": lambda x, dead: (x + 1, lax.while_loop(lambda c: c[0] < 9, lambda c: c + 1, dead))[
        0
    ],
    "dead code in a loop": lambda x, dead: lax.fori_loop(
        0, 3, lambda i, c: (c + 1, dead * i)[0], x
    ),
    "loop within a loop": lambda x, dead: lax.fori_loop(
        0,
        3,
        lambda i, c: lax.fori_loop(0, 2, lambda j, d: (d[0] * 2, d[1]), (c[0] + i, c[1])),
        (x, dead),
    )[0],
    "scan, carry": lambda x, dead: lax.scan(lambda c, v: ((c[0] + v, c[1]), v), (x, dead), X)[0][0],
    "scan, inputs": lambda x, dead: lax.scan(lambda c, v: (c + v[0], v[1]), x, (X, dead))[0],
    "scan, outputs": lambda x, dead: lax.scan(
        lambda c, v: (c + 1, (c * v[0], c * v[1])), x, (X, dead)
    )[1][0],
    "map": lambda x, dead: lax.map(lambda v: (v[0] * 2, v[1] * 3), (x, dead))[0],
    "cond, operand": lambda x, dead: lax.cond(
        xp.sum(x) > 0, lambda a, b: a + 1, lambda a, b: a - 1, x, dead
    ),
    "cond, result": lambda x, dead: lax.cond(
        xp.sum(x) > 0, lambda a, b: (a + 1, b), lambda a, b: (a - 1, b * 2), x, dead
    )[0],
    "cond, predicate": lambda x, dead: (
        lax.cond(dead[0] > 0, lambda a: (a, a + 1), lambda a: (a, a - 1), x)[0] * 2
    ),
    "switch": lambda x, dead: lax.switch(
        1, [lambda a, b: (a, b), lambda a, b: (a * 2, b * 3), lambda a, b: (a, b)], x, dead
    )[0],
    "sort of pairs": lambda x, dead: (xp.argsort(dead), x * 2)[1],
}


@pytest.mark.parametrize("form", FORMS)
def test_dead_arguments_are_no_parameters(form: str) -> None:
    function = jit(FORMS[form])
    staged = function.trace(X, X).staged
    assert staged.plan.kept == (0,)
    compiled = function.lower(X, X).compile()
    assert len(compiled.runtime_executable().executable.output_types) == 1
    expected = FORMS[form](device_put(X), device_put(X))
    for found in (function(X, X), compiled(X, X)):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_dead_arguments_are_not_transferred(form: str, puts: Traffic) -> None:
    function = jit(FORMS[form])
    there = devices()[2]
    x = device_put(X, there)
    elsewhere = device_put(X, devices()[1])  # committed, but does not affect the placement
    function(x, elsewhere)
    puts.clear()
    assert function(x, X).device is there
    assert function(x, elsewhere).device is there
    assert function.lower(x, elsewhere).compile()(x, elsewhere).device is there
    assert puts == []


def test_arrays_captured_for_dead_code_are_not_used() -> None:
    w = device_put(X, devices()[1])
    function = jit(lambda x: (x + 1, w * 2)[0])
    staged = function.trace(X).staged
    assert staged.plan.constants == ()
    w.delete()
    assert function(device_put(X, devices()[2])).device is devices()[2]


def step(i: Any, carry: Any) -> Any:
    """Returns the second part of the carry unchanged."""
    return carry[0] + i, carry[1]


def test_a_dead_argument_that_is_donated_stays_with_the_caller() -> None:
    function = jit(lambda x, dead: (x + 1, xp.sin(dead))[0], donate_argnums=(0, 1))
    x, dead = device_put(X), device_put(X)
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        function(x, dead)
    assert x.is_deleted()
    np.testing.assert_array_equal(dead, X)


def test_debug_nans_does_not_look_at_dead_code() -> None:
    with plugrt.debug_nans(True):
        found = jit(lambda x, dead: (x + 1, lax.log(dead))[0])(X, -X)
        found = lax.fori_loop(0, 3, step, (device_put(X), device_put(X)))[0]
    assert np.isfinite(np.asarray(found)).all()


def test_effects_stay_and_what_they_depend_on() -> None:
    def act(x: Any) -> Any:
        return lax.custom_call("act", [x], X, has_side_effect=True)

    text = {}
    for name, form in {
        "plain": lambda x, y: (x + 1, act(y * 2))[0],
        "cond": lambda x, y: (x + 1, lax.cond(y[0] > 0, lambda: act(y), lambda: y))[0],
        "loop": lambda x, y: (x, lax.fori_loop(0, 3, lambda i, c: act(c), y))[0] + 1,
        "inner": lambda x, y: (x + 1, jit(lambda v: act(v))(y))[0],
    }.items():
        traced = jit(form).trace(X, X)
        assert traced.staged.plan.kept == (0, 1), name
        text[name] = traced.lower().as_text()
        assert "@act" in text[name], name


def act_nowhere(x: Any) -> Any:
    """Calls a target with an effect that no backend has, so that running it fails."""
    return lax.custom_call("plugrt_known_nowhere", [x], X, has_side_effect=True)


ONLY_EFFECTS: dict[str, Callable[[Any], Any]] = {
    "argument": jit(lambda x: (act_nowhere(x), x)[1]),
    "nothing": jit(lambda x: (act_nowhere(x), None)[1]),
    "literal": jit(lambda x: (act_nowhere(x), 7.0)[1]),
    "unused": jit(lambda x: (act_nowhere(xp.ones(3)), x)[1]),
    "inner": jit(lambda x: jit(lambda y: (act_nowhere(y), y)[1])(x) + 1),
    "loop": jit(lambda x: lax.fori_loop(0, 3, lambda i, c: (act_nowhere(c), c)[1], x)),
    "eager loop": lambda x: lax.fori_loop(0, 3, lambda i, c: (act_nowhere(c), c)[1], x),
    "eager cond": lambda x: lax.cond(True, lambda: (act_nowhere(x), x)[1], lambda: x),
    "keep_unused": jit(lambda x: (act_nowhere(x), x)[1], keep_unused=True),
    "compiled": lambda x: jit(lambda x: (act_nowhere(x), x)[1]).lower(x).compile()(x),
    "pmap": lambda x: pmap(lambda x: (act_nowhere(x), x)[1])(x[None]),
}


@pytest.mark.parametrize("name", ONLY_EFFECTS)
def test_an_effect_is_made_where_no_result_is_computed(name: str) -> None:
    with pytest.raises(PlugrtError, match="plugrt_known_nowhere"):
        plugrt.block_until_ready(ONLY_EFFECTS[name](X))


LITERALS: dict[str, Callable[[Any], Any]] = {
    "scalar": lambda x: 7,
    "scalars": lambda x: (7, 2.5, True, 1 + 2j, np.float16(3)),
    "shape": lambda x: (x.shape[0], xp.zeros(x.shape), {"like": xp.ones_like(x)}),
    "splats": lambda x: [xp.full((2, 3), 5, dtype=d) for d in DTYPES],
    "host arrays": lambda x: [np.arange(6).reshape(2, 3).astype(d) for d in DTYPES],
    "twice": lambda x: (xp.zeros(3), xp.zeros(3), 1.0, 1.0),
    "empty": lambda x: (xp.zeros((0, 3)), ()),
    "with arguments": lambda x: (x, 1.5, xp.ones((2, 2)), x),
    "inner function": lambda x: jit(lambda y: (xp.zeros(3), 4.0, y))(x),
    "dead code beside": lambda x: (xp.zeros(3), xp.sin(x))[0],
}
DTYPES = [
    "bool", "int8", "uint8", "int32", "uint64", "float16", "float32", "float64", "complex64",
    ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4,
]  # fmt: skip


@pytest.mark.parametrize("form", LITERALS)
def test_constant_results_need_no_compiler(form: str) -> None:
    function = LITERALS[form]
    x = device_put(X, devices()[1])
    outer = jit(function)
    with counting() as counts:
        results = [outer(x) for _ in range(2)] + [outer.lower(x).compile()(x)]
    assert counts[monitoring.COMPILE] == 0
    expected, spec = plugrt.tree.flatten(function(x))
    for result in results:
        found, found_spec = plugrt.tree.flatten(result)
        assert found_spec == spec
        for one, want in zip(found, expected, strict=True):
            want = xp.asarray(want)
            assert (one.shape, one.dtype) == (want.shape, want.dtype)
            np.testing.assert_array_equal(one, want)
    for one in plugrt.tree.flatten(results[0])[0]:  # no result shares its buffer
        one.delete()
    assert not any(a.is_deleted() for r in results[1:] for a in plugrt.tree.flatten(r)[0])


def test_constant_results_are_on_the_devices_of_the_call() -> None:
    function = jit(lambda x: (x, xp.ones(3), 2.0))
    for x, device in ((device_put(X, devices()[3]), devices()[3]), (X, devices()[0])):
        assert {a.device for a in function(x)} == {device}
    assert jit(lambda: xp.ones(3), device=devices()[2])().device is devices()[2]
    # Unused arguments do not affect the placement.
    assert jit(lambda x: xp.ones(3))(device_put(X, devices()[3])).device is devices()[0]
    assert xp.zeros_like(device_put(X, devices()[3])).device is devices()[3]


def program(random: np.random.Generator, depth: int) -> Callable[..., list[Any]]:
    """Returns a random function of (namespace, lax, jit, values) with as many results as values."""
    kind = random.choice(["mix", "mix", "jit", "fori", "while", "cond", "scan"]) if depth else "mix"
    order = random.permutation(4)
    if kind == "mix":
        pairs = random.integers(4, size=(4, 2))
        same = random.random(4) < 0.4
        return lambda ns, lax, jit, v: [
            v[i] if keep else v[i] + ns.sin(v[j]) for (i, j), keep in zip(pairs, same, strict=True)
        ]
    first, second = program(random, depth - 1), program(random, depth - 1)

    def run(ns: Any, lax: Any, jit: Any, v: list[Any]) -> list[Any]:
        v = [v[i] for i in order]
        one = lambda *x: first(ns, lax, jit, [*x])  # noqa: E731
        if kind == "jit":
            found = jit(one)(*v)
        elif kind == "fori":
            found = lax.fori_loop(0, 3, lambda i, c: one(*c), v)
        elif kind == "while":
            found = lax.while_loop(lambda c: c[0][0] < 3, lambda c: [c[0] + 1, *one(*c)[1:]], v)
        elif kind == "scan":
            last, ys = lax.scan(lambda c, x: (one(*c), c[0] + x), v, v[1])
            found = [*last[:3], ys[0]]
        else:
            found = lax.cond(
                v[3][0] > 0, lambda *x: one(*x), lambda *x: second(ns, lax, jit, [*x]), *v
            )
        return second(ns, lax, jit, [*found])

    return run


@pytest.mark.parametrize("seed", seeds(6))
def test_no_argument_is_kept_that_jax_does_not_keep(seed: int) -> None:
    random = np.random.default_rng(seed)
    function, wanted = program(random, 2), int(random.integers(4))
    args = [np.float32(random.random(4)) for _ in range(4)]

    def ours(*v: Any) -> Any:
        return function(xp, lax, jit, [*v])[wanted] * 2

    def theirs(*v: Any) -> Any:
        return function(jnp, jax.lax, jax.jit, [*v])[wanted] * 2

    compiled = jax.jit(theirs).lower(*args).compile()
    assert set(jit(ours).trace(*args).staged.plan.kept) <= compiled._executable._kept_var_idx
    np.testing.assert_allclose(jit(ours)(*args), compiled(*args), rtol=1e-5)
