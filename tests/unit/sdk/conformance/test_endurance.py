"""Growth of the process that the kit reports as a leak, or ignores."""

from __future__ import annotations

import pytest

from plugrt_sdk.conformance.checks.endurance import _expect_none_lost
from plugrt_sdk.conformance.expect import Mismatch
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.target import Target


@pytest.mark.parametrize(("period", "is_leak"), [(1000, False), (500, False), (1 << 30, True)])
def test_memory_freed_at_each_thousandth_launch_is_no_leak(period: int, is_leak: bool) -> None:
    held: list[bytearray] = []

    def cycle(number: int) -> None:
        held.append(bytearray(100))
        if number % period == 0:
            held.clear()

    if is_leak:
        with pytest.raises(Mismatch, match=r"Python objects more"):
            _expect_none_lost(PluginSubject(Target("object", "")), cycle)
    else:
        _expect_none_lost(PluginSubject(Target("object", "")), cycle)
