"""Damaged and reordered messages to a device server: ``nox -s remote_long -- frames``."""

from __future__ import annotations

import gc
import os
import random
import struct
import tempfile
from pathlib import Path

from plugrt_numpy import plugin
from plugrt_remote import wire
from plugrt_remote.client import RemoteClient
from plugrt_remote.values import pack
from plugrt_remote.wire import Op, frame
from support.device_server import answer_to, becomes_true, serving
from support.remote_kills import held_by, serves

HELLO = frame(Op.HELLO, wire.NUMBER.pack(1) + wire.HELLO.pack(wire.MAGIC, wire.VERSION))
PUT = frame(Op.PUT, wire.PUT.pack(2, 0, -1, 11, 1, 0) + struct.pack("<q", 2), 8) + b"\0" * 8
READ = frame(Op.READ, wire.READ.pack(3, 2, 0, 0))
EACH = [
    PUT,
    READ,
    frame(Op.JOIN, wire.JOIN.pack(4, 1) + wire.PART.pack(2, 0)),
    frame(Op.COPY, wire.COPY.pack(5, 2, 0, 0, -1)),
    frame(Op.EXECUTE, wire.EXECUTE.pack(9, 10, 1, 0, 0) + struct.pack("<Q", 2)),
    frame(Op.COMPILE, wire.COMPILE.pack(6, 9, bytes(32)) + pack(["mlir", "main", {}, [], {}])),
    frame(Op.WATCH, wire.NUMBER.pack(2)),
    frame(Op.WAIT, wire.WAIT.pack(7, 2, -1)),
    frame(Op.STATS, wire.STATS.pack(8, 0)),
    frame(Op.ASK, wire.ASK.pack(9, 1, 2)),
    frame(Op.CANCEL, wire.CANCEL.pack(11, 9)),
    frame(Op.SEGMENT, wire.SEGMENT.pack(1, 1 << 20)),
    frame(Op.DELETE, wire.DELETE.pack(-1) + wire.NUMBER.pack(2)),
    frame(Op.RETURN, wire.NUMBER.pack(1) + pack([None, [[[2], 11]]])),
]
"""A message of each kind that is not answered with the end of the session, if its turn is right."""
_IN_A_STREAM = 400


def damage(rng: random.Random, stream: bytes) -> bytes:
    """Returns the bytes with up to three changed, left out or added."""
    changed = bytearray(stream)
    for _ in range(rng.randrange(1, 4)):
        at, change = rng.randrange(len(changed)), rng.random()
        if change < 0.6:
            changed[at] = rng.randrange(256)
        elif change < 0.8:
            del changed[at : at + rng.randrange(1, 20)]
        else:
            changed[at:at] = rng.randbytes(rng.randrange(1, 20))
    return bytes(changed)


class _Counted(wire.FrameReader):
    """Counts the messages that sessions have received."""

    taken = 0

    def done(self) -> None:
        super().done()
        _Counted.taken += 1


def send_frames(count: int, seed: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Sends ``count`` messages that a server handles, in any order, later ones damaged.

    Another session computes meanwhile. Returns the descriptors and segments of this process, which
    serves, after the first streams and at the end.
    """
    rng, held = random.Random(seed), []
    # A message that always ends its session would end each stream.
    usual = [each for i, each in enumerate(EACH) if i not in (4, 11)]
    reader, wire.FrameReader = wire.FrameReader, _Counted  # type: ignore[misc]
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            serving(plugin.create_client({"num_devices": 2}), Path(folder)) as address,
        ):
            other = RemoteClient(address)
            streams = 0
            while _Counted.taken < count or not streams:
                sent = rng.choices(usual, k=_IN_A_STREAM)
                half = _IN_A_STREAM // 2
                late = damage(rng, b"".join(sent[half:] + rng.choices(EACH, k=2)))
                answer_to(address, HELLO + b"".join(sent[:half]) + late)
                streams += 1
                if streams % 50 == 1 or _Counted.taken >= count:
                    assert serves(other)
                    assert becomes_true(lambda: other.stats()["sessions"] == 1)
                    gc.collect()
                    held.append(held_by(os.getpid()))
            other.close()
    finally:
        wire.FrameReader = reader  # type: ignore[misc]
    return held[0], held[-1]
