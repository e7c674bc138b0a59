"""`plugrt.plugins.discovery.env_paths`: PJRT_NAMES_AND_LIBRARY_PATHS, item by item."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plugrt.errors import ConfigError
from plugrt.plugins.discovery.env_paths import parse_libraries, read_json


def test_items() -> None:
    records = parse_libraries("a:/x/a.so, b:/x/b.so,", ":")
    assert [(r.name, r.library, r.state) for r in records] == [
        ("a", "/x/a.so", "found"),
        ("b", "/x/b.so", "found"),
    ]
    assert {r.source for r in records} == {"environment"}
    assert {r.priority for r in records} == {400}


def test_nothing_is_no_item() -> None:
    assert parse_libraries("", ":") == []


@pytest.mark.parametrize(
    ("text", "separator", "library"),
    [("a:/x:y/z.so", ":", "/x:y/z.so"), (r"a;C:\x\z.dll", ";", r"C:\x\z.dll"), ("a: z ", ":", "z")],
)
def test_a_path_may_hold_the_separator(text: str, separator: str, library: str) -> None:
    (record,) = parse_libraries(text, separator)
    assert (record.name, record.library) == ("a", library)


@pytest.mark.parametrize("item", ["nameonly", ":/x.so", "a:", "/x/y.so", ":", "a;/x.so"])
def test_a_malformed_item_says_which_and_what_is_expected(item: str) -> None:
    good, bad = parse_libraries(f"good:/g.so,{item}", ":")
    assert good.state == "found"
    assert bad.state == "broken"
    assert not bad.named
    for fact in ("PJRT_NAMES_AND_LIBRARY_PATHS", "item 2", repr(item), "name:path"):
        assert fact in bad.reason
    if ";" in item:
        assert "separator here is ':'" in bad.reason


@pytest.mark.parametrize("name", ["f o o", "ünï", "1chip", "a/b", "-x"])
def test_a_name_that_cannot_be_asked_for_is_what_is_refused(name: str) -> None:
    """Earlier, the error blamed the form of the item, which is valid."""
    (bad,) = parse_libraries(f"{name}:/x.so", ":")
    assert (bad.state, bad.named) == ("broken", False)
    assert f"{name!r}, which cannot be used in JAX_PLATFORMS" in bad.reason
    assert "not of the form" not in bad.reason


@pytest.mark.parametrize("again", ["a:/x.so", " a : /x.so "])
def test_a_repeated_item_is_one_item(again: str) -> None:
    """Earlier, it was `DuplicatePlugin`.

    Same as JAX: one name and library that PJRT_NAMES_AND_LIBRARY_PATHS states twice are one plugin.
    """
    (record,) = parse_libraries(f"a:/x.so,{again}", ":")
    assert record.state == "found"
    assert len(parse_libraries("a:/x.so,a:/y.so", ":")) == 2


def test_spellings_of_one_file_are_one_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier, each was `DuplicatePlugin`: a link, a relative path, a JSON file without options."""
    real = tmp_path / "lib/real.so"
    real.parent.mkdir()
    real.touch()
    (tmp_path / "link.so").symlink_to("lib/real.so")
    (tmp_path / "folder").symlink_to("lib")
    (tmp_path / "a.json").write_text(json.dumps({"library_path": str(real)}))
    (tmp_path / "options.json").write_text(
        json.dumps({"library_path": str(real), "create_options": {"a": 1}})
    )
    (tmp_path / "b.json").symlink_to("options.json")
    monkeypatch.chdir(tmp_path)
    plain = (
        str(real), "lib/real.so", "./lib/real.so", "lib/../lib//real.so", "folder/real.so",
        "./link.so", str(tmp_path / "link.so"), "a.json",
    )  # fmt: skip
    with_options = ("options.json", "./options.json", "b.json")
    for group in (plain, with_options):
        for one in group:
            for other in group:
                assert len(parse_libraries(f"a:{one},a:{other}", ":")) == 1, (one, other)
                assert len(parse_libraries(f"a:{one},b:{other}", ":")) == 2
    for one in plain:
        assert len(parse_libraries(f"a:{one},a:options.json", ":")) == 2, "it has options"
        assert len(parse_libraries(f"a:{one},a:real.so", ":")) == 2, "the loader searches that"
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert len(parse_libraries("a:./x.so,a:y/x.so,a:/x\0y.so", ":")) == 3


def test_json(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    content = {
        "library_path": "/x.so",
        "create_options": {"a": 1, "b": [1, 2], "c": "t", "d": True},
    }
    file.write_text(json.dumps(content))
    (record,) = parse_libraries(f"a:{file}", ":")
    assert record.library == "/x.so"
    assert record.options == content["create_options"]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON"),
        ("[]", "library_path"),
        ('{"library_path": 3}', "library_path"),
        ('{"library_path": "x", "create_options": {"a": null}}', "'a'"),
        ('{"library_path": "x", "create_options": [1]}', "create_options must be"),
    ],
)
def test_a_faulty_json_is_a_broken_row(tmp_path: Path, content: str | None, fault: str) -> None:
    file = tmp_path / "p.json"
    if content is not None:
        file.write_text(content)
    (record,) = parse_libraries(f"a:{file}", ":")
    assert record.state == "broken"
    assert fault in record.reason
    assert str(file) in record.reason
    assert "item 1" in record.reason
    with pytest.raises(ConfigError, match=r"p\.json"):
        read_json(str(file))
