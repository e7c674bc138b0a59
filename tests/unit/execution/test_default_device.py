"""`plugrt.execution.placement.default_device`: the device of calls without one."""

from __future__ import annotations

import pytest

import plugrt
from plugrt import config
from plugrt.errors import UnknownPlatform
from plugrt.execution.placement.default_device import default_device_of
from support.fake_client import FakeClient
from support.registries import as_own, registry


def test_the_device_of_a_given_backend_needs_no_default() -> None:
    """Earlier, ``jit(f, backend="mychip")`` failed if no plugin could be chosen by default."""
    client, other = FakeClient(count=2), FakeClient()
    with as_own(registry()):  # a device without a plugin
        with pytest.raises(UnknownPlatform):
            plugrt.get_backend()
        assert default_device_of(client) is client.devices()[0]
    with config.override(default_device=client.devices()[1]):
        assert default_device_of(client) is client.devices()[1]
        assert default_device_of(other) is other.devices()[0]
