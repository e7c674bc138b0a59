"""`guard_launches`: the transfer guard for the arguments of calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plugrt.execution.arrays.arguments import Aval, HostAval
from plugrt.execution.arrays.transfer_guard import Direction, check_transfer, moves
from plugrt.execution.launches.loaded_program import LoadedProgram


def guard_launches(
    run: Callable[[Sequence[Any]], Any], program: LoadedProgram, avals: Sequence[Aval]
) -> Callable[[Sequence[Any]], Any]:
    """Returns ``run`` behind a check of the transfers that arguments of these avals need."""
    plan, launch = program.plan, program.launch
    needed: list[tuple[Direction, str, bool]] = []
    for i in plan.needed:
        aval, target = avals[i], launch.in_shardings[i]
        what = f"{plan.describe(i)} of {plan.name!r}, {aval.tensor_type}"
        if isinstance(aval, HostAval):
            needed.append(("host_to_device", f"{what}, to {target!r}", not aval.tensor_type.shape))
        elif moves(aval.sharding, target):
            moved = f"{what}, from {aval.sharding!r} to {target!r}"
            needed.append(("device_to_device", moved, False))
    if not needed:
        return run

    def run_guarded(values: Sequence[Any]) -> Any:
        for direction, what, explicit in needed:
            check_transfer(direction, what, explicit=explicit)
        return run(values)

    return run_guarded
