"""The wheels of all distributions, built once for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.installed import build_wheel

PROJECTS = ("runtime", "plugin_sdk", "plugins/cpu", "plugins/cuda", "plugins/tpu")


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheels of all distributions, in one folder."""
    folder, sources = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("sources")
    for project in PROJECTS:
        build_wheel(project, sources, folder)
    return sorted(folder.glob("*.whl"))
