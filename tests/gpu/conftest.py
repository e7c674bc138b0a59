"""Skips the tests without an NVIDIA GPU, with the reason."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache

import pytest

import plugrt
from plugrt.interface import Device
from plugrt_cuda import hardware, library


@cache
def find_lack() -> str:
    """Returns the reason why no program can run on a GPU here; empty if one can."""
    found = hardware.detect()
    if not found.available:
        return f"needs an NVIDIA GPU: {found.reason}"
    return "" if library.installed() else "needs jax-cuda12-pjrt or jax-cuda13-pjrt"


if not find_lack():
    # Several processes share the GPU: none may preallocate three quarters of its memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Skips a test of this folder without a GPU or a library for it; CI's machines have none."""
    if lack := find_lack():
        item.add_marker(pytest.mark.skip(reason=lack))


@pytest.fixture(scope="session")
def gpu() -> Device:
    """Returns the first GPU."""
    return plugrt.devices("cuda")[0]


@pytest.fixture
def on_gpu(gpu: Device) -> Iterator[Device]:
    """Makes the first GPU the default device."""
    with plugrt.default_device(gpu):
        yield gpu
