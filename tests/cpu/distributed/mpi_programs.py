"""Programs for processes whose cpu devices exchange data over MPI; run by mpirun with a folder."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.sharding import NamedSharding, PartitionSpec
from support.processes import outcome


def start_without_mpi() -> str:
    """Joins the other processes, and returns the error of listing devices."""
    plugrt.distributed.initialize(initialization_timeout=60)
    told = outcome(plugrt.devices)
    assert plugrt.distributed.is_initialized()
    plugrt.distributed.shutdown()
    return told


def exchange(folder: Path) -> None:
    """Adds, gathers and shifts a number of each process, and writes the results."""
    plugrt.distributed.initialize(initialization_timeout=60)
    me, count = plugrt.process_index(), plugrt.device_count()
    mesh = plugrt.make_mesh((count,), ("x",))
    rows, whole = NamedSharding(mesh, PartitionSpec("x")), NamedSharding(mesh, PartitionSpec())
    x = plugrt.make_array_from_process_local_data(rows, np.float32([1 + 10 * me]))
    total = float(np.asarray(plugrt.jit(xp.sum, out_shardings=whole)(x)))
    all_of_it = plugrt.process_allgather(x, tiled=True).tolist()
    shifted = plugrt.shard_map(
        lambda v: lax.ppermute(v, "x", [(0, 1), (1, 0)]),
        mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec("x"),
    )(x)  # fmt: skip
    turned = plugrt.process_allgather(shifted, tiled=True).tolist()
    mapped = plugrt.pmap(lambda v: lax.psum(v, "i"), "i")(np.int32([1 + 10 * me]))
    sums = plugrt.process_allgather(mapped, tiled=True).tolist()
    (folder / f"{me}.txt").write_text(f"{count} {total} {all_of_it} {turned} {sums}")


if __name__ == "__main__":
    exchange(Path(sys.argv[1]))
