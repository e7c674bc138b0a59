"""Pmap loops that never wait run to their end, however many steps they take.

Differs from JAX: many launches with collectives on the cpu | hang | the oldest is awaited.
"""

from __future__ import annotations

import pytest

from support.collective_loops import KINDS, run

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.mark.parametrize(("devices", "steps"), [(2, 2_000), (4, 10_000), (8, 1_000)])
def test_an_ordinary_loop_that_awaits_nothing(devices: int, steps: int) -> None:
    run(devices, "loop", steps)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"loop"}))
def test_other_loops(kind: str) -> None:
    run(2, kind, 600)


@pytest.mark.parametrize("kind", ["donated", "between", "threads"])
def test_the_bound_holds_where_the_user_chose_too_few_threads(kind: str) -> None:
    run(2, kind, 600, PJRT_NPROC="2")
