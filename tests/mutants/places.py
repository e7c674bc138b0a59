"""Mutants of plugins, clients, devices and memories."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from plugrt.errors import Internal
from plugrt.interface import DeviceAssignment
from plugrt.plugins.plugin import Availability
from plugrt_sdk.client import BackendClient
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient
from plugrt_sdk.device import BackendDevice

_VARIABLE = "PLUGRT_MUTANT_WAS_HERE"


def _start_thread() -> None:
    threading.Thread(target=threading.Event().wait, daemon=True).start()


_opened: list[Any] = []


def _open_device() -> None:
    """Opens a device file that every machine has, and that no program needs."""
    with contextlib.suppress(OSError):
        _opened.append(open("/dev/full", "rb"))  # noqa: SIM115  # it stays open: that is the fault


def _raise_on_import() -> None:
    raise ImportError("libmutant.so.1: cannot open shared object file")


def _sleep(self: Any) -> Availability:
    time.sleep(0.15)
    return Availability.yes()


def _iterate(values: Any) -> Any:
    """Returns a property whose value is another one each time."""
    left = iter(values)
    return property(lambda self: next(left))


def _lookup_any(self: BackendClient, device_id: int) -> Any:
    return self.devices()[device_id % len(self.devices())]


def _lookup_first(self: BackendClient, device_id: int) -> Any:
    return self.devices()[0] if device_id == 0 else BackendClient.lookup_device(self, device_id - 1)


def _assign_turned(self: BackendClient, replicas: int, partitions: int) -> DeviceAssignment:
    """Takes replicas for partitions."""
    return BackendClient.default_device_assignment(self, partitions, replicas)


def _assign_anything(self: BackendClient, replicas: int, partitions: int) -> DeviceAssignment:
    return DeviceAssignment(((0,),))


def _fresh_devices(self: MutantClient) -> list[Any]:
    backend = self.backend
    return [BackendDevice(self, backend, d.description) for d in self._session.devices]


def _close_once(self: MutantClient) -> None:
    if getattr(self, "was_closed", False):
        raise Internal("closed twice")
    setattr(self, "was_closed", True)  # noqa: B010
    BackendClient.close(self)


_clients: list[Any] = []


def _only_once() -> None:
    """Refuses a second client: the first one never gave the device back."""
    _clients.append(None)
    if len(_clients) % 2 == 0:
        raise Internal("the device is in use")


PLACES: Mapping[str, Faults] = {
    "host.import": Faults(on_import=_raise_on_import),
    "host.plugin.valid": Faults(plugin={"aliases": "mutant"}),
    "host.plugin.name": Faults(plugin={"name": ""}),
    "host.import.threads": Faults(on_import=_start_thread),
    "host.import.environment": Faults(
        on_import=lambda: os.environ.__setitem__(_VARIABLE, str(time.time_ns()))
    ),
    "host.import.devices": Faults(on_import=_open_device),
    "host.probe.answer": Faults(plugin={"probe": lambda self: Availability.no("")}),
    "host.probe.time": Faults(plugin={"probe": _sleep}),
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
    "client.close": Faults(client={"close": _close_once}),
    "client.again": Faults(on_start=_only_once),
    "client.exit": Faults(client={"close": lambda self: None}, on_start=lambda: _exit_badly()),
    "devices.ids": Faults(device={"id": 0}, devices=2),
    "devices.same_objects": Faults(client={"devices": _fresh_devices}),
    "devices.client": Faults(device={"client": SimpleNamespace(process_index=0)}),
    "devices.kind": Faults(device={"kind": ""}),
    "devices.addressable": Faults(
        device={"is_addressable": False},
        client={"addressable_devices": lambda self: self.devices()},
    ),
    "devices.hardware_id": Faults(device={"local_hardware_id": -1}),
    "devices.attributes": Faults(device={"attributes": {"": 1}}),
    "devices.memories": Faults(device={"memory": lambda self, kind: self.default_memory()}),
    "devices.memories.ids": Faults(memory={"id": 0}, devices=2),
    "devices.memories.devices": Faults(memory={"addressable_by_devices": lambda self: []}),
    "devices.memories.put": Faults(capabilities={"memory_kinds": True}),
}


def _exit_badly() -> None:
    import atexit

    atexit.register(os._exit, 3)
