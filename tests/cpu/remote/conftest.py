"""A client of the server that a test file serves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plugrt_remote.client import RemoteClient


@pytest.fixture
def client(address: str) -> Iterator[RemoteClient]:
    """A client of the server at ``address``, a fixture of the file."""
    found = RemoteClient(address)
    yield found
    found.close()
