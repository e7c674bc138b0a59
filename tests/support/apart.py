"""`runs_apart`: the mark of slow tests, which a session of nox runs in CI."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache

import pytest

from support.costs import read_slow_tests


def runs_apart(session: str) -> pytest.MarkDecorator:
    """Returns a mark that skips tests, with the reason, unless that session runs them.

    A session also selects by the mark (``-m apart``); `make test` runs the files' other tests.
    `tests/nothing/test_nox_sessions.py` checks that the session runs their file, and CI the
    session.
    """
    return pytest.mark.apart(session)


def sessions_that_run() -> list[str]:
    """Returns the sessions that `PLUGRT_TEST_TARGET` names: `make test` sets it to ``quick``."""
    return os.environ.get("PLUGRT_TEST_TARGET", "").split(",")


@cache
def _find_slow_tests() -> frozenset[str]:
    return frozenset() if sessions_that_run() == [""] else read_slow_tests()


def mark_if_slow(item: pytest.Item) -> None:
    """Marks a test in ``slow_tests.txt`` for the session ``slow``, unless another runs it.

    Does nothing if `PLUGRT_TEST_TARGET` is not set, as for a part of the suite (``make test
    TESTS=``).
    """
    name = item.nodeid.partition("[")[0]
    if name in _find_slow_tests() and not item.get_closest_marker("apart"):
        item.add_marker(runs_apart("slow"))


def skip_those_of_other_sessions(items: Iterable[pytest.Item]) -> None:
    """Skips tests with a mark, unless `PLUGRT_TEST_TARGET` names their sessions."""
    sessions = sessions_that_run()
    for item in items:
        for mark in item.iter_markers("apart"):
            if mark.args[0] not in sessions:
                reason = f"takes long: .venv/bin/nox -s {mark.args[0]} runs it, as CI does"
                item.add_marker(pytest.mark.skip(reason=reason))
