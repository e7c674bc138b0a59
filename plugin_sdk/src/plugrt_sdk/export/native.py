"""Imports the core in C, or raises an error that explains why it is absent or unused."""

from __future__ import annotations

from plugrt.errors import MissingSdkCore
from plugrt.native.source_stamps import explain_other_sources
from plugrt_sdk.absent_core import explain_absence
from plugrt_sdk.export.core_sources import SOURCES

_PART = "plugrt-sdk's core in C, which exports a Backend to other hosts,"

try:
    import plugrt_sdk.export._core as core
except ModuleNotFoundError as error:
    raise MissingSdkCore(explain_absence(_PART, "A Backend works under plugrt here")) from error

if why := explain_other_sources(core, SOURCES, "plugrt-sdk", "plugin_sdk"):
    raise MissingSdkCore(f"{_PART} is not that of this plugrt-sdk: {why}")

# After the check above: a core made from other sources may lack any of them.
HostMemory = core.HostMemory
close = core.close
configure = core.configure
create_table = core.create_table
refused_functions = core.refused_functions

__all__ = ["HostMemory", "close", "configure", "create_table", "refused_functions"]
