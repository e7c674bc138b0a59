"""The identity of a compiler: it distinguishes a library from its next version."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from plugrt.capi.client.client import Client
from plugrt.capi.loading.elf import build_id
from support.clib import compile_c, needs_cc
from support.xla_cpu import library_path


def identity(client: Client) -> str | None:
    found: str | None = Client.compiler_identity.func(client)  # without the cache
    return found


@needs_cc
def test_another_file_at_the_same_path_is_another_library(client: Client, tmp_path: Path) -> None:
    path = compile_c(tmp_path, "int x;", "-Wl,--build-id=0x12345678")
    library = SimpleNamespace(path=str(path), version=client.library.version)
    loaded: Any = SimpleNamespace(library=library, attributes=client.attributes)
    content, found, time = path.read_bytes(), [identity(loaded)], path.stat().st_mtime_ns
    number = bytes.fromhex("12345678")
    assert content.count(number) == 1
    for changed, at in (
        (content + b"0", time), (content, time + 1), (content.replace(number, b"abcd"), time)
    ):  # fmt: skip
        path.write_bytes(changed)
        os.utime(path, ns=(at, at))
        found.append(identity(loaded))
    assert len({*found}) == 4
    assert None not in found
    assert identity(client) == client.compiler_identity


def test_a_table_without_a_file_is_not_told_apart() -> None:
    capsule: Any = SimpleNamespace(library=SimpleNamespace(path="a capsule"))
    assert identity(capsule) is None


def test_the_build_id_is_the_linkers() -> None:
    found = build_id(str(library_path()))
    assert found == "" or int(found, 16) > 0
    assert build_id(__file__) == ""
    assert build_id(sys.executable) == build_id(os.path.realpath(sys.executable))
