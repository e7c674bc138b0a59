"""Processes that share the cpu plugin's devices: joining, computing, and the loss of one."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from cpu.distributed import process_programs
from support.apart import runs_apart
from support.behaviour import behaviour
from support.distributions import install_plugin
from support.processes import all_results, environment, free_port, of_cpu_processes, run_together

pytestmark = [runs_apart("processes"), of_cpu_processes]


def test_processes_know_each_other(tmp_path: Path) -> None:
    site = tmp_path / "site"
    install_plugin(site, "alone")
    path = environment()["PYTHONPATH"]
    found = all_results(
        run_together(process_programs.membership, 2, tmp_path, PYTHONPATH=f"{site}:{path}",
                     JAX_PLATFORMS="")
    )  # fmt: skip
    for index, one in enumerate(found):
        assert (one["before"], one["initialized"], one["after"]) == (False, True, False)
        assert f"was called before: this is process {index} of 2" in one["again"]
        assert one["indices"] == [index, 2, 0, 1]
        assert one["devices"] == [0, 0, 1, 1]
        assert one["local"] == [index, index]
        assert one["local of"] == [True, False]
        assert one["counts"] == [4, 2]
        assert "PluginBroken" in one["alone"]
        assert "reports itself as process 0 of 1" in one["alone"]
        assert f"made this process {index} of 2" in one["alone"]
        assert (
            "shutdown() and initialize() in all of them, at another address"
            in one["after clearing"]
        )
        assert "is too late: alone started, with the devices" in one["late"]


@behaviour(
    116,
    "a second process of an index is refused with the name of the first, which goes on undisturbed",
    jax="all processes of the run are aborted",
)
def test_a_second_process_of_an_index_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    each = [
        {"WHO": "first"},
        {"WHO": "second"},
        {"WHO": "late1", "JAX_PROCESS_ID": "1"},
        {"WHO": "late2", "JAX_PROCESS_ID": "2", "JAX_NUM_PROCESSES": "3"},
        {"WHO": "late0", "JAX_PROCESS_ID": "0"},
    ]
    ended = run_together(
        process_programs.take_an_index, 5, tmp_path, each=each,
        JAX_NUM_PROCESSES="2", MET=str(tmp_path / "met"),
    )  # fmt: skip
    *first, taken, other_count, again = all_results(ended)
    assert first == ["none, 6.0", "none, 6.0"]
    assert "refuses: process_id=1 is in use: -c, process" in taken
    assert "Each of the 2 processes needs an index of its own" in taken
    assert "process 2 has num_processes=3, and the coordinator has 2: all " in other_count
    assert "DistributedError: process_id=0 is in use: -c, process" in again
    assert " has it, and started the coordinator at 127.0.0.1:" in again


@pytest.mark.parametrize(
    ("index", "how", "waits"),
    [
        (0, "kill", "in Python"), (1, "kill", "in Python"), (0, "raise", "in a collective"),
        (1, "raise", "in a collective"), (1, "raise", "in Python"), (0, "raise", "sleeping"),
        (1, "leave", "in Python"),
    ],
)  # fmt: skip
@behaviour(
    116,
    "a process that is killed, or ends with an exception, is named by the other, which ends with "
    "an error",
    jax="jaxlib ends the others: `Terminating process`",
)
def test_a_process_that_ends_is_named_by_the_other(
    tmp_path: Path, index: int, how: str, waits: str
) -> None:
    ends = f"{index}:{how}:{waits}"
    ended = run_together(process_programs.exchange_and_end, 2, tmp_path, ENDS=ends)
    gone, other = ended[index], ended[1 - index]
    assert gone.returncode == {"kill": -signal.SIGKILL, "raise": 1, "leave": 0}[how], gone.errors
    assert other.returncode == 1, other.errors
    assert f"process {1 - index} of 2 cannot go on: process {index} (-c, process " in other.errors
    if how == "kill":
        assert "has sent no heartbeat for 6 s: it was killed" in other.errors
        assert "plugrt.errors.ProcessLost: process" in other.errors
    elif how == "leave":
        assert "left the run: it was done, and waited 1 s for the others" in other.errors
        assert "it was killed" not in other.errors
    else:
        assert "ended with ValueError: there are no more data" in other.errors
    assert "Terminating process" not in other.errors
    assert "Fatal Python error" not in other.errors


def test_a_process_that_ends_well_is_not_reported(tmp_path: Path) -> None:
    ended = run_together(process_programs.end_at_once, 2, tmp_path)
    assert all_results(ended) == ["done", "done"]
    assert "cannot go on" not in ended[0].errors + ended[1].errors


def test_a_process_that_does_not_know_the_secret_is_refused(tmp_path: Path) -> None:
    secret = {"PLUGRT_COORDINATOR_SECRET": "known to two"}
    each = [
        {"WHO": "first", **secret},
        {"WHO": "second", **secret},
        {"WHO": "1", "JAX_PROCESS_ID": "1", "SECRET": "guessed"},
        {"WHO": "2", "JAX_PROCESS_ID": "1"},
    ]
    ended = run_together(
        process_programs.join_with_a_secret, 4, tmp_path, each=each,
        JAX_NUM_PROCESSES="2", MET=str(tmp_path / "met"),
    )  # fmt: skip
    first, second, wrong, none = all_results(ended)
    assert [first, second] == ["joined", "joined"]
    assert "DistributedError: the coordinator at 127.0.0.1:" in wrong
    assert "has another secret" in wrong
    assert "has a secret, and this process was given none" in none
    assert "known to two" not in "".join(one.errors + one.output for one in ended)


@behaviour(
    116,
    "a coordinator that is killed, or does not answer, is named by all processes, which end with "
    "an error",
    jax="jaxlib ends them: `Terminating process`",
)
def test_a_coordinator_that_is_lost_is_named_by_all(tmp_path: Path) -> None:
    each = [{"WAITS": "in Python"}, {"WAITS": "for the other"}]
    for how, words in (
        ("SIGKILL", "does not answer: it was killed"),
        ("SIGSTOP", "has not answered for"),
    ):
        ended = run_together(process_programs.lose_the_coordinator, 2, tmp_path, each=each, HOW=how)
        for index, one in enumerate(ended):
            assert one.returncode == 1, one.errors
            said = f"process {index} of 2 cannot go on: the coordinator at 127.0.0.1:"
            assert said in one.errors
            assert words in one.errors
            assert "Terminating process" not in one.errors
            assert "Fatal Python error" not in one.errors
        assert "plugrt.errors.ProcessLost: process 0 of 2" in ended[0].errors


@behaviour(116, "a coordinator that is not there is a time-out with its address")
def test_a_coordinator_that_is_not_there_is_named(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    each = [
        {
            "JAX_PROCESS_ID": "1",
            "JAX_NUM_PROCESSES": "2",
            "JAX_COORDINATOR_ADDRESS": address,
            "WAITS": "1",
        }
    ]
    [ended] = run_together(process_programs.join_in_vain, 1, tmp_path, each=each)
    assert ended.returncode == 0, ended.errors
    words = f"DeadlineExceeded: DEADLINE_EXCEEDED: process 1 finds no coordinator at {address}"
    assert ended.results.startswith(words)
    assert "after 1 s (initialization_timeout" in ended.results


def test_processes_that_do_not_come_are_counted_and_a_port_in_use_is_named(tmp_path: Path) -> None:
    [ended] = run_together(
        process_programs.join_in_vain, 1, tmp_path, JAX_NUM_PROCESSES="3", WAITS="3"
    )
    assert ended.returncode == 0, ended.errors
    assert "but not all of the 3 processes are after 3 s" in ended.results
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        each = [{"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": "2", "WAITS": "3"}]
        [ended] = run_together(process_programs.join_in_vain, 1, tmp_path, each=each)
    assert ended.returncode == 0, ended.errors
    assert f"DistributedError: the coordinator cannot listen at {address}: Address" in ended.results
