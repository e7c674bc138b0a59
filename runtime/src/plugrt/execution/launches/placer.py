"""`make_placer`: placement of a program's arguments on its devices, decided once per aval."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from plugrt.execution.arrays.arguments import ParameterType
from plugrt.execution.arrays.array import Array, duplicate, launch_form
from plugrt.execution.arrays.array_making import change_layout
from plugrt.execution.arrays.aval import ArrayAval, Aval, is_placed
from plugrt.execution.arrays.casting import cast
from plugrt.execution.compilation.buffer_copy import copy_buffer
from plugrt.execution.placement.launch_layouts import require_chosen
from plugrt.execution.placement.placement import Launch
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.execution.transfers.host_values import hold_scalar
from plugrt.execution.transfers.resharding import reshard
from plugrt.execution.transfers.sharded_transfer import put_sharded
from plugrt.execution.transfers.whole_arrays import move
from plugrt.interface import Device, Layout, Shards

Placer = Callable[[Sequence[Any]], list[Any]]
"""Maps the flat arguments of a call to the `Shards` of those that the program needs."""

_Step = tuple[int, int, Callable[[Any], object]]
"""The position in the result, the argument's number, and the function that makes its shards."""


def make_placer(
    avals: Sequence[Aval],
    types: Sequence[ParameterType],
    needed: Sequence[int],
    launch: Launch,
    *,
    donated: Sequence[int] = (),
    passed: Sequence[int] = (),
    keep_donated: bool = False,
    skip: Container[int] = (),
) -> Placer | None:
    """Returns a function that places the arguments numbered in ``needed`` for a launch.

    The launch consumes the memory of the arguments in ``donated`` (with ``keep_donated``, of
    copies); arguments in ``passed`` become results; those at the positions ``skip`` among the
    needed are not moved. Returns None if each needed argument is an array that is already placed
    correctly. The lists that the placer returns are the caller's.
    """
    hosts: list[tuple[int, int]] = []
    steps: list[_Step] = []
    for position, i in enumerate(needed):
        target, aval, dtype = launch.in_shardings[i], avals[i], types[i][1]
        layout = require_chosen(launch.in_layout(i))
        exclusive = i in donated or i in passed
        if position in skip:
            steps.append((position, i, _keep))
        elif not is_placed(aval):
            if aval.is_number and layout is None and not exclusive:
                steps.append((position, i, _make_scalar_step(target, dtype)))
            elif aval.weak or layout is not None or _plain_device(launch, i) is None:
                steps.append((position, i, _make_host_step(target, dtype, layout)))
            else:
                hosts.append((position, i))
        elif is_placed_for(aval, i, launch):
            if keep_donated and i in donated:
                steps.append((position, i, _copy))
        elif aval.layout is not None or layout is not None:
            steps.append((position, i, _make_layout_step(target, layout)))
        else:
            device = _plain_device(launch, i)
            steps.append((position, i, _make_move_step(aval.sharding, target, device, exclusive)))
    if not hosts and not steps:
        return None
    if not hosts and [*needed] == [*range(len(avals))]:
        return _place_all([*needed], steps)
    return _place_needed(needed, hosts, steps, launch)


def can_put_host_value(launch: Launch, i: int) -> bool:
    """Whether a host value is put on one device, in its default memory and layout."""
    return launch.is_plain or (
        _plain_device(launch, i) is not None and require_chosen(launch.in_layout(i)) is None
    )


def _plain_device(launch: Launch, i: int) -> Device | None:
    """Returns the only device of a launch, if argument i is in its default memory.

    None for launches on several devices, even if this process has only one of them.
    """
    return launch.in_shardings[i].plain_device if len(launch.devices) == 1 else None


def is_placed_for(aval: ArrayAval, i: int, launch: Launch) -> bool:
    """Whether arrays of this aval have the devices and layout required of argument ``i``."""
    target = launch.in_shardings[i]
    return aval.layout == require_chosen(launch.in_layout(i)) and aval.sharding.is_equivalent_to(
        target, aval.ndim
    )


