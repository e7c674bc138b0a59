"""The core in C, or an error that says why it is not there."""

from __future__ import annotations

from plugrt.errors import MissingSdkCore
from plugrt_sdk.absent_core import explain_absence

try:
    from plugrt_sdk.export._core import HostMemory, close, configure, create_table
except ModuleNotFoundError as error:
    raise MissingSdkCore(
        explain_absence(
            "plugrt-sdk's core in C, which exports a Backend to other hosts,",
            "A Backend works under plugrt here",
        )
    ) from error

__all__ = ["HostMemory", "close", "configure", "create_table"]
