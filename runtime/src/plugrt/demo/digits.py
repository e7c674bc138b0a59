"""Loads scikit-learn's copy of the UCI handwritten digits: 1,797 images of 8 x 8 pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import PlugrtError

CLASSES = 10
PIXELS = 64
_HELD_OUT = 360


@dataclass(frozen=True)
class Digits:
    """Images as float32 in [0, 1], shape (n, 64), and their labels as int32, shape (n,)."""

    train_images: npt.NDArray[np.float32]
    train_labels: npt.NDArray[np.int32]
    test_images: npt.NDArray[np.float32]
    test_labels: npt.NDArray[np.int32]


def load_digits(seed: int = 0) -> Digits:
    """Returns the digits, shuffled, the last 360 held out for testing."""
    try:
        from sklearn import datasets
    except ImportError as error:
        raise PlugrtError(
            "the demo's data come with scikit-learn, which is not installed; install it with: "
            'pip install "plugrt[demo]"'
        ) from error
    bundle: Any = datasets.load_digits()
    order = np.random.default_rng(seed).permutation(len(bundle.target))
    images = (bundle.data[order] / 16).astype(np.float32)
    labels = bundle.target[order].astype(np.int32)
    split = len(order) - _HELD_OUT
    return Digits(images[:split], labels[:split], images[split:], labels[split:])
