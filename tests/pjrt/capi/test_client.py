"""Clients, devices, memories and topologies of a real library."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from plugrt.capi import Library, create_client, create_topology
from plugrt.errors import FailedPrecondition, InvalidArgument, NotFound, Unimplemented
from plugrt.interface import Client, CompileOptions
from support.xla_cpu import add

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e4m3fn, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2,
    ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu,
]  # fmt: skip


def test_zero_devices(library: Library) -> None:
    client = create_client(library, {"cpu_device_count": 0}, name="x")
    assert list(client.devices()) == []
    client.close()


@pytest.mark.parametrize("count", ["two", True, 2.0, [2]])
def test_option_that_would_abort_the_library(library: Library, count: object) -> None:
    with pytest.raises(InvalidArgument, match="must be of type int"):
        create_client(library, {"cpu_device_count": count}, name="x")  # type: ignore[dict-item]


def test_closed_client(own_client: Client) -> None:
    device = own_client.devices()[0]
    array = np.ones(4, np.float32)
    buffer = own_client.buffer_from_host(array, device)
    loaded = own_client.compile(add(), CompileOptions())
    own_client.close()
    own_client.close()
    assert buffer.to_host().tolist() == [1, 1, 1, 1]
    ((result,),) = loaded.execute([(buffer,), (buffer,)])
    assert result.to_host().tolist() == [2, 2, 2, 2]
    for call in (
        lambda: own_client.buffer_from_host(array, device),
        lambda: own_client.compile(add(), CompileOptions()),
        lambda: own_client.topology(),
        lambda: own_client.deserialize_executable(loaded.executable.serialize()),
        lambda: device.memory_stats(),
        lambda: device.default_memory().addressable_by_devices(),
    ):
        with pytest.raises(FailedPrecondition, match="the client of 'own' is closed"):
            call()


def test_topology(client: Client, library: Library) -> None:
    topology = client.topology()
    assert topology.platform == "cpu"
    assert [d.id for d in topology.devices] == [0, 1, 2, 3]
    assert topology.devices[0].debug_string == "TFRT_CPU_0"
    assert set(topology.memories()) == {0, 1, 2, 3}
    with pytest.raises(NotFound, match="No compiler registered for platform cpu"):
        topology.compile(add(), CompileOptions())
    with pytest.raises(Unimplemented, match="TopologyDescription_Fingerprint"):
        topology.fingerprint()
    with pytest.raises(Unimplemented, match="Topology not supported"):
        create_topology(library, "anything", {})


def test_capabilities(client: Client) -> None:
    found = client.capabilities
    assert found.stablehlo_current_version == (1, 13, 3)
    assert found.zero_copy_put
    assert found.dlpack
    assert found.memory_kinds
    assert found.custom_calls
    assert not found.memory_stats
    assert not found.topology
    assert {np.dtype(dtype).name for dtype in DTYPES} <= found.dtypes
    assert "int1" not in found.dtypes
