"""The number of cases in tests: few in `make test` and CI, more in other sessions."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

EFFORT = int(os.environ.get("PLUGRT_TEST_EFFORT", "1"))
"""How many times as many random cases, and how many times as long races: ``nox -s more``.

With more than 1 nothing is sampled, either.
"""
WHOLE = EFFORT > 1
"""Whether every case of a sampled test runs: ``nox -s long``."""


def seeds(count: int) -> range:
    """Returns the seeds of ``count`` random cases, or of more with more effort."""
    return range(count * EFFORT)


def some_of(cases: Sequence[T], count: int, seed: str = "") -> list[T]:
    """Returns ``count`` of the cases, the same in each run, in their order; all with more effort.

    For cases with the same path through the code. Another ``seed`` chooses others.
    """
    if WHOLE or len(cases) <= count:
        return [*cases]
    chosen = random.Random(seed).sample(range(len(cases)), count)
    return [cases[index] for index in sorted(chosen)]
