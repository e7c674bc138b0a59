"""The file format of the compilation cache's entries: a checked header and the executable.

The header holds the facts, field by field. It detects entries that were swapped, copied, truncated
or altered, and those of another library, version or processor. It is no signature: whoever can
write the file can write a matching header, so the folder must belong to the user alone.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from plugrt.errors import FailedPrecondition
from plugrt.execution.compilation.cache_key import Facts
from plugrt.wire.sealed_bytes import SealedFormat


@dataclass(frozen=True, slots=True)
class _Header:
    """``seconds`` is how long the program took to compile."""

    facts: Facts
    seconds: float


_ENTRY = SealedFormat(
    b"plugrt compilation cache entry", 2, _Header, "entry of the compilation cache"
)


def encode_entry(body: bytes, facts: Facts, seconds: float = 0.0) -> bytes:
    """Returns an entry: a header with these facts, then the backend's bytes.

    ``seconds`` is how long the program took to compile.
    """
    return _ENTRY.write(_Header(facts, seconds), body)


def decode_entry(content: bytes, facts: Facts) -> tuple[bytes, float]:
    """Returns the backend's bytes of an entry that was made of exactly these facts.

    Beside them, how many seconds the program took to compile.

    Raises `DataLoss` for an incomplete or damaged entry, `InvalidArgument` for bytes that are none,
    and `FailedPrecondition`, with the fields that differ, for the entry of another program, library
    or machine, or of another version of plugrt.
    """
    header, body = _ENTRY.read(content)
    stored, expected = asdict(header.facts), asdict(facts)
    if differing := [name for name in expected if stored[name] != expected[name]]:
        raise FailedPrecondition(f"it is an entry of another {' and of another '.join(differing)}")
    return bytes(body), header.seconds
