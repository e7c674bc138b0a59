"""Loops over pmap that never wait run to their end, with any number of steps.

Differs from JAX: many launches with collectives on the cpu | hang | the oldest is awaited.
"""

from __future__ import annotations

import pytest

from cpu.execution.collective_loops import KINDS, run
from support.effort import EFFORT

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.mark.parametrize(("devices", "steps"), [(2, 500), (4, 2_000 * EFFORT), (8, 500)])
def test_an_ordinary_loop_that_awaits_nothing(devices: int, steps: int) -> None:
    run(devices, ["loop"], steps)


def test_other_loops() -> None:
    run(2, sorted(set(KINDS) - {"loop"}), 200)


def test_the_bound_holds_where_the_user_chose_too_few_threads() -> None:
    run(2, ["donated", "between", "threads"], 200, PJRT_NPROC="2")
