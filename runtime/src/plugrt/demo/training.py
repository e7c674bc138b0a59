"""The demo's network, and its training: jitted, mapped over devices, over a mesh; with times.

It has 64 pixels, one hidden layer of rectified units, and ten classes. plugrt has no automatic
differentiation; a two-layer network's chain rule fits in ten lines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.demo import training as network
from plugrt.demo.digits import CLASSES, PIXELS, Digits
from plugrt.interface import Device
from plugrt.sharding import NamedSharding
from plugrt.sharding import PartitionSpec as P

BATCH = 64
EPOCHS = 25


@dataclass(frozen=True)
class Result:
    """The result of a run: held-out accuracy in [0, 1], seconds to compile, steps per second."""

    title: str
    accuracy: float
    final_loss: float
    compile_seconds: float
    steps_per_second: float
    steps: int
    devices: int


Progress = Callable[[float], None]
"""Called after each step with the last known loss."""


def batches(
    digits: Digits, seed: int
) -> Iterator[tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]]]:
    """Yields every batch of every epoch, shuffled for each epoch."""
    draw = np.random.default_rng(seed)
    count = len(digits.train_labels) // BATCH
    for _ in range(EPOCHS):
        order = draw.permutation(len(digits.train_labels))
        for i in range(count):
            chosen = order[i * BATCH : (i + 1) * BATCH]
            yield digits.train_images[chosen], digits.train_labels[chosen]


def step_count(digits: Digits) -> int:
    """Returns the number of batches that `batches` yields."""
    return EPOCHS * (len(digits.train_labels) // BATCH)


def train_jitted(digits: Digits, progress: Progress) -> Result:
    """Trains with `plugrt.jit` on the default device; parameters and momentum are donated."""
    step = plugrt.jit(network.step, donate_argnums=(0, 1))
    params, momentum = plugrt.device_put(
        (network.initial_params(), network.zeros_like(network.initial_params()))
    )
    run = _Run(progress)
    for images, labels in batches(digits, seed=1):
        params, momentum, loss = step(params, momentum, images, labels)
        run.record_step(loss)
    return run.result("jit", digits, params, devices=1)


def train_parallel(digits: Digits, devices: list[Device], progress: Progress) -> Result:
    """Trains with `plugrt.pmap`: each device gets a part of every batch, gradients are summed.

    Parameters and momentum stay on their devices from step to step.
    """
    count = len(devices)
    step = plugrt.pmap(
        network.parallel_step, axis_name="devices", devices=devices, donate_argnums=(0, 1)
    )
    start = network.initial_params()
    params, momentum = plugrt.device_put_replicated((start, network.zeros_like(start)), devices)
    run = _Run(progress)
    for images, labels in batches(digits, seed=1):
        shards = images.reshape(count, -1, images.shape[1]), labels.reshape(count, -1)
        params, momentum, loss = step(params, momentum, *shards)
        run.record_step(loss)
    first = {name: value[0] for name, value in params.items()}
    return run.result(
        f"pmap over {count} device{'s' if count != 1 else ''}", digits, first, devices=count
    )


def train_sharded(digits: Digits, devices: list[Device], progress: Progress) -> Result:
    """Trains with `plugrt.jit` over a mesh: the step of `train_jitted`, divided by the compiler.

    Batches are divided over the axis ``data``, the hidden layer over ``model``, which has two
    devices if their number is even; momentum has the parameters' sharding.
    """
    count = len(devices)
    shape = (count // 2, 2) if count % 2 == 0 else (count, 1)
    mesh = plugrt.make_mesh(shape, ("data", "model"), devices=devices)
    places = {name: NamedSharding(mesh, P(*spec)) for name, spec in network.MODEL_AXES.items()}
    rows, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    step = plugrt.jit(
        network.step,
        in_shardings=(places, places, rows, rows),
        out_shardings=(places, places, whole),
        donate_argnums=(0, 1),
    )
    start = network.initial_params()
    params, momentum = plugrt.device_put((start, network.zeros_like(start)), (places, places))
    run = _Run(progress)
    for images, labels in batches(digits, seed=1):
        params, momentum, loss = step(params, momentum, images, labels)
        run.record_step(loss)
    sizes = " x ".join(map(str, shape))
    return run.result(f"jit over a {sizes} mesh", digits, params, devices=count)


class _Run:
    """Counts and times the steps of a run; the first one, which compiles, separately."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._start = time.perf_counter()
        self._compiled = 0.0
        self._steps = 0
        self._loss: Any = None

    def record_step(self, loss: object) -> None:
        self._steps += 1
        self._loss = loss
        if self._steps == 1:
            plugrt.block_until_ready(loss)
            self._compiled = time.perf_counter()
        # Reading the loss waits for the device, so it is not read at every step.
        if self._steps % 25 == 1:
            self._progress(float(np.mean(np.asarray(loss))))
        else:
            self._progress(float("nan"))

    def result(self, title: str, digits: Digits, params: Any, devices: int) -> Result:
        plugrt.block_until_ready(params)
        seconds = time.perf_counter() - self._compiled
        predicted = plugrt.jit(network.predict)(params, digits.test_images)
        accuracy = float(np.mean(np.asarray(predicted) == digits.test_labels))
        return Result(
            title=title,
            accuracy=accuracy,
            final_loss=float(np.mean(np.asarray(self._loss))),
            compile_seconds=self._compiled - self._start,
            steps_per_second=(self._steps - 1) / seconds,
            steps=self._steps,
            devices=devices,
        )


