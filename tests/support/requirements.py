"""Requirements that may be missing on a developer's machine, but not in CI."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from fnmatch import fnmatch
from pathlib import Path

import pytest

IN_CI = bool(os.environ.get("CI"))


def needs(
    found: object, what: str, *, session: str = "", in_ci: bool = IN_CI
) -> pytest.MarkDecorator:
    """Marks tests that are skipped without ``what``; in CI they run, and fail without it.

    If a session provides it, they fail in that session only: CI runs the others, too.
    """
    here = not session or os.environ.get("PLUGRT_TEST_TARGET") == session
    return pytest.mark.skipif(not found and not (in_ci and here), reason=f"needs {what}")


def needs_package(distribution: str, session: str) -> pytest.MarkDecorator:
    """Marks tests that need a distribution, which a session installs."""
    found = [*importlib.metadata.distributions(name=distribution)]
    return needs(found, distribution, session=session)


def file_of(distribution: str, pattern: str) -> Path:
    """Returns the one file of an installed distribution whose name matches."""
    files = importlib.metadata.files(distribution) or []
    [path] = [file for file in files if fnmatch(file.name, pattern)]
    return Path(str(path.locate()))


needs_jax = needs(importlib.util.find_spec("jax"), "jax")


def cannot(reason: str, *, in_ci: bool = IN_CI) -> None:
    """Skips the running test with a reason; in CI fails it."""
    if in_ci:
        pytest.fail(f"not to be skipped in CI: {reason}", pytrace=False)
    pytest.skip(reason)
