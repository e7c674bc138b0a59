"""`device_memory_profile`: the arrays in device memory, for ``pprof``.

Field numbers are from pprof's ``profile.proto``.
"""

from __future__ import annotations

import gzip
import os
from collections import Counter
from pathlib import Path

from plugrt.base import files
from plugrt.errors import FileRefused, Unimplemented
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.live_arrays import live_arrays
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.wire.protobuf import integer, message, varint


@with_argument_errors
def device_memory_profile(backend: str | None = None) -> bytes:
    """Returns a compressed ``pprof`` profile of the arrays in device memory.

    It has a sample for each device and type of array: the number of arrays, and their bytes on the
    device, or of their values where the backend does not report that. It does not include the
    memory of compiled programs. ``backend`` is a backend's name; None means all. As
    ``jax.profiler.device_memory_profile``, whose samples have Python's stacks. Raises as
    `plugrt.get_backend`.
    """
    counts: Counter[tuple[str, str]] = Counter()
    nbytes: Counter[tuple[str, str]] = Counter()
    for array in live_arrays(backend):
        for shard in array.addressable_shards:
            key = f"{array.dtype.name}{list(shard.data.shape)}", repr(shard.device)
            counts[key] += 1
            nbytes[key] += _device_bytes(shard.data)
    return gzip.compress(_encode(counts, nbytes))


@with_argument_errors
def save_device_memory_profile(filename: files.AnyPath, backend: str | None = None) -> None:
    """Writes `device_memory_profile` into a file.

    Raises what that raises, and `FileRefused` for a file that cannot be written.
    """
    profile = device_memory_profile(backend)
    try:
        Path(filename).write_bytes(profile)
    except OSError as error:
        reason = f"no profile can be written there: {error.strerror}"
        raise FileRefused(error.errno, reason, os.fspath(filename)) from error


def _device_bytes(part: Array) -> int:
    try:
        return part.on_device_size_in_bytes()
    except Unimplemented:
        return part.nbytes


def _encode(counts: Counter[tuple[str, str]], nbytes: Counter[tuple[str, str]]) -> bytes:
    texts = ["", "allocations", "count", "space", "bytes", "device"]
    texts += sorted({text for key in counts for text in key})
    at = {text: number for number, text in enumerate(texts)}
    kinds = sorted({kind for kind, _ in counts})
    number = {kind: i for i, kind in enumerate(kinds, 1)}
    units = [("allocations", "count"), ("space", "bytes")]
    return b"".join(
        (
            *(message(1, integer(1, at[kind]) + integer(2, at[unit])) for kind, unit in units),
            *(
                message(
                    2,
                    integer(1, number[kind])
                    + message(2, varint(count) + varint(nbytes[kind, device]))
                    + message(3, integer(1, at["device"]) + integer(2, at[device])),
                )
                for (kind, device), count in sorted(counts.items())
            ),
            *(
                message(4, integer(1, i) + message(4, integer(1, i)))
                + message(5, integer(1, i) + integer(2, at[kind]))
                for kind, i in number.items()
            ),
            *(message(6, text.encode()) for text in texts),
        )
    )
