"""Shows values while a program runs, and the devices of arrays. As ``jax.debug``."""

from __future__ import annotations

from plugrt.transforms.debug_callbacks import callback, print
from plugrt.transforms.sharding_picture import draw_array_sharding, draw_sharding
from plugrt.transforms.visualize import (
    inspect_array_sharding,
    visualize_array_sharding,
    visualize_sharding,
)

__all__ = [
    "callback",
    "draw_array_sharding",
    "draw_sharding",
    "inspect_array_sharding",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]
