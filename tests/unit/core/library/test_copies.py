"""Arrays on another device as arguments of calls, and `device_put`, in the compiled core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt.capi.abi._abi import ffi
from plugrt.capi.client.client import Client
from plugrt.errors import DeletedBuffer, InvalidReply, NotAnArray, PjrtError
from support.library_client import default_client
from support.native_core import python_calls, runs_in_c
from support.xla_cpu import needs_library

pytestmark = [needs_library, runs_in_c]
H = np.arange(4, dtype=np.float32)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with default_client("core copies", 2) as made:
        yield made


IN_PYTHON = {"copy_to_device", "shards_from_host"}
"""Python's functions for copies and puts."""


def test_uncommitted_arrays_go_to_the_device_of_committed_ones_in_the_core(client: Client) -> None:
    there = client.devices()[1]
    plus = plugrt.jit(lambda a, b: a + b)
    for host in (H, H.reshape(2, 2), np.float32(3), H.astype(ml_dtypes.bfloat16)):
        fixed, free = plugrt.device_put(host, there), plugrt.device_put(host)
        for _ in range(2):
            plus(fixed, free), plus(free, fixed), fixed + free
        with python_calls() as seen:
            results = plus(fixed, free), plus(free, fixed), fixed + free
        assert IN_PYTHON.isdisjoint(seen), host
        for found in results:
            assert (found.device, found.committed) == (there, True)
            np.testing.assert_array_equal(np.asarray(found), host + host)
        assert not free.is_deleted()
    free.delete()
    with pytest.raises(DeletedBuffer, match=r"argument b of .*was deleted"):
        plus(fixed, free)


def test_a_copy_that_fails_raises_what_pythons_does(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    slots, there = client.handle().library.slots, client.devices()[1]
    real, answers = slots["Buffer_CopyToDevice"], []

    @ffi.callback("PJRT_Error*(struct PJRT_Buffer_CopyToDevice_Args*)")  # type: ignore[untyped-decorator]
    def copy(args: Any) -> Any:
        answer = answers.pop() if answers else "copy"
        if answer == "nothing":
            return ffi.NULL
        args.struct_size = 1 if answer == "error" else args.struct_size
        return real(args)

    monkeypatch.setitem(slots, "Buffer_CopyToDevice", copy)
    plus, host = plugrt.jit(lambda a, b: a * b), np.ones(3, np.float32)
    fixed, free = plugrt.device_put(host, there), plugrt.device_put(host)
    told: dict[str, list[str]] = {"error": [], "nothing": []}
    for answer, kind in (("error", PjrtError), ("nothing", InvalidReply)):
        answers.append(answer)
        with pytest.raises(kind) as in_python:  # Python makes the first call
            free._shards[0].copy_to_device(there)
        plus(fixed, free)
        answers.append(answer)
        with pytest.raises(kind) as in_core:
            plus(fixed, free)
        told[answer] += [str(in_python.value), str(in_core.value)]
        np.testing.assert_array_equal(np.asarray(plus(fixed, free)), host)
    for first, second in told.values():
        assert second.endswith(first) or first in second


def test_device_put_of_what_is_like_the_last_is_the_cores(client: Client) -> None:
    here, there = client.devices()
    x = plugrt.device_put(H, here)
    values = (2.5, 7, 2**40, True, 1j, np.float32(2), np.int8(3), ml_dtypes.bfloat16(4), H, x,
              [1.0, 2.0], (H, 3), {"b": H, "a": x}, {2: H, 1: 3.0})  # fmt: skip
    for target in (None, there):
        for value in values:
            expected = plugrt.device_put(value, target)
            with python_calls() as seen:
                made = plugrt.device_put(value, target)
            assert IN_PYTHON.isdisjoint(seen), value
            assert str(made) == str(expected)  # also the containers and their order
            pairs = zip(plugrt.tree.leaves(made), plugrt.tree.leaves(expected), strict=True)
            for one, other in pairs:
                assert one._aval is other._aval
                np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    assert plugrt.device_put(x) is x
    one, other = plugrt.device_put(2.5), plugrt.device_put(2.5)
    one.delete()
    assert float(other) == 2.5
    for _ in range(2):
        with pytest.raises(NotAnArray, match=r"the value at \['b'\]"):
            plugrt.device_put({"a": 1.0, "b": "text"})
    x.delete()
    for target in (None, there):
        with pytest.raises(DeletedBuffer):
            plugrt.device_put(x, target)
