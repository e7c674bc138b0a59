"""`CloudTpu`: the hosts of a slice of TPUs, as Google's launchers describe them in variables.

JAX also asks the machine's metadata server; plugrt reads the environment only.
"""

from __future__ import annotations

import os

from plugrt.distributed.cluster import ClusterEnvironment, read_number
from plugrt.errors import DistributedError

_PORT = "8482"
_MAKER = "the launcher of Cloud TPU"


class CloudTpu(ClusterEnvironment):
    """Reads TPU_WORKER_ID, and TPU_PROCESS_ADDRESSES or TPU_WORKER_HOSTNAMES.

    With several slices, MEGASCALE_NUM_SLICES multiplies the number of processes,
    MEGASCALE_SLICE_ID offsets their indices, and MEGASCALE_COORDINATOR_ADDRESS is the first host.
    """

    name = "tpu"

    def is_env_present(self) -> bool:
        return "TPU_WORKER_ID" in os.environ and bool(_workers())

    def get_coordinator_address(
        self, timeout_secs: int | None, override_coordinator_port: str | None
    ) -> str:
        first = os.environ.get("MEGASCALE_COORDINATOR_ADDRESS") or _workers()[0]
        return f"{first.partition(':')[0]}:{override_coordinator_port or _PORT}"

    def get_process_count(self) -> int:
        return len(_workers()) * _number("MEGASCALE_NUM_SLICES", 1)

    def get_process_id(self) -> int:
        worker = read_number("TPU_WORKER_ID", _MAKER)
        if worker >= len(_workers()):
            raise DistributedError(f"TPU_WORKER_ID={worker}, of the hosts {_workers()}")
        return worker + len(_workers()) * _number("MEGASCALE_SLICE_ID", 0)


def _workers() -> list[str]:
    names = os.environ.get("TPU_PROCESS_ADDRESSES") or os.environ.get("TPU_WORKER_HOSTNAMES", "")
    return [name.strip() for name in names.split(",") if name.strip()]


def _number(variable: str, default: int) -> int:
    return read_number(variable, _MAKER) if os.environ.get(variable) else default
