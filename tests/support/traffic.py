"""What goes between a backend's devices and the host, noticed at the backend's own methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plugrt.execution import host_assembly, resharding
from plugrt.interface import Client


def move_by_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has parts moved by programs on the devices, whose memory may be the host's, until its end."""
    monkeypatch.setattr(host_assembly, "MAX_BYTES", 0)
    resharding._exchanges.clear()


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
    notice(type(client), "shards_from_host", lambda _, x, *rest: f"put {len(x)} arrays")
    notice(type(client), "buffers_from_host", lambda _, x, *rest: f"put {len(x)} parts")
    for cls in {type(buffer), type(shards := client.shards((buffer,))), type(shards[0])}:
        for method in ("to_host", "copy_to_host_async"):
            notice(cls, method, lambda _, method=method: method)
    return found
