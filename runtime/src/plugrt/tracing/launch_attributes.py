"""`entry_attributes`: a launch's shardings, layouts and memories as attributes of its program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt.execution.arrays.arguments import ParameterType
from plugrt.execution.placement.chosen_shardings import PartlyChosen, known_part
from plugrt.execution.placement.placement import AnyLayout, Launch
from plugrt.execution.placement.plan import Plan
from plugrt.execution.shardings.gspmd_sharding import buffer_sharding
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.execution.shardings.shardy_text import shardy_text
from plugrt.interface import Layout, TensorType
from plugrt.settings.declarations import config
from plugrt.stablehlo.entry_attributes import (
    DONOR,
    LAYOUT,
    MEMORY,
    SHARDING,
    Attributes,
    EntryAttributes,
)


def entry_attributes(
    plan: Plan, types: Sequence[ParameterType], outputs: Sequence[TensorType], launch: Launch
) -> EntryAttributes | None:
    """Returns the attributes of a program's parameters and results; None if it has none.

    ``types`` are the flat arguments' types, ``outputs`` the flat results'.
    """
    if launch.is_plain:  # the usual case
        return None
    divided = launch.partitions > 1
    parameters = [
        _attributes(launch, launch.in_layout(i), launch.in_shardings[i], *types[i][:2])
        + (((DONOR, ""),) if divided and i in plan.unpaired else ())
        for i in plan.kept
    ]
    results = [
        _attributes(
            *(launch, launch.out_layout(i), launch.out_shardings[i]),
            *(outputs[i].shape, outputs[i].dtype),
        )
        for i, (origin, _) in enumerate(plan.sources)
        if origin == "result"
    ]
    fed = [
        _attributes(launch, None, launch.constant_sharding(i), constant.shape, constant.dtype)
        for i, constant in enumerate(plan.constants[: plan.fed])
    ]
    if launch.partitions == 1 and not any(parameters) and not any(results):
        return None
    shardy = config.use_shardy_partitioner
    here = tuple(i for i, device in enumerate(launch.devices) if device.is_addressable)
    here = here if len(here) < len(launch.devices) else ()
    return EntryAttributes((*parameters, *fed), tuple(results), launch.partitions, shardy, here)


def memory_attributes(
    plan: Plan, kinds: Sequence[str | None], parameters: int
) -> EntryAttributes | None:
    """Returns the attributes of results in memories of a kind, for devices that are not known."""
    if not kinds:
        return None
    results = [
        ((MEMORY, kind),) if kind is not None else ()
        for kind, (origin, _) in zip(kinds, plan.sources, strict=True)
        if origin == "result"
    ]
    if not any(results):
        return None
    return EntryAttributes(((),) * parameters, tuple(results))


def _attributes(
    launch: Launch,
    layout: AnyLayout,
    sharding: Sharding,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Attributes:
    found = []
    if layout is not None:
        found.append((LAYOUT, layout.text if isinstance(layout, Layout) else "auto"))
    if sharding.memory_kind is not None:
        found.append((MEMORY, sharding.memory_kind))
    if launch.partitions > 1 and (known := known_part(sharding)) is not None:
        is_open = isinstance(sharding, PartlyChosen) and sharding.is_open
        found.append((SHARDING, shardy_text(*buffer_sharding(known, shape, dtype), is_open)))
    return tuple(found)
