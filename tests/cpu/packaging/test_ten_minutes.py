"""docs/ten-minutes.md, followed exactly from an empty folder, in one shell.

It is a file by itself so that it runs beside test_new_packages.py, the longest one.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from support.apart import runs_apart
from support.effort import WHOLE
from support.installed import (
    SAMPLED_KIT,
    UNSET,
    attempt,
    is_gradient,
    needs_uv,
    unreachable_is_skipped,
    uv_as_pip,
)
from support.markdown import ROOT, Block, all_blocks, says

pytestmark = [needs_uv, runs_apart("packages"), pytest.mark.long, pytest.mark.timeout(900)]
MARK = "@@@"


def test_the_ten_minutes(wheels: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    page = all_blocks(ROOT / "docs/ten-minutes.md")
    variables = {"COLUMNS": "160", **uv_as_pip(folder, wheels[0].parent)}
    variables |= {} if WHOLE else SAMPLED_KIT
    script = f"set -e; start=$PWD\n{UNSET}\n" + "\n".join(map(as_script, page))
    script = script.replace("\npython3 -m venv .venv\n", "\nmake-venv .venv\n")
    done = attempt("bash", "-c", script, cwd=folder, env=variables)
    unreachable_is_skipped(done)
    assert done.returncode == 0, done.stdout + done.stderr
    *printed, rest = done.stdout.split(MARK)
    assert rest == ""
    ran = [block for block in page if block.language == "sh"]
    told = dict(zip((block.line for block in ran), printed, strict=True))
    compared = 0
    for before, block in itertools.pairwise(page):
        if block.language == "text":
            for line in block.text.splitlines():
                assert says(line, told[before.line]), f"{line!r} not in:\n{told[before.line]}"
                compared += 1
    assert compared == 3
    assert is_gradient(told[ran[2].line])
    assert re.search(r"\b\d+ passed", told[ran[3].line])


def as_script(block: Block) -> str:
    """Returns shell code that writes a titled block to its file, or runs it and prints a mark."""
    if block.title:
        return f"cat > \"$start/{block.title}\" <<'END OF FILE'\n{block.text}END OF FILE"
    assert block.language in ("sh", "text"), f"line {block.line}: a block that nothing tests"
    return f"{block.text}printf '{MARK}'" if block.language == "sh" else ""
