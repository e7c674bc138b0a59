"""The messages at the coordinator's port, with checked fields, and proofs of the secret.

Each is one line of JSON. A process sends a `Hello`, the coordinator a `Challenge`, the process its
question with a proof, the coordinator its answer. A proof is an HMAC of the two nonces and the
question, so that the secret itself is never sent and no proof counts twice.
"""

from __future__ import annotations

import hmac
import json
import secrets
from dataclasses import dataclass, replace
from typing import Any

from plugrt.wire.checked_fields import Count, decode_json, encode

LONGEST = 4096
"""Bytes of a message."""
LONGEST_NAME = 300
"""Characters of a process's name; JSON needs up to twelve bytes for one."""
PATIENCE = 10.0
"""Seconds that a connection may need to get an index, and a coordinator to answer."""


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message of a process."""

    nonce: str


@dataclass(frozen=True, slots=True)
class Challenge:
    """The coordinator's answer to a `Hello`; ``proof`` is "" if it has no secret."""

    challenge: str
    proof: str


@dataclass(frozen=True, slots=True)
class Claim:
    """Asks for an index."""

    index: Count
    count: Count
    name: str
    proof: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """Asks which process has an index."""

    about: Count
    proof: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The coordinator's answer to either question; ``fault`` is the reason of a refusal."""

    fault: str = ""
    service: Count = 0
    """The port of jaxlib's service if the claim is granted."""
    holder: str = ""
    """The process that has the index; "" if no process has it."""


Question = Claim | About


def write(message: object) -> bytes:
    """Returns a message as a line."""
    return json.dumps(encode(message)).encode() + b"\n"


def read(kind: Any, line: bytes) -> Any:
    """Returns a message of this kind; `DataLoss` for any other line."""
    return decode_json(kind, line, "the message")


def make_nonce() -> str:
    """Returns text that nobody can guess, for one connection."""
    return secrets.token_hex(16)


def prove(secret: str | None, role: str, nonces: tuple[str, str], what: object = None) -> str:
    """Returns the proof that a party knows the secret; "" if there is none."""
    if not secret:
        return ""
    said = json.dumps([role, *nonces, encode(what)], sort_keys=True).encode()
    return hmac.new(secret.encode(), said, "sha256").hexdigest()


def with_proof(secret: str | None, nonces: tuple[str, str], question: Question) -> Question:
    """Returns a process's question with its proof."""
    return replace(question, proof=prove(secret, "process", nonces, question))


def is_proven(secret: str | None, nonces: tuple[str, str], question: Question) -> bool:
    """Whether a question has the proof that `with_proof` gives it."""
    expected = with_proof(secret, nonces, replace(question, proof="")).proof
    return hmac.compare_digest(expected.encode(), question.proof.encode())
