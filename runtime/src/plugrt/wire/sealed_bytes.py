"""`SealedFormat`: saved bytes with a checksum and a header of checked fields before them.

They are a line with the format's name and version, the SHA-256 of the rest, a line of JSON, and the
contents. The checksum finds what was cut or altered. It is no signature: who can write the file
can write a matching one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Generic, TypeVar

from plugrt.errors import DataLoss, FailedPrecondition, InvalidArgument
from plugrt.wire.checked_fields import decode_json, encode, require

Header = TypeVar("Header")
_DIGITS = 64


@dataclass(frozen=True, slots=True)
class SealedFormat(Generic[Header]):
    """One format: ``title`` begins each file of it, of any version."""

    title: bytes
    version: int
    header: type[Header]
    """A dataclass, whose fields `decode` reads."""
    what: str
    """The name of such bytes in messages."""

    @property
    def magic(self) -> bytes:
        """The first line of a file of this version."""
        return self.title + b" %d\n" % self.version

    def write(self, header: Header, contents: bytes) -> bytes:
        """Returns the bytes to store."""
        body = json.dumps(encode(header)).encode() + b"\n" + contents
        return self.magic + hashlib.sha256(body).hexdigest().encode() + b"\n" + body

    def read(self, sealed: bytes) -> tuple[Header, memoryview]:
        """Returns the header and the contents.

        Raises `InvalidArgument` for other bytes, `FailedPrecondition` for another version of the
        format, and `DataLoss` for bytes that are cut, altered, or not as `write` wrote them.
        """
        count = len(sealed)
        if not sealed.startswith(self.title):
            raise InvalidArgument(f"these {count} bytes are no {self.what}")
        magic = self.magic
        if not sealed.startswith(magic):
            version = sealed[len(self.title) :].split(b"\n")[0][:20].decode(errors="replace")
            if magic.startswith(sealed):
                raise DataLoss(f"this {self.what} of {count} bytes is cut off")
            raise FailedPrecondition(
                f"this {self.what} was saved by another version of plugrt, in format "
                f"{version.strip()!r}, and this version reads {str(self.version)!r}; compile it "
                "again, or load it with the plugrt that saved it"
            )
        view = memoryview(sealed)
        start = len(magic) + _DIGITS + 1
        digest = hashlib.sha256(view[start:]).hexdigest().encode() + b"\n"
        if view[len(magic) : start] != digest:
            raise DataLoss(f"this {self.what} of {count} bytes is cut off or damaged")
        end = sealed.find(b"\n", start)
        require(end >= 0, "it has no header")
        header: Header = decode_json(self.header, sealed[start:end], "header")
        return header, view[end + 1 :]
