"""Compiles a function ahead of time for shapes, prints its properties, saves it, and runs the file.

``python examples/ahead_of_time.py FILE`` writes the program to FILE. With a topology (``… FILE
tpu:v5e:2x2``) it is also compiled for devices that the machine need not have.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import plugrt
from plugrt import Array
from plugrt import array_api as xp


def attention(queries: Array, keys: Array, values: Array) -> Array:
    """Returns the attention output of each query, ``[queries, features]``."""
    scores = queries @ keys.T / keys.shape[1] ** 0.5
    weights = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    return weights @ values / xp.sum(weights, axis=1, keepdims=True)


def main(file: Path, topology: str = "") -> None:
    """Prints the program's properties before it runs, and checks that the file gives the same
    result.
    """
    shape = plugrt.ShapeDtypeStruct((16, 8), np.float32)
    lowered = plugrt.jit(attention).lower(shape, shape, shape)
    compiled = lowered.compile()  # no computation and no data so far
    print("result:", compiled.out_info)
    print("flops:", compiled.cost_analysis()["flops"])

    file.write_text(lowered.as_text())  # StableHLO: any PJRT host can compile it
    draw = np.random.default_rng(0)
    q, k, v = (draw.normal(size=shape.shape).astype(np.float32) for _ in range(3))
    from_file = plugrt.compile(file)
    same = np.allclose(from_file(q, k, v), compiled(q, k, v), atol=1e-6)
    print("the file computes the same:", same)

    if topology:
        platform, _, name = topology.partition(":")
        target = lowered.compile(topology=plugrt.topology(platform, name))
        print(f"{topology}: {len(target.serialize())} bytes of machine code")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "attention.mlir"), *sys.argv[2:3])
