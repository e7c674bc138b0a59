"""The wheels of all distributions, built once for all workers and sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.installed import build_wheels


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Builds the wheels of all distributions into one folder."""
    return build_wheels(tmp_path_factory.mktemp("ours"))
