"""The functions of ``tools/test_jaxlib.py`` that choose versions."""

from __future__ import annotations

import zipfile
from pathlib import Path

from support.markdown import load_script

tool = load_script("tools/test_jaxlib.py")

LISTING = """jaxlib (0.12.0.1)
Available versions: 0.12.0.1, 0.12.0, 0.11.0rc1, 0.10.2, 0.10.0, 0.9.0.1, 0.9.0, 0.8.3
  INSTALLED: 0.10.2
"""


def test_versions() -> None:
    assert tool.versions_in(LISTING)[0] == "0.8.3"
    assert tool.newest_of_each_minor(tool.versions_in(LISTING)) == ["0.9.0.1", "0.10.2", "0.12.0.1"]
    assert tool.versions_in("ERROR: no such thing") == []


def test_a_version_is_asked_for_in_full_or_by_its_minor() -> None:
    assert tool.stands_for("0.9", "0.9.0.1")
    assert tool.stands_for("0.9.0.1", "0.9.0.1")
    assert not tool.stands_for("0.1", "0.10.2")
    assert not tool.stands_for("0.9.1", "0.9.0.1")


def test_names_in_a_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / "jaxlib.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("jaxlib/_jax.so", b"\x7fELF\0Client\0compile\0")
        archive.writestr("jaxlib/notes.txt", b"gone")
    names = ["_jax.Client.compile", "_jax.Client.gone", "_jax.Client"]
    assert tool.names_missing_in(wheel, names) == ["_jax.Client.gone"]