def _place_needed(
    needed: Sequence[int], hosts: Sequence[tuple[int, int]], steps: Sequence[_Step], launch: Launch
) -> Placer:
    made = {position for position, _ in hosts} | {position for position, _, _ in steps}
    here = [(position, i) for position, i in enumerate(needed) if position not in made]
    client, device, count = launch.client, launch.devices[0], len(needed)

    def place(values: Sequence[Any]) -> list[object]:
        shards: list[object] = [None] * count
        for position, i in here:
            shards[position] = held = values[i]._shards
            if held is None:  # deleted, or an assignment to it ends soon
                shards[position] = values[i]._settled()
        for position, i, step in steps:
            shards[position] = step(values[i])
        if hosts:
            put = client.shards_from_host([values[i] for _, i in hosts], device)
            for (position, _), new in zip(hosts, put):  # noqa: B905  # hot
                shards[position] = new
        return shards

    def place_one(values: Sequence[Any]) -> list[Any]:
        shards: list[object] = [None] * count
        for position, i in here:
            shards[position] = held = values[i]._shards
            if held is None:  # deleted, or an assignment to it ends soon
                shards[position] = values[i]._settled()
        [shards[only]] = client.shards_from_host((values[number],), device)
        return shards

    if len(hosts) == 1 and not steps:  # fast paths for the usual counts
        [(only, number)] = hosts
        return place_one
    if [i for _, i in hosts] == [*range(count)]:
        return lambda values: [*client.shards_from_host(values[:count], device)]
    return place


def _place_all(needed: Sequence[int], steps: Sequence[_Step]) -> Placer:
    """Returns a placer for calls with only needed arguments, none of them a host array in parts."""
    made = {i for _, i, _ in steps}
    here = [i for i in needed if i not in made]
    if not here and not steps:
        return list

    def place(values: Sequence[Any]) -> list[object]:
        placed = [*values]
        for i in here:
            placed[i] = held = values[i]._shards
            if held is None:
                placed[i] = values[i]._settled()
        for i, _, step in steps:
            placed[i] = step(values[i])
        return placed

    return place


def _keep(x: Any) -> object:
    return x


def _make_scalar_step(target: Sharding, dtype: np.dtype[np.generic]) -> Callable[[object], Shards]:
    last: tuple[object, Shards] = (None, ())

    def place_scalar(x: Any) -> Shards:
        nonlocal last
        seen, shards = last
        if x is not seen:  # a literal in the source code is the same object each time
            shards = hold_scalar(target, x, dtype)
            last = (x, shards)
        return shards

    return place_scalar


def _make_host_step(
    target: Sharding, dtype: np.dtype[np.generic], layout: Layout | None
) -> Callable[[object], Shards]:
    return lambda x: put_sharded(cast(x, dtype), target, layout=layout)._held()


def _make_layout_step(target: Sharding, layout: Layout | None) -> Callable[[Array], Shards]:
    """Returns a function that moves an array to a sharding and a layout."""
    return lambda x: change_layout(reshard(x, target), layout)._held()


def _make_move_step(
    source: Sharding, target: Sharding, device: Device | None, exclusive: bool
) -> Callable[[Array], Shards]:
    if device is not None:
        if isinstance(source, SingleDeviceSharding):
            return _make_copy_step(source.device, device)
        if not exclusive:
            return lambda x: move(x, device, True)._held()
    return lambda x: reshard(x, target, share=not exclusive)._held()


def _make_copy_step(source: Device, device: Device) -> Callable[[Array], Any]:
    client = device.client
    if source.client is client and client.capabilities.device_to_device_copy:  # tested once
        return lambda x: launch_form(client.shards((x._live()[0].copy_to_device(device),)))
    return lambda x: launch_form(client.shards((copy_buffer(x._live()[0], device),)))


def _copy(x: Array) -> Any:
    return duplicate(x)._held()
