"""Arrays, programs and errors over a mesh whose devices belong to several processes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cpu.distributed import process_programs
from support.apart import runs_apart
from support.behaviour import behaviour
from support.processes import all_results, of_cpu_processes, run_together

pytestmark = [runs_apart("processes"), of_cpu_processes]


@pytest.fixture(scope="module")
def in_one_process(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("one")
    [found] = all_results(run_together(process_programs.share_a_mesh, 1, folder, devices=4))
    assert isinstance(found, dict)
    assert len(found) == 26
    return found


@pytest.mark.parametrize("count", [2, 4])
@behaviour(115, "two and four processes compute what one process with as many devices does: "
           "donation, layouts, and calls of Python functions, included")  # fmt: skip
def test_processes_compute_what_one_process_does(
    tmp_path: Path, count: int, in_one_process: dict[str, Any]
) -> None:
    devices = 4 // count
    ended = run_together(process_programs.share_a_mesh, count, tmp_path, devices=devices)
    for found in all_results(ended):
        assert found.keys() == in_one_process.keys()
        for name, value in found.items():
            np.testing.assert_allclose(value, in_one_process[name], rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("count", [2, 4])
@behaviour(
    115,
    "a function that a program over processes calls once is called by the first device's, and all "
    "have its results; ordered calls keep their order",
)
def test_calls_in_order_over_processes(tmp_path: Path, count: int) -> None:
    ended = run_together(process_programs.call_in_order, count, tmp_path, devices=4 // count)
    results = all_results(ended)
    first = [0, count - 1, 0]
    calls = [[n, k] for n in range(3) for k in range(2)]
    for me, found in enumerate(results):
        assert found["drawn"] == results[0]["drawn"]
        assert found["negative"] == [True] * 3
        assert found["whole"] == [[n, k] for n, k in calls if first[n] == me]
        assert all(own == sorted(own) for own in found["parts"].values())
    assert sum(len(own) for found in results for own in found["parts"].values()) == 4 * len(calls)


@pytest.mark.parametrize(
    ("count", "by", "fails"), [(2, "jit", 0), (2, "shard_map", 0), (2, "shard_map", 1),
                               (4, "shard_map", 2)],
)  # fmt: skip
@behaviour(
    116,
    "a function that fails in one process is the error of the launch in all that wait for it, and "
    "the next launch runs",
    jax="the others wait",
)
def test_a_failing_callback_ends_the_wait_of_all(
    tmp_path: Path, count: int, by: str, fails: int
) -> None:
    ended = run_together(
        process_programs.fail_in_one, count, tmp_path, devices=4 // count, BY=by, FAILS=str(fails)
    )
    for me, said in enumerate(all_results(ended)):
        assert said[::2] == ["none", "none"]
        for error in said[1::2]:
            assert "'call' of io_callback, called at" in error
            assert error.endswith("raised ValueError: a user's mistake")
            assert (f"process {fails}: " in error) == (me != fails)


@behaviour(115, "data that differ between processes are gathered by all, or broadcast by one")
def test_gathering_and_broadcasting(tmp_path: Path) -> None:
    ended = run_together(
        process_programs.gather_from_processes, 2, tmp_path, TF_CPP_MIN_LOG_LEVEL="1"
    )
    # XLA must not warn about sharding custom calls that it drops: users would see it.
    assert ["GSPMD" in one.errors for one in ended] == [False, False]
    for found in all_results(ended):
        assert found["stacked"] == {"a": [[0, 7], [1, 7]], "b": [0.5, 1.5]}
        assert found["tiled"] == [[[0, 7], [1, 7]], [0, 1]]
        assert found["array"] == [[0], [1]]
        assert found["of 0"] == {"a": [0, 7], "b": 0.5}
        assert found["of 1"] == [[1]]
        assert found["parts"] == [0, 0, 1, 1]


@pytest.mark.parametrize("count", [2, 4])
def test_local_and_global_arrays(tmp_path: Path, count: int) -> None:
    own = 4 // count
    ended = run_together(process_programs.convert_and_compare, count, tmp_path, devices=own)
    rows = [[me, me] for me in range(count) for _ in range(own)]
    for me, found in enumerate(all_results(ended)):
        assert found["whole"] == {"rows": rows, "same": [7, 8]}
        assert found["sums"] == np.sum(rows)
        assert found["again"] == {"rows": [[me, me]] * own, "same": [7, 8]}
        assert found["other"] == rows
        assert found["shapes"] == [[4, 2], [2]]
        assert found["unmoved"] == [True, True]
        assert found["kept"] is True
        assert found["local"] is True
        values = re.escape(str([*range(count)]))
        assert re.match(rf"ValuesDiffer: not the same b\. .*{values}", found["different"])
        assert re.match(rf"ValuesDiffer: .*'step {me}' here", found["names"])
        assert re.match(r"ArgumentError: .*different parts", found["divided"])
        assert found["uneven"].startswith("ShapeError: ")
        scattered = "InvalidArgument: .*not a contiguous part" if count == 2 else "none"
        assert re.match(scattered, found["scattered"])


def test_pmap_over_processes(tmp_path: Path) -> None:
    """The global size is the sum over the processes, as in JAX 0.4.20, and may be left out."""
    ended = run_together(process_programs.map_over_processes, 2, tmp_path)
    for me, found in enumerate(all_results(ended)):
        sums = np.arange(12.0).reshape(4, 3).sum(0)
        assert found["stated"] == found["ahead"] == [sums.tolist()] * 2
        assert found["shape"] == [2, 3]
        of_row = [[3.0, 3.0], [7.0, 7.0]][me]
        expected = [[of_row], [[4.0, 6.0]], [[10.0, 10.0]], [[2, 2]]]
        assert found["within"] == found["within, listed"] == expected
        for name, words in {
            "global size": r"ShapeError: .*global_axis_size=2; .* has size 2, 4 in all processes",
            "global size within": r"ShapeError: .*global_axis_size=4; .* has size 1, 2 in all",
            "size around": r"ShapeError: .* with 2 replicas within for each slice, runs on 4 "
            r"devices .* has size 2 here and must have size 1",
            "size": r"ShapeError: .* 2 are this one's; .* has size 1 here and must have size 2",
            "groups": r"DeviceMismatch: .* 2 replicas for each slice, for pmap of 'both', called "
            r".* slice 0 .*cpu:0.*cpu:2048.* several processes",
            "by operation": r"Unimplemented: .*under disable_jit on devices of several processes",
        }.items():
            assert re.search(words, found[name]), f"{name}: {found[name]}"
        # Both processes raise it, also the one without invalid values.
        nan = r"FloatingPointFault: .*nan.* by process 1; .* stablehlo.sqrt .*process_programs.py:"
        assert re.search(nan, found["invalid"]), found["invalid"]


@behaviour(
    115,
    "values, shapes, programs or devices that differ between processes are refused in all of them, "
    "with both by name, and devices of another as a target; threads may come in any order",
    jax="programs are not compared",
)
def test_wrong_uses_are_refused_in_all_processes(tmp_path: Path) -> None:
    ended = run_together(process_programs.do_what_is_refused, 2, tmp_path)
    for me, told in enumerate(all_results(ended)):
        other = 1 - me
        first = [0, 2048][other]
        remote = f"InvalidArgument: INVALID_ARGUMENT: .* cpu:{first} of process {other}; this is "
        for name, words in {
            "read": r"NotAnArray: .*in other processes; .*plugrt.process_allgather",
            "remote": remote + f"process {me}",
            "remote sharding": remote,
            "remote jit": remote,
            "remote default": remote,
            "not set up": r"FailedPrecondition: .*float32\[2\] .*, cpu:0 to cpu:2048, .*"
            r"set JAX_CROSS_HOST_TRANSFER_SOCKET_ADDRESS for all",
            "values": r"DistributedError: the processes do not do the same: "
            r"process 0: device_put of float32\[4\] \{1.0, 2.0, 3.0, 4.0\} \(\w+\), "
            r"process 1: device_put of float32\[4\] \{1.0, 2.0, 3.0, 5.0\} .*local_data",
            "shapes": r"process 0: device_put of float32\[4, 1\] .*process 1: .*float32\[4, 2\] ",
            "devices": r"DeviceMismatch: .* on devices \[0, 1, 2048, 2049\]; .* has \[0, 2048\]",
            "pmap": r"ShapeError: .* 4 devices .* 2 are this one's; .* size 3 here .* size 2",
            "pmap remote": r"InvalidArgument: .*all of other processes",
            "programs": r"process 0: compiling '<lambda>' for devices \[0, 1, 2048, 2049\] "
            r"\(tensor<4x2xf32>\) .* \(\w+\), process 1: compiling .* in the same order",
            "batches": r"process 0: .* of float32\[4, 3\] \(.* is \[2, 3\]\), "
            r"process 1: .* of float32\[8, 3\] \(.* is \[4, 3\]\)",
            "in threads, 2": "none",
            "in threads, 4": "none",
            "in threads, other parts": rf"DeadlineExceeded: .* process {other} has not reached .* "
            rf"float32\[{[12, 16][me]}, 2\] .* 'loader' waits .* outside of their main thread: "
            r"give .* or the global_shape",
            "stated batches": ["none", r"ShapeError: .* have \(2, 3\) of .* \(4, 3\)"][me],
            "no source": r"DistributedError: .* of one process; is_source is true in none of 2",
            "two sources": r"DistributedError: .* is_source is true in \[0, 1\] of 2",
        }.items():
            assert re.search(words, told[name]), f"{name}: {told[name]}"
        nan = r"FloatingPointFault: .*nan.* of \(float32\[4,2\]\).* by process 1; .*stablehlo.sqrt "
        assert re.search(nan, told["nan"]), told["nan"]
