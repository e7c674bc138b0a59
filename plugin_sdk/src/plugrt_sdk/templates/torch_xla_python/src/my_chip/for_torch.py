"""What PyTorch/XLA finds under the entry point ``torch_xla.plugins``.

PJRT_DEVICE=MY-CHIP selects it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from plugrt_sdk.export import export_library
from torch_xla.experimental.plugins import DevicePlugin

from my_chip import NAME


class MyChipDevice(DevicePlugin):  # type: ignore[misc]  # torch_xla has no types
    """Offers the device to PyTorch/XLA, which loads a library that imports this package."""

    def library_path(self) -> str:
        os.environ.setdefault("XLA_STABLEHLO_COMPILE", "1")  # it hands over HLO otherwise
        folder = tempfile.mkdtemp(prefix=f"{NAME}-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return str(export_library(NAME, Path(folder) / f"libpjrt_{NAME}.so"))
