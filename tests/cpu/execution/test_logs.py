"""Logs of tracing and compiling, reasons of cache misses, and warnings of large constants."""

from __future__ import annotations

import inspect
import logging
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import config, jit, lax, pmap
from plugrt.errors import ConfigError
from support.behaviour import behaviour

X = np.arange(3, dtype=np.float32)


@behaviour(9, "`log_compiles` logs tracing, lowering and compiling as warnings, with durations")
def test_stages_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    def named(x: Any) -> Any:
        return x * 3

    caplog.set_level(logging.DEBUG, "plugrt.compile")
    with plugrt.log_compiles():
        jit(named)(X)
    says = [
        "Finished tracing named in", "Finished lowering named in", "Compiling named for",
        "Finished compiling named in",
    ]  # fmt: skip
    logged = [r for r in caplog.records if r.name == "plugrt.compile"]
    assert len(logged) == len(says)
    for record, begin in zip(logged, says, strict=True):
        assert record.getMessage().startswith(begin)
        assert record.levelno == logging.WARNING
    assert "(float32[3])" in logged[2].getMessage()
    caplog.clear()
    jit(lambda x: x * 4)(X)
    assert {r.levelno for r in caplog.records} == {logging.DEBUG}


def misses(caplog: pytest.LogCaptureFixture, call: Callable[[], Any]) -> list[str]:
    """Returns the reasons of misses that a call logs."""
    caplog.clear()
    with (
        caplog.at_level(logging.WARNING, "plugrt.compile"),
        config.override(explain_cache_misses=True),
    ):
        call()
    return [r.getMessage() for r in caplog.records if "CACHE MISS" in r.getMessage()]


def affine(x: Any, n: int, p: Any = None) -> Any:
    return x * n if p is None else x * n + sum(p.values())


@behaviour(9, "`explain_cache_misses` names the line of a function without an earlier trace")
def test_a_function_that_was_never_seen(caplog: pytest.LogCaptureFixture) -> None:
    line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
    [said] = misses(caplog, lambda: jit(lambda x: x * 5)(X))
    assert f"{__file__}:{line}: never seen function <lambda> defined at {__file__}:{line}" in said


@behaviour(9, "a warning names a line that makes a function anew each time that it runs")
def test_a_function_that_is_made_anew(caplog: pytest.LogCaptureFixture) -> None:
    def call() -> None:
        jit(lambda x: x * 6)(X)

    says = [misses(caplog, call)[0] for _ in range(2)]
    redefined = "another function defined on the same line was: each time that line runs it defines"
    assert [redefined in said for said in says] == [False, True]
    f = jit(lambda x: x * 7)
    misses(caplog, lambda: f(X))
    f.clear_cache()
    [said] = misses(caplog, lambda: f(X))
    assert redefined not in said  # no function was redefined


@behaviour(9, "it names which part of the key differs: types, structure, static values, settings")
@pytest.mark.parametrize(
    ("call", "reasons"),
    [
        (lambda f: f(X[:2], 1), ["at x: now float32[2], before float32[3]"]),
        (lambda f: f(X.astype(int), 1), ["at x: now int64[3], before float32[3]"]),
        (lambda f: f(2.0, 1), ["at x: now float32[] (a Python scalar), before float32[3]"]),
        (lambda f: f(X, True), ["static argument 1: now True of type bool, before 1 of type int"]),
        (lambda f: f(X, 1, {"a": X}), ["different input pytree: now ", "now 2 arrays"]),
    ],
    ids=["shape", "dtype", "scalar", "static", "structure"],
)
def test_reasons_of_a_miss(
    caplog: pytest.LogCaptureFixture, call: Callable[[Any], Any], reasons: list[str]
) -> None:
    f = jit(affine, static_argnums=1)
    f.clear_cache()
    f(X, 1)
    [said] = misses(caplog, lambda: call(f))
    assert (
        f"affine defined at {__file__}:{affine.__code__.co_firstlineno} was traced before" in said
    )
    found = re.findall(r"^  \* (.*)$", said, re.M)
    assert len(found) == len(reasons)
    assert [f for f, r in zip(found, reasons, strict=True) if not f.startswith(r)] == []


def test_a_setting_that_changed_and_a_cleared_cache(caplog: pytest.LogCaptureFixture) -> None:
    f = jit(affine, static_argnums=1)
    f(X, 21)
    with config.override(default_matmul_precision="highest"):
        [said] = misses(caplog, lambda: f(X, 21))
    assert "* config.default_matmul_precision: now 'highest', before None" in said


@behaviour(9, "the closest of several earlier calls is compared; hits and other functions are not")
def test_the_closest_call_is_compared(caplog: pytest.LogCaptureFixture) -> None:
    f = jit(lambda x, y: x + y)
    f(X, X)
    f(X[:2], X[:1])
    [said] = misses(caplog, lambda: f(X[:2], X[:2]))
    assert re.findall(r"\* (.*)", said) == ["at y: now float32[2], before float32[1]"]
    assert misses(caplog, lambda: f(X, X)) == []
    assert misses(caplog, lambda: plugrt.device_put(X) + X) == []
    [said] = misses(caplog, lambda: pmap(lambda x: x + 9)(X[None]))
    assert "never seen" in said


@behaviour(
    9,
    "functions that close over `captured_constants_warn_bytes` or more warn at the user's line",
    jax="JAX's warning has no line of the user's; its constants are in the program",
)
def test_captured_constants() -> None:
    small, large = plugrt.device_put(np.ones(10, np.float32)), np.ones(5000, np.float32)
    f = jit(lambda x: lax.add(x, large) + small[0])
    with (
        config.override(captured_constants_warn_bytes=20_000),
        pytest.warns(
            UserWarning,
            match=r"closes over 2 arrays with 0.02 MB together, the largest float32\[5000",
        ) as caught,
    ):
        f(large)
    assert caught[0].filename == __file__
    for most in (-1, 20_041):
        f.clear_cache()
        with config.override(captured_constants_warn_bytes=most), warnings.catch_warnings():
            warnings.simplefilter("error")
            f(large)


@pytest.mark.parametrize(
    "wrong",
    [{"explain_cache_misses": "maybe"}, {"captured_constants_warn_bytes": "2GB"},
     {"captured_constants_warn_bytes": -2}, {"log_compiles": None}],
    ids=str,
)  # fmt: skip
def test_wrong_values_of_the_settings(wrong: dict[str, Any]) -> None:
    [name] = wrong
    with pytest.raises(ConfigError, match=name), config.override(**wrong):
        pass
