"""Donates a scalar in pinned host memory to a function of JAX's `jit`: SIGABRT on CPUs.

Takes JAX alone. With an array of one dimension or without `donate_argnums` the result is 6.
"""

import os

os.environ.update(JAX_PLATFORMS="cpu")

import jax
import numpy as np

pinned = jax.sharding.SingleDeviceSharding(jax.devices()[0]).with_memory_kind("pinned_host")
x = jax.device_put(np.asarray(2, np.int32), pinned)
print("the result is:", jax.jit(lambda x: x * 3, donate_argnums=0)(x))
