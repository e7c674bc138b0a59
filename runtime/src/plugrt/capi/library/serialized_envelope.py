"""A header for serialised executables: the library that made them, and a checksum.

Libraries load executables of other versions without a check, and some crash on them. So a header
before a library's bytes states where they come from.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from plugrt.capi.loading.library import Library
from plugrt.errors import DataLoss, FailedPrecondition, InvalidArgument
from plugrt.interface import OptionValue
from plugrt.wire.sealed_bytes import SealedFormat


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that must be equal for an executable to be loaded without an ABI check."""

    platform: str
    platform_version: str
    pjrt_api: tuple[int, ...]
    attributes: dict[str, OptionValue]


@dataclass(frozen=True, slots=True)
class _Header:
    """``abi`` is the library's statement of its ABI version, if there is one."""

    facts: Facts
    abi: bytes | None


SEALED = SealedFormat(b"plugrt executable", 2, _Header, "executable of a PJRT library")


@dataclass(frozen=True, slots=True)
class Origin:
    """The library and platform that an executable belongs to."""

    library: Library
    platform: str
    platform_version: str

    def facts(self) -> Facts:
        """Returns the facts of this library's executables."""
        return Facts(
            self.platform,
            self.platform_version,
            self.library.version,
            dict(self.library.attributes()),
        )


def encode_envelope(payload: bytes, origin: Origin, abi: bytes | None) -> bytes:
    """Returns the bytes to store."""
    return SEALED.write(_Header(origin.facts(), abi), payload)


@dataclass(frozen=True, slots=True)
class Envelope:
    """The contents of a sealed executable; ``abi`` is None if its maker stated none."""

    payload: bytes
    facts: Facts | None
    abi: bytes | None


def decode_envelope(content: bytes) -> Envelope:
    """Reverses `encode_envelope`; raises `DataLoss` for damaged bytes.

    Bytes without the envelope, such as another host's, are returned unchanged, without facts.
    """
    if not content:
        raise InvalidArgument("a serialised executable was expected; there are no bytes")
    if not content.startswith(SEALED.title):
        if SEALED.title.startswith(content):
            raise DataLoss("the serialised executable is cut short")
        return Envelope(content, None, None)
    header, payload = SEALED.read(content)
    return Envelope(bytes(payload), header.facts, header.abi)


def check_platform(opened: Envelope, origin: Origin) -> list[str]:
    """Returns which facts differ from ``origin``; another platform raises `InvalidArgument`."""
    there, here = opened.facts, origin.facts()
    if there is None:
        return []
    if there.platform != here.platform:
        raise InvalidArgument(
            f"the serialised executable is for the platform {there.platform!r}; this "
            f"backend is {here.platform!r}. Compile the program for it instead"
        )
    return [
        f"{field.name}: made with {getattr(there, field.name)!r}, here {value!r}"
        for field in fields(Facts)
        if getattr(there, field.name) != (value := getattr(here, field.name))
    ]


def make_version_error(why: str, library: Library) -> FailedPrecondition:
    """Returns the exception for an executable that another version of ``library`` made."""
    return FailedPrecondition(
        f"the serialised executable was made by another version of the backend than "
        f"{library.owner} ({why}); compile the program again"
    )
