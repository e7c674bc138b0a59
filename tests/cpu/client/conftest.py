"""One client of four devices for the tests of the cpu plugin."""

from __future__ import annotations

import pytest

from plugrt.interface import Client
from plugrt_cpu import plugin


@pytest.fixture(scope="session")
def client() -> Client:
    return plugin.create_client({"num_devices": 4})
