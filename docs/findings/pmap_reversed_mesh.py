"""Calls a `pmap` of JAX's twice with an array over a mesh in another order: SIGSEGV on CPUs.

Takes JAX alone. The first call gives the right result; with the devices in order, so does each.
"""

import os

os.environ.update(JAX_PLATFORMS="cpu", JAX_NUM_CPU_DEVICES="2")

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()[::-1]), ("x",))
x = jax.device_put(np.arange(2.0), NamedSharding(mesh, P("x")))
add = jax.pmap(lambda v: v + 1)
print("the first result is:", add(x), flush=True)
print("the second result is:", add(x))
