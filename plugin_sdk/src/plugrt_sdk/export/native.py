"""The core in C, or an error that says why it is not there."""

from __future__ import annotations

import sys

try:
    from plugrt_sdk.export._core import HostMemory, close, configure, create_table
except ModuleNotFoundError as error:
    why = (
        "which its wheel brings: install that again (pip install --force-reinstall plugrt-sdk)"
        if sys.platform == "linux"
        else f"which is for Linux, and this is {sys.platform}. A Backend works under plugrt here"
    )
    raise ImportError(f"plugrt_sdk.export needs the core of plugrt-sdk in C, {why}") from error

__all__ = ["HostMemory", "close", "configure", "create_table"]
