"""Clients of the real CPU library; the fixtures are shared by the tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import plugrt
from plugrt.capi import Library, create_client, load_library
from plugrt.interface import Client, Device
from support.requirements import cannot
from support.xla_cpu import library_path


@contextmanager
def default_client(name: str, devices: int = 1) -> Iterator[Client]:
    """A client of its own, whose first device is the default one; its programs end with it."""
    path = library_path()
    assert path is not None
    made = create_client(load_library(path), {"cpu_device_count": devices}, name=name)
    with plugrt.default_device(made.devices()[0]):
        yield made
    plugrt.clear_caches()
    made.close()


@pytest.fixture(scope="session")
def library() -> Library:
    path = library_path()
    if path is None:
        cannot("the wheel xla-cpu-pjrt is not installed")
    return load_library(path)


@pytest.fixture(scope="session")
def client(library: Library) -> Iterator[Client]:
    made = create_client(library, {"cpu_device_count": 4}, name="xla_cpu")
    yield made
    made.close()


@pytest.fixture
def own_client(library: Library) -> Iterator[Client]:
    """A client that the test may close."""
    made = create_client(library, {"cpu_device_count": 2}, name="own")
    yield made
    made.close()


@pytest.fixture(scope="session")
def device(client: Client) -> Device:
    return client.devices()[0]
