"""Addresses at which a process listens for others that copy its arrays."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from plugrt.errors import InvalidArgument
from plugrt_cpu.distributed.process_copies import SETTING, ProcessCopies

# The errors are raised before the connection is used.
NO_CONNECTION: Any = None


@pytest.mark.parametrize("address", ["", "7777", "localhost", "127.0.0.1:", "127.0.0.1:99999"])
def test_an_address_without_host_or_port_is_refused(address: str) -> None:
    with pytest.raises(InvalidArgument, match=f"{SETTING}='{address}' is not of the form host:po"):
        ProcessCopies({"transfer_address": address}, NO_CONNECTION)


def test_a_port_that_another_process_of_the_machine_has_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(InvalidArgument, match=f"{address}.*in use.* port 0 takes a free one"):
            ProcessCopies({"transfer_address": address}, NO_CONNECTION)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"192\.0\.2\.1:0.*cannot listen there"):
        ProcessCopies({"transfer_address": "192.0.2.1:0"}, NO_CONNECTION)
