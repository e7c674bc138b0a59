"""Programs of rng_bit_generator, and their expected bits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.testing.program_text import ProgramText, typed

FILE = Path(__file__).with_name("stored_bits.json")
"""XLA's results, written by tools/stored_bits.py with jaxlib 0.10.2."""
STATES = {"THREE_FRY": (42, 2**64 - 2), "PHILOX": (42, 2**64 - 2, 7)}
"""The state of each algorithm; its second word, the counter, overflows into the next."""
SHAPE = (3, 5)
"""An odd number of elements, so that half of the last block is used."""


def variants() -> Iterator[tuple[str, str]]:
    """Yields each algorithm with the dtypes that are requested."""
    for algorithm in STATES:
        for dtype in ("uint32", "uint64", "uint8"):
            yield algorithm, dtype


def stored_key(algorithm: str, dtype: str) -> str:
    """Returns the key of a variant in the file."""
    return f"{algorithm}.{dtype}"


def program_of(algorithm: str, dtype: str) -> ProgramText:
    """Returns a program that computes the new state and the bits."""
    program = ProgramText()
    state = program.argument(np.array(STATES[algorithm], np.uint64))
    program.apply(
        "rng_bit_generator", [state], [state[1], typed(SHAPE, dtype)],
        f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>",
    )  # fmt: skip
    return program


@cache
def _stored() -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def expected_of(algorithm: str, dtype: str) -> Sequence[Array]:
    """Returns the stored new state and bits."""
    state, bits = _stored()[stored_key(algorithm, dtype)]
    return [
        np.array([*map(int, state)], np.uint64),
        np.array([*map(int, bits)], np.dtype(dtype)).reshape(SHAPE),
    ]
