"""``plugrt compile``, with a plugin that compiles for absent devices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.distributions import install_plugin, run_cli

PROGRAM = "func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    install_plugin(tmp_path, "far", "from support.fake_topology import plugin\n")
    (tmp_path / "one.mlir").write_text(PROGRAM)
    return tmp_path


def test_json_has_figures_and_the_file_is_written(site: Path) -> None:
    out = site / "one.bin"
    done = run_cli(
        "compile", str(site / "one.mlir"), "--topology", "far:4", "--json", "--text",
        "-o", str(out), folders=(site,),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["flops"] == 12
    assert facts["bytes_accessed"] == 34
    assert facts["cost_source"] == "the backend"
    assert facts["memory"]["temp_size_in_bytes"] == 56
    assert facts["devices"] == 4
    assert facts["device_kind"] == "Far 9000"
    assert facts["program"] == "one"
    assert facts["text"] == "HloModule fake"
    assert out.read_bytes() == b"artifact of one"
    assert facts["serialized_bytes"] == len(out.read_bytes())


def test_for_people(site: Path) -> None:
    done = run_cli("compile", str(site / "one.mlir"), "--topology", "far:4", folders=(site,))
    assert done.returncode == 0, done.stderr
    for words in ("4 x Far 9000", "flops", "12", "34 bytes", "temp size", "56 bytes"):
        assert words in done.stdout


def test_options_are_typed(site: Path) -> None:
    source = (
        "from support.fake_topology import FarPlugin\n"
        "class Strict(FarPlugin):\n"
        "    def create_topology(self, name, options):\n"
        "        assert options == {'n': 2, 'wrap': [1, 0, 0], 'word': 'x=y'}, options\n"
        "        return super().create_topology(name, options)\n"
        "plugin = Strict('strict')\n"
    )
    install_plugin(site, "strict", source)
    options = ("--option", "n=2", "--option", "wrap=1,0,0", "--option", "word=x=y")
    done = run_cli(
        "compile", str(site / "one.mlir"), "--topology", "strict:4", *options, folders=(site,)
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--topology", "far:two"), 1, "'two' is no number of devices"),
        (("--topology", "fart:2"), 2, "did you mean 'far'?"),
        (("--topology", "far:2", "--option", "nonsense"), 2, "is not NAME=VALUE"),
        ((), 2, "--topology"),
    ],
)
def test_wrong_options_print_the_mistake(
    site: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = run_cli("compile", str(site / "one.mlir"), *arguments, folders=(site,))
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr
