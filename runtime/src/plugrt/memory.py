"""Memory spaces: `Space.Device` and `Space.Host`, which `device_put` takes, as ``jax.memory``."""

from plugrt.execution.placement.put_target import Space

__all__ = ["Space"]
