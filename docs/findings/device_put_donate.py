"""Donates an array in a pytree to JAX's `device_put`, and asks whether it is deleted: SIGSEGV.

Takes JAX alone. Without the tuple around the array the answer is False.
"""

import os

os.environ.update(JAX_PLATFORMS="cpu", JAX_NUM_CPU_DEVICES="2")

import jax
import numpy as np

first, second = jax.devices()
x = jax.device_put(np.ones(1, np.float32), first)
jax.device_put((x,), jax.sharding.SingleDeviceSharding(second), donate=True)
print("it is deleted:", x.is_deleted())
