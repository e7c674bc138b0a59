"""``plugrt doctor --html``: one page with all findings, of any contents, as text."""

from __future__ import annotations

import json
import random
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from plugrt.cli.doctor import page
from plugrt.cli.doctor_checks import Examination
from support.distributions import install_plugin, run_cli

EVIL = "<script>alert('x')</script> & \"quotes\" <img src=x onerror=y> </pre></style> &amp; ü"


class Page(HTMLParser):
    """Reads a page strictly: each element that is opened is closed, in order."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.shown = ""
        self.feed(content)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "title"):
            self.shown += data


def candidate(word: str) -> dict[str, Any]:
    texts = ("name", "platform", "source", "distribution", "version", "value", "library",
             "state", "reason", "cure", "traceback")  # fmt: skip
    return {**{key: f"{key} {word}" for key in texts}, "priority": 7, "elapsed_ms": 12.4,
            "key": [], "probe": {"facts": {f"fact {word}": f"says {word}"}}}  # fmt: skip


def examination(word: str) -> Examination:
    return Examination(
        versions={"plugrt": f"version {word}"},
        settings=[{k: f"{k} {word}" for k in ("variable", "value", "source", "doc")}],
        candidates=[candidate(word)],
        chosen=[f"chosen {word}"],
        why=f"why {word}",
        devices={f"chosen {word}": 3},
        hints=[f"hint {word}"],
        warnings=[f"warning {word}"],
        problems=[f"problem {word}"],
        steps=[f"first step {word}", f"second step {word}"],
        elapsed_s=1.25,
    )


def texts_of(value: Any) -> list[str]:
    """Returns every text in the findings; keys are the program's own."""
    if isinstance(value, str):
        return [value]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for inner in values for text in texts_of(inner)]


@pytest.mark.parametrize("word", ["plain", EVIL, "a\nb", "{{x}} ${y} %s \\", "日本語 עברית"])
def test_the_page_shows_every_text_of_the_findings_as_it_is(word: str) -> None:
    found = examination(word)
    read = Page(page(found))
    said = texts_of(found.as_dict())
    assert len(said) > 20
    for text in said:
        assert text in read.shown, text
    assert f"says {word}" in read.shown
    assert "12" in read.shown
    assert "7" in read.shown
    allowed = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "strong", "div",
               "span", "code", "pre", "details", "summary", "table", "thead", "tbody", "tr", "th",
               "td"}  # fmt: skip
    assert set(read.tags) <= allowed
    assert {name for name, _ in read.attributes} <= {
        "lang", "charset", "name", "content", "http-equiv", "class", "data-label",
    }  # fmt: skip


def test_texts_of_random_characters_stay_texts() -> None:
    draw = random.Random(11)
    for _ in range(200):
        word = "".join(
            draw.choice("<>&\"'/!-ax= ;#\0\x1b\ud800") for _ in range(draw.randint(1, 25))
        )
        content = page(examination(f"({word})"))
        read = Page(content.encode("utf-8", "backslashreplace").decode())
        visible = "".join(c if c.isprintable() else repr(c)[1:-1] for c in word)
        assert f"problem ({visible})" in read.shown
        assert "script" not in read.tags


def test_the_page_needs_nothing_else_and_no_network() -> None:
    content = page(examination("plain"))
    assert not re.search(r"https?://|\bsrc=|\bhref=|url\(|@import|<link|<script", content)
    policy = ("content", "default-src 'none'; style-src 'unsafe-inline'")
    assert policy in Page(content).attributes
    assert "prefers-color-scheme: dark" in content
    assert '<meta charset="utf-8">' in content


def test_the_command_writes_what_json_says(tmp_path: Path) -> None:
    """One run writes both; a plugin's text is escaped in the page."""
    install_plugin(tmp_path, "bad", f"raise OSError({EVIL!r})", version="1.5<b>")
    install_plugin(tmp_path, "good")
    target = tmp_path / "page.html"
    done = run_cli(
        "doctor", "--json", "--html", str(target),
        folders=[tmp_path], timeout=60, JAX_PLATFORMS="good,bad", JAX_DEBUG_NANS="1",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    read = Page(target.read_text(encoding="utf-8"))
    shown = " ".join(read.shown.split())
    assert EVIL in shown
    assert "script" not in read.tags
    assert "img" not in read.tags
    assert "bad-dist 1.5<b>" in shown
    assert found["steps"]
    for text in [*found["problems"], *found["warnings"], *found["steps"]]:
        assert " ".join(text.split()) in shown
    for row in found["candidates"]:
        assert row["name"] in shown
        assert " ".join(row["reason"].split()) in shown
        assert " ".join(row["traceback"].split()) in shown
    assert "JAX_DEBUG_NANS" in shown


def test_without_a_file_the_page_has_a_name_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin(tmp_path, "a")
    monkeypatch.chdir(tmp_path)
    done = run_cli("doctor", "--html", folders=[tmp_path], timeout=60, JAX_PLATFORMS="a")
    assert done.returncode == 0, done.stderr
    assert f"wrote {tmp_path / 'plugrt-doctor.html'}" in done.stdout.splitlines()
    assert "all well" in Page((tmp_path / "plugrt-doctor.html").read_text()).shown


@pytest.mark.parametrize("where", [".", "missing/page.html", "file/page.html"])
def test_a_file_that_cannot_be_written_is_named_before_anything_is_examined(
    tmp_path: Path, where: str
) -> None:
    (tmp_path / "file").write_text("kept")
    marker = tmp_path / "started"
    install_plugin(tmp_path, "a", f"open({str(marker)!r}, 'w').close()")
    bad = tmp_path / where
    done = run_cli("doctor", "--html", str(bad), folders=[tmp_path], timeout=60, JAX_PLATFORMS="a")
    assert done.returncode == 2
    assert f"--html: {bad}: it cannot be written" in done.stderr
    assert not marker.exists()
    assert (tmp_path / "file").read_text() == "kept"
