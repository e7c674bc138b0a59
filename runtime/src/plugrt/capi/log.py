"""The logger of the C API host: for what goes wrong where nothing can be raised."""

from __future__ import annotations

import logging

logger = logging.getLogger(__package__)
