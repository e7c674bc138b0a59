"""The other side lives when a device server or a client is killed, and nothing is left of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.effort import seeds
from support.remote_kills import Held, kill_clients, kill_servers


@pytest.mark.parametrize("kill", [kill_servers, kill_clients])
def test_kills_at_random_moments_are_survived(
    kill: Callable[[int, int], tuple[Held, Held]],
) -> None:
    """The session ``remote_kills`` has 500 of each."""
    after_first, after_last = kill(len(seeds(3)), 1)
    assert after_last == after_first
