"""The logger of the C API host, for faults that are found where nothing can be raised."""

from __future__ import annotations

import logging

logger = logging.getLogger(__package__)
