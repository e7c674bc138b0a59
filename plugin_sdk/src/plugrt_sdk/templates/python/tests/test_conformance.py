"""The conformance kit of plugrt-sdk: a test for each of its checks, with the check's id."""

from __future__ import annotations

from plugrt_sdk.conformance import PluginSuite


class TestMyChip(PluginSuite):
    plugin = "my-chip"
    options = {"num_devices": 2}
