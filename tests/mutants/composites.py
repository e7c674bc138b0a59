"""Mutants of composite programs."""

from __future__ import annotations

from collections.abc import Mapping

from mutants.results import change_where, spoil_largest
from plugrt_sdk.conformance.composites import SAMPLES as COMPOSITE_SAMPLES
from plugrt_sdk.conformance.mutants.faults import Faults

_COMPOSITE_WORDS = {
    "attention": "stablehlo.exponential stablehlo.dot_general",
    "convolutional_step": "stablehlo.convolution stablehlo.reduce_window",
    "lstm": "stablehlo.while stablehlo.logistic",
    "sort_merge": "stablehlo.sort stablehlo.gather",
    "fft_convolution": "RFFT stablehlo.multiply",
    "threefry": "stablehlo.shift_right_logical stablehlo.xor",
}
"""Operations that occur together only in this composite program."""


MUTANTS: Mapping[str, Faults] = {
    **{
        f"composites.{sample.id}.{dtype}": change_where(
            _COMPOSITE_WORDS[sample.id], spoil_largest(sample.ulps)
        )
        for sample in COMPOSITE_SAMPLES
        for dtype in sample.dtypes
    },
}
