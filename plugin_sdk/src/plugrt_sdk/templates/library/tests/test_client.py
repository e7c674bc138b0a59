"""The library's client, under the checks of plugrt-sdk that every backend must pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from plugrt_sdk.testing import client_checks

from my_chip.for_plugrt import plugin


@pytest.mark.parametrize("check", client_checks(lambda: plugin.create_client({})))
def test_the_client(check: Callable[[], None]) -> None:
    check()
