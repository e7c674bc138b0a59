"""`conv_transpose` and JAX's additional forms of `conv_general_dilated`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrt import lax
from plugrt.errors import ArgumentError
from support.behaviour import behaviour
from support.effort import seeds
from support.jax_oracle import jax, same

LAYOUTS: dict[int, list[Any]] = {
    0: [None, ("NC", "OI", "CN")],
    1: [None, ("NCH", "OIH", "NCH")],
    2: [None, ("NCHW", "IOHW", "NHWC"), ("NHWC", "HWOI", "CNHW")],
}


WINDOWED: list[Any] = [
    (None, "NCHW"), (("NHWC", "WHIO", "NHCW"), "NHWC"), (("CNWH", "OIHW", "WNCH"), "CNWH")
]  # fmt: skip


def whole(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return rng.integers(-4, 5, shape).astype(np.float32)


def draw(rng: np.random.Generator, spatial: int, layout: Any) -> tuple[Any, Any, dict[str, int]]:
    """Returns lhs, rhs, and the sizes of their dimensions by letter."""
    default = (("NC", "IO", "NC"), ("NHC", "HIO", "NHC"), ("NHWC", "HWIO", "NHWC"))[spatial]
    left, right, _ = layout or default
    sizes = {"N": 2, "C": 3, "I": 3, "O": int(rng.integers(1, 4))}
    x = whole(rng, *(sizes.get(c) or int(rng.integers(1, 6)) for c in left))
    y = whole(rng, *(sizes.get(c) or int(rng.integers(1, 5)) for c in right))
    return x, y, sizes


@behaviour(19, "`lax.conv_transpose` in every layout, padding and dilation")
def test_conv_transpose() -> None:
    for seed in seeds(12):
        rng = np.random.default_rng(seed)
        spatial = int(rng.integers(0, 3))
        layout = LAYOUTS[spatial][rng.integers(len(LAYOUTS[spatial]))]
        x, y, sizes = draw(rng, spatial, layout)
        strides = tuple(rng.integers(1, 4, spatial).tolist())
        pairs = [tuple(pair) for pair in rng.integers(0, 4, (spatial, 2)).tolist()]
        padding = ("SAME", "VALID", pairs)[rng.integers(3)]
        options = {
            "rhs_dilation": None if seed % 2 else tuple(rng.integers(1, 3, spatial).tolist()),
            "dimension_numbers": layout,
            "transpose_kernel": bool(seed % 3 == 0 and sizes["O"] == 3),
            "use_consistent_padding": bool(rng.integers(2)),
        }
        expected = jax.lax.conv_transpose(x, y, strides, padding, **options)
        same(lax.conv_transpose(x, y, strides, padding, **options), expected)


def test_patches_and_kernels_for_each_place() -> None:
    rng = np.random.default_rng(0)
    for layout, left in WINDOWED:
        extent = {"N": 2, "C": 3, "H": 5, "W": 6}
        x = whole(rng, *(extent[c] for c in left))
        options: dict[str, Any] = {"dimension_numbers": layout, "rhs_dilation": (1, 2)}
        taken = (x, (2, 3), (2, 1), [(1, 0), (0, 2)])
        patches = jax.lax.conv_general_dilated_patches(*taken, **options)
        same(lax.conv_general_dilated_patches(*taken, **options), patches)
        right, out = ("OIHW", "NCHW") if layout is None else layout[1:]
        by_letter = dict(zip(out, patches.shape, strict=True)) | {"O": 4, "I": 18}
        kernels = whole(rng, *(by_letter[c] for c in right))
        given = (x, kernels, (2, 1), [(1, 0), (0, 2)], (2, 3))
        expected = jax.lax.conv_general_dilated_local(*given, **options)
        same(lax.conv_general_dilated_local(*given, **options), expected)


def test_padding_and_dilation_in_the_usual_layout() -> None:
    rng = np.random.default_rng(1)
    x, y = whole(rng, 2, 3, 5, 6), whole(rng, 4, 3, 2, 2)
    given = (x, y, (1, 2), [(1, 2), (0, 1)], (2, 1), (1, 2))
    same(lax.conv_with_general_padding(*given), jax.lax.conv_with_general_padding(*given))


def test_wrong_transposed_convolutions() -> None:
    x, y = np.ones((1, 4, 1), np.float32), np.ones((3, 1, 1), np.float32)
    for arguments, words in (
        ((x, y, (2, 2), "SAME"), "strides of lax.conv_transpose needs 1 numbers"),
        ((x, y, (2,), "FULL"), "'SAME', 'VALID' or pairs; got 'FULL'"),
        ((x, y, (2,), [(0, 0), (1, 1)]), "needs .low, high. for each of 1 dimensions"),
        ((x, y, (2,), "SAME", (1, 1)), "rhs_dilation of lax.conv_transpose needs 1"),
        ((np.ones((1,) * 6), np.ones((1,) * 6), (1,) * 4, "SAME"), "2 to 5 dimensions"),
    ):
        with pytest.raises(ArgumentError, match=words):
            lax.conv_transpose(*arguments)
    with pytest.raises(ArgumentError, match=r"needs .low, high. for each of 1 dimensions"):
        lax.conv_transpose(x, y, (2,), [(0, 0), (1, 1)], use_consistent_padding=True)
