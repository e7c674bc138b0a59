"""Libraries that start and then report that their hardware is absent."""

from __future__ import annotations

import gc
import weakref

import pytest

import plugrt
from plugrt.errors import (
    FailedPrecondition,
    Internal,
    NotFound,
    PluginError,
    PluginUnavailable,
    Unavailable,
)
from plugrt.plugins import Availability, Backends
from support.fake_client import FakePlugin


class Failing(FakePlugin):
    """Raises this error when a client starts."""

    def __init__(self, error: Exception) -> None:
        super().__init__("failing", priority=500)
        self.error = error

    def create_client(self, options: object, distributed: object = None) -> plugrt.interface.Client:
        raise self.error


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (FailedPrecondition("No visible GPU devices."), "unavailable"),
        (NotFound("No jellyfish device found."), "unavailable"),
        (Unavailable("the service is away"), "unavailable"),
        (Internal("a bug"), "broken"),
    ],
)
def test_absence_is_told_from_fault(error: Exception, state: str) -> None:
    registry = Backends(path=[])
    registry.register(Failing(error))
    with pytest.raises(PluginError, match=str(error)):
        plugrt.get_backend("failing", registry)
    [row] = registry.table.rows
    assert row.state == state
    assert str(error) in row.reason


class Absent(FakePlugin):
    """A plugin whose hardware is absent."""

    def probe(self) -> Availability:
        return Availability(False, "no device of this kind")


def test_callers_of_an_absent_device_are_not_kept_alive() -> None:
    registry = Backends(path=[])
    registry.register(Absent("absent", priority=500))

    def ask() -> weakref.ref[FakePlugin]:
        local = FakePlugin("local")
        with pytest.raises(PluginUnavailable, match="no device of this kind"):
            plugrt.get_backend("absent", registry)
        return weakref.ref(local)

    asked = ask()
    gc.collect()
    assert asked() is None
    with pytest.raises(PluginUnavailable, match="no device of this kind") as again:
        plugrt.get_backend("absent", registry)
    assert isinstance(again.value.__cause__, PluginUnavailable)
