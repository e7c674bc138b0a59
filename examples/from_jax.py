"""Training with JAX's gradients on plugrt's devices: a two-layer network that learns XOR.

JAX traces and differentiates; plugrt compiles and runs. JAX starts no backend.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import plugrt

INPUTS = np.float32([[0, 0], [0, 1], [1, 0], [1, 1]])
TARGETS = np.float32([0, 1, 1, 0])


def predict(params: dict[str, Any], x: Any) -> Any:
    """Returns a probability for one input."""
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return jax.nn.sigmoid(hidden @ params["w2"] + params["b2"])


def loss(params: dict[str, Any]) -> Any:
    """Returns the mean cross entropy over all inputs."""
    p = jax.vmap(predict, in_axes=(None, 0))(params, INPUTS)
    return -jnp.mean(TARGETS * jnp.log(p) + (1 - TARGETS) * jnp.log1p(-p))


def init(seed: Any) -> dict[str, Any]:
    """Returns random parameters; the key is made on the device."""
    first, second = jax.random.split(jax.random.key(seed))
    return {
        "w1": jax.random.normal(first, (2, 8)),
        "b1": jnp.zeros(8),
        "w2": jax.random.normal(second, (8,)),
        "b2": jnp.zeros(()),
    }


def step(params: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Returns the parameters after one step of gradient descent, and the loss before it."""
    value, gradients = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 1.0 * g, params, gradients), value


def main() -> None:
    train = plugrt.from_jax(step, donate_argnums=0)
    params = plugrt.from_jax(init)(1)
    for _ in range(200):
        params, value = train(params)
    probabilities = plugrt.from_jax(jax.vmap(predict, in_axes=(None, 0)))(params, INPUTS)
    print(f"loss: {value.item():.2f}")
    print("XOR:", [round(p) for p in probabilities.tolist()])
    print("on:", probabilities.device.platform)


if __name__ == "__main__":
    main()
