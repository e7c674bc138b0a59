"""A client of a PJRT library raises plugrt's errors for any arguments of its methods.

The cases are those of ``tests/cpu/errors/test_wrong_calls_of_backends.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrt.errors import ArgumentTypeError, InvalidArgument, NotAnArray
from plugrt.interface import Client, Device, HostBufferSemantics
from support.wrong_backend_calls import run

HOST = np.ones(4, np.float32)


@pytest.mark.parametrize("seed", [1, 2])
def test_library_methods_raise_plugrt_errors(seed: int) -> None:
    called, strange = run("library", seed)
    assert strange == []
    assert {"Client.compile", "LoadedExecutable.execute_with_wait", "Topology.compile"} <= {*called}


@pytest.mark.parametrize("semantics", [None, "", 99, -1, [], 1.5])
def test_semantics_are_those_of_the_interface(
    client: Client, device: Device, semantics: Any
) -> None:
    """Earlier, a false value counted as the default, and 99 was passed to the library."""
    with pytest.raises(ArgumentTypeError, match=r"buffer_from_host .*HostBufferSemantics"):
        client.buffer_from_host(HOST, device, None, semantics)


@pytest.mark.parametrize("semantics", [*HostBufferSemantics, 0, 1, 2, 3])
def test_semantics_may_be_numbers(client: Client, device: Device, semantics: Any) -> None:
    buffer = client.buffer_from_host(HOST.copy(), device, None, semantics)
    assert buffer.to_host().tolist() == [1, 1, 1, 1]


def test_only_arrays_are_put_also_where_their_type_is_known(client: Client, device: Device) -> None:
    buffer = client.buffer_from_host(HOST, device)
    with pytest.raises(NotAnArray, match="a NumPy array was expected"):
        client.buffer_from_host(buffer, device)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "place", [None, "device", 0, object()], ids=["None", "str", "int", "object"]
)
def test_places_are_those_of_the_client(client: Client, device: Device, place: Any) -> None:
    with pytest.raises(InvalidArgument, match="is not a device of"):
        client.buffer_from_host(HOST, place)
    if place is not None:
        with pytest.raises(InvalidArgument, match="is not a memory of"):
            client.buffer_from_host(HOST, device, place)
