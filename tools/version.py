"""Writes the version of the root ``pyproject.toml`` to all other places that state it.

usage: python tools/version.py [NEW_VERSION]

With a new version, the root ``pyproject.toml`` is changed first. The other places are the
``pyproject.toml`` of each distribution, the bounds between the distributions, and
``plugrt.__version__``; ``uv lock`` follows (``nox -s version`` runs both).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
INIT = "runtime/src/plugrt/__init__.py"
_VERSION = re.compile(r'^version = "(.*)"$', re.MULTILINE)
_ATTRIBUTE = re.compile(r'^__version__ = "(.*)"$', re.MULTILINE)
# A requirement on a distribution of ours: a name, perhaps extras, and the present bounds.
_REQUIREMENT = re.compile(r'(?<!name = )"(plugrt(?:-[a-z]+)?)(\[[\w,-]+\])?(?:[<>=!~][^"]*)?"')
_NAME = re.compile(r'^name = "(.*)"$', re.MULTILINE)
_FORM = re.compile(r"(\d+)\.(\d+)\.(\d+)((a|b|rc)\d+)?")


def projects(root: Path = ROOT) -> list[Path]:
    """Returns the ``pyproject.toml`` of each distribution of a tree."""
    return sorted([*root.glob("*/pyproject.toml"), *root.glob("plugins/*/pyproject.toml")])


def stated() -> str:
    """Returns the version in the root ``pyproject.toml``."""
    return _only(_VERSION, ROOT / "pyproject.toml")


def bounds(version: str) -> str:
    """Returns the compatible versions of the others: from this one to the next that may break.

    That is the next major version, and while the major version is 0, the next minor one.
    """
    found = _FORM.fullmatch(version)
    if found is None:
        raise SystemExit(f"{version!r} is no version such as 0.2.0 or 1.0.0rc1")
    major, minor = int(found[1]), int(found[2])
    return f">={version},<{major + 1}" if major else f">={version},<0.{minor + 1}"


def write(version: str, root: Path = ROOT) -> None:
    """Writes the version, and the bounds that follow from it, to every place of a tree."""
    allowed = bounds(version)
    _replace(root / "pyproject.toml", _VERSION, f'version = "{version}"')
    _replace(root / INIT, _ATTRIBUTE, f'__version__ = "{version}"')
    for path in projects(root):
        _replace(path, _VERSION, f'version = "{version}"')
        path.write_text(_bounded(path, allowed), encoding="utf-8")


def _bounded(path: Path, allowed: str) -> str:
    """Returns the file with bounds on every requirement of ours, but for the distribution's own."""
    own = _only(_NAME, path)

    def requirement(found: re.Match[str]) -> str:
        name, extras = found[1], found[2] or ""
        return f'"{name}{extras}{"" if name == own else allowed}"'

    return _REQUIREMENT.sub(requirement, path.read_text(encoding="utf-8"))


def _only(pattern: re.Pattern[str], path: Path) -> str:
    found = pattern.findall(path.read_text(encoding="utf-8"))
    if len(found) != 1:
        raise SystemExit(f"{path} has {len(found)} lines like {pattern.pattern!r} and not one")
    return str(found[0])


def _replace(path: Path, pattern: re.Pattern[str], line: str) -> None:
    _only(pattern, path)
    path.write_text(pattern.sub(line, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1] if len(sys.argv) > 1 else stated())
