"""The chapter of docs/capi-coverage.md on hosts is made of complete traces."""

from __future__ import annotations

import json

from plugrt.capi.abi import declarations
from support.markdown import load_script

GENERATOR = load_script("docs/generate/hosts.py")
RECORDS = json.loads(GENERATOR.DATA.read_text(encoding="utf-8"))


def test_plugrt_and_two_versions_of_jax_are_recorded_in_every_step() -> None:
    assert "plugrt" in RECORDS
    assert len(RECORDS) >= 3
    for host, steps in RECORDS.items():
        torch = host.startswith("PyTorch/XLA")
        assert list(steps) == list(GENERATOR.TORCH_STEPS if torch else GENERATOR.STEPS), host
        assert all("Client_Create" in found for found in steps.values()), host


def test_recorded_functions_are_declared() -> None:
    known = {entry.name for entry in declarations.functions()}
    called = {name for steps in RECORDS.values() for found in steps.values() for name in found}
    extensions = tuple(f"{name}_" for name in declarations.EXTENSIONS)
    assert [n for n in called - known if not n.startswith(extensions)] == []
