"""What the array API lacks: control flow, collectives, and StableHLO's operations under JAX's names.

Names, argument order, defaults and meaning are ``jax.lax``'s. The operations are strict, as there:
arrays that meet must have one dtype and one shape; Python scalars take the dtype of the arrays.
"""

from plugrt.lax.branches import cond, switch
from plugrt.lax.loops import fori_loop, while_loop
from plugrt.lax.scans import map, scan

__all__ = [
    "cond",
    "fori_loop",
    "map",
    "scan",
    "switch",
    "while_loop",
]
