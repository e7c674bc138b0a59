"""The ids by which a PJRT library distinguishes launches over several devices."""

from __future__ import annotations

from itertools import islice
from types import SimpleNamespace
from typing import Any

from plugrt.capi.programs.program_launches import launch_ids
from plugrt.errors import Unimplemented


def client(here: int, everywhere: int) -> Any:
    return SimpleNamespace(
        addressable_devices=lambda: range(here), devices=lambda: range(everywhere)
    )


def program(parts: int, fingerprint: bytes | None = b"one") -> Any:
    def give() -> bytes:
        if fingerprint is None:
            raise Unimplemented("no fingerprint")
        return fingerprint

    return SimpleNamespace(num_replicas=1, num_partitions=parts, fingerprint=give, name="f")


def first(ids: Any, count: int = 3) -> list[int]:
    return [*islice(ids, count)]


def test_no_two_launches_of_a_process_have_one_id() -> None:
    f, g = (launch_ids(client(4, 4), program(4), 4) for _ in range(2))
    found = first(f) + first(g) + first(f)
    assert len({*found}) == 9
    assert 0 not in found  # 0 means no id


def test_a_program_on_one_device_has_none() -> None:
    assert launch_ids(client(4, 4), program(1), 1) is None
    assert launch_ids(client(2, 4), program(1), 1) is None


def test_processes_give_a_launch_the_same_id() -> None:
    of_one, of_other = (launch_ids(client(2, 4), program(4), 2) for _ in range(2))
    assert first(of_one) == first(of_other)
    assert first(launch_ids(client(2, 4), program(4, b"another"), 2)) != first(of_one)
    unnamed = [launch_ids(client(2, 4), program(4, None), 2) for _ in range(2)]
    assert first(unnamed[0]) == first(unnamed[1])


def test_ids_fit_what_the_c_api_has_for_them() -> None:
    for fingerprint in map(str.encode, map(str, range(20))):
        ids = first(launch_ids(client(2, 4), program(4, fingerprint), 2), 2)
        assert all(0 < number < 2**31 for number in ids)
