"""`lax.custom_linear_solve` and `custom_root`, which run the user's solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax, monitoring
from plugrt.errors import ArgumentTypeError, NotAnArray, ShapeError, StructureError
from support.behaviour import behaviour
from support.compiles import counting
from support.jax_oracle import jax, same

M = np.float32([[4, 1, 0], [1, 3, 1], [0, 1, 5]])
B = np.float32([1, 2, 3])


def solve_by_gradients(of: Any) -> Callable[[Any, Any], Any]:
    """Returns a conjugate-gradient solver, written with plugrt's or JAX's lax."""

    def solve(matvec: Any, b: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            x, r, p = state
            image = matvec(p)
            size = (r * r).sum()
            length = size / (p * image).sum()
            rest = r - length * image
            return x + length * p, rest, rest + (rest * rest).sum() / size * p

        return of.fori_loop(0, 3, step, (0 * b, b, b))[0]

    return solve


@behaviour(19, "`lax.custom_linear_solve` and `custom_root` return the results of their solvers",
           jax="the same, and derivatives")  # fmt: skip
def test_a_solver_runs_on_what_it_is_given() -> None:
    def run(of: Any, b: Any) -> Any:
        return of.custom_linear_solve(lambda x: (M * x).sum(1), b, solve_by_gradients(of))

    expected = jax.jit(lambda b: run(jax.lax, b))(B)
    same(run(lax, B), expected, rtol=1e-5)
    same(plugrt.jit(lambda b: run(lax, b))(B), expected, rtol=1e-5)
    np.testing.assert_allclose(M @ np.asarray(run(lax, B)), B, rtol=1e-4)

    def newton(of: Any) -> Any:
        def solve(f: Any, x: Any) -> Any:
            return of.while_loop(lambda x: abs(f(x)) > 1e-3, lambda x: x - f(x) / (2 * x), x)

        return of.custom_root(lambda x: x * x - 2, np.float32(3), solve, lambda g, y: y / g(1.0))

    same(newton(lax), newton(jax.lax), rtol=1e-6)
    with plugrt.disable_jit():
        same(newton(lax), newton(jax.lax), rtol=1e-6)
        same(run(lax, B), expected, rtol=1e-5)


def test_trees_and_further_results() -> None:
    b = {"a": B, "n": np.float32(2)}

    def twice(x: Any) -> Any:
        return {"a": x["a"] * 2, "n": x["n"] * 2}

    def halve(_: Any, b: Any) -> Any:
        return {"a": b["a"] / 2, "n": b["n"] / 2}, {"steps": xp.asarray(1)}

    found, more = lax.custom_linear_solve(twice, b, halve, halve, symmetric=True, has_aux=True)
    same([found["a"], found["n"], more["steps"]], [B / 2, np.float32(1), np.int32(1)])
    root, more = lax.custom_root(twice, b, halve, lambda g, y: y, has_aux=True)
    same([root["a"], more["steps"]], [B / 2, np.int32(1)])


def test_one_program_serves_one_solver_and_checks_leave_nothing_in_it() -> None:
    seen = []

    def matvec(x: Any) -> Any:
        seen.append(x)
        return xp.sin(x)

    def solve(_: Any, b: Any) -> Any:
        return b + 1

    with counting() as counts:
        for _ in range(3):
            same(lax.custom_linear_solve(matvec, B, solve), B + 1)
    assert counts[monitoring.COMPILE] == 1
    seen.clear()
    text = plugrt.jit(lambda b: lax.custom_linear_solve(matvec, b, solve)).lower(B).as_text()
    assert "sine" not in text


def one(x: Any) -> Any:
    return x


def given(_: Any, b: Any) -> Any:
    return b


SOLVE, ROOT = lax.custom_linear_solve, lax.custom_root
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no function": (lambda: SOLVE(3, B, given), ArgumentTypeError, "matvec of custom_linear_s"),
    "no solver": (lambda: SOLVE(one, B, None), ArgumentTypeError, "solve of custom_linear_solve"),
    "no root's tangent": (lambda: ROOT(one, B, given, None), ArgumentTypeError, "tangent_solve of"),
    "another shape of matvec": (
        lambda: SOLVE(lambda x: x[:2], B, given), ShapeError, r"result of matvec .*\[\(3,\)\]$"),
    "a tuple of matvec": (lambda: SOLVE(lambda x: (x,), B, given), StructureError, "of matvec of"),
    "another shape of the solution": (
        lambda: SOLVE(one, B, lambda f, b: b[:2]), ShapeError, r"result of solve .*\[\(2,\)\]"),
    "a pair that is not asked for": (
        lambda: SOLVE(one, B, lambda f, b: (b, 1)), StructureError, "result of solve of custom_li"),
    "no pair": (lambda: SOLVE(one, B, given, has_aux=True), StructureError, "returns a pair"),
    "a tuple of f": (
        lambda: ROOT(lambda x: (x, x), B, given, given), StructureError, "has the structure"),
    "text": (lambda: SOLVE(one, "b", given), NotAnArray, "argument b of custom_linear_solve"),
    "text from a solver": (lambda: SOLVE(one, B, lambda f, b: "b"), NotAnArray, "result of solve"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_calls_are_named(case: str) -> None:
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call()
