"""`Coordination`: the service through which the processes of a run find each other.

plugrt has none of its own: a plugin package offers one by the hook ``plugrt_coordination``, as the
cpu plugin does with jaxlib's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Membership:
    """The data with which a process joins a run; times are in seconds."""

    address: str
    """host:port of the coordinator."""
    process_id: int
    num_processes: int
    initialization_timeout: float
    heartbeat_timeout: float
    """How long a process may be silent before it counts as lost."""
    shutdown_timeout: float
    partition_index: int | None = None
    name: str = "another process"
    """The name of this process in other processes' errors."""
    secret: str | None = field(default=None, repr=False)
    """The secret that a process needs to get an index; None: it needs none."""


class Coordinator(ABC):
    """The running service of one run; process 0 starts it."""

    @abstractmethod
    def close(self) -> None:
        """Lets the service end once no process is connected; does not wait for that."""

    @abstractmethod
    def kill(self) -> None:
        """Ends the service at once; the processes that are connected lose their connection."""


class Connection(ABC):
    """A process's connection to the coordinator: an argument of `Plugin.create_client`.

    Its methods may be called by several threads at once.
    """

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.process_id = membership.process_id
        self.num_processes = membership.num_processes
        self.partition_index = membership.partition_index

    @property
    @abstractmethod
    def client(self) -> object:
        """The implementation's own object (jaxlib's client), for backends that use it."""

    @abstractmethod
    def get(self, key: str, timeout_ms: int) -> bytes:
        """Waits for the value of a key; raises `DeadlineExceeded` after ``timeout_ms``."""

    @abstractmethod
    def try_get(self, key: str) -> bytes | None:
        """Returns the value, or None if it is not set."""

    @abstractmethod
    def put(self, key: str, value: bytes) -> None:
        """Sets the value; raises `AlreadyExists` for a key that has one."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Deletes a key, and all keys that begin with it and ``/``; ignores missing ones."""

    @abstractmethod
    def wait_at_barrier(self, name: str, timeout_ms: int) -> None:
        """Waits until all processes wait there; raises `DeadlineExceeded` after ``timeout_ms``."""

    @abstractmethod
    def live_processes(self) -> Sequence[int]:
        """Returns the indices of the processes that send heartbeats.

        Waits until all of these call it: each process must call it repeatedly.
        """

    @abstractmethod
    def await_loss(self) -> str:
        """Waits until the coordinator is lost, and returns how that was detected.

        Empty if this process disconnects. After the loss, other methods may never return.
        """

    @abstractmethod
    def close(self) -> None:
        """Disconnects, without waiting for others."""


class Coordination(ABC):
    """Starts coordinators and connects to them."""

    @abstractmethod
    def serve(self, bind_address: str, membership: Membership) -> Coordinator:
        """Starts the service at ``bind_address`` (host:port); it outlives a crash of this process.

        Raises `DistributedError` where the address is in use or cannot be used.
        """

    @abstractmethod
    def connect(self, membership: Membership) -> Connection:
        """Connects, and waits until all processes have connected, without a time limit.

        Called in a separate thread, which is abandoned after ``initialization_timeout``. Raises
        `DistributedError` for a ``process_id`` that another process has; that process is not
        affected.
        """
