"""docs/troubleshooting.md: its commands fail as described, with the quoted messages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.markdown import ROOT, Block, all_blocks, says

PAGE = ROOT / "docs/troubleshooting.md"
OWN = ("JAX_", "PLUGRT_", "PJRT_", "XLA_")
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith(OWN)}
ENVIRONMENT["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{ENVIRONMENT['PATH']}"
BLOCKS = all_blocks(PAGE)
PAIRS = [(BLOCKS[i - 1], block) for i, block in enumerate(BLOCKS) if block.language == "text"]


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, timeout=240, check=False
    )


def _compare(block: Block, printed: str) -> None:
    for line in block.text.splitlines():
        assert says(line, printed), f"{PAGE}:{block.line}: {line!r} not in:\n{printed}"


COMMANDS = [(ran, told) for ran, told in PAIRS if ran.language == "sh"]


@pytest.mark.parametrize(("ran", "told"), COMMANDS, ids=[str(r.line) for r, _ in COMMANDS])
def test_commands_fail_with_the_message(ran: Block, told: Block) -> None:
    done = _run("bash", "-c", ran.text)
    assert done.returncode != 0, done.stdout
    _compare(told, done.stderr)


def test_programs_print_the_messages() -> None:
    """The Python blocks are one program, as on every page, and print the messages."""
    program = "\n".join(b.text for b in BLOCKS if b.language == "python")
    done = _run(sys.executable, "-c", program)
    assert done.returncode == 0, done.stderr
    told = [told for ran, told in PAIRS if ran.language == "python"]
    for block in told:
        _compare(block, done.stdout)
    assert len(done.stdout.splitlines()) == len(told)


def test_the_page_is_tested() -> None:
    assert len(COMMANDS) >= 3
    assert len(PAIRS) >= 7
