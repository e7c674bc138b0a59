"""Measures the export: a Python backend that adds two arrays in NumPy, under stock JAX.

JAX's own CPU backend runs the same calls in turn. The ratio is the overhead of a backend in Python.
The target is 30 µs for a jitted addition of 8 floats on an idle machine, 7 times JAX's own. The
NumPy backend, which interprets StableHLO, runs the same calls.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from harness import arguments, compare, prepare, report

prepare(devices=1)
warnings.filterwarnings("ignore", message="Platform '(adder|numpy)' is experimental")

import jax  # noqa: E402
import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
from jax._src import xla_bridge  # noqa: E402

from plugrt.interface import CompileOptions, Program  # noqa: E402
from plugrt_sdk import Backend, BackendClient  # noqa: E402
from plugrt_sdk.export import export_capsule  # noqa: E402

Array = npt.NDArray[Any]


class Adder(Backend):
    """A device that runs every program as an addition."""

    platform, version = "adder", "1"

    def devices(self) -> Sequence[str]:
        return ["adder"]

    def put(self, array: Array, device: int) -> Array:
        return array.copy()

    def get(self, handle: Array) -> Array:
        return handle

    def compile(self, program: Program, options: CompileOptions) -> Any:
        return lambda arguments: [[arguments[0][0] + arguments[1][0]]]


def main() -> None:
    """Prints the table."""
    parsed = arguments(__doc__)
    xla_bridge.register_plugin("adder", c_api=export_capsule(lambda: BackendClient(Adder())))
    jax.config.update("jax_platforms", "adder,numpy,cpu")
    eight = np.ones(8, np.float32)
    add = jax.jit(lambda a, b: a + b)
    x, y, z = (jax.device_put(eight, jax.devices(name)[0]) for name in ("adder", "cpu", "numpy"))
    there, here = x.sharding, y.sharding
    rows = [
        compare("jit add, 8 floats", lambda: add(x, x), lambda: add(y, y), 7.0),
        compare("jit add, 8 floats, NumPy backend", lambda: add(z, z), lambda: add(y, y)),
        compare("and read", lambda: np.asarray(add(x, x)), lambda: np.asarray(add(y, y))),
        compare("device_put, 8 floats", lambda: jax.device_put(eight, there),
                lambda: jax.device_put(eight, here)),
    ]  # fmt: skip
    report("A Python backend, exported to JAX, beside JAX on its CPU", rows, parsed.json)


if __name__ == "__main__":
    main()
