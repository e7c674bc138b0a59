"""Writes the end of ``plugins/numpy/README.md``: how it computes, and each operation's module."""

from __future__ import annotations

from pathlib import Path

from plugrt_numpy import table
from plugrt_numpy.operations import collectives

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "plugins/numpy/README.md"

BEGIN = "<!-- Written by docs/generate/numpy_backend.py: change it there. -->\n"
INTRODUCTION = """\
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
  for the platform `numpy`; for an exported library it [has them where it can](https://github.com/plugrt/plugrt/blob/main/docs/export.md).
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
    out = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0] + BEGIN + "\n"
    out += INTRODUCTION.format(total=len(found) - refused, refused=refused)
    return out + "".join(f"| `{name}` | {where} |\n" for name, where in sorted(found.items()))


def main() -> None:
    """Writes the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
