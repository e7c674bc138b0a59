"""When a device server or a client is killed, the other side survives, and nothing is left."""

from __future__ import annotations

from collections.abc import Callable
from operator import le

import pytest

from support.effort import seeds
from support.remote_kills import Held, kill_clients, kill_servers


@pytest.mark.parametrize("kill", [kill_servers, kill_clients])
def test_kills_at_random_moments_are_survived(
    kill: Callable[[int, int], tuple[Held, Held]],
) -> None:
    """The session ``remote_long`` has 500 of each."""
    after_first, after_last = kill(len(seeds(3)), 1)
    assert all(map(le, after_last, after_first)), (after_first, after_last)
