"""``accuracy`` of the elementwise functions, beside JAX's."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import lax
from plugrt.errors import ArgumentError, ArgumentTypeError
from support.behaviour import behaviour
from support.compiles import compilations
from support.jax_oracle import jax, same

NAMES = [
    "cbrt", "cos", "exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt", "sin", "sqrt",
    "tan", "tanh",
]  # fmt: skip
X = np.float32([0.1, 0.5, 1, 2.5])
STATED = re.compile(r"result_accuracy = #stablehlo\.result_accuracy<[^<]*<\w+>>")
ASKED = {
    "the most exact": ("AccuracyMode", "HIGHEST"),
    "some ulps": ("Tolerance", (0.0, 0.0, 3)),
    "a part of it": ("Tolerance", (0.0, 1e-3)),
    "all three": ("Tolerance", (1e-3, 1e-4, 2)),
}


def ask(module: Any, case: str) -> Any:
    kind, value = ASKED[case]
    make = getattr(module, kind)
    return make[value] if isinstance(value, str) else make(*value)


@behaviour(19, "`accuracy=` of lax's elementwise functions is stated in the program as by JAX")
@pytest.mark.parametrize("name", NAMES)
def test_programs_state_what_jaxs_state(name: str) -> None:
    ours, theirs = getattr(lax, name), getattr(jax.lax, name)
    for case in ASKED:
        text = plugrt.jit(lambda x: ours(x, accuracy=ask(lax, case))).lower(X).as_text()  # noqa: B023
        model = jax.jit(lambda x: theirs(x, accuracy=ask(jax.lax, case))).lower(X).as_text()  # noqa: B023
        stated = STATED.findall(text)
        assert len(stated) == 1
        assert name == "logistic" or stated == STATED.findall(model)  # JAX lowers it to a formula
    for accuracy in (None, lax.AccuracyMode.DEFAULT):
        text = plugrt.jit(lambda x: ours(x, accuracy)).lower(X).as_text()  # noqa: B023
        assert not STATED.search(text)


@pytest.mark.parametrize("case", ASKED)
def test_values_are_those_without(case: str) -> None:
    for name in ("exp", "tanh", "exp2"):
        found = getattr(lax, name)(X, accuracy=ask(lax, case))
        same(found, getattr(lax, name)(X), rtol=1e-6)
    same(lax.sin(X, accuracy=ask(jax.lax, case)), lax.sin(X), rtol=1e-6)


def test_equal_tolerances_share_a_program() -> None:
    assert lax.Tolerance(ulps=2) == lax.Tolerance(0.0, 0.0, 2)
    log = lambda x: lax.log(x, accuracy=lax.Tolerance(rtol=0.125))  # noqa: E731
    assert compilations(log, (X,), (X,)) == [1, 0]


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a number": (lambda: lax.exp(X, accuracy=3), ArgumentTypeError, "accuracy of lax.exp is 3 of"),
    "a word": (lambda: lax.exp2(X, accuracy="highest"), ArgumentTypeError, "'highest' of type str"),
    "no tolerance at all": (lax.Tolerance, ArgumentError, "one of atol, rtol and ulps"),
    "a negative one": (lambda: lax.Tolerance(-1.0), ArgumentError, "not negative"),
    "no number": (lambda: lax.Tolerance(1.0, float("nan")), ArgumentError, "finite and not neg"),
    "infinity": (lambda: lax.Tolerance(float("inf")), ArgumentError, "finite and not negative"),
    "too many ulps": (lambda: lax.Tolerance(ulps=2**63), ArgumentError, "of 64 bits"),
    "a precision": (
        lambda: lax.exp(X, accuracy=lax.Precision.HIGHEST), ArgumentTypeError, "of type Precision"),
    "half an ulp": (lambda: lax.Tolerance(ulps=0.5), ArgumentError, "a whole number"),
    "a word for a tolerance": (lambda: lax.Tolerance("low"), ArgumentTypeError, "Tolerance"),
    "an exact function": (
        lambda: lax.floor(X, accuracy=lax.AccuracyMode.HIGHEST), ArgumentTypeError, "accuracy"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_calls_are_named(case: str) -> None:
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call()
