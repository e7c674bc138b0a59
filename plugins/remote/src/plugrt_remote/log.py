"""`logger`: the logger of this package."""

from __future__ import annotations

from plugrt.base.logger import get_logger

logger = get_logger(__package__)
