"""Every command on terminals of 60 and 80 columns: lines fit, and no word is divided."""

from __future__ import annotations

import json
import os
import pty
import random
import subprocess
import sys
from pathlib import Path

import pytest

from plugrt import cli
from plugrt.cli.output import print_line
from support.distributions import install_plugin, run_cli
from support.doctor import show

ROOT = Path(__file__).parents[3]
WIDE = 5000
COMMANDS = ("compile", "demo", "devices", "doctor", "inspect", "pack", "run")
CALLS = [
    ["--help"],
    *([command, "--help"] for command in COMMANDS),
    ["nosuch"],
    ["docter"],
    ["run"],
    ["run", "a_file_that_is_not_there_and_has_a_long_name.mlir", "--platform", "cpu"],
    ["run", str(ROOT / "README.md"), "--nosuch-option", "1"],
    ["compile", str(ROOT / "examples/mlp.mlir")],
    ["compile", str(ROOT / "examples/mlp.mlir"), "--topology", "nope:x"],
    ["compile", str(ROOT / "examples/mlp.mlir"), "--topology", "cpu:1", "--option", "no value"],
    ["devices", "--platform", "a platform that nobody has"],
    ["doctor", "--html", "/no/such/folder/page.html"],
]


def check(narrow: str, wide: str, width: int) -> None:
    """Fails for a long line of several words, and for a word that is not in the wide text."""
    for line in narrow.splitlines():
        assert len(line) <= width or len(line.split()) == 1, line
    assert words(narrow) == words(wide)


def words(text: str) -> list[str]:
    """Returns the words without rules of tables, whose lengths depend on the width."""
    return [word for word in text.split() if set(word) != {"-"}]


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("call", CALLS, ids=lambda call: " ".join(call)[-40:])
def test_helps_and_errors(
    call: list[str], width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = {}
    for columns in (width, WIDE):
        monkeypatch.setenv("COLUMNS", str(columns))
        cli._run(call)
        out, err = capsys.readouterr()
        shown[columns] = out + err
    assert shown[width]
    assert "..." not in shown[width].replace("[ARGS]...", ""), "a sentence is cut"
    check(shown[width], shown[WIDE], width)


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    install_plugin(tmp_path, "a", version="1.5")
    words = "no driver was found in any of the places where one is looked for: " * 4
    install_plugin(tmp_path, "bad", f"raise OSError({words!r} + '/dev/a_path_without_any_spaces')")
    return tmp_path


@pytest.mark.parametrize(
    "settings",
    [
        {"JAX_PLATFORMS": "a", "PLUGRT_PLUGINS_BLOCK": "cpu"},
        {"PLUGRT_PLUGINS_ALLOW": "a,bad"},
        {"JAX_PLATFORMS": "bad"},
    ],
    ids=["a", "allowed", "bad"],
)
def test_devices(plugins: Path, settings: dict[str, str]) -> None:
    """Tables, and warnings about plugins, on stderr."""

    def devices(columns: int) -> str:
        done = run_cli("devices", folders=(plugins,), COLUMNS=str(columns), **settings)
        return done.stdout + done.stderr

    wide = devices(WIDE)
    for width in (60, 80):
        check_table(devices(width), wide, width)


def test_doctor(plugins: Path) -> None:
    """Tables and problems, all from one run of doctor."""
    done = run_cli("doctor", "--json", folders=(plugins,), JAX_PLATFORMS="a,bad")
    found = json.loads(done.stdout)
    for width in (60, 80):
        check_table(show(found, width), show(found, WIDE), width)


def check_table(narrow: str, wide: str, width: int) -> None:
    """Fails if a narrow table has a long line, or words that the wide one lacks, except numbers."""
    assert narrow
    for line in narrow.splitlines():
        assert len(line) <= width or len(line.split()) == 1, line
    known = {w.strip(":") for w in words(wide)}
    new = {w.strip(":") for w in words(narrow)} - known
    assert not {w for w in new if not w.strip("(").replace(".", "").isdigit()}, new


def test_lines_of_random_words_keep_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(4)
    for _ in range(200):
        text = "".join(draw.choice("ab-/\n  (") for _ in range(draw.randint(1, 300)))
        width = draw.randint(20, 100)
        monkeypatch.setenv("COLUMNS", str(width))
        print_line(text, err=draw.random() < 0.5)
        out, err = capsys.readouterr()
        assert (out + err).split() == text.split()
        assert all(
            len(line) <= width or len(line.split()) == 1 for line in (out + err).splitlines()
        )


def test_lines_stay_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_line("error: arguments of other types:\n  x: takes float32[3], called with int32[3]\nend")
    assert capsys.readouterr().out.splitlines() == [
        "error: arguments of other types:", "  x: takes float32[3], called with", "      int32[3]",
        "end",
    ]  # fmt: skip


@pytest.mark.parametrize("stream", ["out", "err"])
def test_a_terminal_states_its_width(stream: str) -> None:
    """Each stream has its own: the other one may be a file."""
    code = f"""
import os, fcntl, struct, termios, sys
fcntl.ioctl({1 if stream == "out" else 2}, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 40, 0, 0))
from plugrt.cli.output import print_line
print_line("word " * 20, err={stream == "err"})
"""
    ours, theirs = pty.openpty()
    environ = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    other = "stderr" if stream == "out" else "stdout"
    subprocess.run(
        [sys.executable, "-c", code],
        env=environ, timeout=60, check=True, **{f"std{stream}": theirs, other: subprocess.DEVNULL},
    )  # type: ignore[call-overload]  # fmt: skip
    os.close(theirs)
    lines = os.read(ours, 10_000).decode().splitlines()
    os.close(ours)
    assert [len(line.split()) for line in lines] == [8, 7, 5]
