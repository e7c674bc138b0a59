"""`OpenMpi` and `Mpi4py`: processes that ``mpirun`` started."""

from __future__ import annotations

import os
import re
import socket
import zlib
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from plugrt.distributed.cluster import ClusterEnvironment, port_of_job, read_number
from plugrt.errors import DistributedError

_URIS = ("OMPI_MCA_orte_hnp_uri", "PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI21")
"""Variables with the daemon's address: Open MPI 4 sets the first, later versions set PMIx's."""
_HOST = re.compile(r"tcp4?://([^,:]+)[,:]|tcp6://\[([^,\]]+)[,\]]")


class OpenMpi(ClusterEnvironment):
    """Reads the variables of Open MPI's ``mpirun``; does not load MPI.

    JAX reads the variables of Open MPI 4 only. Version 5 sets PMIx's variables instead, without a
    job number: the port is computed from the job's name.
    """

    name = "ompi"

    def is_env_present(self) -> bool:
        return "OMPI_COMM_WORLD_SIZE" in os.environ and _launcher_uri() is not None

    def get_coordinator_address(
        self, timeout_secs: int | None, override_coordinator_port: str | None
    ) -> str:
        uri = _launcher_uri() or ""
        found = _HOST.search(uri)
        if found is None:
            raise DistributedError(f"Open MPI states no address in {uri!r}: give it yourself")
        if override_coordinator_port:
            port = override_coordinator_port
        elif "OMPI_MCA_orte_hnp_uri" in os.environ:
            port = port_of_job(int(uri.partition(".")[0]) // 2**12)
        else:
            port = port_of_job(zlib.crc32(os.environ.get("PMIX_NAMESPACE", uri).encode()))
        host = found.group(1) or f"[{found.group(2)}]"
        return f"{host}:{port}"

    def get_process_count(self) -> int:
        return read_number("OMPI_COMM_WORLD_SIZE", "Open MPI")

    def get_process_id(self) -> int:
        return read_number("OMPI_COMM_WORLD_RANK", "Open MPI")

    def get_local_process_id(self) -> int | None:
        return read_number("OMPI_COMM_WORLD_LOCAL_RANK", "Open MPI")


def _launcher_uri() -> str | None:
    return next((os.environ[name] for name in _URIS if name in os.environ), None)


class Mpi4py(ClusterEnvironment):
    """Asks MPI itself, any implementation, through the package ``mpi4py``."""

    name = "mpi4py"
    opt_in_only_method = True

    def is_env_present(self) -> bool:
        return find_spec("mpi4py") is not None

    def get_coordinator_address(
        self, timeout_secs: int | None, override_coordinator_port: str | None
    ) -> str:
        address = None
        if self.get_process_id() == 0:
            host = socket.gethostname()
            port = override_coordinator_port or port_of_job(zlib.crc32(host.encode()))
            address = f"{host}:{port}"
        return str(_world().bcast(address, root=0))

    def get_process_count(self) -> int:
        return int(_world().Get_size())

    def get_process_id(self) -> int:
        return int(_world().Get_rank())

    def get_local_process_id(self) -> int | None:
        mpi = import_module("mpi4py.MPI")
        return int(_world().Split_type(mpi.COMM_TYPE_SHARED).Get_rank())


def _world() -> Any:
    return import_module("mpi4py.MPI").COMM_WORLD
