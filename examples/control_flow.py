"""Control flow within a compiled program: `while_loop`, `scan` and `cond` of ``plugrt.lax``.

Python's own ``if`` and ``while`` run while a function is traced, when arrays have no values yet.
These become a part of the program, and run on the device.
"""

from __future__ import annotations

import numpy as np

import plugrt
from plugrt import Array, lax
from plugrt import array_api as xp


@plugrt.jit
def square_root(x: Array) -> tuple[Array, Array]:
    """Newton's method until it no longer changes much: the root, and the number of steps."""

    def unfinished(state: tuple[Array, Array]) -> Array:
        guess, _ = state
        return xp.abs(guess * guess - x) > 1e-6 * x

    def improve(state: tuple[Array, Array]) -> tuple[Array, Array]:
        guess, steps = state
        return (guess + x / guess) / 2, steps + 1

    return lax.while_loop(unfinished, improve, (x, xp.asarray(0)))


@plugrt.jit
def swing(angle: Array, seconds: Array) -> Array:
    """The angles of a pendulum at a hundred times: `scan` carries the state and stacks results."""
    dt = seconds / 100

    def advance(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        angle, speed = state
        speed = speed - 9.81 * xp.sin(angle) * dt
        return (angle + speed * dt, speed), angle

    angles: Array = lax.scan(advance, (angle, angle * 0), None, length=100)[1]
    return angles


@plugrt.jit
def clip_or_scale(x: Array, scale: bool) -> Array:
    """Only one of the branches runs; the program chooses it at run time."""
    largest = xp.max(xp.abs(x))
    result: Array = lax.cond(scale, lambda: x / largest, lambda: xp.clip(x, -1, 1))
    return result


def main() -> None:
    """Prints the results of the three functions."""
    root, steps = square_root(xp.asarray(2.0))
    print(f"root of 2: {float(root):.5f} after {int(steps)} steps")
    angles = np.asarray(swing(xp.asarray(0.1), xp.asarray(2.0)))
    turns = np.sum(np.diff(np.sign(np.diff(angles))) != 0)
    print(f"the pendulum turns around {int(turns)} time(s) in 2 s")
    x = xp.asarray([-4, 0.5, 2])
    print("scaled:", np.asarray(clip_or_scale(x, True)).tolist())
    print("clipped:", np.asarray(clip_or_scale(x, False)).tolist())


if __name__ == "__main__":
    main()
