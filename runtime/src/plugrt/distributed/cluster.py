"""`ClusterEnvironment`: how a process finds the other processes of its run."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import ClassVar

from plugrt.errors import DistributedError

_FIRST_PORT, _PORTS = 65535 - 2**12 + 1, 2**12


class ClusterEnvironment(ABC):
    """One way to find the processes of a run: a launcher's variables, or a service.

    It has the methods of JAX's ``ClusterEnv``. Offer an instance by the hook
    ``plugrt_cluster_environments`` (docs/extending.md).
    """

    name: ClassVar[str] = ""
    """The name for ``cluster_detection_method``."""
    opt_in_only_method: ClassVar[bool] = False
    """Whether it is used only if it is selected by name."""

    @abstractmethod
    def is_env_present(self) -> bool:
        """Returns whether this process was started in this way."""

    @abstractmethod
    def get_coordinator_address(
        self, timeout_secs: int | None, override_coordinator_port: str | None
    ) -> str:
        """Returns the ``host:port`` of process 0, the same in all processes."""

    @abstractmethod
    def get_process_count(self) -> int:
        """Returns the number of processes."""

    @abstractmethod
    def get_process_id(self) -> int:
        """Returns the index of this process."""

    def get_local_process_id(self) -> int | None:
        """Returns the index of this process on its host, where each has one device; else None."""
        return None

    def hold(self, num_processes: int | None, process_id: int | None) -> None:  # noqa: B027
        """Receives the arguments of ``initialize`` first; most environments ignore them."""


def read_number(variable: str, launcher: str) -> int:
    """Returns the number in a launcher's variable; raises `DistributedError` if there is none."""
    text = os.environ.get(variable)
    if text is None:
        raise DistributedError(f"{launcher} did not set {variable}, which is needed")
    try:
        return int(text)
    except ValueError:
        raise DistributedError(f"{variable}={text!r} of {launcher} is not a number") from None


def port_of_job(job: int) -> str:
    """Returns a port for a job's number, the same in all its processes, as JAX chooses it."""
    return str(job % _PORTS + _FIRST_PORT)
