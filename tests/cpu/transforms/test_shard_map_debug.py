"""debug_nans in programs that are divided over devices: the operation, its types and its line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.errors import FloatingPointFault
from plugrt.sharding import NamedSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour

MESH = plugrt.make_mesh((2, 2), ("x", "y"), devices=plugrt.devices()[:4])
GOOD = np.ones((4, 4), np.float32)
BAD = GOOD.copy()
BAD[3, 2] = -1  # in one device's part


def log(v: Any) -> Any:
    return xp.log(v)  # messages name this line


def summed(v: Any) -> Any:
    return lax.psum(log(v), "x") * 2


def stepwise(v: Any) -> Any:
    return lax.fori_loop(0, 3, lambda _, c: log(c) + 1 + 0 * lax.psum(c, "y"), v)


def chosen(v: Any) -> Any:
    return lax.cond(lax.axis_index("x") > 0, log, lambda u: u * 0, v)


def over(function: Callable[[Any], Any], taken: P, given: P, *names: str) -> Any:
    axes = names or MESH.axis_names
    return plugrt.shard_map(
        function, mesh=MESH, in_specs=taken, out_specs=given, axis_names={*axes}
    )


def nested(v: Any) -> Any:
    return over(log, P(None, "y"), P(None, "y"), "y")(v) * 2


WHOLE = P("x", "y")
CALLS: dict[str, tuple[Any, str]] = {
    "all axes": (over(summed, WHOLE, P(None, "y")), "2,2"),
    "some axes": (over(summed, P("x"), P(), "x"), "2,4"),
    "a loop": (over(stepwise, WHOLE, WHOLE), "2,2"),
    "a branch": (over(chosen, WHOLE, WHOLE), "2,2"),
    "one within another": (over(nested, P("x"), P("x"), "x"), "2,2"),
    "beside other operations": (lambda v: over(log, WHOLE, WHOLE)(v + 0) - 1, "2,2"),
    "with what it closes over": (
        lambda v: over(lambda u: log(u) * xp.sum(v), WHOLE, WHOLE)(v), "2,2",
    ),
    "within control flow": (
        lambda v: lax.cond(True, lambda u: over(log, WHOLE, WHOLE)(u), lambda u: u, v), "2,2",
    ),
}  # fmt: skip
LINE = rf"{Path(__file__).name}:{log.__code__.co_firstlineno + 1}"


@behaviour(
    106,
    "`debug_nans` names the operation within shard_map, the part's type, and the line",
    jax="JAX names the line alone",
)
@pytest.mark.parametrize("name", CALLS)
def test_the_operation_of_a_part(name: str) -> None:
    function, part = CALLS[name]
    said = rf"\(nan\).*stablehlo\.log of \(float32\[{part}\]\) at .*{LINE}"
    with plugrt.debug_nans():
        for call in (plugrt.jit(function), plugrt.jit(function).lower(GOOD).compile()):
            call(GOOD)
            with pytest.raises(FloatingPointFault, match=said):
                call(BAD)


@pytest.mark.parametrize("name", ["all axes", "some axes"])
def test_a_call_that_nothing_is_around(name: str) -> None:
    function, part = CALLS[name]
    with (
        plugrt.debug_infs(),
        pytest.raises(FloatingPointFault, match=rf"\(inf\).*log of .*\[{part}\]\) at .*{LINE}"),
    ):
        function(BAD * (BAD > 0))


def test_a_program_that_the_compiler_divides() -> None:
    sharding = NamedSharding(MESH, WHOLE)

    def f(v: Any) -> Any:
        return plugrt.with_sharding_constraint(log(v) + 1, NamedSharding(MESH, P("y"))) * 2

    program = plugrt.compile(plugrt.jit(f, in_shardings=sharding).lower(GOOD).as_text())
    with plugrt.debug_nans():
        for call in (plugrt.jit(f, in_shardings=sharding), program):
            np.testing.assert_allclose(call(GOOD), 2)
            with pytest.raises(FloatingPointFault, match=r"\(nan\).*log"):
                call(BAD)


def test_the_partitioner_changes_nothing() -> None:
    with plugrt.debug_nans(), plugrt.config.override(use_shardy_partitioner=False):
        mapped = over(lambda v: summed(v) + 3, WHOLE, P(None, "y"))
        with pytest.raises(FloatingPointFault, match=rf"log of \(float32\[2,2\]\) at .*{LINE}"):
            mapped(BAD)
