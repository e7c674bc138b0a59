"""The compiled core reads arrays of a PJRT library: values as in Python, without Python calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.capi.buffers.buffer import Buffer
from plugrt.errors import DeletedBuffer
from plugrt.interface import Client
from support.library_client import default_client
from support.native_core import python_calls, runs_in_c
from support.xla_cpu import needs_library

pytestmark = [needs_library, runs_in_c]
H = np.arange(4, dtype=np.float32)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with default_client("core reads") as made:
        yield made


def _read(array: Any, wanted: Any = H) -> list[str]:
    """Reads an array, and returns the names of the Python functions that run meanwhile."""
    with python_calls() as seen:
        host = np.asarray(array)
    np.testing.assert_array_equal(host, wanted)
    assert (host.dtype, host.flags.writeable) == (H.dtype, False)
    assert array.__array__() is array.__array__()
    assert np.shares_memory(np.asarray(array), host)  # from Python 3.12 on, views of one array
    return seen


def test_arrays_that_are_not_what_their_buffer_is_are_read_by_python(client: Client) -> None:
    """A pmap's array on one device has another shape than its buffer."""
    double = plugrt.pmap(lambda a: a * 2, devices=client.devices()[:1])
    made = [double(H[None]) for _ in range(3)]
    for x in made:
        assert np.asarray(x).shape == (1, 4)
        np.testing.assert_array_equal(x, 2 * H[None])


def test_deleted_and_failed_arrays_raise_pythons_errors(client: Client) -> None:
    double = plugrt.jit(lambda a: a * 2)
    x = plugrt.device_put(H, client.devices()[0])
    for _ in range(2):
        _read(double(x), 2 * H)
    gone = double(x)
    gone.delete()
    with pytest.raises(DeletedBuffer, match="deleted"):
        np.asarray(gone)
    retired = double(x)
    held: Any = retired._shards
    assert type(held) is Buffer
    held.delete()
    with pytest.raises(DeletedBuffer, match="deleted"):
        np.asarray(retired)
    with pytest.raises(TypeError):
        retired.__array__(1, 2, 3)
