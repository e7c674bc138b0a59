"""Tracebacks of jitted functions have only the user's frames, or all of them on request."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import config, jit, lax, pmap
from plugrt.errors import (
    ArgumentMismatch,
    ArgumentTypeError,
    ConfigError,
    DeletedBuffer,
    DtypeError,
    InvalidIndex,
    NotAnArray,
    ShapeError,
    UnsupportedDtype,
)
from support.behaviour import behaviour

X = np.arange(3, dtype=np.float32)
FOUR = np.ones(4, np.float32)


class Mine(Exception):
    """Raised by the user's code."""


def raise_mine(i: Any, carry: Any) -> Any:
    raise Mine


def in_a_loop(x: Any) -> Any:
    return lax.fori_loop(0, 3, raise_mine, x)


def calls_another(x: Any) -> Any:
    return jit(in_a_loop)(x)


def of_a_wrong_shape(x: Any) -> Any:
    return xp.reshape(x, (2,))


def on_device() -> Any:
    return plugrt.device_put(X)


def frames(call: Callable[[], Any], error: type[Exception]) -> list[str]:
    """Returns the names of the functions in the traceback of a call's exception."""
    with pytest.raises(error) as caught:
        call()
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    return names[names.index("call") + 1 :]


CALLS: dict[str, tuple[Callable[[], Any], type[Exception], list[str]]] = {
    "a loop": (lambda: jit(in_a_loop)(X), Mine, ["in_a_loop", "raise_mine"]),
    "an inner jit": (
        lambda: jit(calls_another)(X), Mine, ["calls_another", "in_a_loop", "raise_mine"]
    ),
    "keywords": (lambda: jit(in_a_loop)(x=X), Mine, ["in_a_loop", "raise_mine"]),
    "pmap": (lambda: pmap(in_a_loop)(X[None]), Mine, ["in_a_loop", "raise_mine"]),
    "an operation": (lambda: jit(of_a_wrong_shape)(X), ShapeError, ["of_a_wrong_shape"]),
    "an argument": (lambda: jit(in_a_loop)("text"), NotAnArray, []),
    "lower": (lambda: jit(in_a_loop).lower(X), Mine, ["in_a_loop", "raise_mine"]),
    "trace": (lambda: jit(in_a_loop).trace(X), Mine, ["in_a_loop", "raise_mine"]),
    "eval_shape": (lambda: jit(in_a_loop).eval_shape(X), Mine, ["in_a_loop", "raise_mine"]),
    "lower of pmap": (lambda: pmap(in_a_loop).lower(X[None]), Mine, ["in_a_loop", "raise_mine"]),
    "xla_computation": (
        lambda: plugrt.xla_computation(in_a_loop)(X), Mine, ["in_a_loop", "raise_mine"]
    ),
    "a loop by itself": (lambda: in_a_loop(X), Mine, ["in_a_loop", "raise_mine"]),
    "a compiled program": (lambda: jit(abs).lower(X).compile()(X[:2]), ArgumentMismatch, []),
    "an operator": (lambda: on_device() + FOUR, ShapeError, []),
    "an operator reflected": (lambda: X[:2] - on_device(), ShapeError, []),
    "an operator of one": (lambda: ~on_device(), DtypeError, []),
    "a power": (lambda: on_device() ** FOUR, ShapeError, []),
    "an index": (lambda: on_device()[5], InvalidIndex, []),
    "an update": (lambda: on_device().at[0].set(FOUR), ShapeError, []),
    "a method": (lambda: on_device().reshape(2), ShapeError, []),
    "a function": (lambda: of_a_wrong_shape(on_device()), ShapeError, ["of_a_wrong_shape"]),
    "NumPy's function": (lambda: np.add(on_device(), FOUR), ShapeError, []),
    "device_put": (lambda: plugrt.device_put(object()), NotAnArray, []),
    "asarray": (lambda: xp.asarray("text"), UnsupportedDtype, []),
    "a wrong call": (lambda: xp.reshape(on_device()), ArgumentTypeError, []),  # type: ignore[call-arg]
}  # fmt: skip


def call_of(name: str) -> Callable[[], Any]:
    def call() -> Any:
        return CALLS[name][0]()

    return call


@behaviour(16, "an exception of jit, a stage or an operator shows the user's frames alone")
@pytest.mark.parametrize("name", CALLS)
def test_the_users_frames_alone(name: str) -> None:
    _, error, expected = CALLS[name]
    assert frames(call_of(name), error) == ["<lambda>", *expected]


@behaviour(16, "`traceback_filtering` off shows all frames")
@pytest.mark.parametrize("name", CALLS)
def test_all_frames(name: str) -> None:
    _, error, expected = CALLS[name]
    with config.override(traceback_filtering="off"):
        found = frames(call_of(name), error)
    assert len(found) > len(expected) + 1
    assert [one for one in found if one in expected] == expected


def test_an_instruction_without_a_line() -> None:
    """Python may call a signal handler at such an instruction; its frame's line is None."""

    def fail(x: Any) -> Any:
        raise Mine

    fail.__code__ = fail.__code__.replace(co_linetable=b"")
    with pytest.raises(Mine) as caught:
        jit(fail)(X)
    assert caught.traceback[-1].name == "fail"


@behaviour(16, "warm calls that fail show the user's frames alone, too")
def test_warm_calls() -> None:
    f, x = jit(lambda x: x + 1), plugrt.device_put(X)
    f(x)
    x.delete()

    def call() -> Any:
        return f(x)

    assert frames(call, DeletedBuffer) == []


def test_the_cause_of_a_refusal_shows_no_frames() -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        xp.reshape(on_device())  # type: ignore[call-arg]
    assert isinstance(caught.value.__cause__, TypeError)
    assert caught.value.__cause__.__traceback__ is None


def test_errors_raised_while_another_is_handled_keep_both() -> None:
    def f(x: Any) -> Any:
        try:
            raise_mine(0, x)
        except Mine as error:
            raise KeyError from error

    with pytest.raises(KeyError) as caught:
        jit(f)(X)
    assert isinstance(caught.value.__cause__, Mine)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__cause__.__traceback__)]
    assert names == ["f", "raise_mine"]


@pytest.mark.parametrize("mode", ["tracebackhide", "remove_frames", "quiet_remove_frames", "AUTO"])
def test_modes_of_jax(mode: str) -> None:
    with config.override(traceback_filtering=mode):
        assert frames(call_of("a loop"), Mine) == ["<lambda>", "in_a_loop", "raise_mine"]


def test_wrong_modes() -> None:
    with pytest.raises(ConfigError, match=r"off \| tracebackhide"):
        config.update("traceback_filtering", "some")


@behaviour(16, "a program carries the user's lines, in its StableHLO and its HLO")
def test_lines_in_programs() -> None:
    lowered = jit(lambda x: xp.reshape(x, (3, 1)) + 1).lower(X)
    for text in (lowered.as_text(debug_info=True), lowered.as_text("hlo", debug_info=True)):
        assert __file__ in text
