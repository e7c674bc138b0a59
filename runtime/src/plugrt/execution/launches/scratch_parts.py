"""Host arrays that launches on several devices copy into scratch memory, a part for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrt.errors import PjrtError
from plugrt.execution.arrays.arguments import ParameterType
from plugrt.execution.arrays.aval import Aval, is_placed
from plugrt.execution.arrays.casting import cast
from plugrt.execution.placement.launch_layouts import require_chosen
from plugrt.execution.placement.placement import Launch
from plugrt.execution.shardings.sharding_base import Index, SingleDeviceSharding
from plugrt.execution.transfers.sharded_transfer import find_places
from plugrt.interface import LoadedExecutable, Shards

LaunchOnScratch = Callable[[list[Any]], Sequence[Shards]]
LaunchParts = Callable[[list[object]], tuple[Sequence[Shards], Callable[[], None]]]
"""The type of the result of `LoadedExecutable.host_launcher`."""


def find_scratch_parts(
    executable: LoadedExecutable,
    avals: Sequence[Aval],
    types: Sequence[ParameterType],
    needed: Sequence[int],
    launch: Launch,
) -> tuple[tuple[int, ...], LaunchOnScratch | None]:
    """Returns the positions of arguments that launches accept as host arrays, and the launcher.

    Returns (), None if the backend puts each part (`LoadedExecutable.host_launcher` is None), and
    if no such array is divided over all devices of the launch.
    """
    found = find_divided(avals, needed, launch)
    launch_parts = executable.host_launcher(found) if found else None
    if launch_parts is None:
        return (), None
    return tuple(found), _cast_first(launch_parts, [(p, types[needed[p]][1]) for p in found])


def find_divided(
    avals: Sequence[Aval], needed: Sequence[int], launch: Launch
) -> dict[int, Sequence[Index]]:
    """Returns the positions of host arrays among the needed arguments, and each device's part.

    Only host arrays for the default memory of all devices of the launch, in its default layout.
    Excludes Python scalars, whose arrays are cached.
    """
    found: dict[int, Sequence[Index]] = {}
    for position, i in enumerate(needed):
        aval, target = avals[i], launch.in_shardings[i]
        if is_placed(aval) or aval.weak or isinstance(target, SingleDeviceSharding):
            continue
        if target.memory_kind is not None or require_chosen(launch.in_layout(i)) is not None:
            continue
        try:
            devices, indices = find_places(target, aval.shape)
        except PjrtError:  # the put of the argument raises it
            continue
        if tuple(devices) == tuple(launch.devices):
            found[position] = indices
    return found


def _cast_first(
    launch: LaunchParts, wanted: Sequence[tuple[int, np.dtype[np.generic]]]
) -> LaunchOnScratch:
    """Returns ``launch`` without its wait; casts the arguments to these dtypes before."""

    def cast_and_launch(arguments: list[object]) -> Sequence[Shards]:
        for i, dtype in wanted:
            value = arguments[i]
            if type(value) is not np.ndarray or value.dtype != dtype:
                arguments[i] = cast(value, dtype)
        return launch(arguments)[0]

    return cast_and_launch
