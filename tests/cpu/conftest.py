"""Fixtures of tests that use the cpu plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from plugrt import devices, get_backend
from plugrt.execution.launches import native_runner
from plugrt.execution.transfers import quick_puts
from plugrt.interface import Client, CompileOptions
from plugrt_cpu.many_device_executable import ManyDeviceExecutable
from support.puts import Puts


@pytest.fixture
def puts(monkeypatch: pytest.MonkeyPatch) -> Puts:
    """Counts what is put on devices by the cpu client, one by one or several at once.

    Its launches lend no memory to small arrays meanwhile, and the compiled core of a library's
    client puts none, so that those are put like others.
    """
    client = devices()[0].client
    monkeypatch.setattr(native_runner, "can_put_host_value", lambda *_: False)
    monkeypatch.setattr(quick_puts, "core", None)
    monkeypatch.setattr(ManyDeviceExecutable, "host_launcher", lambda *_: None)
    found, within = Puts(), list[bool]()
    names = ("buffer_from_host", "shards_from_host", "buffers_from_host")
    real = {name: getattr(type(client), name) for name in names}

    def put_one(self: Client, array: Any, device: Any, *rest: Any) -> Any:
        return put(lambda: [(array, device)], "buffer_from_host", self, array, device, *rest)

    def put_many(self: Client, arrays: Any, device: Any) -> Any:
        pairs = lambda: [(array, device) for array in arrays]  # noqa: E731
        return put(pairs, "shards_from_host", self, arrays, device)

    def put_parts(self: Client, arrays: Any, devices: Any, *rest: Any) -> Any:
        pairs = lambda: zip(arrays, devices, strict=True)  # noqa: E731
        return put(pairs, "buffers_from_host", self, arrays, devices, *rest)

    def put(pairs: Callable[[], Iterable[tuple[Any, Any]]], name: str, *args: Any) -> Any:
        if not within:  # by default several are put one by one
            found.calls += 1
            found.extend(pairs())
        within.append(True)
        try:
            return real[name](*args)
        finally:
            within.pop()

    for name, counted in zip(names, (put_one, put_many, put_parts), strict=True):
        monkeypatch.setattr(type(client), name, counted)
    return found


@pytest.fixture
def parts_are_put(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has small arrays for several devices put like others: launches are lent no memory."""
    monkeypatch.setattr(ManyDeviceExecutable, "host_launcher", lambda *_: None)


@pytest.fixture
def compiled_with(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Gives the options by name of each compilation."""
    found: list[dict[str, Any]] = []
    client = type(get_backend())
    real = client.compile

    def compile(self: Client, program: Any, options: CompileOptions) -> Any:
        found.append(dict(options.env_overrides))
        return real(self, program, options)

    monkeypatch.setattr(client, "compile", compile)
    return found
