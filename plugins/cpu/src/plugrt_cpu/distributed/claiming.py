"""`claim`: a process asks the coordinator for its index, which `distributed.claims` grants."""

from __future__ import annotations

import socket
import time
from typing import Any

from plugrt.errors import DataLoss, DistributedError, describe, escape_controls
from plugrt.plugins.coordination import Membership
from plugrt_cpu.distributed.claim_messages import (
    LONGEST,
    LONGEST_NAME,
    PATIENCE,
    About,
    Answer,
    Challenge,
    Claim,
    Hello,
    Question,
    make_nonce,
    prove,
    read,
    with_proof,
    write,
)

_INTERVAL = 1.0
_SHARE = 0.3
"""The share of the heartbeat time that a coordinator may be silent: jaxlib ends at half."""
_PAUSE = 0.2
_TRIES = 5
"""The number of new connections after the coordinator dropped one for later connections."""


class _Dropped(DistributedError):
    """The connection was closed without an answer."""


def claim(membership: Membership) -> tuple[socket.socket, str]:
    """Returns the connection that keeps a process's index, and the address of jaxlib's service.

    Raises `DistributedError` if another process has the index, if the coordinator has another
    number of processes or another secret, and if another program listens at the address.
    """
    # Bytes of a path that are not text become surrogates, which messages must not contain.
    name = membership.name[:LONGEST_NAME].encode("utf-8", "replace").decode()
    question = Claim(membership.process_id, membership.num_processes, name)
    for tries_left in reversed(range(_TRIES)):
        connection = _connect(membership, membership.initialization_timeout)
        try:
            answer = _ask(connection, membership, question)
            return connection, f"{membership.address.rpartition(':')[0]}:{answer.service}"
        except BaseException as error:
            connection.close()
            if not (tries_left and isinstance(error, _Dropped)):
                raise
            time.sleep(_PAUSE)
    raise AssertionError


def await_loss(connection: socket.socket, heartbeat: float) -> str:
    """Asks the coordinator repeatedly by a claim's connection; returns the reason once it fails.

    That is before jaxlib's client ends the process, half of ``heartbeat`` seconds after the loss.
    """
    patience = heartbeat * _SHARE
    connection.settimeout(patience)
    try:
        while True:
            connection.sendall(b"\n")
            if not connection.recv(LONGEST):
                raise ConnectionError("its connections are closed")
            time.sleep(min(_INTERVAL, patience / 4))
    except TimeoutError:
        return f"it has not answered for {patience:g} s"
    except OSError as error:
        return describe(error)


def find_holder(membership: Membership) -> str | None:
    """Returns the process that has this process's index at plugrt's coordinator; None without one.

    Returns an empty text if no process has it.
    """
    try:
        with _connect(membership, PATIENCE) as connection:
            answer = _ask(connection, membership, About(membership.process_id))
    except (OSError, DistributedError):
        return None
    return escape_controls(answer.holder)


def _connect(membership: Membership, seconds: float) -> socket.socket:
    host, _, port = membership.address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), timeout=seconds)


def _ask(connection: socket.socket, membership: Membership, question: Question) -> Answer:
    """Returns the coordinator's answer, once both have proven that they know the secret.

    Raises `DistributedError` for a refusal.
    """
    address, secret, nonce = membership.address, membership.secret, make_nonce()
    challenge: Challenge = _exchange(connection, address, Hello(nonce), Challenge)
    nonces = nonce, challenge.challenge
    if challenge.proof != prove(secret, "coordinator", nonces):
        has = "another secret" if secret else "a secret, and this process was given none"
        if not challenge.proof:
            has = "no secret, and this process was given one"
        raise DistributedError(
            f"the coordinator at {address} has {has}: all processes of a run have the same "
            "(PLUGRT_COORDINATOR_SECRET, or initialize(secret=...)), or none has one"
        )
    answer: Answer = _exchange(connection, address, with_proof(secret, nonces, question), Answer)
    if answer.fault:
        raise DistributedError(
            f"the coordinator at {address} refuses: {escape_controls(answer.fault)}"
        )
    return answer


def _exchange(connection: socket.socket, address: str, said: object, kind: Any) -> Any:
    """Sends a message and returns the answer, a message of class ``kind``."""
    received = b""
    try:
        connection.sendall(write(said))
        while not received.endswith(b"\n") and len(received) <= LONGEST:
            more = connection.recv(LONGEST)
            if not more:
                break
            received += more
        return read(kind, received)
    except (OSError, DataLoss) as error:
        shown = f"{received[:80]!r} ({describe(error)})"
        raise _no_coordinator(address, shown, _Dropped if not received else None) from error


def _no_coordinator(
    address: str, answer: str, kind: type[DistributedError] | None = None
) -> DistributedError:
    return (kind or DistributedError)(
        f"what listens at {address} is not a coordinator of plugrt: it answered {answer}; choose "
        "another coordinator_address, the same for all processes"
    )
