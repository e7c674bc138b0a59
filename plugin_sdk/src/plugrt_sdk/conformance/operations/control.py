"""Operations with regions that may run, and operations that only order others."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt_sdk.conformance.operations.sample import COMPLEX, MOVED, NUMBERS, Samples, whole
from plugrt_sdk.testing.program_text import ProgramText, named_dtype, typed

SAMPLES = Samples()
_DTYPES = (*NUMBERS, *COMPLEX)


def _branch(name: str, value: tuple[str, str]) -> str:
    """Returns a region that applies an operation twice to a value from outside."""
    x, t = value
    return f"%r = stablehlo.{name} {x}, {x} : {t} stablehlo.return %r : {t}"


@SAMPLES.add("if", _DTYPES)
def if_(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """One of two branches, which use values from outside"""
    x = whole(random, (3,), dtype)
    a = p.argument(x)
    for truth in (True, False):
        p.apply("if", [p.argument(np.bool_(truth))], [a[1]], "",
                [_branch("add", a), _branch("multiply", a)])  # fmt: skip
    return x + x, x * x


@SAMPLES.add("case", _DTYPES)
def case(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """One of three branches; the last one for a number out of range"""
    x = whole(random, (3,), dtype)
    a = p.argument(x)
    branches = [_branch(name, a) for name in ("add", "multiply", "subtract")]
    for index in (0, 1, 2, -1, 7):
        p.apply("case", [p.argument(np.int32(index))], [a[1]], "", branches)
    return x + x, x * x, x - x, x - x, x - x


@SAMPLES.add("while", _DTYPES)
def while_(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """A loop with a counter and a sum, and one whose condition never holds"""
    x = whole(random, (3,), dtype)
    a, t, n = p.argument(x), typed((3,), dtype), typed((), "int32")
    b, results = typed((), "bool"), []
    one = p.constant("1", n)
    for limit in (5, -1):
        bound, begin = p.argument(np.int32(limit)), p.constant("0", n)
        condition = (
            f"^bb0(%i: {n}, %s: {t}): %c = stablehlo.compare LT, %i, {bound[0]} : ({n}, {n}) -> "
            f"{b} stablehlo.return %c : {b}"
        )
        step = (
            f"^bb0(%i: {n}, %s: {t}): %j = stablehlo.add %i, {one[0]} : {n} "
            f"%u = stablehlo.add %s, {a[0]} : {t} stablehlo.return %j, %u : {n}, {t}"
        )
        p.apply("while", [begin, a], [n, t], "", [condition, step])
        rounds = max(limit, 0)
        results += [np.int32(rounds), (x * named_dtype(dtype).type(rounds + 1)).astype(x.dtype)]
    return results


@SAMPLES.add("optimization_barrier", MOVED)
def optimization_barrier(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Values pass as they are"""
    x, y = whole(random, (3,), dtype), np.int32(7)
    a, b = p.argument(x), p.argument(y)
    p.apply("optimization_barrier", [a, b], [a[1], b[1]])
    return x, y


@SAMPLES.add("composite", _DTYPES)
def composite(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """An operation of another's dialect is computed by its decomposition"""
    x = whole(random, (3,), dtype)
    a = p.argument(x)
    p.function(
        f"func.func private @decomposition(%x: {a[1]}) -> {a[1]} {{\n"
        f"  %0 = stablehlo.multiply %x, %x : {a[1]}\n  func.return %0 : {a[1]}\n}}"
    )
    p.apply("composite", [a], [a[1]],
            'name = "no_such_dialect.square", decomposition = @decomposition, version = 1 : i32, '
            "composite_attributes = {power = 2 : i64}")  # fmt: skip
    return [x * x]


@SAMPLES.add("after_all", ("float32",), interpreted=False)
def after_all(p: ProgramText, dtype: str, random: np.random.Generator) -> Any:
    """Tokens, created and joined; the result does not depend on them"""
    x = whole(random, (3,), dtype)
    a, token = p.argument(x), "!stablehlo.token"
    made = [p.apply("create_token", [], [token], returned=False)[0] for _ in range(2)]
    p.apply("after_all", made, [token], returned=False)
    p.apply("add", [a, a], [a[1]])
    return [x + x]
