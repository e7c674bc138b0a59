"""`runs_apart`: the mark of tests that take long, which a session of nox runs in CI."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

from support.costs import read_slow_tests


def runs_apart(session: str) -> pytest.MarkDecorator:
    """Returns a mark by which tests are skipped, with the reason, unless that session runs them.

    A session selects by it, too (``-m apart``): the other tests of its files are `make test`'s.
    `tests/nothing/test_nox_sessions.py` sees that it runs their file, and CI the session.
    """
    return pytest.mark.apart(session)


def skip_those_of_other_sessions(items: Iterable[pytest.Item]) -> None:
    """Skips tests with a mark, unless `PLUGRT_TEST_TARGET` names their sessions.

    Where it is set, the tests in ``slow_tests.txt`` get the mark of ``slow``. `make test` sets it
    to ``quick``, except for a part of the suite (``TESTS=``).
    """
    sessions = os.environ.get("PLUGRT_TEST_TARGET", "").split(",")
    slow = read_slow_tests() if sessions != [""] else frozenset()
    for item in items:
        if item.nodeid.partition("[")[0] in slow:
            item.add_marker(runs_apart("slow"))
        for mark in item.iter_markers("apart"):
            if mark.args[0] not in sessions:
                reason = f"takes long: .venv/bin/nox -s {mark.args[0]} runs it, as CI does"
                item.add_marker(pytest.mark.skip(reason=reason))
