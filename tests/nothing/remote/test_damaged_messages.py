"""A server of the NumPy backend survives damaged messages and still serves other sessions."""

from __future__ import annotations

import os
import random
import socket
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from plugrt.interface import CompileOptions, Program
from plugrt_numpy import plugin
from plugrt_remote import wire
from plugrt_remote.addresses import connect
from plugrt_remote.client import RemoteClient
from plugrt_remote.values import pack
from plugrt_remote.wire import HEAD, Op, frame
from support.device_server import answer_to, becomes_true, serving
from support.effort import seeds
from support.remote_frames import EACH, HELLO, PUT, READ, damage

ADD = b"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(plugin.create_client({"num_devices": 2}), Path(folder)) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def other(address: str) -> Iterator[RemoteClient]:
    """Another session, open during all tests."""
    client = RemoteClient(address)
    yield client
    client.close()


def still_serves(other: RemoteClient) -> None:
    program = other.compile(Program(ADD), CompileOptions())
    x = other.buffer_from_host(np.float32([1, 2]), other.devices()[0])
    [[y]] = program.execute([(x,)])
    assert y.to_host().tolist() == [1, 2]
    assert becomes_true(lambda: other.stats()["sessions"] == 1)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([PUT], "is not allowed"),
        ([frame(Op.HELLO, wire.NUMBER.pack(1) + wire.HELLO.pack(b"GET / HT", 1))], "not a client"),
        ([HELLO.replace(wire.HELLO.pack(wire.MAGIC, wire.VERSION),
                        wire.HELLO.pack(wire.MAGIC, 99))], "version 99"),
        ([HELLO, HEAD.pack(Op.EXECUTE, 2**32 - 1, 0)], "not allowed"),
        ([HELLO, HEAD.pack(Op.PUT, 0, 2**63)], "not allowed"),
        ([HELLO, HEAD.pack(Op.WAIT, 0, 8)], "not allowed"),
        ([HELLO, frame(99, b"")], "99 is not allowed"),
        ([HELLO, frame(Op.READ, b"123")], "cannot be read"),
        ([HELLO, PUT.replace(struct.pack("<q", 2), struct.pack("<q", 3))], "other contents"),
        ([HELLO, PUT.replace(struct.pack("<q", 2), struct.pack("<q", -2))], "the shape"),
        ([HELLO, EACH[4]], "no program 9"),
        ([HELLO, EACH[11]], "no file descriptor"),
        ([HELLO, frame(Op.COMPILE, wire.COMPILE.pack(6, 9, bytes(32)) + pack([]), 1) + b"x"],
         "cannot be read"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_message_that_is_not_allowed_ends_its_session_with_the_reason(
    address: str, other: RemoteClient, messages: list[bytes], expected: str
) -> None:
    assert expected.encode() in answer_to(address, *messages)
    still_serves(other)


@pytest.mark.parametrize("seed", seeds(3))
def test_damaged_and_reordered_messages_end_no_other_session(
    address: str, other: RemoteClient, seed: int
) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        sent = rng.sample(EACH, 6) if rng.random() < 0.5 else EACH
        stream = damage(rng, b"".join(sent))
        answer_to(address, HELLO + stream)
    still_serves(other)


@pytest.mark.parametrize("fault", ["not sealed", "shorter"])
def test_a_segment_that_could_end_the_server_is_refused(
    address: str, other: RemoteClient, fault: str
) -> None:
    descriptor = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, 4096)
    if fault == "shorter":
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    size = 4096 if fault == "not sealed" else 8192
    with connect(address).sock as sock:
        sock.sendall(HELLO)
        socket.send_fds(sock, [frame(Op.SEGMENT, wire.SEGMENT.pack(1, size))], [descriptor])
        os.close(descriptor)
        found = b""
        while part := sock.recv(1 << 16):
            found += part
    assert b"is not sealed, or has another size" in found
    still_serves(other)
    names = [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.exists()]
    assert not [name for name in names if "memfd:test" in name]


def test_a_client_that_ends_without_reading_leaves_nothing(
    address: str, other: RemoteClient
) -> None:
    for count in range(5):
        sock = connect(address).sock
        sock.sendall(HELLO + PUT + READ * 500)
        if count % 2:
            sock.recv(1 << 10)
        sock.close()
    still_serves(other)
