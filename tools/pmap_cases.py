"""Functions with nested pmaps for both JAX and plugrt: see `tools/test_old_jax.py`.

``python pmap_cases.py LIBRARY FILE`` computes them with LIBRARY, ``jax`` or ``plugrt``, and writes
the numbers to an ``.npz`` file.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

SEED = 20


def random_within(m: Any, rng: np.random.Generator) -> tuple[Callable[[Any], Any], Any]:
    """Returns nested pmaps with collectives between, and an argument."""
    sizes = [[2, 4], [4, 2], [2, 2], [2, 2, 2], [1, 8], [3, 2]][int(rng.integers(6))]
    names = "ijk"[: len(sizes)]
    chosen = [
        (("psum", "pmax", "pmin", "pmean", "all_gather")[int(rng.integers(5))],
         tuple(rng.permutation([*names])[: int(rng.integers(1, len(names) + 1))]))
        for _ in range(4)
    ]  # fmt: skip
    # JAX 0.4.20 fails to lower an out_axes other than 0 of a nested pmap.
    outs = [int(rng.integers(2)), *[0] * (len(sizes) - 1)]
    in_jit = bool(rng.integers(2)) and sizes == [2, 2]
    outs = [0, 0] if in_jit else outs

    def leaf(v: Any) -> Any:
        made = [getattr(m.lax, name)(v, tuple(map(str, axes))) for name, axes in chosen]
        index = m.lax.axis_index(names[-1]) + 10 * m.lax.axis_index(names[0])
        return [v * index, *(x.reshape(-1, 3).sum(0) for x in made)]

    function = leaf
    for name, out in zip(reversed(names), reversed(outs), strict=True):
        function = m.pmap(function, axis_name=name, out_axes=out)
    mapped = function
    if in_jit:
        function = m.jit(lambda v: [x * 2 for x in mapped(v)])
    # Positive, since that jaxlib computes the maximum of negative numbers as 1.2e-38.
    return function, rng.integers(1, 9, (*sizes, 3)).astype(np.float32)


def control_flow(m: Any, rng: np.random.Generator) -> Iterator[tuple[Callable[[Any], Any], Any]]:
    """Yields pmaps in scan, cond, loops and jit, and outermost pmaps around those."""
    total = m.pmap(lambda v: m.lax.psum(v, "j"), axis_name="j")
    x = rng.integers(-9, 9, (2, 4, 3)).astype(np.float32)
    yield lambda v: m.lax.scan(lambda c, row: (c + total(row)[0], c), v[0, 0] * 0, v), x
    yield m.jit(lambda v: m.lax.cond(v[0, 0] > 0, total, lambda u: u, v)), x[0]
    yield m.jit(lambda v: m.lax.fori_loop(0, 3, lambda _, c: total(c) / 4 + 1, v)), x[0]
    by_replica = lambda v: m.lax.cond(v[0, 0] > 0, total, lambda u: u, v)  # noqa: E731
    yield m.pmap(by_replica, axis_name="i"), x
    yield m.pmap(lambda v: (total(v[:2]), total(v), m.lax.psum(v, "i")), axis_name="i"), x
    uneven = [[0, 1, 2], [3]]
    groups = m.pmap(lambda v: m.lax.psum(v, "i", axis_index_groups=uneven), axis_name="i")
    yield groups, x[0]
    yield m.pmap(lambda v: m.lax.psum(v, ("i", 0)), axis_name="i"), x[0]


def results(m: Any) -> Iterator[Any]:
    """Yields the results of each case, leaf by leaf."""
    rng = np.random.default_rng(SEED)
    cases = [random_within(m, rng) for _ in range(20)]
    for function, x in [*cases, *control_flow(m, rng)]:
        yield from _leaves(function(x))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part)
    else:
        yield np.asarray(value)


if __name__ == "__main__":
    library = __import__(sys.argv[1])
    if sys.argv[1] == "plugrt":
        pass
    warnings.simplefilter("ignore")
    np.savez(sys.argv[2], *results(library))
