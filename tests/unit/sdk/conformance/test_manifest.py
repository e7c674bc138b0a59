"""The manifest hash covers everything that a verdict depends on, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import plugrt_sdk
from plugrt_sdk.conformance import Level, Needs, registry
from plugrt_sdk.conformance.check import Check, Demand
from plugrt_sdk.conformance.manifest import code_digests, hash_of, kit_digests, manifest_hash
from plugrt_sdk.conformance.module_code import describe, describe_all
from plugrt_sdk.conformance.random_bits import FILE as STORED_BITS

MODULE = '''"""A module."""
from . import limits

def most(count: int, *, seed: int | None = None) -> str:
    """Returns a text."""
    left = limits.MOST - count
    match left:
        case 0 | 1:
            return f"{count!r:>{limits.MOST}} of {{{left}}}" "" f"{'x'}"
    with open("", "rb") as file:
        return [*map(str, file), lambda x=1.5: x, b"\\0", ..., 2j][0]
'''
DIGEST = "f97b1d6a12e016bec8d860df25436f30413b1dab234bf43dae61b13c2399862e"
"""Of `MODULE`, with Python 3.11.7, 3.12.1 and 3.13.0."""


def digest(text: str) -> str:
    return describe(text.encode())[0]


def test_code_has_one_digest_in_each_python() -> None:
    assert digest(MODULE) == DIGEST


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""A module."""', '"""Another."""\n# with a comment\n'),
        ('    """Returns a text."""\n', ""),
        ("limits.MOST - count", "(limits.MOST\n        - count)"),
        ("1.5", "1.50"),
        ('open(""', 'open(u""'),
    ],
)
def test_comments_and_layout_do_not_change_the_digest(old: str, new: str) -> None:
    assert digest(MODULE.replace(old, new)) == DIGEST


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("limits.MOST - count", "limits.MOST + count"),
        ("1.5", "1.25"),
        ("!r", "!s"),
        (" of ", " in "),
        ('open("", ', "open("),
        ("seed: int | None = None", "seed: int | None"),
        ("case 0 | 1", "case 0"),
        ('b"\\0"', '"\\0"'),
    ],
)
def test_code_changes_the_digest(old: str, new: str) -> None:
    assert old in MODULE
    assert digest(MODULE.replace(old, new)) != DIGEST


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of an author: `checks` imports `limits`, and `shown` only under TYPE_CHECKING."""
    folder = tmp_path / "author_of_checks"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "limits.py").write_text("MOST = 4\n")
    (folder / "other.py").write_text("MOST = 4\n")
    (folder / "checks.py").write_text(
        "import numpy\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from "
        "author_of_checks import other\ndef run():\n    from author_of_checks.limits import MOST\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == folder.name]:
        monkeypatch.delitem(sys.modules, name)
    return folder


def test_a_wheels_digests_are_used_for_unchanged_sources(package: Path, tmp_path: Path) -> None:
    name, limits = "author_of_checks.checks", "author_of_checks.limits"
    parsed = code_digests([name])
    written = {source: (f"written {digest}", other) for source, (digest, other) in
               describe_all(package).items()}  # fmt: skip
    (file := tmp_path / "written.json").write_text(json.dumps(written))
    assert code_digests([name], file) == {key: f"written {parsed[key]}" for key in parsed}
    (package / "limits.py").write_text("MOST = 5\n")
    assert code_digests([name], file)[limits] == digest("MOST = 5\n")


def test_the_kit_s_own_code_is_in_it() -> None:
    names = {name.removeprefix("plugrt_sdk.conformance.") for name in kit_digests()}
    assert {"judge", "expect", "waivers", "checks.puts", "plugrt_sdk.testing.subject"} <= names
    assert not any(name.startswith("mutants") for name in names)


CHANGES: dict[str, Any] = {
    "id": "another.id", "title": "Another statement.", "level": Level.SCALES,
    "rests_on": "another text", "why": "another reason", "needs": Needs.PROCESS,
    "capability": "donation", "refusable": True, "covers": ("Buffer.delete",), "slow": True,
    "demand": Demand.PLUGRT,
}  # fmt: skip


def test_declarations_and_stored_bits_are_part_of_the_manifest(tmp_path: Path) -> None:
    assert set(CHANGES) == {f for f in Check.__dataclass_fields__ if f != "run"}
    checks = registry.checks()
    first = checks["buffers.put_get.one"]
    (other := tmp_path / "bits.json").write_text("{}")
    found = {hash_of(checks.values(), file, {}) for file in (STORED_BITS, other)}
    for name, value in CHANGES.items():
        changed = {**checks, first.id: replace(first, **{name: value})}
        found.add(hash_of(changed.values(), STORED_BITS, {}))
    assert len(found) == len(CHANGES) + 2
    assert hash_of(checks.values(), STORED_BITS, kit_digests()) == manifest_hash()


def test_it_is_the_same_in_another_process_and_folder_until_a_limit_changes(tmp_path: Path) -> None:
    kit = tmp_path / "elsewhere" / "plugrt_sdk"
    home = Path(plugrt_sdk.__file__).parent
    shutil.copytree(home, kit, ignore=shutil.ignore_patterns("*.so", "__pycache__", "templates"))
    code = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(kit.parent)!r})
from plugrt_sdk.conformance.manifest import manifest_hash
from plugrt_sdk.conformance import waivers
limits = Path(waivers.__file__)
print(limits)
print(manifest_hash())
limits.write_text(limits.read_text().replace('"float32": 64', '"float32": 65'))
manifest_hash.cache_clear()
print(manifest_hash())
"""
    limits, unchanged, changed = subprocess.run(
        [sys.executable, "-c", code], cwd=kit, check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    ).stdout.split()  # fmt: skip
    assert Path(limits).is_relative_to(kit)
    assert unchanged == manifest_hash()
    assert changed != unchanged
