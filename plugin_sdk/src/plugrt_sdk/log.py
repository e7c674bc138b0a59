"""The SDK's logger, for failures in places that cannot raise."""

from __future__ import annotations

from plugrt.base.logger import get_logger

logger = get_logger(__package__)
