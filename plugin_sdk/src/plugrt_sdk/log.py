"""The logger of the SDK: for what fails where nothing can be raised."""

from __future__ import annotations

from plugrt.base.logger import get_logger

logger = get_logger(__package__)