HIDDEN = 128
MOMENTUM = 0.9
RATE = 0.1

MODEL_AXES: dict[str, tuple[str | None, ...]] = {
    "w1": (None, "model"),
    "b1": ("model",),
    "w2": ("model", None),
    "b2": (),
}
"""The axis of a mesh that divides each dimension of each parameter: the hidden units' do."""

Params = dict[str, Any]


def initial_params(seed: int = 0) -> Params:
    """Returns weights drawn so that activations keep their scale, and zero biases."""
    draw = np.random.default_rng(seed)
    return {
        "w1": (draw.normal(size=(PIXELS, HIDDEN)) * np.sqrt(2 / PIXELS)).astype(np.float32),
        "b1": np.zeros(HIDDEN, np.float32),
        "w2": (draw.normal(size=(HIDDEN, CLASSES)) * np.sqrt(2 / HIDDEN)).astype(np.float32),
        "b2": np.zeros(CLASSES, np.float32),
    }


def zeros_like(params: Params) -> Params:
    """Returns the momentum to start with."""
    return {name: np.zeros_like(value) for name, value in params.items()}


def logits(params: Params, images: object) -> tuple[Any, Any]:
    """Returns the scores of each class, shape (n, 10), and the hidden activations (n, 128)."""
    hidden = xp.maximum(images @ params["w1"] + params["b1"], 0)
    return hidden @ params["w2"] + params["b2"], hidden


def loss_and_gradients(params: Params, images: Any, labels: Any) -> tuple[Any, Params]:
    """Returns the mean cross-entropy over the batch, and its gradient for each parameter."""
    scores, hidden = logits(params, images)
    scores = scores - xp.max(scores, axis=1, keepdims=True)
    exponentials = xp.exp(scores)
    total = xp.sum(exponentials, axis=1, keepdims=True)
    wanted = xp.astype(labels[:, None] == xp.arange(CLASSES)[None, :], xp.float32)
    count = images.shape[0]
    loss = -xp.sum(wanted * (scores - xp.log(total))) / count
    d_scores = (exponentials / total - wanted) / count
    d_hidden = (d_scores @ params["w2"].T) * xp.astype(hidden > 0, xp.float32)
    return loss, {
        "w1": images.T @ d_hidden,
        "b1": xp.sum(d_hidden, axis=0),
        "w2": hidden.T @ d_scores,
        "b2": xp.sum(d_scores, axis=0),
    }


def update(params: Params, momentum: Params, gradients: Params) -> tuple[Params, Params]:
    """Returns parameters and momentum after one step of gradient descent."""
    momentum = {n: MOMENTUM * momentum[n] + gradients[n] for n in params}
    return {n: params[n] - RATE * momentum[n] for n in params}, momentum


def step(
    params: Params, momentum: Params, images: object, labels: object
) -> tuple[Params, Params, Any]:
    """One step on one device: the new parameters, the new momentum and the loss."""
    loss, gradients = loss_and_gradients(params, images, labels)
    return *update(params, momentum, gradients), loss


def parallel_step(
    params: Params, momentum: Params, images: object, labels: object
) -> tuple[Params, Params, Any]:
    """Does a step on one shard of a batch; averages loss and gradients over ``devices``."""
    loss, gradients = loss_and_gradients(params, images, labels)
    gradients = lax.pmean(gradients, "devices")
    return *update(params, momentum, gradients), lax.pmean(loss, "devices")


def predict(params: Params, images: object) -> Any:
    """Returns the most likely class of each image, shape (n,)."""
    return xp.argmax(logits(params, images)[0], axis=1)
