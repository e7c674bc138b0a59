"""Compiles an ordered ``io_callback`` in a ``shard_map`` within another on CPUs with JAX: SIGABRT.

Takes JAX alone. XLA's partitioner ends the process with "Check failed: buffer != nullptr". With one
of the two ``shard_map`` alone, over both axes, it runs.
"""

import os

os.environ.update(JAX_PLATFORMS="cpu", XLA_FLAGS="", JAX_NUM_CPU_DEVICES="4")

import jax
import numpy as np
from jax.experimental import io_callback
from jax.sharding import AxisType, PartitionSpec

mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def tell(x):
    io_callback(lambda v: None, None, x, ordered=True)
    return x


def over(axis, function):
    specs = PartitionSpec(axis)
    return jax.shard_map(
        function, in_specs=specs, out_specs=specs, axis_names={axis}, check_vma=False
    )


with jax.set_mesh(mesh):
    print("the result is:", jax.jit(over("x", over("y", tell)))(np.ones((4, 4), np.float32)))
