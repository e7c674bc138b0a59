"""Level 2: programs of many operations, as in models and libraries, against two oracles."""

from __future__ import annotations

from functools import partial

from plugrt_sdk.conformance.check import Chapter, Level
from plugrt_sdk.conformance.composites import SAMPLES
from plugrt_sdk.conformance.oracles import describe_result, try_sample

CHAPTER = Chapter("composites", Level.COMPUTES, "StableHLO specification")

for _sample in SAMPLES:
    for _dtype in _sample.dtypes:
        CHAPTER.add(
            f"{_sample.id}.{_dtype}",
            f"A program on {_dtype} gives {describe_result(_sample)}.",
            partial(try_sample, sample=_sample, dtype=_dtype), refusable=True,
            why="each operation is right alone, and a model that is made of them gives nonsense",
        )  # fmt: skip
