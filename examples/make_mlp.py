"""Makes mlp.mlir, mlp_input.npy and mlp_labels.npy: ``python examples/make_mlp.py``.

Trains a small version of the demo's network and writes the module that `plugrt.jit` lowers it to,
with the weights as constants.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import plugrt
from plugrt.demo import training as network
from plugrt.demo.digits import PIXELS, load_digits

HERE = Path(__file__).parent
HIDDEN = 16  # small, so that the weights are embedded in the text
STEPS = 600
IMAGES = 32


def trained() -> network.Params:
    """Returns weights after some steps of gradient descent on all training images at once."""
    digits = load_digits()
    draw = np.random.default_rng(0)
    full = network.initial_params()
    start = {
        "w1": draw.normal(scale=np.sqrt(2 / PIXELS), size=(PIXELS, HIDDEN)).astype(np.float32),
        "b1": full["b1"][:HIDDEN],
        "w2": full["w2"][:HIDDEN],
        "b2": full["b2"],
    }
    params, momentum = plugrt.device_put((start, network.zeros_like(start)))
    step = plugrt.jit(network.step)
    for _ in range(STEPS):
        params, momentum, _ = step(params, momentum, digits.train_images, digits.train_labels)
    return plugrt.device_get(params)


def main() -> None:
    """Writes the three files next to this one."""
    params, digits = trained(), load_digits()

    @plugrt.jit
    def mlp(images: Any) -> Any:
        return network.predict(params, images)

    images, labels = digits.test_images[:IMAGES], digits.test_labels[:IMAGES]
    (HERE / "mlp.mlir").write_text(mlp.lower(images).as_text())
    np.save(HERE / "mlp_input.npy", images)
    np.save(HERE / "mlp_labels.npy", labels)
    print(f"{np.mean(np.asarray(mlp(images)) == labels):.0%} of {IMAGES} images recognised")


if __name__ == "__main__":
    main()
