"""Compile options, create options and the plugin object."""

from __future__ import annotations

from typing import Any

import pytest

from plugrt.errors import InvalidArgument, Unimplemented
from plugrt.interface import Client, CompileOptions, DeviceAssignment
from plugrt_cpu import plugin
from support.cpu_programs import add


def test_env_overrides(client: Client) -> None:
    options = CompileOptions(
        env_overrides={
            "xla_cpu_enable_fast_math": True,
            "xla_backend_optimization_level": 0,
            "xla_cpu_prefer_vector_width": "256",
        }
    )
    assert client.compile(add(), options).executable.name == "test"


@pytest.mark.parametrize(
    ("overrides", "match"),
    [({"xla_nosuch": 1}, "xla_nosuch"), ({"xla_cpu_enable_fast_math": "maybe"}, "maybe")],
)
def test_bad_env_overrides(client: Client, overrides: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidArgument, match=match):
        client.compile(add(), CompileOptions(env_overrides=overrides))


def test_encoded_options(client: Client) -> None:
    # executable_build_options { num_replicas: 1 num_partitions: 1 }
    encoded = bytes([0x1A, 4, 0x20, 1, 0x28, 1])
    loaded = client.compile(add(), CompileOptions(encoded=encoded))
    assert list(loaded.addressable_devices) == [client.devices()[0]]


def test_a_program_for_any_device_is_refused_by_name(client: Client) -> None:
    portable = bytes([0x1A, 4, 0x20, 1, 0x28, 1, 0x20, 1])
    with pytest.raises(Unimplemented, match="compile_portable_executable"):
        client.compile(add(), CompileOptions(encoded=portable))


def test_encoded_device_assignment(client: Client) -> None:
    first = client.compile(
        add(), CompileOptions(device_assignment=DeviceAssignment(((3,),)))
    ).executable
    loaded = client.compile(add(), CompileOptions(encoded=first.options))  # type: ignore[attr-defined]
    assert list(loaded.addressable_devices) == [client.devices()[3]]


@pytest.mark.parametrize("encoded", [b"\xff", b"garbage bytes", b"\x1a\x7f\x01"])
def test_encoded_garbage(client: Client, encoded: bytes) -> None:
    with pytest.raises(InvalidArgument, match="CompileOptionsProto"):
        client.compile(add(), CompileOptions(encoded=encoded))


def test_too_many_devices(client: Client) -> None:
    with pytest.raises(InvalidArgument, match="9"):
        client.compile(add(), CompileOptions(num_replicas=9))
    with pytest.raises(InvalidArgument, match="7"):
        client.compile(add(), CompileOptions(device_assignment=DeviceAssignment(((7,),))))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"num_devices": 0}, "whole number from 1"),
        ({"num_devices": True}, "whole number"),
        ({"num_devices": "4"}, "whole number"),
        ({"asynchronous": "yes"}, "bool"),
        ({"collectives": "pigeon"}, "gloo"),
        ({"num_device": 4}, "num_device.*num_devices"),
    ],
)
def test_bad_create_options(options: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidArgument, match=match):
        plugin.create_client(options)
