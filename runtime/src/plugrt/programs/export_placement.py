"""Shardings of an export's arguments and results on devices of this process."""

from __future__ import annotations

import numpy as np

from plugrt.errors import PlugrtError, ProgramError
from plugrt.execution.arrays.aval import Aval
from plugrt.execution.placement.chosen_shardings import UNSPECIFIED
from plugrt.execution.placement.placement import CompilerOptions, Launch
from plugrt.execution.shardings.gspmd_sharding import GSPMDSharding
from plugrt.execution.shardings.mesh import Mesh
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.interface import Device
from plugrt.programs.exported import Exported, StatedSharding


def make_launch(
    exported: Exported, devices: tuple[Device, ...], options: CompilerOptions
) -> Launch:
    """Returns the launch of an export on as many devices as it is for.

    The compiler chooses shardings that the export does not state. Raises `ProgramError` for a
    sharding that does not fit its array or the devices.
    """
    place = _place_on_one if len(devices) == 1 else _place
    try:
        taken = [
            place(stated, aval, devices) or UNSPECIFIED
            for stated, aval in zip(exported.in_shardings, exported.in_avals, strict=True)
        ]
        left = [
            place(stated, aval, devices) or UNSPECIFIED
            for stated, aval in zip(exported.out_shardings, exported.out_avals, strict=True)
        ]
    except PlugrtError as error:
        raise ProgramError(
            f"the export {exported.fun_name!r} is damaged, or cannot be placed on these devices: "
            f"{error}"
        ) from error
    return Launch(
        1, len(devices), devices, tuple(taken), tuple(left), True, compiler_options=options
    )


def _place_on_one(
    stated: StatedSharding | None, aval: Aval, devices: tuple[Device, ...]
) -> Sharding:
    [device] = devices
    return SingleDeviceSharding(device, memory_kind=_memory_kind(stated))


def _place(
    stated: StatedSharding | None, aval: Aval, devices: tuple[Device, ...]
) -> Sharding | None:
    """Returns the sharding that an export states for an array, on these devices."""
    if stated is None:
        return None
    placed: GSPMDSharding | NamedSharding
    if isinstance(stated, bytes):
        placed = GSPMDSharding(devices, stated)
    elif stated.mesh.empty:
        placed = GSPMDSharding.get_replicated(devices, memory_kind=_memory_kind(stated))
    else:
        grid = np.array(devices, dtype=object).reshape(stated.mesh.axis_sizes)
        mesh = Mesh(grid, stated.mesh.axis_names)
        placed = NamedSharding(mesh, stated.spec, memory_kind=_memory_kind(stated))
    placed.tiling(len(aval.shape))  # raises if it does not fit the array
    return placed


def _memory_kind(stated: StatedSharding | None) -> str | None:
    """Returns the memory kind if it is not the default, which JAX's files call ``device``."""
    kind = stated.memory_kind if isinstance(stated, NamedSharding) else None
    return None if kind == "device" else kind
