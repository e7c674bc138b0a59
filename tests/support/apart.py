"""`runs_apart`: the mark of tests that take long, which a session of nox runs in CI."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest


def runs_apart(session: str) -> pytest.MarkDecorator:
    """Returns a mark by which tests are skipped, with the reason, unless that session runs them.

    A session selects by it, too (``-m apart``): the other tests of its files are `make test`'s.
    `tests/nothing/test_nox_sessions.py` sees that it runs their file, and CI the session.
    """
    return pytest.mark.apart(session)


def skip_those_of_other_sessions(items: Iterable[pytest.Item]) -> None:
    """Skips what is marked, but for what the session of `PLUGRT_TEST_TARGET` is to run."""
    session = os.environ.get("PLUGRT_TEST_TARGET")
    for item in items:
        for mark in item.iter_markers("apart"):
            if mark.args != (session,):
                reason = f"takes long: .venv/bin/nox -s {mark.args[0]} runs it, as CI does"
                item.add_marker(pytest.mark.skip(reason=reason))
