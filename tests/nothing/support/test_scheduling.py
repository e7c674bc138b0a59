"""Tests that share a fixture of their module go to one worker; a worker that dies is replaced."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from support.children import run
from support.scheduling import FixtureScheduling, shares_a_fixture

TESTS = Path(__file__).parents[2]


def test_tests_with_a_shared_fixture_share_a_worker() -> None:
    config: Any = SimpleNamespace(getvalue=lambda name: ["popen"], rootpath=TESTS.parent)
    scope_of = FixtureScheduling(config)._split_scope
    checkers = "tests/nothing/typing/test_type_checkers.py"
    names = [f"{checkers}::test_right_calls_are_taken[{n}]" for n in ("mypy", "pyright")]
    assert {scope_of(name) for name in names} == {checkers}
    alone = "tests/unit/wire/test_protobuf.py::test_fields"
    assert scope_of(alone) == alone
    areas = TESTS / "pjrt/test_suite_on_xla_cpu.py"
    assert not shares_a_fixture(areas), "its parts run beside each other"


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
