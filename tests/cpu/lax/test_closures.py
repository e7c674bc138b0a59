"""Control flow outside of `jit`: whether functions read captured values again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import lax, monitoring
from plugrt.errors import DeviceMismatch
from support.behaviour import behaviour
from support.compiles import counting
from support.jax_oracle import jax, same

X = np.float32([1, 2, 3])


def _composite(of: Any, by: Any) -> Any:
    return of.composite(lambda x: x * by(), "my.scale")


def _solver(of: Any, by: Any) -> Any:
    def solve(matvec: Any, b: Any) -> Any:
        return matvec(b)

    def matvec(x: Any) -> Any:
        return x * by()

    return lambda x: of.custom_linear_solve(matvec, x, solve)


def _root(of: Any, by: Any) -> Any:
    def f(x: Any) -> Any:
        return x * by()

    def solve(f: Any, x: Any) -> Any:
        return x + f(x)

    return lambda x: of.custom_root(f, x, solve, lambda g, y: y)


def _map(of: Any, by: Any) -> Any:
    def f(x: Any) -> Any:
        return x * by()

    return lambda x: of.map(f, x)


def _associative_scan(of: Any, by: Any) -> Any:
    def f(a: Any, b: Any) -> Any:
        return a + b * by()

    return lambda x: of.associative_scan(f, x)


def _scan(of: Any, by: Any) -> Any:
    def f(carry: Any, x: Any) -> Any:
        return carry + x * by(), x

    return lambda x: of.scan(f, np.float32(0), x)[0]


def _reduce(of: Any, by: Any) -> Any:
    def f(a: Any, b: Any) -> Any:
        return a + b if by() == 2 else a * b

    return lambda x: of.reduce(x, np.float32(0), f, (0,))


@behaviour(
    19,
    "functions of functions read anew what those close over, but for loops, conditionals and "
    "reductions",
)
@pytest.mark.parametrize(
    ("make", "anew"),
    [
        (_composite, True),
        (_solver, True),
        (_root, True),
        (_map, True),
        (_associative_scan, True),
        (_scan, False),
        (_reduce, False),
    ],
)
def test_functions_are_traced_again_if_their_closures_changed(make: Any, *, anew: bool) -> None:
    value = np.float32(2)
    ours, theirs = make(lax, lambda: value), make(jax.lax, lambda: value)
    first = ours(X)
    same(first, theirs(X), rtol=1e-6)
    value = np.float32(3)
    second = ours(X)
    same(second, theirs(X), rtol=1e-6)
    assert np.array_equal(first, second) is not anew
    with counting() as counts:
        same(ours(X), second)
    assert counts[monitoring.COMPILE] == 0


def _places(m: Any, s: Any) -> list[Any]:
    mesh = s.Mesh(np.array(m.devices()[:4]), ("x",))
    return [
        m.devices()[3],
        s.NamedSharding(mesh, s.PartitionSpec("x")),
        s.NamedSharding(mesh, s.PartitionSpec()),
    ]


CAPTURING = {
    "cond": lambda lax, x, y: lax.cond(x.sum() > 0, lambda v: v + y, lambda v: v - y, x),
    "a branch alone": lambda lax, x, y: lax.cond(True, lambda: y, lambda: y * 0),
    "switch": lambda lax, x, y: lax.switch(1, [lambda v: v, lambda v: v * y], x),
    "fori_loop": lambda lax, x, y: lax.fori_loop(0, 2, lambda i, c: c * y, x),
    "while_loop": lambda lax, x, y: lax.while_loop(lambda c: c.sum() < 1, lambda c: c + y, x),
    "scan": lambda lax, x, y: lax.scan(lambda c, v: (c + y, v), x, None, length=2)[0],
}


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("of", [*CAPTURING])
def test_arrays_that_functions_close_over_decide_where_they_run(of: str, place: int) -> None:
    """Same as JAX: eager control flow runs where the arrays are that its functions close over."""
    a = np.arange(4, dtype=np.float32)
    found = []
    for m, s, control in ((plugrt, plugrt.sharding, lax), (jax, jax.sharding, jax.lax)):
        y = m.device_put(a + 1, _places(m, s)[place])
        result = CAPTURING[of](control, m.device_put(a), y)
        parts = result.sharding.devices_indices_map(result.shape)
        spans = {d.id: [i.indices(4)[:2] for i in index] for d, index in parts.items()}
        found.append((result.committed, spans, np.asarray(result).tolist()))
        assert result.sharding.device_set == y.sharding.device_set
    assert found[0] == found[1]


def test_arrays_that_functions_close_over_on_other_devices_are_refused() -> None:
    x, y = (plugrt.device_put(X, plugrt.devices()[i]) for i in (2, 3))
    with pytest.raises(DeviceMismatch, match="in its closure"):
        lax.cond(True, lambda v: v + y, lambda v: v, x)
