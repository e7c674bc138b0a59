"""Executables as bytes: jaxlib's own, after a header that states jaxlib's version and the CPU.

jaxlib documents that loading bytes it did not write is unsafe (they hold machine code). The header
guards against accidents: other formats, other versions, other CPUs, truncated or altered bytes. It
does not protect against malicious bytes: load only what you trust.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from dataclasses import dataclass

from plugrt import cpu_features
from plugrt.errors import FailedPrecondition, InvalidArgument
from plugrt.interface import DeviceAssignment
from plugrt_cpu.jaxlib_import import jaxlib_version

MAGIC = b"PLUGRTCPU\x00\x00\x01"
_DIGEST_SIZE = 32
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Packed:
    """What an envelope holds: jaxlib's bytes, and what is needed to load them."""

    payload: bytes
    name: str
    assignment: DeviceAssignment
    options: bytes


def pack(payload: bytes, name: str, assignment: DeviceAssignment, options: bytes) -> bytes:
    """Returns the envelope with jaxlib's serialised executable in it."""
    header = json.dumps(
        {
            "jaxlib": jaxlib_version(),
            "machine": cpu_features.features(),
            "name": name,
            "devices": assignment.device_ids,
            "options": base64.b64encode(options).decode(),
        }
    ).encode()
    body = _LENGTH.pack(len(header)) + header + payload
    return MAGIC + hashlib.sha256(body).digest() + body


def unpack(data: bytes) -> Packed:
    """Returns what `pack` was given.

    Raises `InvalidArgument` for bytes that are foreign, cut or altered, and `FailedPrecondition`
    for those of another jaxlib or another kind of CPU.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise InvalidArgument(
            f"these {len(data)} bytes are no executable of plugrt's cpu plugin (of this format)"
        )
    digest, body = data[len(MAGIC) :][:_DIGEST_SIZE], data[len(MAGIC) + _DIGEST_SIZE :]
    if hashlib.sha256(body).digest() != digest:
        raise InvalidArgument(f"this executable of {len(data)} bytes is cut off or damaged")
    (length,) = _LENGTH.unpack_from(body)
    header = json.loads(body[_LENGTH.size : _LENGTH.size + length])
    for what, here in (("jaxlib", jaxlib_version()), ("machine", cpu_features.features())):
        if header[what] != here:
            raise FailedPrecondition(
                f"this executable was compiled for {what} {header[what]}; here is {here}. "
                "Fix: compile the program again"
            )
    return Packed(
        payload=body[_LENGTH.size + length :],
        name=header["name"],
        assignment=DeviceAssignment(tuple(map(tuple, header["devices"]))),
        options=base64.b64decode(header["options"]),
    )
