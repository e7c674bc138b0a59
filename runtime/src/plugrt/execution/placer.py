"""`make_placer`: how the arguments of a program get to where it takes them, decided once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrt.execution.arguments import HostKind, Kind, ParameterType
from plugrt.execution.array import Array
from plugrt.execution.host_values import scalar_on
from plugrt.execution.placement import Launch
from plugrt.execution.sharding import Sharding, SingleDeviceSharding
from plugrt.execution.spread import copy_buffer, put_sharded, reshard
from plugrt.execution.transfer import duplicate, move
from plugrt.interface import Shards

Placer = Callable[[Sequence[Any]], list[Any]]
"""Takes the flat arguments of a call and returns the `Shards` of those that the program needs."""

_Step = tuple[int, int, Callable[[Any], Any]]
"""The position among what is returned, the argument's number, and what makes shards of it."""


def make_placer(
    kinds: Sequence[Kind],
    types: Sequence[ParameterType],
    needed: Sequence[int],
    launch: Launch,
    *,
    donated: Sequence[int] = (),
    passed: Sequence[int] = (),
    keep_donated: bool = False,
) -> Placer | None:
    """Returns what places the arguments numbered in ``needed`` for a launch.

    The launch takes the memory of those in ``donated`` (with ``keep_donated``, of copies); those in
    ``passed`` become results. Returns None where each argument that is needed is an array that
    lies as the launch takes it, so that there is nothing to do.
    """
    hosts: list[tuple[int, int]] = []
    steps: list[_Step] = []
    for position, i in enumerate(needed):
        target, kind, dtype = launch.in_shardings[i], kinds[i], types[i][1]
        lone = i in donated or i in passed
        if isinstance(kind, HostKind):
            if not _is_plain(target):
                steps.append((position, i, _host_step(target, dtype)))
            elif not kind.weak:
                hosts.append((position, i))
            elif lone:
                steps.append((position, i, _host_step(target, dtype)))
            else:
                steps.append((position, i, _scalar_step(launch, dtype)))
        elif kind.sharding != target:
            steps.append((position, i, _move_step(kind.sharding, target, lone)))
        elif i in donated:
            steps.append((position, i, _copy if keep_donated else _own))
    if not hosts and not steps:
        return None
    return _placer(needed, hosts, steps, launch)


def _is_plain(target: Sharding) -> bool:
    return isinstance(target, SingleDeviceSharding) and target.memory_kind is None


def _placer(
    needed: Sequence[int], hosts: Sequence[tuple[int, int]], steps: Sequence[_Step], launch: Launch
) -> Placer:
    made = {position for position, _ in hosts} | {position for position, _, _ in steps}
    here = [(position, i) for position, i in enumerate(needed) if position not in made]
    client, device, count = launch.client, launch.devices[0], len(needed)

    def place(values: Sequence[Any]) -> list[Any]:
        shards: list[Any] = [None] * count
        for position, i in here:
            shards[position] = values[i]._shards
        for position, i, step in steps:
            shards[position] = step(values[i])
        if hosts:
            put = client.shards_from_host([values[i] for _, i in hosts], device)
            for (position, _), new in zip(hosts, put):  # noqa: B905  # hot
                shards[position] = new
        return shards

    def place_one(values: Sequence[Any]) -> list[Any]:
        shards: list[Any] = [None] * count
        for position, i in here:
            shards[position] = values[i]._shards
        [shards[only]] = client.shards_from_host((values[number],), device)
        return shards

    if len(hosts) == 1 and not steps:  # the usual numbers, at less cost
        [(only, number)] = hosts
        return place_one
    if [i for _, i in hosts] == [*range(count)]:
        return lambda values: [*client.shards_from_host(values[:count], device)]
    if not hosts and all(step is _own for _, _, step in steps):
        return _unless_shared(place, needed, [i for _, i, _ in steps])
    return place


def _unless_shared(place: Placer, needed: Sequence[int], donated: Sequence[int]) -> Placer:
    """Returns ``place`` with a short way for donated arrays that were never shared."""

    def place_as_they_are(values: Sequence[Any]) -> list[Any]:
        for i in donated:
            if getattr(values[i], "_sharers", None) is not None:
                return place(values)
        return [values[i]._shards for i in needed]

    return place_as_they_are


def _scalar_step(launch: Launch, dtype: np.dtype[Any]) -> Callable[[Any], Shards]:
    device = launch.devices[0]
    return lambda x: scalar_on(device, x, dtype)._live()


def _host_step(target: Sharding, dtype: np.dtype[Any]) -> Callable[[Any], Shards]:
    return lambda x: put_sharded(np.asarray(x, dtype), target)._live()


def _move_step(source: Sharding, target: Sharding, lone: bool) -> Callable[[Array], Shards]:
    if isinstance(target, SingleDeviceSharding) and _is_plain(target):
        device = target.device
        if isinstance(source, SingleDeviceSharding):
            client = device.client
            return lambda x: client.shards((copy_buffer(x._live()[0], device),))
        if not lone:
            return lambda x: move(x, device, True)._live()
    return lambda x: reshard(x, target, share=not lone)._live()


def _copy(x: Array) -> Shards:
    return duplicate(x)._live()


def _own(x: Array) -> Shards:
    """Returns the shards of an array that nobody else holds: a copy where somebody does."""
    return _copy(x) if x._is_shared() else x._live()
