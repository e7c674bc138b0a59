"""Operations of StableHLO that are not elementwise: programs and NumPy's results.

`SAMPLES` contains them all, from modules by subject.
"""

from __future__ import annotations

from plugrt_sdk.conformance.operations import (
    bits,
    contractions,
    control,
    conversions,
    dynamic,
    edges,
    elements,
    indexing,
    large,
    linear_algebra,
    movement,
    reductions,
    uncommon,
    windows,
)
from plugrt_sdk.conformance.operations.sample import Sample

SAMPLES: tuple[Sample, ...] = (
    *elements.SAMPLES, *bits.SAMPLES, *conversions.SAMPLES, *movement.SAMPLES, *indexing.SAMPLES,
    *contractions.SAMPLES, *reductions.SAMPLES, *windows.SAMPLES, *linear_algebra.SAMPLES,
    *control.SAMPLES, *dynamic.SAMPLES, *uncommon.SAMPLES,
    *edges.SAMPLES, *large.SAMPLES,
)  # fmt: skip

__all__ = ["SAMPLES", "Sample"]
