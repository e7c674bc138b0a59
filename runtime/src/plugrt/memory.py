"""Memory spaces for `device_put`: `Space.Device` and `Space.Host`, as in ``jax.memory``."""

from plugrt.execution.placement.put_target import Space

__all__ = ["Space"]
