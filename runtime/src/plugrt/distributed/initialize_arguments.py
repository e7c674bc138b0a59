"""The arguments of `initialize`, completed from settings and the cluster, and its service."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from plugrt.distributed.cloud_tpu import CloudTpu
from plugrt.distributed.cluster import ClusterEnvironment
from plugrt.distributed.kubernetes import Kubernetes
from plugrt.distributed.mpi import Mpi4py, OpenMpi
from plugrt.distributed.ray import Ray
from plugrt.distributed.slurm import Slurm
from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    DistributedError,
    PluginBroken,
    PluginUnavailable,
    WrongType,
)
from plugrt.plugins.coordination import Coordination
from plugrt.plugins.offers.offers import Kept
from plugrt.plugins.plugin_table import Table
from plugrt.plugins.record import Record
from plugrt.wire.checked_fields import has_surrogates

_VARIABLES = {
    "coordinator_address": "JAX_COORDINATOR_ADDRESS",
    "num_processes": "JAX_NUM_PROCESSES",
    "process_id": "JAX_PROCESS_ID",
}


@dataclass
class Parameters:
    """The coordinator's address and this process's index; None if not known yet."""

    coordinator_address: str | None
    num_processes: int | None
    process_id: int | None
    local_device_ids: Sequence[int] | None

    def missing(self) -> list[str]:
        """Returns the names of required parameters that are not known."""
        return [name for name in _VARIABLES if getattr(self, name) is None]


def find_parameters(
    stated: Parameters, method: str | None, timeout: int, table: Table
) -> Parameters:
    """Fills in missing parameters from the settings, then from the environment.

    Raises `ArgumentError` with the names of the missing ones.
    """
    config = table.config
    for name in (*_VARIABLES, "local_device_ids"):
        if getattr(stated, name) is None:
            setattr(stated, name, getattr(config, name))
    found = None
    if method != "deactivate" and (stated.missing() or stated.local_device_ids is None):
        found = find_environment(table, method)
        if found is not None:
            port = config.coordinator_port
            _complete(stated, found, timeout, None if port is None else str(port))
    if missing := stated.missing():
        raise ArgumentError(_explain_missing(missing, found, method))
    check_parameters(stated)
    return stated


def _complete(
    stated: Parameters, found: ClusterEnvironment, timeout: int, port: str | None
) -> None:
    found.hold(stated.num_processes, stated.process_id)
    if stated.num_processes is None:
        stated.num_processes = found.get_process_count()
    if stated.process_id is None:
        stated.process_id = found.get_process_id()
    if stated.coordinator_address is None:
        stated.coordinator_address = found.get_coordinator_address(timeout, port)
    if stated.local_device_ids is None and (local := found.get_local_process_id()) is not None:
        stated.local_device_ids = [local]


def _explain_missing(
    missing: Sequence[str], found: ClusterEnvironment | None, method: str | None
) -> str:
    variables = ", ".join(_VARIABLES[name] for name in missing)
    usual = ", ".join(one.name for one in OWN if not one.opt_in_only_method)
    looked = "none was looked for" if method == "deactivate" else f"none of {usual} was found"
    are, them = ("are", "them") if len(missing) > 1 else ("is", "it")
    return (
        f"distributed.initialize needs {' and '.join(missing)}, which {are} not given: give "
        f"{them}, set {variables}, or start the processes with a launcher that says {them} "
        f"({f'{found.name} does not' if found else looked})"
    )


def check_parameters(given: Parameters) -> None:
    """Raises `WrongType` or `ArgumentError` for invalid values."""
    for name in ("num_processes", "process_id"):
        value: object = getattr(given, name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise WrongType(
                f"{name} must be a whole number; got {value!r:.80}, a {type(value).__name__}"
            )
    count, index = given.num_processes or 0, given.process_id or 0
    if count < 1 or not 0 <= index < count:
        raise ArgumentError(
            f"process_id={index} of num_processes={count}: processes are numbered from 0 to "
            "num_processes - 1"
        )
    host_and_port(given.coordinator_address, "coordinator_address")
    if given.local_device_ids is not None:
        given.local_device_ids = _read_device_ids(given.local_device_ids)


def find_secret(stated: object, configured: str | None) -> str | None:
    """Returns the secret of the run, or None; refuses a weak secret, and one that is not text."""
    secret = configured if stated is None else stated
    if not isinstance(secret, str | None):
        raise WrongType(f"secret must be a text; got a {type(secret).__name__}")
    if secret is not None and (not secret or has_surrogates(secret)):
        has = "others, not of UTF-8" if secret else "none"
        raise ArgumentError(f"secret must have at least one character, all of UTF-8; it has {has}")
    return secret


def _read_device_ids(ids: Any) -> list[int]:
    """Returns device indices; raises `WrongType` or `ArgumentError` for anything else."""
    listed = [*ids] if isinstance(ids, Iterable) and not isinstance(ids, str | bytes) else [ids]
    if any(isinstance(i, bool) or not isinstance(i, Integral) for i in listed):
        raise WrongType(
            "local_device_ids must be whole numbers, the indices of this process's devices on its "
            f"machine: one, or a sequence; got {ids!r:.80}"
        )
    if any(i < 0 for i in listed) or len(set(listed)) < len(listed):
        raise ArgumentError(f"local_device_ids has each device once, from 0 on; got {ids!r:.80}")
    return [*map(int, listed)]


def host_and_port(address: object, what: str) -> tuple[str, int]:
    """Returns the parts of ``host:port``, the host without brackets; raises `ArgumentError`."""
    if not isinstance(address, str):
        raise ArgumentTypeError(f"{what} must be a text, host:port; got {address!r:.80}")
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ArgumentError(
            f"{what}={address!r} is not of the form host:port, such as 10.0.0.1:1234 or "
            "[2001:db8::1]:1234"
        )
    if ":" in host and not (host[0] == "[" and host[-1] == "]"):
        raise ArgumentError(f"{what}={address!r}: write an IPv6 address in brackets")
    return host.strip("[]"), int(port)


OWN = (OpenMpi(), Slurm(), Mpi4py(), CloudTpu(), Kubernetes(), Ray())
"""In JAX's order, with Ray last."""


