"""Whether this machine has an NVIDIA GPU with a driver, from files that the driver makes."""

from __future__ import annotations

import os
import re
from pathlib import Path

from plugrt.base import files
from plugrt.plugins.plugin import Availability
from plugrt.plugins.vendors import NVIDIA_FILES

_DRIVER_VERSION = "proc/driver/nvidia/version"
DRIVER_FILES = (*NVIDIA_FILES, _DRIVER_VERSION)
_VERSION = re.compile(r"Kernel Module.*?\s(\d{3,})\.\d+")


def detect(root: str | Path = "/") -> Availability:
    """Returns whether files of the driver exist; opens no device and no library."""
    top = Path(root)
    seen = [f"/{file}" for file in DRIVER_FILES if (top / file).exists()]
    if not seen:
        return Availability.no(
            f"no NVIDIA driver is loaded (none of {', '.join(f'/{f}' for f in DRIVER_FILES)})",
            "install the driver, or, in a container, start it with access to the GPUs; to compile "
            'for a GPU none is needed: plugrt.topology("cuda:h100")',
        )
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in ("", "-1", "NoDevFiles"):
        return Availability.no(
            f"CUDA_VISIBLE_DEVICES={visible} hides every GPU", "unset CUDA_VISIBLE_DEVICES"
        )
    return Availability.yes(f"{seen[0]} is there")


def driver_branch(root: str | Path = "/") -> int | None:
    """Returns the driver's branch, such as 570; None if unknown."""
    try:
        text = files.read_text(Path(root) / _DRIVER_VERSION, errors="replace")
    except OSError:  # WSL2 lacks this file.
        return None
    found = _VERSION.search(text)
    return int(found[1]) if found else None
