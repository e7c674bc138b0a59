"""``plugrt doctor`` on libraries of the environment: good, broken, and crashing ones.

Those that hang are in ``tests/nothing/cli/test_sick_libraries.py``.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.clib import needs_cc
from support.distributions import install_plugin, run_cli

pytestmark = needs_cc

SOURCES = {
    "aborts": "#include <stdlib.h>\nvoid* GetPjrtApi(void) { abort(); }",
    "exits": "#include <unistd.h>\nvoid* GetPjrtApi(void) { _exit(0); }",
    "null": "void* GetPjrtApi(void) { return 0; }",
    "other": "int something_else(void) { return 1; }",
}


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("libraries")
    found = {}
    for name, source in SOURCES.items():
        (folder / f"{name}.c").write_text(source)
        found[name] = folder / f"{name}.so"
        command = ["cc", "-shared", "-fPIC", "-o", str(found[name]), str(folder / f"{name}.c")]
        subprocess.run(command, check=True)
    found["text"] = folder / "text.so"
    found["text"].write_text("not a library")
    found["missing"] = folder / "missing.so"
    return found


def variable(libraries: dict[str, Path]) -> str:
    return ",".join(f"{name}:{path}" for name, path in libraries.items())


def test_one_row_each_with_state_and_reason(tmp_path: Path, libraries: dict[str, Path]) -> None:
    install_plugin(tmp_path, "a")
    done = run_cli(
        "doctor", "--json", folders=(tmp_path,), JAX_PLATFORMS="a",
        PJRT_NAMES_AND_LIBRARY_PATHS=variable(libraries),
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    rows = {row["name"]: row for row in found["candidates"]}
    facts = {
        "aborts": "SIGABRT", "exits": "exit code 0", "null": "NULL",
        "other": "GetPjrtApi", "text": "text.so", "missing": "does not exist",
    }  # fmt: skip
    assert facts.keys() == libraries.keys()
    for name, fact in facts.items():
        assert rows[name]["state"] in ("broken", "incompatible"), name
        assert fact in rows[name]["reason"], rows[name]["reason"]
    assert rows["a"]["state"] == "initialised"
    assert len(found["problems"]) == len(facts)
    assert found["elapsed_s"] < 60
