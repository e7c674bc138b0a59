"""jit: k-means on points in the plane, compiled once and called in a loop.

Shows a static argument, a donated argument, a step that stays on the device, and the output of
`lower`. Run it with ``python examples/jit.py``; ``JAX_PLATFORMS`` chooses the device.
"""

from __future__ import annotations

from functools import partial

import numpy as np

import plugrt
from plugrt import Array, random
from plugrt import array_api as xp

CENTRES = np.array([[0, 0], [4, 0], [2, 3]], np.float32)
POINTS = 600


def sample(seed: int) -> Array:
    """Returns points around the centres, ``float32[POINTS, 2]``."""
    noise = random.normal(random.key(seed), (POINTS, 2)) * 0.4
    return noise + xp.asarray(np.repeat(CENTRES, POINTS // len(CENTRES), axis=0))


@partial(plugrt.jit, static_argnums=2, donate_argnums=1)
def step(points: Array, means: Array, count: int) -> tuple[Array, Array]:
    """Moves each mean to the centre of the points nearest to it.

    ``count`` is static: it is a Python number while the function is traced, and part of the
    program's cache key. The memory of ``means`` is reused for the new means.
    """
    distances = xp.sum((points[:, None, :] - means[None, :, :]) ** 2, axis=-1)
    nearest = xp.argmin(distances, axis=1)
    member = xp.astype(nearest[:, None] == xp.arange(count)[None, :], points.dtype)
    means = (member.T @ points) / xp.sum(member, axis=0)[:, None]
    return means, xp.mean(xp.min(distances, axis=1))


def main() -> None:
    """Prints the means, sorted, and the mean squared distance before the last step."""
    points = sample(seed=0)
    means, spread = step(points, points[::200] + 0.5, 3)
    for _ in range(19):
        means, spread = step(points, means, 3)
    print("means:", sorted((np.round(np.asarray(means)) + 0.0).tolist()))
    print(f"spread: {float(spread):.2f}")
    print("programs in the cache:", step._cache_size())
    print("operations:", step.lower(points, means, 3).as_text().count("stablehlo."))


if __name__ == "__main__":
    main()
