"""The snippets of the READMEs of cuda and tpu (``py`` and ``sh``), which need vendor libraries."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from plugrt_cuda import library
from support.distributions import run_cli, run_python
from support.markdown import ROOT, blocks
from support.requirements import needs, needs_package

each_plugin = pytest.mark.parametrize(
    "name",
    [
        pytest.param("cuda", marks=needs(library.installed(), "its library", session="vendors")),
        pytest.param("tpu", marks=needs_package("libtpu", "vendors")),
    ],
)


@each_plugin
def test_python_snippets_run(name: str) -> None:
    [block] = blocks(ROOT / "plugins" / name / "README.md", "py")
    code = block.text + "assert len(saved) > 1000\n"
    done = run_python(code, ALLOW_MULTIPLE_LIBTPU_LOAD="1")
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[0]) == 127 * 512  # additions; tanh counts apart
    assert "HloModule" in done.stdout


@each_plugin
def test_commands_exit_0(name: str, tmp_path: Path) -> None:
    [block] = blocks(ROOT / "plugins" / name / "README.md", "sh")
    lines = [shlex.split(line[2:], comments=True) for line in block.text.splitlines()]
    commands = [words[1:] for words in lines if words[0] == "plugrt"]
    assert commands
    for words in commands:
        here = [str(ROOT / w) if w.startswith("examples/") else w for w in words]
        here = [str(tmp_path / w) if w == "mlp.tpu" else w for w in here]
        done = run_cli(*here, ALLOW_MULTIPLE_LIBTPU_LOAD="1")
        assert done.returncode == 0, done.stderr
