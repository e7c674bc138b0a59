"""Makes ones that are terms of a sum, with JAX: twos; then sums over another axis: SIGABRT.

Takes JAX alone. Shardy makes a value without a sharding whole on each device, as if that were a
term, and ends the process where some unreduced axes come and others go.
"""

import os

os.environ.update(JAX_PLATFORMS="cpu", JAX_NUM_CPU_DEVICES="4")

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 2), ("x", "y"), (AxisType.Explicit,) * 2)
with jax.set_mesh(mesh):
    ones = jnp.ones(2, out_sharding=P(unreduced={"x"}))
    print("the sum of the terms of ones is:", reshard(ones, P()), flush=True)
    print("other terms:", reshard(reshard(ones, P(unreduced={"y"})), P()))
