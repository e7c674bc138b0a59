"""Mutants of collectives over replicas and partitions."""

from __future__ import annotations

from collections.abc import Mapping

from mutants.collectives import spoil_second
from plugrt_sdk.conformance.check import Check
from plugrt_sdk.conformance.checks import grids
from plugrt_sdk.conformance.mutants.faults import Faults


def _operation(check: Check) -> str:
    """Returns the operation of a check of replicas and partitions."""
    return check.id.removeprefix("collectives.grid.").partition(".")[0]


MUTANTS: Mapping[str, Faults] = {
    **{
        check.id: spoil_second("num_replicas = 2", f"stablehlo.{_operation(check)}", devices=4)
        for check in grids.CHAPTER
    },
}
