"""Compiles ``convert(x, int8) & y`` of an int32 and an int8 array on CPUs with JAX: SIGSEGV.

Takes JAX alone. So do ``|`` and int16; ``+``, ``^``, unsigned types, and a conversion of something
computed are right. With ``XLA_FLAGS=--xla_backend_optimization_level=0`` it is right.
"""

import os

os.environ.update(JAX_PLATFORMS="cpu", XLA_FLAGS="")

import jax
import numpy as np

x, y = np.ones(4, np.int32), np.ones(4, np.int8)
print("the result is:", jax.jit(lambda x, y: x.astype(np.int8) & y)(x, y))
