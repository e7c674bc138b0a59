"""`batches_of`: groups the checks of a run that share a process."""

from __future__ import annotations

from collections.abc import Sequence

from plugrt_sdk.conformance import registry
from plugrt_sdk.conformance.check import Check, Needs
from plugrt_sdk.conformance.worker import LIBRARY

_BATCH = 800
"""The maximum number of checks in a process. Starting one costs one to four seconds, and a crash
ends one batch."""


def batches_of(checks: Sequence[Check], jobs: int) -> list[list[Check]]:
    """Groups checks into batches, in order; a check that needs its own process is a batch."""
    together = [c for c in checks if c.needs is not Needs.PROCESS]
    size = max(1, min(_BATCH, -(-len(together) // jobs)))
    found = [together[i : i + size] for i in range(0, len(together), size)]
    return found + [[c] for c in checks if c.needs is Needs.PROCESS]


def with_library(checks: Sequence[Check]) -> Sequence[Check]:
    """Adds the check of the library's file if other checks depend on it."""
    library = registry.find(LIBRARY)
    needed = any(check.needs.has_table for check in checks)
    return [library, *checks] if needed and library not in checks else checks
