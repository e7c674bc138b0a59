"""One wait for what several arrays hold, where their backend has one."""

from __future__ import annotations

from collections.abc import Iterable

from plugrt.execution.arrays.aval import ArrayAval
from plugrt.interface import Client


def await_together(held: Iterable[tuple[ArrayAval, object]]) -> bool:
    """Waits for arrays of these avals, which hold these shards; whether all are there.

    False, where the caller has to wait for each in turn: a backend waits for one only, there is
    nothing to wait for any more, or making one failed, which the wait for that one raises.
    """
    by_aval: dict[ArrayAval, list[object]] = {}
    for aval, shards in held:
        by_aval.setdefault(aval, []).append(shards)
    of_clients: dict[Client, list[object]] = {}
    for aval, shards in by_aval.items():
        client = aval.sharding.devices[0].client
        of_clients.setdefault(client, []).extend(shards)
    for client, shards in of_clients.items():
        await_shards = getattr(client, "await_shards", None)
        if await_shards is None or not await_shards(shards):
            return False
    return True


def await_held(held: list[object], avals: list[ArrayAval]) -> bool:
    """As `await_together`, of arrays of one client; their avals are all of these."""
    clients = [aval.sharding.devices[0].client for aval in avals]
    if not clients or clients.count(clients[0]) != len(clients):
        return False
    await_shards = getattr(clients[0], "await_shards", None)
    return await_shards is not None and bool(await_shards(held))
