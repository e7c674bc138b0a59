"""Tables and sentences on terminals of any width: no word is divided, no text is lost."""

from __future__ import annotations

import random

import pytest

from plugrt.cli.output import print_line, print_table

COLUMNS = ("device", "backend", "kind", "process", "memories", "")
DEVICES = [
    ("cpu:0", "cpu", "NVIDIA H100", 0, "device, pinned_host, unpinned_host", "default"),
    ("cpu:1", "cpu", "cpu", 0, "device, pinned_host, unpinned_host", ""),
]
PLUGINS = [
    ("xla_cpu", "not selected", "", "xla-cpu-pjrt 0.0.1", "cpu has the highest priority of all"),
    ("cuda", "unavailable", 500, "plugrt-cuda 0.1.0", "no /proc/driver/nvidia/version " * 6),
]


def words_of(*rows: tuple[object, ...]) -> set[str]:
    return {word for row in rows for cell in row for word in str(cell).split()}


@pytest.mark.parametrize("width", [20, 30, 45, 60, 72, 80, 100, 109, 110, 140, 200])
@pytest.mark.parametrize("rows", [DEVICES, PLUGINS], ids=["devices", "plugins"])
def test_a_table(
    rows: list[tuple[object, ...]], width: int,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(COLUMNS[: len(rows[0])], rows, "Title")
    lines = capsys.readouterr().out.splitlines()
    longest = max(map(len, words_of(*rows, COLUMNS)))
    assert all(len(line.rstrip()) <= max(width, longest + 5) for line in lines), lines
    shown = {word.strip(":") for line in lines for word in line.split()}
    assert {word.strip(":") for word in words_of(*rows)} <= shown


def test_tables_of_random_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(7)
    for _ in range(60):
        columns = draw.randint(1, 7)
        rows = [
            tuple(
                " ".join("w" * draw.randint(1, 12) for _ in range(draw.randint(0, 9)))
                for _ in range(columns)
            )
            for _ in range(draw.randint(1, 4))
        ]
        monkeypatch.setenv("COLUMNS", str(draw.randint(25, 150)))
        print_table([f"c{i}" for i in range(columns)], rows)
        shown = capsys.readouterr().out.replace(":", " ").split()
        assert words_of(*rows) <= set(shown), rows
        assert sum(s.count("w") for s in shown) >= sum(cell.count("w") for r in rows for cell in r)


def test_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = "chosen: 'cpu', because cpu has the highest priority (0) of those that work; jaxlib 0.10"
    monkeypatch.setenv("COLUMNS", "40")
    print_line(text)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(len(line) <= 40 for line in lines)
    assert " ".join(line.strip() for line in lines) == text
    monkeypatch.delenv("COLUMNS")
    print_line(text * 3)
    assert capsys.readouterr().out == text * 3 + "\n", "not wrapped where nobody reads a terminal"
