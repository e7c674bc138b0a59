"""What goes between a backend's devices and the host, noticed at the backend's own methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from plugrt.execution.transfers import exchanges, host_assembly
from plugrt.interface import Client


def move_by_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has parts moved by programs on the devices, whose memory may be the host's, until its end."""
    monkeypatch.setattr(host_assembly, "MAX_BYTES", 0)
    exchanges._exchanges.clear()


def watch(monkeypatch: pytest.MonkeyPatch, client: Client) -> list[str]:
    """Returns a list that grows by a line for each array put on, or read from, the client.

    What would be put together in main memory is moved as on devices with memory of their own.
    """
    move_by_programs(monkeypatch)
    found = list[str]()
    assert client.capabilities  # some are found out by trying, once
    device = client.devices()[0]
    buffer = client.buffer_from_host(np.zeros(1, np.float32), device)

    def notice(cls: type, method: str, describe: Callable[..., str]) -> None:
        for owner in cls.__mro__:
            if method in vars(owner):
                original = vars(owner)[method]
                break
        else:
            return

        def noticed(self: Any, *args: Any, **kwargs: Any) -> Any:
            found.append(describe(self, *args))
            return original(self, *args, **kwargs)

        monkeypatch.setattr(owner, method, noticed)

    notice(type(client), "buffer_from_host", lambda _, x, *rest: f"put {x.dtype}{x.shape}")
    notice(
        type(client),
        "shards_from_host",
        lambda _, x, *rest: f"put {', '.join(str(np.shape(y)) for y in x)}",
    )
    notice(type(client), "buffers_from_host", lambda _, x, *rest: f"put {len(x)} parts")
    for cls in {type(buffer), type(shards := client.shards((buffer,))), type(shards[0])}:
        for method in ("to_host", "copy_to_host_async"):
            notice(cls, method, lambda _, method=method: method)
    return found


@dataclass
class Transfers:
    """How many arrays were put, read, and copied from device to device, and the bytes of each."""

    put: tuple[int, int] = (0, 0)
    read: tuple[int, int] = (0, 0)
    copied: tuple[int, int] = (0, 0)

    def clear(self) -> None:
        """Forgets what was counted."""
        self.put = self.read = self.copied = (0, 0)


def count_transfers(monkeypatch: pytest.MonkeyPatch, client: Client) -> Transfers:
    """Returns what counts the transfers of a client's arrays, until the test ends.

    One that a backend makes by another method of its own is counted once.
    """
    found = Transfers()
    assert client.capabilities  # some are found out by trying, once
    device = client.devices()[0]
    buffer = client.buffer_from_host(np.zeros(1, np.float32), device)
    made = client.buffers_from_host([np.zeros(1)] * 2, client.devices()[:2])
    depth = 0

    def notice(cls: type, method: str, kind: str, arrays: Callable[..., Iterable[Any]]) -> None:
        owner = next((c for c in cls.__mro__ if method in vars(c)), None)
        if owner is None:
            return
        original = vars(owner)[method]

        def noticed(self: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            if not depth:
                count, nbytes = getattr(found, kind)
                sizes = [math.prod(x.shape) * x.dtype.itemsize for x in arrays(self, *args)]
                setattr(found, kind, (count + len(sizes), nbytes + sum(sizes)))
            depth += 1
            try:
                return original(self, *args, **kwargs)
            finally:
                depth -= 1

        monkeypatch.setattr(owner, method, noticed)

    notice(type(client), "buffer_from_host", "put", lambda _, x, *rest: [x])
    for method in ("shards_from_host", "buffers_from_host"):
        notice(type(client), method, "put", lambda _, arrays, *rest: arrays)
    owners = {
        next(c for c in cls.__mro__ if "to_host" in vars(c)): cls
        for cls in {type(buffer), type(made[0])}
    }
    for cls in owners.values():
        notice(cls, "to_host", "read", lambda self: [self])
        for method in ("copy_to_device", "copy_to_memory"):
            notice(cls, method, "copied", lambda self, *rest: [self])
    return found
