"""Mutants of clients."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from plugrt.errors import Internal
from plugrt.interface import DeviceAssignment
from plugrt_sdk.client import BackendClient
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient


def _iterate(values: Any) -> Any:
    """Returns a property whose value differs in each call."""
    left = iter(values)
    return property(lambda self: next(left))


def _lookup_any(self: BackendClient, device_id: int) -> Any:
    return self.devices()[device_id % len(self.devices())]


def _lookup_first(self: BackendClient, device_id: int) -> Any:
    return self.devices()[0] if device_id == 0 else BackendClient.lookup_device(self, device_id - 1)


def _assign_turned(self: BackendClient, replicas: int, partitions: int) -> DeviceAssignment:
    """Exchanges replicas and partitions."""
    return BackendClient.default_device_assignment(self, partitions, replicas)


def _assign_anything(self: BackendClient, replicas: int, partitions: int) -> DeviceAssignment:
    return DeviceAssignment(((0,),))


def _close_once(self: MutantClient) -> None:
    if getattr(self, "was_closed", False):
        raise Internal("closed twice")
    setattr(self, "was_closed", True)  # noqa: B010
    BackendClient.close(self)


def _lose(self: MutantClient) -> None:
    setattr(self, "was_lost", True)  # noqa: B010
    BackendClient.close(self)


_clients: list[Any] = []


def _only_once() -> None:
    """Refuses a second client, as if the first one still had the device."""
    _clients.append(None)
    if len(_clients) % 2 == 0:
        raise Internal("the device is in use")


def _exit_badly() -> None:
    import atexit

    atexit.register(os._exit, 3)


MUTANTS: Mapping[str, Faults] = {
    "client.create": Faults(client={"addressable_devices": lambda self: []}),
    "client.platform": Faults(client={"platform_version": 3}),
    "client.process": Faults(client={"process_index": 1}, device={"process_index": 1}),
    "client.capabilities": Faults(capabilities={"donation": "yes"}),
    "client.attributes": Faults(client={"attributes": {"version": None}}),
    "client.lookup": Faults(client={"lookup_device": _lookup_first}, devices=3),
    "client.lookup.unknown": Faults(client={"lookup_device": _lookup_any}),
    "client.assignment": Faults(client={"default_device_assignment": _assign_turned}, devices=2),
    "client.assignment.refused": Faults(client={"default_device_assignment": _assign_anything}),
    "client.identity": Faults(client={"compiler_identity": _iterate(map(str, range(1_000_000)))}),
    "client.lost": Faults(
        client={"close": _lose, "is_lost": property(lambda self: hasattr(self, "was_lost"))}
    ),
    "client.close": Faults(client={"close": _close_once}),
    "client.again": Faults(on_start=_only_once),
    "client.exit": Faults(client={"close": lambda self: None}, on_start=lambda: _exit_badly()),
}
