"""A header for serialised executables: the library that made them, and a checksum.

Libraries load executables of other versions without a check, and some crash on them. So a line of
JSON before a library's bytes states where they come from.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from plugrt.capi.loading.library import Library
from plugrt.errors import DataLoss, FailedPrecondition, InvalidArgument
from plugrt.files import parse_json

MAGIC = b"plugrt executable 1\n"


@dataclass(frozen=True, slots=True)
class Origin:
    """The library and platform that an executable belongs to."""

    library: Library
    platform: str
    platform_version: str

    def facts(self) -> dict[str, Any]:
        """Facts that must be equal for an executable to be loaded without an ABI check."""
        return {
            "platform": self.platform,
            "platform_version": self.platform_version,
            "pjrt_api": list(self.library.version),
            "attributes": dict(self.library.attributes()),
        }


def encode_envelope(payload: bytes, origin: Origin, abi: bytes | None) -> bytes:
    """Returns the bytes to store."""
    header = {
        **origin.facts(),
        "sha256": hashlib.sha256(payload).hexdigest(),
        "abi": None if abi is None else base64.b64encode(abi).decode(),
    }
    return MAGIC + json.dumps(header).encode() + b"\n" + payload


@dataclass(frozen=True, slots=True)
class Envelope:
    """The contents of a sealed executable; ``abi`` is None if its maker stated none."""

    payload: bytes
    facts: dict[str, Any]
    abi: bytes | None


def decode_envelope(content: bytes) -> Envelope:
    """Returns what `encode_envelope` was given; `DataLoss` when it is damaged.

    Bytes without the envelope, such as another host's, are taken as they are, with no facts.
    """
    if not content:
        raise InvalidArgument("a serialised executable was expected; there are no bytes")
    if not content.startswith(MAGIC):
        if MAGIC.startswith(content[: len(MAGIC)]):
            raise DataLoss("the serialised executable is cut short")
        return Envelope(content, {}, None)
    header, found, payload = content[len(MAGIC) :].partition(b"\n")
    facts, digest, abi = _read_header(header)
    if not found or hashlib.sha256(payload).hexdigest() != digest:
        raise DataLoss(
            "the serialised executable is damaged or cut short: its contents do not have the "
            "checksum that its header states"
        )
    return Envelope(payload, facts, abi)


def _read_header(header: bytes) -> tuple[dict[str, Any], str, bytes | None]:
    """Returns (facts, checksum, ABI version); `DataLoss` for one that plugrt does not write."""
    try:
        facts: dict[str, Any] = parse_json(header)
        digest, abi = facts.pop("sha256"), facts.pop("abi")
        decoded = None if abi is None else base64.b64decode(abi, validate=True)
        if not isinstance(digest, str) or not isinstance(facts["platform"], str):
            raise TypeError("a string was expected")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise DataLoss(
            "the serialised executable is damaged: its header is not what plugrt writes "
            f"({type(error).__name__}: {error})"
        ) from error
    return facts, digest, decoded


def check_platform(opened: Envelope, origin: Origin) -> list[str]:
    """Returns which facts differ from ``origin``; another platform raises `InvalidArgument`."""
    if not opened.facts:
        return []
    here = origin.facts()
    if opened.facts["platform"] != here["platform"]:
        raise InvalidArgument(
            f"the serialised executable is for the platform {opened.facts['platform']!r}; this "
            f"backend is {here['platform']!r}. Compile the program for it instead"
        )
    return [
        f"{name}: made with {opened.facts.get(name)!r}, here {value!r}"
        for name, value in here.items()
        if opened.facts.get(name) != value
    ]


def make_version_error(why: str, library: Library) -> FailedPrecondition:
    """Returns the exception for an executable that another version of ``library`` made."""
    return FailedPrecondition(
        f"the serialised executable was made by another version of the backend than "
        f"{library.owner} ({why}); compile the program again"
    )
