"""Plugins with one defect, as ``module:name`` for ``plugrt conform``."""

from __future__ import annotations

from plugrt.plugins import Plugin
from plugrt_sdk.conformance.mutants import mutant


def no_zero_d() -> Plugin:
    """The mutant that changes arrays without dimensions."""
    return mutant("buffers.put_get.scalar")


def dead() -> Plugin:
    """The mutant that ends the process when a client is started."""
    return mutant("killer.segfault_at_start")
