"""What the array API lacks: control flow, collectives, StableHLO's operations by JAX's names.

Names, argument order, defaults and meaning are ``jax.lax``'s. The operations are strict, as there:
arrays that meet must have one dtype and one shape; Python scalars take the dtype of the arrays.
"""

from plugrt.lax.branches import cond, switch
from plugrt.lax.collectives import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
    pswapaxes,
)
from plugrt.lax.loops import fori_loop, while_loop
from plugrt.lax.scans import map, scan

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "cond",
    "fori_loop",
    "map",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
    "pswapaxes",
    "scan",
    "switch",
    "while_loop",
]
