"""Mutants of devices and memories."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient
from plugrt_sdk.device import BackendDevice


def _fresh_devices(self: MutantClient) -> list[Any]:
    backend = self.backend
    return [BackendDevice(self, backend, d.description) for d in self._session.devices]


MUTANTS: Mapping[str, Faults] = {
    "devices.ids": Faults(device={"id": 0}, devices=2),
    "devices.agree": Faults(
        client={"addressable_devices": lambda self: [SimpleNamespace(id=99, client=self)]}
    ),
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
