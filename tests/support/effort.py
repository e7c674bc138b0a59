"""How many random cases tests try: `make test` the few that are worth their time, others more."""

from __future__ import annotations

import os

EFFORT = int(os.environ.get("PLUGRT_TEST_EFFORT", "1"))
"""How many times as many random cases, and how many times as long races: ``make test-more``."""


def seeds(count: int) -> range:
    """Returns the seeds of so many random cases, and of more where more effort is asked for."""
    return range(count * EFFORT)