def _read_environments(record: Record, answer: object) -> tuple[ClusterEnvironment, ...]:
    if isinstance(answer, str) or not isinstance(answer, Sequence):
        raise PluginBroken(
            f"plugrt_cluster_environments returned {answer!r:.60}; a list of them is needed"
        )
    for environment in answer:
        if not isinstance(environment, ClusterEnvironment) or not environment.name:
            raise PluginBroken(
                f"plugrt_cluster_environments returned {environment!r:.60}; an instance of "
                "plugrt.distributed.ClusterEnvironment with a name is needed"
            )
    return tuple(answer)


_environments = Kept("plugrt.clusters", "cluster environments", _read_environments)


def environments(table: Table) -> tuple[ClusterEnvironment, ...]:
    """Returns plugrt's own environments and the environments of installed packages."""
    return (*OWN, *(one for offer in _environments.get(table) for one in offer))


def find_environment(table: Table, method: str | None) -> ClusterEnvironment | None:
    """Returns the environment named ``method``; without a name, the first that is present.

    Raises `ArgumentError` for an unknown name, and `DistributedError` if the named one is not
    present. (JAX logs both and continues.)
    """
    known = environments(table)
    if method is None:
        usual = (one for one in known if not one.opt_in_only_method)
        return next((one for one in usual if one.is_env_present()), None)
    named = next((one for one in known if one.name == method), None)
    if named is None:
        raise ArgumentError(
            f"cluster_detection_method={method!r} is not known; there are "
            f"{', '.join(one.name for one in known)} and deactivate"
        )
    if not named.is_env_present():
        raise DistributedError(
            f"cluster_detection_method={method!r}: this process was not started by that, or what "
            "it needs is not installed here"
        )
    return named


def _read_coordination(record: Record, answer: object) -> Coordination:
    if not isinstance(answer, Coordination):
        raise PluginBroken(
            f"plugrt_coordination returned {answer!r:.60}; a "
            "plugrt.plugins.coordination.Coordination is needed"
        )
    return answer


_coordination = Kept("plugrt.coordination", "coordination service", _read_coordination)


def find_coordination(table: Table) -> Coordination:
    """Returns the first coordination service of the installed packages.

    Raises `PluginUnavailable` if there is none.
    """
    for offered in _coordination.get(table):
        return offered
    raise PluginUnavailable(
        "no installed package offers a coordination service, through which processes find each "
        'other; plugrt-cpu has jaxlib\'s: pip install "plugrt[cpu]"'
    )
