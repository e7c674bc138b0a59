"""pmap: fits a line to data divided over four devices, which exchange their gradients.

Shows one function on each device, `lax.pmean` over a named axis, and arrays that stay on their
devices between steps. Four virtual devices share the cores of the cpu: the example is not about
speed.
"""

from __future__ import annotations

import os

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "4")  # before the first use of devices

import numpy as np

import plugrt
from plugrt import Array, lax
from plugrt import array_api as xp

SLOPE, OFFSET = 3.0, -1.0


def step(weights: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """One step of gradient descent on this device's part; all devices get the same weights."""
    error = weights[0] * x + weights[1] - y
    gradient = 2 * xp.stack([xp.mean(error * x), xp.mean(error)])
    gradient = lax.pmean(gradient, "devices")
    return weights - 0.5 * gradient, lax.pmean(xp.mean(error**2), "devices")


def main() -> None:
    """Prints the final weights of each device, and the loss."""
    devices = plugrt.local_devices()
    x = np.random.default_rng(0).uniform(-1, 1, (len(devices), 256)).astype(np.float32)
    y = np.float32(SLOPE) * x + np.float32(OFFSET)
    train = plugrt.pmap(step, axis_name="devices")
    weights = plugrt.device_put_replicated(np.zeros(2, np.float32), devices)
    x, y = (plugrt.device_put_sharded(list(part), devices) for part in (x, y))
    for _ in range(100):
        weights, loss = train(weights, x, y)
    print("devices:", len(devices))
    print("weights on each:", np.round(np.asarray(weights), 3).tolist())
    print(f"loss: {float(loss[0]):.6f}")


if __name__ == "__main__":
    main()
