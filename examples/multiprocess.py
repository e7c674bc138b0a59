"""Trains one model in several processes, each with its own data; one command starts all of them.

python examples/multiprocess.py            # two processes on this machine
python examples/multiprocess.py 4          # four
srun python examples/multiprocess.py       # as many as Slurm starts; likewise under mpirun
"""

import os
import subprocess
import sys
import time

import numpy as np

import plugrt
from plugrt import array_api as xp
from plugrt.sharding import NamedSharding
from plugrt.sharding import PartitionSpec as P

FEATURES, ROWS = 4, 32
STEPS = int(os.environ.get("STEPS", 120))
LAUNCHED = ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "JOB_COMPLETION_INDEX", "JAX_PROCESS_ID")


def train() -> None:
    """Fits a line to data that are divided over all processes."""
    plugrt.distributed.initialize(
        initialization_timeout=60, heartbeat_timeout_seconds=int(os.environ.get("HEARTBEAT", 10))
    )
    me = plugrt.process_index()
    print(f"process {me} of {plugrt.process_count()} begins, with pid {os.getpid()}", flush=True)
    mesh = plugrt.make_mesh((plugrt.device_count(),), ("data",))
    rows, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())

    draw = np.random.default_rng(me)
    weights = np.arange(1, FEATURES + 1, dtype=np.float32)
    mine = draw.standard_normal((ROWS * plugrt.local_device_count(), FEATURES)).astype(np.float32)
    x = plugrt.make_array_from_process_local_data(rows, mine)
    y = plugrt.make_array_from_process_local_data(rows, mine @ weights)

    def step(w, x, y):
        error = x @ w - y
        return w - 0.1 * (x.T @ error) / error.shape[0], xp.mean(error**2)

    step = plugrt.jit(step, out_shardings=(whole, whole))
    w = plugrt.device_put(np.zeros(FEATURES, np.float32), whole)
    for _ in range(STEPS):
        w, loss = step(w, x, y)
    found = np.round(np.asarray(w), 3)
    print(
        f"process {me} of {plugrt.process_count()}: {plugrt.local_device_count()} of "
        f"{plugrt.device_count()} devices, weights {found}, loss {float(loss):.1e}",
        flush=True,
    )
    np.testing.assert_allclose(found, weights, atol=1e-2)


def start(count: int) -> int:
    """Starts this program ``count`` times; returns 0 if all processes succeed.

    If one is killed, the others exit with an error that names it.
    """
    port = free_port()
    processes = [
        subprocess.Popen(
            [sys.executable, __file__],
            env={
                "JAX_NUM_CPU_DEVICES": "2",
                **os.environ,
                "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
                "JAX_NUM_PROCESSES": str(count),
                "JAX_PROCESS_ID": str(index),
            },
        )
        for index in range(count)
    ]
    try:
        while any(process.poll() is None for process in processes):
            time.sleep(0.1)
    finally:
        for process in processes:
            process.kill()
    return max(abs(process.wait()) for process in processes)


def free_port() -> int:
    """Returns a free port."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    if any(name in os.environ for name in LAUNCHED):
        train()
    else:
        sys.exit(start(int(sys.argv[1]) if len(sys.argv) > 1 else 2))
