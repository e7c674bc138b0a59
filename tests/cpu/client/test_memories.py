"""Devices, memories, and copies between them."""

from __future__ import annotations

import numpy as np
import pytest

from plugrt.errors import InvalidArgument
from plugrt.interface import Client
from plugrt_cpu import plugin

KINDS = ["device", "pinned_host", "unpinned_host"]


def test_memories(client: Client) -> None:
    memories = [m for d in client.devices() for m in d.memories()]
    assert sorted({m.kind for m in memories}) == KINDS
    assert len({m.id for m in memories}) == len(memories) == 12
    device = client.devices()[1]
    assert device.default_memory().kind == "device"
    assert device.memory("pinned_host").addressable_by_devices() == (device,)
    with pytest.raises(InvalidArgument, match="unpinned_host"):
        device.memory("vmem")


def test_foreign_targets(client: Client) -> None:
    other = plugin.create_client({})
    buffer = client.buffer_from_host(np.zeros(3), client.devices()[0])
    with pytest.raises(InvalidArgument, match="not a device"):
        buffer.copy_to_device(other.devices()[0])
    with pytest.raises(InvalidArgument, match="not a memory"):
        buffer.copy_to_memory(other.devices()[0].default_memory())
    other.close()
