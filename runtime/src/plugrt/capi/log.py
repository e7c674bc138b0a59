"""The logger of the C API host, for faults that are found where nothing can be raised."""

from __future__ import annotations

from plugrt.base.logger import get_logger

logger = get_logger(__package__)
