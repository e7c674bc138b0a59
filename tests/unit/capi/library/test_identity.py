"""Distinguishes a library from its successor."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from plugrt.capi.client import client as client_module
from plugrt.capi.client.client import Client
from plugrt.capi.loading.elf import build_id
from support.xla_cpu import library_path


def identity(client: Client) -> str | None:
    found: str | None = Client.compiler_identity.func(client)  # not the remembered one
    return found


@pytest.mark.parametrize("field", ["st_size", "st_mtime_ns"])
def test_another_file_at_the_same_path_is_another_library(
    client: Client, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, real = identity(client), os.stat

    def changed(path: Any, *args: Any, **kwargs: Any) -> Any:
        found = real(path, *args, **kwargs)
        if str(path) != client.library.path:
            return found
        facts = {name: getattr(found, name) for name in dir(found) if name.startswith("st_")}
        return SimpleNamespace(**facts | {field: facts[field] + 1})

    monkeypatch.setattr(os, "stat", changed)
    assert identity(client) != before
    monkeypatch.setattr(os, "stat", real)
    assert identity(client) == before == client.compiler_identity
    monkeypatch.setattr(client_module, "build_id", lambda path: "of a successor")
    assert identity(client) != before


def test_a_table_without_a_file_is_not_told_apart(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client.library, "path", "a capsule")
    assert identity(client) is None


def test_the_build_id_is_the_linkers() -> None:
    found = build_id(str(library_path()))
    assert found == "" or int(found, 16) > 0
    assert build_id(__file__) == ""
    assert build_id(sys.executable) == build_id(os.path.realpath(sys.executable))
