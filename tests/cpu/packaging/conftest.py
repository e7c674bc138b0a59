"""The wheels of all distributions, which are built once for all workers and targets."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.installed import RELEASE


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheels of all distributions, in one folder."""
    folder, sources = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("sources")
    for project in RELEASE.PROJECTS:
        RELEASE.put_wheel(project, sources, folder)
    return sorted(folder.glob("*.whl"))
