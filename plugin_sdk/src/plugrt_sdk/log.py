"""The logger of the SDK: for what fails where nothing can be raised."""

from __future__ import annotations

import logging

logger = logging.getLogger(__package__)
