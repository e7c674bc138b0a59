"""Whether this machine has an NVIDIA GPU with a driver, from files that the driver makes."""

from __future__ import annotations

from pathlib import Path

from plugrt.plugins.plugin import Availability

DRIVER_FILES = ("dev/nvidiactl", "proc/driver/nvidia/version", "dev/dxg")
"""The driver's control device, its version, and the way WSL2 shows a GPU."""


def look(root: str | Path = "/") -> Availability:
    """Returns whether a driver shows itself; opens no device and no library."""
    top = Path(root)
    for file in DRIVER_FILES:
        if (top / file).exists():
            return Availability.yes(f"/{file} is there")
    return Availability.no("no NVIDIA driver is loaded (no /dev/nvidiactl, no /dev/dxg)")
