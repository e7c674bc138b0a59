"""`callback` and `print`: a look at values while a program runs. As ``jax.debug``."""

from __future__ import annotations

from plugrt.transforms.debug import callback, print

__all__ = ["callback", "print"]
