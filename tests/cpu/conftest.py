"""Fixtures of tests that use the cpu plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from plugrt import devices, get_backend
from plugrt.execution.launches import native_runner
from plugrt.execution.transfers import quick_puts
from plugrt.interface import CompileOptions
from plugrt_cpu.many_device_executable import ManyDeviceExecutable
from support.traffic import Traffic, watch
from support.watched_calls import at_calls


@pytest.fixture
def parts_are_put(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has small arrays for several devices put like others, without scratch memory."""
    monkeypatch.setattr(ManyDeviceExecutable, "host_launcher", lambda *_: None)


@pytest.fixture
def puts(parts_are_put: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Traffic]:
    """Records the arrays that the client puts on devices, one by one or several at once.

    Small arrays are put like others meanwhile: launches of the cpu client use no scratch memory,
    and the compiled core of a library's client puts no array by itself.
    """
    monkeypatch.setattr(native_runner, "can_put_host_value", lambda *_: False)
    monkeypatch.setattr(quick_puts, "core", None)
    with watch(devices()[0].client, "put") as found:
        yield found


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Returns a function that changes the capabilities that the backend declares."""
    client = get_backend()
    stated = client.capabilities  # some clients keep them in the instance
    where: Any = client if "capabilities" in getattr(client, "__dict__", ()) else type(client)

    def declare(**changes: Any) -> None:
        monkeypatch.setattr(where, "capabilities", replace(stated, **changes))

    return declare


@pytest.fixture
def compiled_with() -> Iterator[list[CompileOptions]]:
    """Lists the options of each compilation."""
    found: list[CompileOptions] = []
    with at_calls([type(get_backend()).compile], lambda given, _: found.append(given["options"])):
        yield found
