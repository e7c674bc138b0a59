"""`JaxlibCoordination`: jaxlib's coordination service, for the processes of any backend."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from plugrt.errors import DistributedError, FailedPrecondition, NotFound
from plugrt.plugins.coordination import Connection, Coordination, Coordinator, Membership
from plugrt.plugins.hookspecs import hookimpl
from plugrt_cpu import adapter
from plugrt_cpu.distributed.claiming import await_loss, claim, find_holder
from plugrt_cpu.distributed.service_relay import ServiceRelay
from plugrt_cpu.errors import JAXLIB_ERRORS, translate

T = TypeVar("T")


class JaxlibConnection(Connection):
    """jaxlib's client of the service."""

    def __init__(
        self, membership: Membership, raw: Any, claimed: socket.socket, relay: ServiceRelay
    ) -> None:
        """``claimed`` is the connection that keeps the process's index."""
        super().__init__(membership)
        self._raw = raw
        self._claimed = claimed
        self._relay = relay

    @property
    def client(self) -> Any:
        raw = self._raw
        if raw is None:
            raise FailedPrecondition("this process has left its run (plugrt.distributed.shutdown)")
        return raw

    def get(self, key: str, timeout_ms: int) -> bytes:
        return _translated(lambda: bytes(self.client.blocking_key_value_get_bytes(key, timeout_ms)))

    def try_get(self, key: str) -> bytes | None:
        try:
            return _translated(lambda: bytes(self.client.key_value_try_get_bytes(key)))
        except NotFound:
            return None

    def put(self, key: str, value: bytes) -> None:
        _translated(lambda: self.client.key_value_set_bytes(key, value))

    def delete(self, key: str) -> None:
        _translated(lambda: self.client.key_value_delete(key))

    def wait_at_barrier(self, name: str, timeout_ms: int) -> None:
        _translated(lambda: self.client.wait_at_barrier(name, timeout_ms))

    def live_processes(self) -> Sequence[int]:
        everyone = list(range(self.num_processes))
        return sorted(_translated(lambda: self.client.get_live_nodes(everyone)))

    def await_loss(self) -> str:
        reason = await_loss(self._claimed, self.membership.heartbeat_timeout)
        return "" if self._raw is None else reason

    def close(self) -> None:
        _translated(self.client.shutdown)
        self._raw = None
        self._claimed.shutdown(socket.SHUT_RDWR)  # ends `await_loss` in its thread
        self._claimed.close()
        self._relay.close()


def _translated(call: Callable[[], T]) -> T:
    try:
        return call()
    except JAXLIB_ERRORS as error:
        raise translate(error) from error


class ChildCoordinator(Coordinator):
    """jaxlib's service in a process of its own, which serves the others if this one ends.

    It ends by a signal, or when this process is gone and no process is connected any longer.
    """

    def __init__(self, bind_address: str, membership: Membership) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "plugrt_cpu.distributed.coordinator_process"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,  # Ctrl-C and the end of a terminal are for the parent
        )  # fmt: skip
        request = {
            "address": bind_address,
            "num_processes": membership.num_processes,
            "heartbeat_timeout": max(1, int(membership.heartbeat_timeout)),
            "shutdown_timeout": max(1, int(membership.shutdown_timeout)),
            # not an argument, which every user of the machine can read
            "secret": membership.secret,
        }
        if self._child.stdin is None or self._child.stdout is None:
            raise AssertionError("they are pipes")
        self._child.stdin.write(json.dumps(request) + "\n")
        self._child.stdin.flush()
        answer = self._child.stdout.readline().strip()
        self._child.stdout.close()
        if answer != "ready":
            self.kill()
            if (holder := find_holder(membership)) is not None:
                raise DistributedError(
                    f"process_id={membership.process_id} is in use: "
                    f"{holder or 'another process'} has it, and started the coordinator at "
                    f"{membership.address}. Each of the {membership.num_processes} processes needs "
                    "an index of its own; if that is another run, choose another "
                    "coordinator_address, the same for all processes of this one"
                )
            raise DistributedError(
                f"the coordinator cannot listen at {bind_address}: "
                f"{answer or f'its process ended with status {self._child.returncode}'}; choose "
                "another coordinator_address, the same for all processes"
            )

    def close(self) -> None:
        # jaxlib ends a connected process when the service ends: so the service waits for the last
        # one.
        if self._child.stdin is not None:
            self._child.stdin.close()

    def kill(self) -> None:
        self._child.terminate()
        self.close()
        self._child.wait()


class JaxlibCoordination(Coordination):
    """jaxlib's coordination service, in the mode that keeps other processes after a loss."""

    def serve(self, bind_address: str, membership: Membership) -> Coordinator:
        return ChildCoordinator(bind_address, membership)

    def connect(self, membership: Membership) -> Connection:
        claimed, service = claim(membership)
        try:
            relay = ServiceRelay(service)
        except OSError as error:
            claimed.close()
            raise DistributedError(f"the coordinator cannot be reached: {error}") from error
        raw = adapter.make_coordination_client(
            relay.address,
            membership.process_id,
            heartbeat_seconds=max(1, int(membership.heartbeat_timeout)),
            shutdown_seconds=max(1, int(membership.shutdown_timeout)),
        )
        _translated(raw.connect)
        return JaxlibConnection(membership, raw, claimed, relay)


@hookimpl
def plugrt_coordination() -> Coordination:
    """Offers jaxlib's service."""
    return JaxlibCoordination()
