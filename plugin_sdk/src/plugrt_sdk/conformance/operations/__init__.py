"""Operations of StableHLO beside those that work element by element: programs and NumPy's results.

`SAMPLES` has them all; the modules are about what the operations do.
"""

from __future__ import annotations

from plugrt_sdk.conformance.operations import (
    contractions,
    control,
    conversions,
    dynamic,
    elements,
    indexing,
    linear_algebra,
    movement,
    reductions,
    windows,
)
from plugrt_sdk.conformance.operations.sample import Sample

SAMPLES: tuple[Sample, ...] = (
    *elements.SAMPLES, *conversions.SAMPLES, *movement.SAMPLES, *indexing.SAMPLES,
    *contractions.SAMPLES, *reductions.SAMPLES, *windows.SAMPLES, *linear_algebra.SAMPLES,
    *control.SAMPLES, *dynamic.SAMPLES,
)  # fmt: skip

__all__ = ["SAMPLES", "Sample"]
