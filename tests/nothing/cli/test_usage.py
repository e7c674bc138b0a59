"""Wrong usage exits with 2 and one message; options that every command shares; completion."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest

from plugrt.cli import cli, run
from support.distributions import install_plugin, run_cli, run_warm

PROGRAM = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
WRONG = {
    ("new", "my chip"): "try my_chip",
    ("new", "9x"): "try my_9x",
    ("new", "cpu", "--path", "there"): "choose another name",
    ("new", "fine", "--library", "program.mlir"): "--kind library",
    ("new", "fine", "--kind", "library", "--library", "program.mlir"): "program.mlir",
    ("devices", "--platform", "cud"): "--platform cud requests 'cud'",
    ("compile", "program.mlir", "--topology", "cud"): "requests 'cud'",
    ("export", "cud"): "'cud'",
    ("conform", "cud"): "cud",
    ("conform", "cpu", "--check", "nosuch"): "nosuch",
    ("trace", "--", "./nosuch"): "cannot run ./nosuch",
    ("trace", "--plugin", "nosuch", "--", "true"): "--plugin nosuch",
    ("trace", "--library", "nosuch.so", "--", "true"): "--library nosuch.so",
    ("trace", "--fail", "Nothing", "--", "true"): "Nothing",
    ("abi", "diff", "notes.md"): "notes.md",
    ("abi", "diff", "nosuch.h"): "nosuch.h",
}
"""The words after ``plugrt``, and the words that the message must contain."""


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_usage_exits_with_2_and_names_what_is_wrong(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n")
    (tmp_path / "program.mlir").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    done = run_cli(*words, JAX_PLATFORMS="cpu")
    message = done.stderr.partition("error: ")[2]
    assert done.returncode == 2, done.stderr
    assert WRONG[words] in message
    assert "INVALID_ARGUMENT" not in message
    assert {path.name for path in tmp_path.iterdir()} == {"notes.md", "program.mlir"}


def _commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def test_json_is_one_flag_in_every_command_that_prints_data() -> None:
    flags = {
        name: option
        for name, command in _commands(cli)
        for option in command.params
        if "--json" in option.opts
    }
    assert set(flags) >= {"abi diff", "compile", "conform", "demo", "devices", "doctor", "run"}
    assert {name: (p.name, p.is_flag) for name, p in flags.items() if isinstance(p, click.Option)} \
        == dict.fromkeys(flags, ("as_json", True))  # fmt: skip


@pytest.mark.parametrize(("value", "coloured"), [("1", False), ("", True), (None, True)])
def test_no_color_turns_colours_off(
    value: str | None, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    environ = {"PLUGRT_PLUGINS_ALLOW": "nothing"} | ({} if value is None else {"NO_COLOR": value})
    code = """
        from click.testing import CliRunner
        from plugrt.cli import cli
        print(CliRunner().invoke(cli, ["doctor"], color=True).output)
    """
    shown = run_warm(code, **environ).stdout
    assert "nothing" in shown
    assert ("\x1b[" in shown) is coloured


@pytest.mark.parametrize(
    ("line", "expected", "absent"),
    [
        ("plugrt conform c", "chip", "other"),
        ("plugrt devices --platform ", "other", "buffers"),
        ("plugrt run --platform ch", "chip", "other"),
        ("plugrt export o", "other", "chip"),
        ("plugrt trace --plugin o", "other", "chip"),
        ("plugrt conform chip --check buffers.read_t", "buffers.read_twice", "buffers.read_only"),
    ],
)
def test_a_shell_completes_plugins_and_checks(
    line: str, expected: str, absent: str, tmp_path: Path
) -> None:
    install_plugin(tmp_path, "chip")
    install_plugin(tmp_path, "other")
    words = line.split(" ")
    done = run_warm(
        "import plugrt.cli; plugrt.cli.main([])",
        tmp_path, _PLUGRT_COMPLETE="bash_complete", COMP_WORDS=line,
        COMP_CWORD=str(len(words) - 1),
    )  # fmt: skip
    completions = [text.rpartition(",")[2] for text in done.stdout.splitlines()]
    assert expected in completions, done.stderr
    assert absent not in completions


@pytest.mark.parametrize(
    ("gibibytes", "at_terminal", "shown"), [(2, True, True), (2, False, False), (0, True, False)]
)
def test_run_announces_large_moves_on_a_terminal(
    gibibytes: int, at_terminal: bool, shown: bool
) -> None:
    class Stderr(io.StringIO):
        def isatty(self) -> bool:
            return at_terminal

    with contextlib.redirect_stderr(Stderr()) as found:
        run.say_progress("putting inputs", [np.broadcast_to(np.float32(0), (gibibytes << 28,))])
    assert ("putting inputs: 2.0 GiB" in found.getvalue()) is shown
