"""Messages between processes, through a key-value store that the tests provide."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from plugrt.distributed.agreement import Comparison
from plugrt.errors import DataLoss, DeadlineExceeded
from plugrt.plugins.coordination import Connection, Membership


class Stored(Connection):
    """One process's connection to a shared dictionary."""

    def __init__(self, index: int, values: dict[str, bytes], seconds: float) -> None:
        super().__init__(Membership("here:1", index, 2, seconds, 10.0, 10.0))
        self.values = values

    client: Any = None

    def get(self, key: str, timeout_ms: int) -> bytes:
        if key not in self.values:
            raise DeadlineExceeded(key)
        return self.values[key]

    def try_get(self, key: str) -> bytes | None:
        return self.values.get(key)

    def put(self, key: str, value: bytes) -> None:
        self.values[key] = value

    delete = wait_at_barrier = live_processes = await_loss = close = put  # type: ignore[assignment]


def test_processes_hear_what_all_say() -> None:
    values: dict[str, bytes] = {}

    def make(index: int) -> Any:
        comparison = Comparison(Stored(index, values, 60.0), (0, 1), 1, "equal")
        return comparison.make("adding", f"to {index}")

    with ThreadPoolExecutor(2) as pool:
        heard = list(pool.map(make, range(2)))
    assert heard == 2 * [[([0], "adding", "to 0", ""), ([1], "adding", "to 1", "")]]


@pytest.mark.parametrize("index", [0, 1])
def test_a_missing_process_is_named_with_a_possible_cause(
    index: int, caplog: pytest.LogCaptureFixture
) -> None:
    comparison = Comparison(Stored(index, {}, 0.1), (0, 1), 1, "equal", warn_after=0.01)
    with caplog.at_level(logging.WARNING), pytest.raises(DeadlineExceeded) as caught:
        comparison.make("compiling 'f'", "tensor<8xf32>", perhaps="Its arguments differ")
    waited = (
        f"process {1 - index} has not reached the step of process {index}: compiling 'f' tensor"
    )
    assert waited in str(caught.value)
    assert str(caught.value).endswith("in the same order. Its arguments differ")
    assert "0.1 s (initialization_timeout)" in str(caught.value)
    [record] = caplog.records
    assert waited in record.message
    assert "Its arguments differ" in record.message


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize(
    "value", ["null", "[1]", "{", '{"said": 3}', '{"late": ["x"]}', '{"said": [[[0], 1, 2, 3]]}']
)
def test_foreign_values_in_the_store_are_refused(value: str, index: int) -> None:
    class Changed(Stored):
        def get(self, key: str, timeout_ms: int) -> bytes:
            return value.encode()

    comparison = Comparison(Changed(index, {}, 0.1), (0, 1), 1, "equal")
    with pytest.raises(DataLoss):
        comparison.make("adding", "x")
