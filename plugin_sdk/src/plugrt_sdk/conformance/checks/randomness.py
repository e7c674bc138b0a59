"""Level 2: random bits of given generators, and of the backend's default generator."""

from __future__ import annotations

from functools import partial

import numpy as np

from plugrt_sdk.conformance.check import Chapter, Level
from plugrt_sdk.conformance.expect import Array, expect, expect_same_bits
from plugrt_sdk.conformance.random_bits import expected_of, program_of, stored_key, variants
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing.program_text import ProgramText, Value, typed

CHAPTER = Chapter("random", Level.COMPUTES, "StableHLO specification: rng_bit_generator")


def _bits(subject: PluginSubject, algorithm: str, dtype: str) -> None:
    program = program_of(algorithm, dtype)
    found = subject.run(program.text(), *program.arguments)
    state, bits = expected_of(algorithm, dtype)
    expect_same_bits(found[1], bits, "the bits, as XLA gives them,")
    expect_same_bits(found[0], state, "the new state")


for _algorithm, _dtype in variants():
    CHAPTER.add(
        f"rng_bit_generator.{stored_key(_algorithm, _dtype).lower()}",
        f"rng_bit_generator by {_algorithm} gives the {_dtype} that XLA gives, and its new state.",
        partial(_bits, algorithm=_algorithm, dtype=_dtype), refusable=True,
        why="one seed gives other numbers than on every other device",
    )  # fmt: skip


_COUNT = 2000


def _draw(subject: PluginSubject, kind: str, first: Array, second: Array) -> Array:
    """Returns numbers of a distribution with these two parameters."""
    p = ProgramText()
    operands: list[Value] = [p.argument(first), p.argument(second)]
    shape = p.constant(f"[{_COUNT}]", typed((1,), "int64"))
    p.apply("rng", [*operands, shape], [typed((_COUNT,), first.dtype)],
            f"rng_distribution = #stablehlo<rng_distribution {kind}>")  # fmt: skip
    [found] = subject.run(p.text(), *p.arguments)
    return found


_DISTRIBUTION = "StableHLO specification: rng"
_WHY = "random numbers are not random"


@CHAPTER.check("rng.uniform.float32", refusable=True, rests_on=_DISTRIBUTION, why=_WHY)
def uniform(subject: PluginSubject) -> None:
    """Uniform float32 are within their bounds, distinct, and in each quarter between them."""
    found = _draw(subject, "UNIFORM", np.array(-2, np.float32), np.array(6, np.float32))
    inside = bool(np.all((found >= -2) & (found < 6)))
    expect(inside, "numbers from -2 to 6", (found.min(), found.max()))
    expect(len(np.unique(found)) > _COUNT // 2, "different numbers", len(np.unique(found)))
    quarters = np.histogram(found, 4, (-2, 6))[0]
    expect(quarters.min() > _COUNT // 6, f"some {_COUNT // 4} in each quarter", list(quarters))


@CHAPTER.check("rng.uniform.int32", refusable=True, rests_on=_DISTRIBUTION, why=_WHY)
def uniform_integers(subject: PluginSubject) -> None:
    """Uniform int32 include each number from the lower bound up to the upper one, exclusive."""
    found = _draw(subject, "UNIFORM", np.array(3, np.int32), np.array(8, np.int32))
    values = sorted(set(found.tolist()))
    expect(values == [3, 4, 5, 6, 7], "the numbers 3 to 7", values)


@CHAPTER.check("rng.normal.float32", refusable=True, rests_on=_DISTRIBUTION, why=_WHY)
def normal(subject: PluginSubject) -> None:
    """Normal float32 have about the requested mean and deviation."""
    found = _draw(subject, "NORMAL", np.array(10, np.float32), np.array(2, np.float32))
    mean, deviation = float(found.mean()), float(found.std())
    expect(abs(mean - 10) < 0.4, "a mean near 10", mean)
    expect(abs(deviation - 2) < 0.4, "a deviation near 2", deviation)
