"""Exceptions of signal handlers and of users' classes reach the caller, also if raised once."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import Unimplemented
from plugrt.interface import TensorType
from support.native_core import IN_C

_sizes = itertools.count(1031)


def _to_list(x: plugrt.Array) -> Any:
    return x.tolist()


@pytest.mark.parametrize("read", [np.asarray, plugrt.device_get, _to_list])
def test_an_exception_that_comes_once_ends_a_read(
    read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier, the core dropped it, for example a signal handler's, and let Python read."""
    client, kind = plugrt.get_backend(), TensorType((3,), np.dtype(np.int16))
    if not IN_C:
        pytest.skip("no core here")
    try:
        form = client.held_form(kind, plugrt.devices()[0].default_memory())
    except Unimplemented:
        pytest.skip("the library gives no functions that read")
    if read is not _to_list:
        pytest.skip("no exceptions of reads pass NumPy here: it asks for a buffer, and drops them")
    failures = list[Exception]()

    def wait(held: Any) -> Any:
        if failures:
            raise failures.pop()
        return form.wait(held)

    slow = dataclasses.replace(form, is_ready=lambda held: False, wait=wait)
    monkeypatch.setattr(type(client), "held_form", lambda *_: slow)
    host = np.arange(next(_sizes), dtype=np.int16)  # a new type
    plugrt.device_put(host).tolist()  # Python reads the first array of a type
    x = plugrt.device_put(host)
    failures.append(TimeoutError("too slow"))
    with pytest.raises(TimeoutError, match="too slow"):
        read(x)
    assert not failures
    np.testing.assert_array_equal(read(x), np.arange(x.size))


def test_an_exception_of_a_hash_that_comes_once() -> None:
    """Earlier, the core dropped it and let Python make the call, which raised nothing."""
    failures: list[Exception] = []

    class Static:
        def __hash__(self) -> int:
            if failures:
                raise failures.pop()
            return 1

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Static)

    add = plugrt.jit(lambda x, s: x + 1, static_argnums=1)
    x = np.ones(2, np.float32)
    for _ in range(3):
        add(x, Static())
    failures.append(TimeoutError("while hashing"))
    with pytest.raises(TimeoutError, match="while hashing"):
        add(x, Static())
    np.testing.assert_array_equal(add(x, Static()), 2)
