"""A client of the server that a test file starts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plugrt_remote.client import RemoteClient


@pytest.fixture
def client(address: str) -> Iterator[RemoteClient]:
    """Connects a client to the server at ``address``, which is a fixture of each test file."""
    found = RemoteClient(address)
    yield found
    found.close()
