"""Libraries that start and then say that their hardware is not there."""

from __future__ import annotations

import pytest

import plugrt
from plugrt.errors import FailedPrecondition, Internal, NotFound, PluginError, Unavailable
from plugrt.plugins import Backends
from plugrt.plugins.record import State
from support.fake_client import FakePlugin


class Failing(FakePlugin):
    """Its client never starts: it raises this error."""

    def __init__(self, error: Exception) -> None:
        super().__init__("failing", priority=500)
        self.error = error

    def create_client(self, options: object, distributed: object = None) -> plugrt.interface.Client:
        raise self.error


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (FailedPrecondition("No visible GPU devices."), State.UNAVAILABLE),
        (NotFound("No jellyfish device found."), State.UNAVAILABLE),
        (Unavailable("the service is away"), State.UNAVAILABLE),
        (Internal("a bug"), State.BROKEN),
    ],
)
def test_absence_is_told_from_fault(error: Exception, state: State) -> None:
    registry = Backends(path=[])
    registry.register(Failing(error))
    with pytest.raises(PluginError, match=str(error)):
        plugrt.get_backend("failing", registry)
    [row] = registry.table.rows
    assert row.state is state
    assert str(error) in row.reason
