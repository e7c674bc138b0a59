"""The partitioner of a program over a mesh: Shardy, or GSPMD, or the compiler with `AUTO`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import devices, get_backend, lax, monitoring
from plugrt.sharding import AUTO, Mesh, NamedSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.compiles import counting

A = np.arange(64, dtype=np.float32).reshape(8, 8)


def over(*entries: Any) -> NamedSharding:
    return NamedSharding(plugrt.make_mesh((4, 2), ("x", "y")), P(*entries))


def chooses() -> bool:
    return get_backend().platform != "numpy"


@pytest.fixture
def gspmd() -> Iterator[None]:
    with plugrt.config.override(use_shardy_partitioner=False):
        yield


@behaviour(
    102,
    "`jax_use_shardy_partitioner` off: programs have GSPMD's attributes, and are divided alike",
    jax="has the setting up to 0.10 and Shardy alone after it",
)
def test_gspmd(gspmd: None) -> None:
    f = plugrt.jit(
        lambda a, b: plugrt.with_sharding_constraint(a @ b, over(P.UNCONSTRAINED, "y")) + 1,
        in_shardings=(over("x", "y"), None),
    )
    text = f.lower(A, A).as_text()
    assert "sdy" not in text
    assert 'mhlo.sharding = "{devices=[4,2]0,1,2,3,4,5,6,7}"' in text
    assert 'backend_config = "unspecified_dims=[0]"' in text
    assert 'mhlo.sharding = "{devices=[1,2,4]0,2,4,6,1,3,5,7 last_tile_dim_replicate}"' in text
    np.testing.assert_allclose(f(A, A), A @ A + 1)
    x = plugrt.device_put(A, over("x", "y"))
    total, shifted = xp.sum(x, axis=1), x + 1
    np.testing.assert_allclose(total, A.sum(1))
    np.testing.assert_array_equal(shifted, A + 1)
    product = plugrt.jit(lambda a, b: a @ b, out_shardings=over("x", "y")).lower(A, A).compile()
    if chooses():
        assert (total.sharding, shifted.sharding) == (over("x"), x.sharding)
        assert product.input_shardings[0] == (over("x"), over(None, "y"))
    np.testing.assert_allclose(product(A, A), A @ A)


@behaviour(102, "one trace serves both partitioners, each with an executable of its own")
def test_the_partitioner_is_of_the_executable() -> None:
    f = plugrt.jit(lambda a: a * 3 - 1, in_shardings=over("x"))
    with counting() as counts:
        for shardy in (True, False, True):
            with plugrt.config.override(use_shardy_partitioner=shardy):
                np.testing.assert_array_equal(f(A), A * 3 - 1)
    assert (counts[monitoring.TRACE], counts[monitoring.COMPILE]) == (1, 2)


@behaviour(106, "under GSPMD: over all axes as under Shardy, over some refused")
def test_shard_map_with_gspmd(gspmd: None) -> None:
    mesh = plugrt.make_mesh((4, 2), ("x", "y"))
    mapped = plugrt.shard_map(
        lambda v: (lax.psum(xp.sum(v), ("x", "y")), v * lax.axis_index("x")),
        mesh=mesh, in_specs=P("x", "y"), out_specs=(P(), P("x", "y")),
    )  # fmt: skip
    some = plugrt.shard_map(
        lambda v: lax.psum(v, "x"), mesh=mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"}
    )
    with pytest.raises(NotImplementedError, match=r"over \['x'\] alone.*use_shardy_partitioner"):
        some(A)
    if not chooses():
        with pytest.raises(NotImplementedError, match="by custom calls of GSPMD's"):
            mapped(A)
        pytest.skip("the library computes manual parts in Shardy's form alone")
    total, shifted = mapped(plugrt.device_put(A, NamedSharding(mesh, P("y"))))
    np.testing.assert_allclose(total, A.sum())
    np.testing.assert_array_equal(shifted, A * np.repeat(np.arange(4), 2)[:, None])


def test_shard_map_of_loops_and_branches_with_gspmd(gspmd: None) -> None:
    """Earlier, XLA ended the process: the loop's result had a sharding of its own."""
    if not chooses():
        pytest.skip("the library computes manual parts in Shardy's form alone")

    def body(v: Any) -> Any:
        v = lax.fori_loop(0, 3, lambda i, a: a * 2 + i, v)
        v = lax.cond(lax.axis_index("x") > 1, lambda a: -a, lambda a: a + 1, v)
        return lax.scan(lambda carry, row: (carry + row, carry), v[0], v)[1]

    mesh = plugrt.make_mesh((4, 2), ("x", "y"))
    mapped = plugrt.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))
    found = plugrt.jit(mapped)(A)
    with plugrt.config.override(use_shardy_partitioner=True):
        np.testing.assert_array_equal(found, plugrt.jit(mapped)(A))


@behaviour(
    102,
    "`AUTO`: a compiler that can divides arguments and results as it likes; others refuse",
    jax="had it up to 0.9, in `jax.experimental.pjit`",
)
def test_auto() -> None:
    mesh = plugrt.make_mesh((4, 2), ("x", "y"))
    f = plugrt.jit(lambda a, b: a @ b + 1, in_shardings=(AUTO(mesh), over("x")),
                   out_shardings=AUTO(mesh))  # fmt: skip
    if not get_backend().capabilities.auto_partitioning:
        with pytest.raises(NotImplementedError, match=r"\(capability auto_partitioning\)"):
            f(A, A)
        return
    compiled = f.lower(A, A).compile()
    assert compiled.input_shardings[0] == (over(("x", "y")), over("x"))
    for given in (A, plugrt.device_put(A)):
        np.testing.assert_allclose(f(given, A), A @ A + 1)
        np.testing.assert_allclose(compiled(given, A), A @ A + 1)
    lies = plugrt.device_put(A, over("y"))
    np.testing.assert_allclose(f(lies, A), A @ A + 1)
    tall = plugrt.jit(lambda v: v * 2, in_shardings=AUTO(mesh)).lower(A[:3]).compile()
    assert tall.input_shardings[0] == (over(None, ("x", "y")),)
    np.testing.assert_array_equal(tall(A[:3]), A[:3] * 2)


@behaviour(102, "`AUTO` where no compiler chooses is refused")
def test_wrong_uses_of_auto() -> None:
    mesh = Mesh(devices()[:8], "x")
    for call, error, said in (
        (lambda: AUTO(P("x")), TypeError, "AUTO takes a Mesh"),  # type: ignore[arg-type]
        (lambda: plugrt.device_put(A, AUTO(mesh)), ValueError, "the compiler chooses one"),
        (
            lambda: plugrt.with_sharding_constraint(A, AUTO(mesh)),
            ValueError, "UNCONSTRAINED leaves",
        ),
        (
            lambda: plugrt.jit(lambda v: v, in_shardings=(AUTO(mesh),))(
                plugrt.device_put(A, devices()[3])
            ),
            ValueError, r"in_shardings: AUTO\(Mesh\('x': 8\)\) on the devices \[0, 1, ",
        ),
    ):  # fmt: skip
        with pytest.raises(error, match=said):
            call()
