"""Wheels that are built without a compiler are pure Python, and their names say so."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from support.apart import runs_apart
from support.markdown import load_script

pytestmark = runs_apart("packages")
RELEASE = load_script("tools/release.py")


def test_a_wheel_without_parts_in_c_is_for_every_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier, pip kept it as this platform's wheel, also after a compiler was installed."""
    monkeypatch.setenv("CC", "/bin/false")
    for project in ("runtime", "plugin_sdk"):
        RELEASE.build(project, tmp_path / "sources", tmp_path / "wheels", "--wheel")
    made = sorted((tmp_path / "wheels").glob("*.whl"))
    assert len(made) == 2
    for path in made:
        assert path.name.endswith(f"-{RELEASE.PURE}.whl")
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
            [told] = [name for name in names if name.endswith(".dist-info/WHEEL")]
            assert b"Root-Is-Purelib: true" in wheel.read(told)
        assert not [name for name in names if name.endswith(".so")]
        assert any(name.endswith("/__init__.py") for name in names)
