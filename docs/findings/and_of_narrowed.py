"""Compiles ``convert(x, int8) & y`` of an int32 and an int8 array on CPUs with JAX: SIGSEGV.

Takes JAX alone. So do ``|`` and int16; ``+``, ``^``, unsigned types, and a conversion of something
computed are right.
"""

import os

os.environ.update(JAX_PLATFORMS="cpu")

import jax
import numpy as np

x, y = np.ones(4, np.int32), np.ones(4, np.int8)
print("the result is:", jax.jit(lambda x, y: x.astype(np.int8) & y)(x, y))
