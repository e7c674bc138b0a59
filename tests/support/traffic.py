"""Watches transfers: a client's puts, reads and copies, as a list."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
import pytest

import plugrt
from plugrt.execution.transfers import host_assembly
from plugrt.interface import Client


class Transfer(NamedTuple):
    """A call of a client or a buffer. Its kind is "put", "read" or "copied"."""

    kind: str
    method: str
    arrays: tuple[tuple[Any, Any], ...]
    """The arrays or buffers, and the devices that they are put on or copied to."""


_Pairs = Callable[..., Iterable[tuple[Any, Any]]]
_ONE: _Pairs = lambda self, to=None, *_: [(self, to)]  # noqa: E731
_METHODS: dict[str, tuple[str, _Pairs]] = {
    "buffer_from_host": ("put", lambda _, array, device, *rest: [(array, device)]),
    "shards_from_host": ("put", lambda _, arrays, device: [(x, device) for x in arrays]),
    "buffers_from_host": ("put", lambda _, arrays, on, *rest: zip(arrays, on, strict=True)),
    "to_host": ("read", _ONE),
    "copy_to_host_async": ("read", _ONE),
    "copy_to_device": ("copied", _ONE),
    "copy_to_memory": ("copied", _ONE),
}


class Traffic(list[Transfer]):
    """Transfers; if a backend's method calls another one, the transfer is listed once."""

    @property
    def arrays(self) -> list[tuple[Any, Any]]:
        """The arrays of all transfers, and their devices."""
        return [pair for transfer in self for pair in transfer.arrays]

    def total(self, kind: str) -> tuple[int, int]:
        """Returns the number of arrays that were transferred in that way, and their bytes."""
        arrays = [x for transfer in self if transfer.kind == kind for x, _ in transfer.arrays]
        return len(arrays), sum(math.prod(x.shape) * x.dtype.itemsize for x in arrays)


@contextmanager
def watch(client: Client, *kinds: str) -> Iterator[Traffic]:
    """Lists the transfers of a client and its buffers within the block: all, or some kinds."""
    found, within = Traffic(), list[str]()

    def noting(original: Any, name: str) -> Any:
        kind, pairs = _METHODS[name]

        @wraps(original)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not within and (not kinds or kind in kinds):
                found.append(Transfer(kind, name, tuple(pairs(self, *args))))
            within.append(name)
            try:
                return original(self, *args, **kwargs)
            finally:
                within.pop()

        return call

    assert client.capabilities  # a first trial determines some
    devices = client.addressable_devices()[:2]
    buffer, *_ = one = client.shards((client.buffer_from_host(np.zeros(1, "f4"), devices[0]),))
    parts = client.buffers_from_host([np.zeros(1, "f4")] * len(devices), devices)
    types = [type(x) for x in (client, buffer, one, parts, parts[0])]
    with pytest.MonkeyPatch.context() as patch:
        for owner in dict.fromkeys(base for each in types for base in each.__mro__):
            for name in _METHODS.keys() & vars(owner).keys():
                patch.setattr(owner, name, noting(vars(owner)[name], name))
        yield found


def move_by_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moves parts by programs within the block, also on devices that use the host's memory."""
    monkeypatch.setattr(host_assembly, "MAX_BYTES", 0)
    plugrt.clear_caches()
