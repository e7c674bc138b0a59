"""What PyTorch/XLA finds under the entry point ``torch_xla.plugins``.

PJRT_DEVICE=MY-CHIP selects it.
"""

from __future__ import annotations

from torch_xla.experimental.plugins import DevicePlugin

from my_chip.library import find_library


class MyChipDevice(DevicePlugin):  # type: ignore[misc]  # torch_xla has no types
    """Offers the library to PyTorch/XLA."""

    def library_path(self) -> str:
        return find_library()
