"""Writes ``docs/numpy-backend.md``: the NumPy backend, and what it does with each operation."""

from __future__ import annotations

from pathlib import Path

from plugrt_numpy import table
from plugrt_numpy.operations import collectives

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/numpy-backend.md"

INTRODUCTION = """\
<!-- Written by docs/generate/numpy_backend.py: change it there. -->
# The NumPy backend

The package `plugrt-numpy` has the plugin `numpy`: StableHLO programs on NumPy, on any number of
virtual devices. plugrt-sdk, which it is written with, installs it until version 1.0. The plugin is
never chosen by itself:

```sh
JAX_PLATFORMS=numpy python my_program.py
JAX_PLATFORMS=numpy PLUGRT_CLIENT_CREATE_OPTIONS=numpy:num_devices:8 python my_program.py
```

Stock JAX has it too, by the same package's entry point, where `JAX_PLATFORMS` names it and in no
other process:

```sh
JAX_PLATFORMS=numpy python my_jax_program.py
JAX_PLATFORMS=numpy,cpu JAX_PJRT_CLIENT_CREATE_OPTIONS=num_devices:8 python my_jax_program.py
```

There JAX donates arguments, and has eigenvalues, singular values and LU decompositions by its rules
for CPUs: LAPACK's custom calls, which `numpy.linalg` and `plugrt_numpy.operations.lu` answer. JAX
refuses callbacks into Python on platforms that are not its own.

It is an example of a backend in Python, a second opinion on what a program computes, and a device
that can be stepped through with a debugger: a program becomes one Python function, a line an
operation, with the operation and the source line beside it in tracebacks.

```python
import numpy as np
import plugrt
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient

client = BackendClient(NumpyBackend(num_devices=2))
text = b"func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{ return %x : tensor<3xf32> }}"
program = client.compile(plugrt.interface.Program(text), plugrt.interface.CompileOptions())
x = client.buffer_from_host(np.zeros(3, np.float32), client.devices()[0])
[[y]] = program.execute([(x,)])
print(y.to_host())  # [0. 0. 0.]
```

| option | meaning |
| --- | --- |
| `num_devices` | how many devices there are (1) |
| `check_types` | whether results are compared with the types that MLIR inferred (for tests) |

## How it computes

- Each chapter of the specification is one module of `plugrt_numpy.operations`. A *lowering* reads
  an operation once and returns a function of arrays; nothing of MLIR is left when the program runs.
- Floats of 8 and 16 bits are computed in float32 and rounded once an operation, sums of them once;
  integers wrap; a float out of an integer's range becomes its nearest bound. Corner cases are
  XLA's: `x / 0` of integers is -1, `max(-0, 0)` is 0, a slice that starts outside is moved, an
  update that does not fit is left out.
- Elementary functions are NumPy's, some units in the last place from XLA's. Integer powers are
  those of the specification (a negative one is 0), where XLA's CPU compiler takes the exponent for
  an unsigned one.
- Regions of one operation are ufuncs; other elementwise regions are run for whole arrays, a
  reduction in a tree, but for `argmax` and `argmin`, which are recognised by what their regions do
  and are NumPy's; only regions with loops, sorts and the like are run for each element.
- `benchmarks/numpy_backend.py` has it beside NumPy: elementwise operations and sums take one to two
  times as long, a 256 x 256 product a quarter of a millisecond, a jitted addition of 8 floats under
  JAX 26 µs (21 µs for an exported backend that does nothing but add).
- `rng_bit_generator` gives XLA's bits, `rng` numbers that differ from run to run.
- Programs take and return tokens, which JAX's ordered effects are made of: a token holds nothing,
  and programs are run in the order of their launches.
- A program states what it costs by the rules of XLA's cost analysis (`flops`, `transcendentals`,
  `bytes accessed`), before any optimisation: there is none. A device states the bytes of the arrays
  on it.
- `plugrt.topology("numpy", "8")` compiles for eight devices that need not be there. JAX has none
  for the platform `numpy`; for an exported library it [has them where it can](export.md).
- Replicas, and what is written for single partitions, run in step; a device that leaves a loop sits
  out the rest. A partitioned program is put together, computed and divided again by its shardings.
- {total} operations are run, {refused} are refused with their name, source line and the reason.
  Quantised types are refused, too.

## Operations

| operation | where it is run, or why it is refused |
| --- | --- |
"""


def rows() -> dict[str, str]:
    """Returns for each operation the module that runs it, or why it is refused."""
    found = {
        name: f"`{chapter.__name__.rpartition('.')[2]}`"
        for chapter in table.CHAPTERS
        for name in chapter.OPERATIONS
    }
    found |= dict.fromkeys(collectives.JOINT, "`collectives`")
    found["stablehlo.constant"] = "`constants`"
    return found | {name: f"— {reason}" for name, reason in table.REFUSED.items()}


def page() -> str:
    """Returns the whole page."""
    found = rows()
    refused = len(table.REFUSED)
    out = INTRODUCTION.format(total=len(found) - refused, refused=refused)
    return out + "".join(f"| `{name}` | {where} |\n" for name, where in sorted(found.items()))


def main() -> None:
    """Writes the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
