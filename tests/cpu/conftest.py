"""Fixtures of tests that use the cpu plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from plugrt import devices, get_backend
from plugrt.execution.launches import native_runner
from plugrt.execution.transfers import quick_puts
from plugrt.interface import Client, CompileOptions
from plugrt_cpu.many_device_executable import ManyDeviceExecutable
from support.traffic import Traffic, watch


@pytest.fixture
def parts_are_put(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes small arrays for several devices ordinary puts, without scratch memory."""
    monkeypatch.setattr(ManyDeviceExecutable, "host_launcher", lambda *_: None)


@pytest.fixture
def puts(parts_are_put: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Traffic]:
    """Lists the arrays that the cpu client puts on devices, one by one or several at once.

    Meanwhile its launches use no scratch memory for small arrays, and the compiled core of a
    library's client puts none, so that those are put like others.
    """
    monkeypatch.setattr(native_runner, "can_put_host_value", lambda *_: False)
    monkeypatch.setattr(quick_puts, "core", None)
    with watch(devices()[0].client, "put") as found:
        yield found


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Returns a function that has the backend declare other capabilities."""
    client = get_backend()
    stated = client.capabilities  # some clients keep them in the instance
    where: Any = client if "capabilities" in getattr(client, "__dict__", ()) else type(client)

    def declare(**changes: Any) -> None:
        monkeypatch.setattr(where, "capabilities", replace(stated, **changes))

    return declare


@pytest.fixture
def compiled_with(monkeypatch: pytest.MonkeyPatch) -> list[CompileOptions]:
    """Lists the options of each compilation."""
    found: list[CompileOptions] = []
    client = type(get_backend())
    real = client.compile

    def compile(self: Client, program: Any, options: CompileOptions) -> Any:
        found.append(options)
        return real(self, program, options)

    monkeypatch.setattr(client, "compile", compile)
    return found
