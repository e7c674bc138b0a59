"""Executables as bytes: jaxlib's own, after a header that states jaxlib's version and the CPU.

jaxlib documents that loading bytes it did not write is unsafe (they hold machine code). The header
guards against accidents: other formats, other versions, other CPUs, truncated or altered bytes. It
does not protect against malicious bytes: load only what you trust.
"""

from __future__ import annotations

from dataclasses import dataclass

from plugrt.errors import FailedPrecondition
from plugrt.execution.compilation import cache_key
from plugrt.interface import DeviceAssignment
from plugrt.wire.checked_fields import Count, built
from plugrt.wire.sealed_bytes import SealedFormat
from plugrt_cpu.jaxlib_import import jaxlib_version


@dataclass(frozen=True, slots=True)
class _Header:
    """``options`` are a ``CompileOptionsProto``."""

    jaxlib: str
    machine: str
    name: str
    devices: tuple[tuple[Count, ...], ...]
    options: bytes


SEALED = SealedFormat(b"PLUGRTCPU", 2, _Header, "executable of plugrt's cpu plugin")


@dataclass(frozen=True, slots=True)
class Packed:
    """The contents of an envelope: jaxlib's bytes, and the data needed to load them."""

    payload: bytes
    name: str
    assignment: DeviceAssignment
    options: bytes


def pack(payload: bytes, name: str, assignment: DeviceAssignment, options: bytes) -> bytes:
    """Returns the envelope with jaxlib's serialised executable in it."""
    header = _Header(
        jaxlib=jaxlib_version(),
        machine=cache_key.cpu_features(),
        name=name,
        devices=assignment.device_ids,
        options=options,
    )
    return SEALED.write(header, payload)


def unpack(data: bytes) -> Packed:
    """Returns the arguments of `pack`.

    Raises `InvalidArgument` for foreign bytes, `DataLoss` for truncated or altered ones, and
    `FailedPrecondition` for bytes of another jaxlib, another kind of CPU, or another format.
    """
    header, payload = SEALED.read(data)
    for what, stated, here in (
        ("jaxlib", header.jaxlib, jaxlib_version()),
        ("machine", header.machine, cache_key.cpu_features()),
    ):
        if stated != here:
            raise FailedPrecondition(
                f"this executable was compiled for {what} {stated}; here is {here}. "
                "Fix: compile the program again"
            )
    with built("the devices"):
        assignment = DeviceAssignment(header.devices)
    return Packed(bytes(payload), header.name, assignment, header.options)
