"""The device under stock JAX, in a process of its own (conftest.py sets JAX_PLATFORMS)."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from my_chip import NAME

GRADIENT = f"""
import jax, jax.numpy as jnp
assert jax.devices() == jax.devices({NAME!r})
print(*jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)))(jnp.arange(4.0)).tolist())
"""


def test_a_gradient() -> None:
    pytest.importorskip("jax")
    command = [sys.executable, "-c", GRADIENT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = np.float32(done.stdout.split())
    np.testing.assert_allclose(found, np.sin(2 * np.arange(4.0)), rtol=1e-5)
