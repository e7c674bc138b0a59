"""`plugrt.execution.placement.default_device`: which device is meant where none is given."""

from __future__ import annotations

import pytest

from plugrt import config
from plugrt.execution.placement.default_device import default_device_of
from plugrt.plugins.selection import backends
from support.fake_client import FakeClient


def test_the_device_of_a_given_backend_needs_no_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """``jit(f, backend="mychip")`` failed where no plugin could be chosen for a default."""
    monkeypatch.setattr(backends, "get_backend", lambda *_: pytest.fail("asked for a default"))
    client, other = FakeClient(count=2), FakeClient()
    assert default_device_of(client) is client.devices()[0]
    with config.override(default_device=client.devices()[1]):
        assert default_device_of(client) is client.devices()[1]
        assert default_device_of(other) is other.devices()[0]
