"""Writes ``stored_bits.json`` of the conformance kit: the results of XLA's rng_bit_generator.

NumPy has no such function and StableHLO's reference interpreter lacks it. Run it with the
workspace's Python; the results are those of jaxlib's CPU client, the same as JAX's.
"""

from __future__ import annotations

import json

from plugrt.interface import CompileOptions, Program
from plugrt.plugins.selection.backends import get_backend
from plugrt_sdk.conformance.random_bits import FILE, program_of, stored_key, variants


def main() -> None:
    """Writes the file."""
    client = get_backend("cpu")
    found = {}
    for algorithm, dtype in variants():
        program = program_of(algorithm, dtype)
        loaded = client.compile(Program(program.text().encode()), CompileOptions())
        [device, *_] = client.devices()
        arguments = [(client.buffer_from_host(a, device),) for a in program.arguments]
        results = [buffer.to_host() for [buffer] in loaded.execute(arguments)]
        found[stored_key(algorithm, dtype)] = [[str(n) for n in r.ravel()] for r in results]
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
