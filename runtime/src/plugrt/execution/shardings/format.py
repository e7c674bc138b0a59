"""`Format`: an array's sharding and its layout in memory."""

from __future__ import annotations

from plugrt.errors import ArgumentTypeError, InvalidArgument
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.interface import Layout
from plugrt.interface.memory_layout import AutoLayout


class Format:
    """A layout with a sharding, for `device_put` and `jit`; an attribute of arrays and programs.

    ``layout`` None is the devices' default, ``Layout.AUTO`` leaves it to the compiler, which only
    `jit` can. ``sharding`` None keeps the sharding. As ``jax.experimental.layout.Format``. Raises
    `InvalidArgument` for a layout without a sharding, as JAX does.
    """

    __slots__ = ("layout", "sharding")

    layout: Layout | AutoLayout | None
    sharding: Sharding | None

    def __init__(
        self, layout: Layout | AutoLayout | None = None, sharding: Sharding | None = None
    ) -> None:
        if not isinstance(layout, Layout | AutoLayout | None):
            raise ArgumentTypeError(
                "a Format's layout is a plugrt.layout.Layout, Layout.AUTO or None; got "
                f"{layout!r:.80} of type {type(layout).__name__}"
            )
        if not isinstance(sharding, Sharding | None):
            raise ArgumentTypeError(
                f"a Format's sharding is a sharding or None; got {sharding!r:.80} of type "
                f"{type(sharding).__name__}: SingleDeviceSharding(device) is one device's"
            )
        if isinstance(layout, Layout) and sharding is None:
            raise InvalidArgument(
                f"a Format with {layout!r} needs a sharding as well, such as "
                "SingleDeviceSharding(device): layouts belong to a device"
            )
        self.layout = layout
        self.sharding = sharding

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Format):
            return NotImplemented
        return self.layout == other.layout and self.sharding == other.sharding

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"
