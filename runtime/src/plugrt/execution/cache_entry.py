"""The file format of the compilation cache's entries: a checked header and the executable.

An entry is a line with the format's name, a line of JSON, and the backend's own bytes. The JSON
holds the facts, field by field, and a checksum of the bytes. It detects entries that were swapped,
copied, truncated or altered, and those of another library, version or processor. It is no
signature: whoever can write the file can write a matching header, so the folder must belong to the
user alone.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from plugrt.errors import DataLoss, FailedPrecondition
from plugrt.execution.cache_key import Facts
from plugrt.files import parse_json

_MAGIC = b"plugrt compilation cache entry 1\n"


def encode_entry(body: bytes, facts: Facts, seconds: float = 0.0) -> bytes:
    """Returns an entry: a header with these facts, then the backend's bytes.

    ``seconds`` is how long the program took to compile.
    """
    header = {
        "facts": asdict(facts), "sha256": hashlib.sha256(body).hexdigest(), "seconds": seconds
    }  # fmt: skip
    return _MAGIC + json.dumps(header).encode() + b"\n" + body


def decode_entry(content: bytes, facts: Facts) -> tuple[bytes, float]:
    """Returns the backend's bytes of an entry that was made of exactly these facts.

    Beside them, how many seconds the program took to compile.

    Raises `DataLoss` for an incomplete or damaged entry, and `FailedPrecondition`, with the fields
    that differ, for the entry of another program, library or machine.
    """
    if not content.startswith(_MAGIC):
        raise DataLoss(f"these {len(content)} bytes are no entry of the compilation cache")
    line, found, body = content[len(_MAGIC) :].partition(b"\n")
    try:
        header = parse_json(line) if found else None
    except ValueError:
        header = None
    stored: Any = header.get("facts") if isinstance(header, dict) else None
    if not isinstance(header, dict) or not isinstance(stored, dict):
        raise DataLoss("the header of the entry is damaged")
    expected = asdict(facts)
    differing = [k for k in expected if stored.get(k) != expected[k]]
    if differing or stored.keys() != expected.keys():
        raise FailedPrecondition(
            f"it is an entry of another {' and of another '.join(differing) or 'format'}"
        )
    if header.get("sha256") != hashlib.sha256(body).hexdigest():
        raise DataLoss(f"the entry of {len(content)} bytes is cut off or damaged")
    seconds = header.get("seconds")
    return body, float(seconds) if isinstance(seconds, float | int) else 0.0
