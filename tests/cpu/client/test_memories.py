"""Devices, memories, and copies between them."""

from __future__ import annotations

import numpy as np
import pytest

from plugrt.errors import InvalidArgument
from plugrt.interface import Client, CompileOptions
from plugrt_cpu import plugin
from plugrt_cpu.jaxlib_import import jaxlib_minor
from support.cpu_programs import DTYPE_NAMES, add, dtype_of

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


@pytest.mark.parametrize("kind", KINDS)
def test_put_and_copy_by_memory(client: Client, kind: str) -> None:
    device, source = client.devices()[1], np.arange(6.0).reshape(2, 3).T
    buffer = client.buffer_from_host(source, device, device.memory(kind))
    assert buffer.memory is device.memory(kind)
    copy = buffer.copy_to_memory(device.memory(KINDS[KINDS.index(kind) - 1]))
    assert copy.memory.kind == KINDS[KINDS.index(kind) - 1]
    np.testing.assert_array_equal(copy.to_host(), source)
    buffer.delete()
    np.testing.assert_array_equal(copy.to_host(), source)


@pytest.mark.parametrize("name", DTYPE_NAMES)
def test_copy_between_devices(client: Client, name: str) -> None:
    source = np.ones(3, dtype_of(name))
    first, second = client.devices()[:2]
    buffer = client.buffer_from_host(source, first)
    for target in (second, first):
        copy = buffer.copy_to_device(target)
        assert copy.device is target
        assert copy.unsafe_pointer() != buffer.unsafe_pointer()
        assert copy.to_host().tobytes() == source.tobytes()


def test_foreign_targets(client: Client) -> None:
    other = plugin.create_client({})
    buffer = client.buffer_from_host(np.zeros(3), client.devices()[0])
    with pytest.raises(InvalidArgument, match="not a device"):
        buffer.copy_to_device(other.devices()[0])
    with pytest.raises(InvalidArgument, match="not a memory"):
        buffer.copy_to_memory(other.devices()[0].default_memory())
    other.close()


def test_result_in_another_memory(client: Client) -> None:
    text = add().code.replace(
        b"-> (tensor<4xf32>)", b'-> (tensor<4xf32> {mhlo.memory_kind = "pinned_host"})'
    )
    loaded = client.compile(add().__class__(text), CompileOptions())
    (kind,) = loaded.executable.output_memory_kinds
    assert kind == ("pinned_host" if jaxlib_minor() >= (0, 10) else "device")
    ones = client.buffer_from_host(np.ones(4, "f4"), client.devices()[0])
    (result,) = loaded.execute([[ones], [ones]])
    assert result[0].memory.kind == kind
    assert result[0].to_host().tolist() == [2, 2, 2, 2]
