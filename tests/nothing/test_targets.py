"""What `make test` skips because it takes long is run by another target, and that one by CI."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.markdown import ROOT

APART = {
    str(path.relative_to(ROOT)): found[1]
    for path in sorted((ROOT / "tests").rglob("test_*.py"))
    if (found := re.search(r"\bruns_apart\(\"([\w-]+)\"\)", path.read_text(encoding="utf-8")))
}
"""File to the target that runs it."""


def test_there_are_such_tests() -> None:
    assert {
        "docs-site", "test-lifetimes", "test-packages", "test-processes", "test-sdk",
        "test-xla-cpu", "types",
    } == set(APART.values())  # fmt: skip


@pytest.mark.parametrize("file", APART)
def test_its_target_runs_it_and_ci_the_target(file: str) -> None:
    target = APART[file]
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert recipe
    assert f"PLUGRT_TEST_TARGET={target} " in recipe[1]
    assert " -m apart " in recipe[1], "what else is in its files is run by make test"
    assert any(str(p) in recipe[1].split() for p in (file, *Path(file).parents))
    assert re.search(rf"^tools/fresh\.sh .*\b{target}\b", (ROOT / ".ci/run").read_text(), re.M)
