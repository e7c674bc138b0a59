"""How many cases tests try: `make test` and CI the few that are worth their time, others more."""

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
"""Whether every case of what is sampled is tried: ``nox -s long``."""


def seeds(count: int) -> range:
    """Returns the seeds of so many random cases, and of more where more effort is asked for."""
    return range(count * EFFORT)


def some_of(cases: Sequence[T], count: int, seed: str = "") -> list[T]:
    """Returns ``count`` of the cases, the same in each run, in their order; all with more effort.

    For cases that take the same path through the code. Another ``seed`` chooses others.
    """
    if WHOLE or len(cases) <= count:
        return [*cases]
    chosen = random.Random(seed).sample(range(len(cases)), count)
    return [cases[index] for index in sorted(chosen)]
