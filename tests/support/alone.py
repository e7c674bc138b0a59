"""`alone`: runs a test in a process of its own, so that no other thread allocates memory."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

import pytest

from support import children
from support.markdown import ROOT

P = ParamSpec("P")
_HERE = "PLUGRT_TEST_ALONE"


def alone(test: Callable[P, None]) -> Callable[P, None]:
    """Runs a test in a child, by pytest without workers and with the suite's options.

    ``_testcapi.set_nomemory`` fails an allocation of the whole process: earlier, a worker of
    pytest-xdist ended silently when its own thread met it.
    """

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        if os.environ.get(_HERE):
            test(*args, **kwargs)
            return
        pytest.importorskip("_testcapi", reason="this Python cannot refuse memory")
        node = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
        options = ["-q", "-n", "0", "-p", "no:cacheprovider", node]
        done = children.run(
            [sys.executable, "-m", "pytest", *options],
            timeout=120, cwd=ROOT, env={**os.environ, _HERE: "1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert "1 passed" in done.stdout, done.stdout

    return run
