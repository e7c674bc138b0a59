"""The arrays that the kit's checks put have every bit of their dtype set, and clear."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.abi.element_types import supported_dtypes
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.conformance.checks import puts
from plugrt_sdk.conformance.inputs import BORDERS, LENGTHS, patterns, views
from plugrt_sdk.conformance.mutants.faults import Faults
from support import kit

DTYPES = sorted(supported_dtypes(API_MINOR) - {"void"})
NARROW = {"bool": 1, "int1": 1, "uint1": 1, "int2": 2, "uint2": 2, "int4": 4, "uint4": 4,
          "float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}  # fmt: skip
"""The bits of each byte that elements use."""


def measure_bits(arrays: list[Any]) -> float:
    """Returns the share of a dtype's bits that are set in some element and clear in another."""
    kind = arrays[0].dtype
    words = np.concatenate([np.ascontiguousarray(a).reshape(-1) for a in arrays])
    rows = np.unpackbits(words.view(np.uint8).reshape(-1, kind.itemsize), axis=1)
    both = rows.any(0) & ~rows.all(0)
    return int(both.sum()) / NARROW.get(kind.name, 8 * kind.itemsize)


@pytest.mark.parametrize("dtype", DTYPES)
def test_inputs_of_checks_have_each_bit_set_and_clear(dtype: str) -> None:
    put: list[Any] = []

    def put_noted(self: NumpyBackend, array: Any, device: int) -> Any:
        if array.dtype.name == dtype:
            put.append(array.copy())
        return NumpyBackend.put(self, array, device)

    plugin = Faults(backend={"put": put_noted}).plugin_of
    for chapter in ("buffers.put_get.dtypes.", "buffers.views."):
        put.clear()
        [found] = kit.judged(plugin, chapter + dtype)
        assert found.verdict == "PASS", found
        assert measure_bits(put) == 1, chapter


def test_small_dtypes_have_every_pattern() -> None:
    for dtype in ("int8", "uint16", "bfloat16", "float8_e4m3fn"):
        found = patterns(dtype).view(f"u{patterns(dtype).itemsize}")
        assert len(np.unique(found)) == 1 << 8 * found.itemsize, dtype
    assert patterns("int4").astype(int).tolist() == list(range(-8, 8))
    assert np.isnan(patterns("float32")).sum() > 20
    assert len(np.unique(patterns("float64")[np.isnan(patterns("float64"))].view("u8"))) > 50


def test_lengths_and_borders_have_their_neighbours() -> None:
    assert set(range(258)) <= set(LENGTHS)
    assert {2**k + d for k in range(22) for d in (-1, 0, 1)} <= set(LENGTHS)
    assert {7, 8, 9, 127, 128, 129, 511, 512, 513} <= set(BORDERS)


def test_views_have_each_rank_and_each_kind_of_stride() -> None:
    found = [view for _, view in views("float32", np.random.default_rng(0))]
    for rank in range(9):
        assert any(v.ndim == rank for v in found)
        of_rank = [v for v in found if v.ndim == rank and v.size]
        for stride in (lambda s: s < 0, lambda s: s == 0, lambda s: s > 0) if rank else ():
            assert any(any(map(stride, v.strides)) for v in of_rank), rank
    assert any(v.ndim > 3 and not v.flags.forc for v in found)


def test_two_gib_are_not_tried_over_a_slow_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(puts, "available_bytes", lambda: 16 << 30)
    [found] = kit.judged(Faults().plugin_of, "buffers.put_get.huge", seconds=1e-3)
    assert (found.verdict, found.applies) == ("NOT-RUN", False)
    assert "--time-limit gives it more" in found.got
