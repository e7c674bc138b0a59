"""`Ray`: actors or tasks of a Ray cluster; each is one process of the run.

Ray has no ranks. They come from the arguments of ``initialize``, from Ray Train, or from the
actors' order of arrival in a placement group. A named actor passes on the address of process 0, a
free port of its node.
"""

from __future__ import annotations

import socket
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from plugrt.distributed.cluster import ClusterEnvironment
from plugrt.errors import DistributedError

_NAMESPACE = "plugrt"


class MeetingPoint:
    """An actor that counts the processes of one run and stores the first one's address."""

    def __init__(self) -> None:
        self._count = 0
        self._address: str | None = None

    def join(self) -> int:
        """Returns 0 to the first caller, 1 to the second, and so on."""
        self._count += 1
        return self._count - 1

    def announce(self, address: str) -> None:
        """Sets the address of process 0."""
        self._address = address

    def address(self) -> str | None:
        """Returns that address, None until it is announced."""
        return self._address


class Ray(ClusterEnvironment):
    """Used with ``cluster_detection_method="ray"``, within an actor or a task."""

    name = "ray"
    opt_in_only_method = True

    def __init__(self) -> None:
        self._id: int | None = None
        self._point: object = None
        """The meeting point. Ray deletes the actor with the last reference of the process that made
        it.
        """

    def is_env_present(self) -> bool:
        if find_spec("ray") is None:
            return False
        ray = import_module("ray")
        return bool(ray.is_initialized() and ray.get_runtime_context().get_task_id())

    def hold(self, num_processes: int | None, process_id: int | None) -> None:
        self._id = process_id

    def get_process_count(self) -> int:
        train = _train_context()
        if train is not None:
            return int(train.get_world_size())
        group = import_module("ray.util").get_current_placement_group()
        if group is None:
            raise DistributedError(
                "Ray does not say how many processes there are: give num_processes, or start the "
                "actors in a placement group with a bundle for each"
            )
        return int(group.bundle_count)

    def get_process_id(self) -> int:
        if self._id is None:
            train = _train_context()
            self._id = train.get_world_rank() if train else _get(self._meet().join.remote())
        return int(self._id or 0)

    def get_coordinator_address(
        self, timeout_secs: int | None, override_coordinator_port: str | None
    ) -> str:
        point = self._meet()
        if self.get_process_id() == 0:
            host = import_module("ray.util").get_node_ip_address()
            address = f"{host}:{override_coordinator_port or _free_port(host)}"
            _get(point.announce.remote(address))
            return address
        until = time.monotonic() + (timeout_secs or 0)
        while (found := _get(point.address.remote())) is None:
            if time.monotonic() >= until:
                raise DistributedError(
                    f"process 0 has not announced its address within {timeout_secs} s: does an "
                    "actor call initialize with process_id=0?"
                )
            time.sleep(0.1)
        return str(found)

    def _meet(self) -> Any:
        if self._point is None:
            self._point = _meeting_point()
        return self._point


def _train_context() -> Any:
    """Returns the context of Ray Train, None outside of its workers."""
    if "ray.train" not in sys.modules:
        return None
    context = import_module("ray.train").get_context()
    return context if context.get_world_size() is not None else None


def _meeting_point() -> object:
    """Returns the actor of this run: one for each job, and each placement group within it."""
    ray = import_module("ray")
    context = ray.get_runtime_context()
    name = f"plugrt-{context.get_job_id()}-{context.get_placement_group_id() or 'all'}"
    actor = ray.remote(num_cpus=0)(MeetingPoint)
    return actor.options(name=name, namespace=_NAMESPACE, get_if_exists=True).remote()


def _get(reference: object) -> Any:
    return import_module("ray").get(reference)


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
