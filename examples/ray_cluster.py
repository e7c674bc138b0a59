"""Actors of a Ray cluster as the processes of one run, each with its own devices.

pip install ray "plugrt[cpu]"
python examples/ray_cluster.py     # on the cluster of RAY_ADDRESS, else a local one
"""

import os
import sys

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

COUNT = 2


@ray.remote(num_cpus=1)
class Worker:
    """A process of the run, which has one per bundle of the placement group. The first to join is
    process 0.
    """

    def join(self) -> tuple[int, int, int]:
        """Returns the process's index, and the numbers of processes and devices."""
        import plugrt

        plugrt.distributed.initialize(
            cluster_detection_method="ray", initialization_timeout=60, heartbeat_timeout_seconds=10
        )
        return plugrt.process_index(), plugrt.process_count(), plugrt.device_count()

    def total(self) -> float:
        """Returns the sum of 1 for each device of process 0, 2 for each device of process 1, …"""
        import numpy as np

        import plugrt
        from plugrt import array_api as xp
        from plugrt.sharding import NamedSharding, PartitionSpec

        mesh = plugrt.make_mesh((plugrt.device_count(),), ("x",))
        mine = np.full(plugrt.local_device_count(), plugrt.process_index() + 1, np.float32)
        x = plugrt.make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec("x")), mine)
        whole = NamedSharding(mesh, PartitionSpec())
        return float(plugrt.jit(xp.sum, out_shardings=whole)(x))

    def leave(self) -> None:
        """Leaves the run; all processes leave before the actors end."""
        import plugrt

        plugrt.distributed.shutdown()


def main() -> int:
    """Prints the results of each actor; returns 0 if they are right."""
    variables = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"}
    here = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": COUNT, "include_dashboard": False,
                                                   "_node_ip_address": "127.0.0.1"}  # fmt: skip
    ray.init(runtime_env={"env_vars": variables}, **here)
    group = placement_group([{"CPU": 1}] * COUNT)
    ray.get(group.ready())
    strategy = PlacementGroupSchedulingStrategy(group)
    workers = [Worker.options(scheduling_strategy=strategy).remote() for _ in range(COUNT)]
    joined = sorted(ray.get([worker.join.remote() for worker in workers]))
    totals = ray.get([worker.total.remote() for worker in workers])
    print("process, processes, devices:", joined)
    print("total, in each:", totals)
    ray.get([worker.leave.remote() for worker in workers])
    ray.shutdown()
    expected = 2.0 * sum(range(1, COUNT + 1))
    return 0 if totals == [expected] * COUNT else 1


if __name__ == "__main__":
    sys.exit(main())
