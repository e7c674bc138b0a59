"""Saving executables and loading them again; invalid bytes."""

from __future__ import annotations

import hashlib
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plugrt.errors import DataLoss, FailedPrecondition
from plugrt.interface import Client, CompileOptions
from plugrt_cpu import serialization
from support.cpu_programs import add


@pytest.fixture(scope="module")
def saved(client: Client) -> bytes:
    return client.compile(add(donate=True), CompileOptions()).executable.serialize()


def run(client: Client, loaded: Any) -> list[float]:
    device = loaded.addressable_devices[0]
    buffers = [[client.buffer_from_host(np.ones(4, "f4"), device)] for _ in range(2)]
    (result,) = loaded.execute(buffers)
    assert buffers[0][0].is_deleted()
    values: list[float] = result[0].to_host().tolist()
    return values


def test_in_another_process(client: Client, saved: bytes, tmp_path: Path) -> None:
    (tmp_path / "add").write_bytes(saved)
    code = """if 1:
        import sys, numpy as np
        from plugrt_cpu import plugin
        client = plugin.create_client({})
        loaded = client.deserialize_executable(open(sys.argv[1], "rb").read())
        one = lambda: [client.buffer_from_host(np.ones(4, "f4"), client.devices()[0])]
        print(loaded.execute([one(), one()])[0][0].to_host().tolist())"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "add"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[2.0, 2.0, 2.0, 2.0]"


def test_cut_and_altered_bytes(client: Client, saved: bytes) -> None:
    chance = random.Random(0)
    title, magic = len(serialization.SEALED.title), len(serialization.SEALED.magic)
    for length in (title, magic, 20, 50, 100, len(saved) // 2, len(saved) - 1):
        with pytest.raises(DataLoss):
            client.deserialize_executable(saved[:length])
    for at in chance.sample(range(magic, len(saved)), 60):
        altered = bytearray(saved)
        altered[at] ^= 1 << chance.randrange(8)
        with pytest.raises(DataLoss):
            client.deserialize_executable(bytes(altered))
    with pytest.raises(DataLoss):
        client.deserialize_executable(saved + b"x")
    with pytest.raises(FailedPrecondition, match="another version of plugrt, in format"):
        client.deserialize_executable(b"PLUGRTCPU\x00\x00\x01" + saved[magic:])


@pytest.mark.parametrize("what", ["jaxlib", "machine"])
def test_another_version_or_machine(client: Client, saved: bytes, what: str) -> None:
    title, _, content = saved.split(b"\n", 2)
    name = what.encode()
    content = re.sub(rb'"%s": "[^"]+"' % name, b'"%s": "x"' % name, content, count=1)
    digest = hashlib.sha256(content).hexdigest().encode()
    with pytest.raises(FailedPrecondition, match=rf"compiled for {what} x; here is [\w.-]+"):
        client.deserialize_executable(b"\n".join((title, digest, content)))
