"""`batches_of`: which checks of a run share a process."""

from __future__ import annotations

from collections.abc import Sequence

from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.check import Check, Needs
from plugrt_sdk.conformance.worker import LIBRARY

_BATCH = 800
"""The most checks of one process: a process costs one to four seconds, and its end one batch."""


def batches_of(checks: Sequence[Check], jobs: int) -> list[list[Check]]:
    """Returns the checks in batches, in order; those with a process of their own are alone."""
    together = [c for c in checks if c.needs is not Needs.PROCESS]
    size = max(1, min(_BATCH, -(-len(together) // jobs)))
    found = [together[i : i + size] for i in range(0, len(together), size)]
    return found + [[c] for c in checks if c.needs is Needs.PROCESS]


def with_library(checks: Sequence[Check]) -> Sequence[Check]:
    """Returns the checks, and the one of the library's file where some depend on that."""
    library = registry.find(LIBRARY)
    needed = any(check.needs.has_table for check in checks)
    return [library, *checks] if needed and library not in checks else checks
