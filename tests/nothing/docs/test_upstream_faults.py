"""`docs/data/upstream_faults.toml` and the comments `Workaround for <id>` agree."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.markdown import ROOT

FAULTS = ROOT / "docs/data/upstream_faults.toml"
FOLDERS = ("runtime/core", "runtime/src", "plugins", "plugin_sdk/core", "plugin_sdk/src", "tests")
TEXTS = {"id", "project", "versions", "fault", "test"}
_COMMENT = re.compile(r"(?:#|/\*|//) ?Workaround for ([\w.-]*\w)")

Fault = dict[str, Any]


def code() -> dict[str, str]:
    """Returns the text of each source file, by its path."""
    paths = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*.*")]
    built = {*ROOT.glob("plugins/*/build")}  # by pip install
    paths = [p for p in paths if not built & {*p.parents}]
    sources = [p for p in paths if p.suffix in (".py", ".c", ".h", ".cc") and p != Path(__file__)]
    return {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in sources}


def has_test(root: Path, test: str) -> bool:
    """Whether the file exists, with a function of this name at its top level."""
    file, _, name = test.partition("::")
    if not (root / file).is_file():
        return False
    body = ast.parse((root / file).read_text(encoding="utf-8")).body
    return name in {part.name for part in body if isinstance(part, ast.FunctionDef)}


def find_mistakes(root: Path, faults: list[Fault], sources: Mapping[str, str]) -> list[str]:
    """Returns the differences between list and comments, and missing files and tests."""
    commented = {(n, i) for n, text in sources.items() for i in _COMMENT.findall(text)}
    listed = {(name, fault.get("id", "")) for fault in faults for name in fault.get("files", ())}
    found = [f"{name}: no comment `Workaround for {i}`" for name, i in sorted(listed - commented)]
    found += [f"{name}: {i} is not in the list" for name, i in sorted(commented - listed)]
    ids = Counter(fault.get("id") for fault in faults)
    found += [f"{i}: listed {count} times" for i, count in ids.items() if count > 1]
    for fault in faults:
        keys = TEXTS | {"files"} | ({"link", "reproduction", "seen"} & set(fault))
        if set(fault) != keys or len(keys) != len(TEXTS) + 2 or not all(fault.values()):
            found.append(f"{fault.get('id')}: needs {sorted(TEXTS)}, files, and one of link, "
                         "reproduction and seen")  # fmt: skip
            continue
        if not has_test(root, fault["test"]):
            found.append(f"{fault['id']}: there is no {fault['test']}")
        if "reproduction" in fault and not (root / fault["reproduction"]).is_file():
            found.append(f"{fault['id']}: there is no {fault['reproduction']}")
        if not fault.get("link", "https://").startswith("https://"):
            found.append(f"{fault['id']}: the link is no address")
    return found


def test_the_list_and_the_code_agree() -> None:
    faults = tomllib.loads(FAULTS.read_text(encoding="utf-8"))["faults"]
    assert find_mistakes(ROOT, faults, code()) == []
