"""Tests that share a fixture of their module go to one worker; a worker that dies is replaced."""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.children import run
from support.scheduling import FixtureScheduling, shares_a_fixture

TESTS = Path(__file__).parents[2]
NAMES = [f"test_made_up.py::test_{i}" for i in range(12)]


class Worker:
    """What xdist's controller of a worker has, and how the worker at the other end behaves.

    A worker runs a test when it knows the next one, and the last one when it is to shut down
    (``xdist/remote.py``): fixtures are torn down according to what comes next.
    """

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.tests: list[str] = []
        self.is_dead = False

    def send_runtest_some(self, indices: list[int]) -> None:
        if self.is_dead:
            raise OSError("cannot send (already closed?)")
        self.tests += [NAMES[i] for i in indices]

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def can_run(self) -> bool:
        return len(self.tests) > (0 if self.shutting_down else 1)


class Session:
    """Drives a scheduler as xdist's ``DSession`` does, with workers that are only made up."""

    def __init__(self, workers: int, deadly: set[str]) -> None:
        option = SimpleNamespace(loadscopereorder=False)
        config: Any = SimpleNamespace(
            getvalue=lambda name: ["popen"] * workers, option=option, rootpath=Path("/nowhere")
        )
        self.scheduler = FixtureScheduling(config)
        self.deadly = deadly
        self.ran: list[str] = []
        self.died: list[str] = []
        self.alive: list[Worker] = []
        self.starting: list[Worker] = []
        self.dead: list[Worker] = []
        for _ in range(workers):
            self.start_worker()

    def start_worker(self) -> None:
        worker = Worker(f"gw{len(self.ran)}-{len(self.died)}-{len(self.alive)}")
        self.alive.append(worker)
        self.starting.append(worker)
        self.scheduler.add_node(worker)  # type: ignore[arg-type]

    def collect(self, worker: Worker) -> None:
        self.starting.remove(worker)
        self.scheduler.add_node_collection(worker, NAMES)  # type: ignore[arg-type]
        if self.scheduler.collection_is_completed:
            self.scheduler.schedule()

    def run_next(self, worker: Worker) -> None:
        test = worker.tests.pop(0)
        if test not in self.deadly:
            self.ran.append(test)
            self.scheduler.mark_test_complete(worker, NAMES.index(test))  # type: ignore[arg-type]
            return
        self.alive.remove(worker)
        self.dead.append(worker)
        worker.is_dead = True

    def notice(self, worker: Worker) -> None:
        """The controller learns of a death, after what else has happened meanwhile."""
        self.dead.remove(worker)
        died_in = self.scheduler.remove_node(worker)  # type: ignore[arg-type]
        assert died_in is not None
        self.died.append(died_in)
        self.start_worker()

    def finish(self, order: random.Random) -> None:
        """Lets things happen in a random order until nothing more can happen."""
        for _ in range(10 * len(NAMES)):
            steps = [(self.collect, w) for w in self.starting]
            steps += [(self.run_next, w) for w in self.alive if w.can_run]
            steps += [(self.notice, w) for w in self.dead]
            if not steps:
                return
            step, worker = order.choice(steps)
            step(worker)
        raise AssertionError(f"it does not come to an end: ran {self.ran}, died in {self.died}")


def test_what_shares_a_fixture() -> None:
    config: Any = SimpleNamespace(getvalue=lambda name: ["popen"], rootpath=TESTS.parent)
    scope_of = FixtureScheduling(config)._split_scope
    checkers = "tests/nothing/typing/test_type_checkers.py"
    names = [f"{checkers}::test_right_calls_are_taken[{n}]" for n in ("mypy", "pyright")]
    assert {scope_of(name) for name in names} == {checkers}
    alone = "tests/unit/wire/test_protobuf.py::test_fields"
    assert scope_of(alone) == alone
    areas = TESTS / "pjrt/test_suite_on_xla_cpu.py"
    assert not shares_a_fixture(areas), "its parts run beside each other"


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_each_test_runs_once_whatever_workers_die(workers: int) -> None:
    for seed in range(300):
        order = random.Random(seed)
        deadly = set(order.sample(NAMES, order.randrange(len(NAMES) + 1)))
        session = Session(workers, deadly)
        session.finish(order)
        assert set(session.died) == deadly, seed
        assert Counter(session.ran + session.died) == Counter(NAMES), seed
        assert session.scheduler.tests_finished, seed


SUITE = """
import os, pytest

@pytest.fixture(scope="module")
def shared():
    return 1

@pytest.mark.parametrize("i", range(5))
def test_beside_a_death(shared, i):
    if i == 2:
        os._exit(3)
"""


def test_a_run_ends_although_a_worker_dies(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(TESTS)!r})\n"
        "def pytest_xdist_make_scheduler(config, log):\n"
        "    from support.scheduling import FixtureScheduling\n"
        "    return FixtureScheduling(config, log)\n"
    )
    (tmp_path / "test_shared.py").write_text(SUITE)
    (tmp_path / "test_alone.py").write_text(SUITE.replace('scope="module"', ""))
    command = [sys.executable, "-m", "pytest", "-q", "-n2", "-p", "no:randomly",
               "-p", "no:cacheprovider", tmp_path]  # fmt: skip
    ended = run(command, timeout=300, cwd=tmp_path)
    assert "2 failed, 8 passed" in ended.stdout, ended.stdout + ended.stderr
    for name in ("shared", "alone"):
        assert f"crashed while running 'test_{name}.py::test_beside_a_death[2]'" in ended.stdout
