"""Arrays that are copied from a device of one process to devices of others, without the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cpu.distributed import process_programs
from support.apart import runs_apart
from support.behaviour import behaviour
from support.processes import all_results, of_cpu_processes, run_together

pytestmark = [runs_apart("processes"), of_cpu_processes]

SETTING = "JAX_CROSS_HOST_TRANSFER_SOCKET_ADDRESS"


@pytest.mark.parametrize("count", [2, 4])
@behaviour(
    115,
    "arrays go from a device of one process to devices of others without the host, where the "
    "setting `JAX_CROSS_HOST_TRANSFER_SOCKET_ADDRESS` says so",
)
def test_arrays_go_from_device_to_device_between_processes(tmp_path: Path, count: int) -> None:
    every = all_results(
        run_together(
            process_programs.copy_between_processes, count, tmp_path,
            JAX_CROSS_HOST_TRANSFER_SOCKET_ADDRESS="127.0.0.1:0",
        )
    )  # fmt: skip
    first, last = every[0], every[-1]
    end = 2048 * (count - 1)
    host = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    wanted: dict[str, tuple[Any, Any]] = {
        "one": ([], [[end + 1, host]]),
        "and back": ([[0, host]], []),
        "bool over devices": ([], [[end, [0.0, 1.0]], [end + 1, [1.0, 1.0]]]),
        "empty": ([], [[end, []], [end + 1, []]]),
        "relay": ([], [[end, host]]),
        "crossing": ([[1, [count - 1]]], [[end + 1, [0]]]),
        "through the host": ([], []),
    }
    for dtype in ("int8", "bfloat16", "complex64"):
        wanted[f"{dtype} over devices"] = ([], [[end, [0.0, 1.0]], [end + 1, [2.0, 3.0]]])
    for name, (in_first, in_last) in wanted.items():
        assert (first[name], last[name]) == (in_first, in_last), name
    for index, found in enumerate(every):
        assert found["declared"] is found["within"] is True
        assert "Unimplemented" in found["int4"]
        assert "less than a byte" in found["int4"]
        assert "copying tensor<8xi32> from devices [0, 1] to" in found["other arrays"]
        assert "copying tensor<4xi32> from devices [0, 1] to" in found["other arrays"]
        assert f"this is process {index}" in found["uncommitted"]
        absent = "none" if index == count - 1 else f"no part in this process: process {count - 1} "
        assert absent in found["read"]
        assert found["format"] is (index < count - 1)
        if 0 < index < count - 1:  # a process without devices of these arrays
            assert found["one"] == found["and back"] == found["empty"] == found["relay"] == []


def test_a_process_that_is_not_set_up_is_named(tmp_path: Path) -> None:
    each = [{SETTING: "127.0.0.1:0"}, {}]
    one, other = all_results(
        run_together(process_programs.copy_where_only_one_is_set_up, 2, tmp_path, each=each)
    )
    assert f"process 1 was started without {SETTING}" in one
    assert "process 0 has it: set it for all" in one
    assert f"set {SETTING} for all of them" in other
