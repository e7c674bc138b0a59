"""Layouts of arrays in memory, as in ``jax.experimental.layout``.

`Layout` is an order of dimensions, with tiles; `Format` is a layout with a sharding, which
`plugrt.device_put`, `plugrt.jit` (``in_shardings``, ``out_shardings``) and `Array.format` use.
"""

from plugrt.execution.shardings.format import Format
from plugrt.interface.memory_layout import Layout

__all__ = ["Format", "Layout"]
