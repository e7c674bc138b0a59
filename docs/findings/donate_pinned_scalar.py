"""Donates a scalar in pinned host memory to a function of JAX's `jit`: SIGABRT on CPUs.

Takes JAX alone. With an array of one dimension or without `donate_argnums` the result is 6.
"""

import os

os.environ.update(JAX_PLATFORMS="cpu")

import jax
import numpy as np

pinned = jax.sharding.SingleDeviceSharding(jax.devices()[0]).with_memory_kind("pinned_host")
# Where XLA cannot use the memory of the array itself, as it does of aligned memory.
unaligned = np.asarray([0, 2], np.int32)[1:].reshape(())
x = jax.device_put(unaligned, pinned)
print("the result is:", jax.jit(lambda x: x * 3, donate_argnums=0)(x))
