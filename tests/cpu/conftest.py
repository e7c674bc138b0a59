"""Fixtures of tests that use the cpu plugin."""

from __future__ import annotations

from typing import Any

import pytest

from plugrt.interface import Client
from plugrt.plugins.backends import devices
from plugrt_cpu.loaded_executable import CpuLoadedExecutable
from support.puts import Puts


@pytest.fixture
def puts(monkeypatch: pytest.MonkeyPatch) -> Puts:
    """Counts what is put on devices by the cpu client, one by one or several at once.

    Its launches lend no memory to small arrays meanwhile, so that those are put like others.
    """
    client = devices()[0].client
    monkeypatch.setattr(CpuLoadedExecutable, "lending_launcher", lambda *_: None)
    found, within = Puts(), list[bool]()
    for cls in type(client).__mro__:
        if "shards_from_host" in vars(cls):
            many = cls.shards_from_host
            break
    one = type(client).buffer_from_host

    def put_many(self: Client, arrays: Any, device: Any) -> Any:
        found.calls += 1
        found.extend((array, device) for array in arrays)
        within.append(True)  # by default it puts them one by one
        try:
            return many(self, arrays, device)
        finally:
            within.pop()

    def put_one(self: Client, array: Any, device: Any, *rest: Any) -> Any:
        if not within:
            found.calls += 1
            found.append((array, device))
        return one(self, array, device, *rest)

    monkeypatch.setattr(type(client), "shards_from_host", put_many)
    monkeypatch.setattr(type(client), "buffer_from_host", put_one)
    return found
