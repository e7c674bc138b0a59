"""Packs a small transformer with random weights: ``python make_model.py transformer.zip``.

Needs plugrt[cpu] and jax; serving the model needs neither jax nor jaxlib.
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import plugrt

WIDTH, LENGTH, WORDS, BLOCKS, HEADS = 64, 32, 256, 2, 4


def make_weights() -> Any:
    """Returns the weights of all blocks."""
    draw = np.random.default_rng(0)

    def matrix(rows: int, columns: int) -> Any:
        return (draw.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)

    block = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH),
             "down": (4 * WIDTH, WIDTH)}  # fmt: skip
    blocks = [{name: matrix(*shape) for name, shape in block.items()} for _ in range(BLOCKS)]
    return {"words": matrix(WORDS, WIDTH), "places": matrix(LENGTH, WIDTH), "blocks": blocks}


def predict(weights: Any, tokens: jax.Array) -> jax.Array:
    """Returns the logits of the next token, float32[batch,WORDS], for int32[batch,LENGTH]."""
    x = weights["words"][tokens] + weights["places"]
    mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))

    def normalize(x: jax.Array) -> jax.Array:
        return (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5)

    for w in weights["blocks"]:
        q, k, v = jnp.split(normalize(x) @ w["qkv"], 3, axis=-1)
        q, k, v = (y.reshape(-1, LENGTH, HEADS, WIDTH // HEADS) for y in (q, k, v))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(WIDTH // HEADS)
        scores = jax.nn.softmax(jnp.where(mask, scores, -1e9))
        x = x + jnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape(x.shape) @ w["out"]
        x = x + jax.nn.gelu(normalize(x) @ w["up"]) @ w["down"]
    return x[:, -1] @ weights["words"].T


def main(path: str) -> None:
    """Exports the function with a symbolic batch, and packs it for three sizes."""
    weights = make_weights()
    [batch] = jax.export.symbolic_shape("batch")
    exported = jax.export.export(jax.jit(predict), platforms=["cpu"])(
        weights, jax.ShapeDtypeStruct((batch, LENGTH), np.int32)
    )
    plugrt.pack_model(
        path,
        exported,
        names=("weights", "tokens"),
        outputs=("logits",),
        weights={"weights": weights},
        buckets={"batch": (1, 8, 32)},
        executables=["cpu"],
    )


if __name__ == "__main__":
    main(sys.argv[1])
