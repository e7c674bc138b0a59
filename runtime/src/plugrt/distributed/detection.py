"""`find_environment`: which way to find the other processes applies to this one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrt.distributed.cloud_tpu import CloudTpu
from plugrt.distributed.cluster import ClusterEnvironment
from plugrt.distributed.kubernetes import Kubernetes
from plugrt.distributed.mpi import Mpi4py, OpenMpi
from plugrt.distributed.ray import Ray
from plugrt.distributed.slurm import Slurm
from plugrt.errors import ArgumentError, DistributedError, PluginBroken
from plugrt.plugins.offers.offers import Kept
from plugrt.plugins.record import Record
from plugrt.plugins.table import Table

OWN = (OpenMpi(), Slurm(), Mpi4py(), CloudTpu(), Kubernetes(), Ray())
"""In JAX's order, with Ray last."""


def _read(record: Record, answer: Any) -> tuple[ClusterEnvironment, ...]:
    if isinstance(answer, str) or not isinstance(answer, Sequence):
        raise PluginBroken(f"plugrt_cluster_environments gives {answer!r:.60}, no list of them")
    for environment in answer:
        if not isinstance(environment, ClusterEnvironment) or not environment.name:
            raise PluginBroken(
                f"plugrt_cluster_environments gives {environment!r:.60}, no instance of "
                "plugrt.distributed.ClusterEnvironment with a name"
            )
    return tuple(answer)


_offered = Kept("plugrt.clusters", "cluster environments", _read)


def environments(table: Table) -> tuple[ClusterEnvironment, ...]:
    """Returns plugrt's own environments and those of installed packages."""
    return (*OWN, *(one for offer in _offered.get(table) for one in offer))


def find_environment(table: Table, method: str | None) -> ClusterEnvironment | None:
    """Returns the environment that ``method`` names; without one, the first that is present.

    Raises `ArgumentError` for a name that there is not, and `DistributedError` where the named one
    is not present. (JAX logs both and goes on.)
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
