"""Over a mesh the NumPy backend divides arrays without a stated sharding as XLA does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.interface import Client
from plugrt.sharding import Mesh, NamedSharding
from plugrt.sharding import PartitionSpec as P
from plugrt_numpy import plugin
from support.effort import some_of

LESS_DIVIDED = {
    "dynamic_slice": "XLA makes a slice of one whose start is a constant, before it divides",
    "roll": "it is a dynamic_slice with a constant start",
}
"""The operations whose results the NumPy backend may divide less, each with the reason."""

Operation = Callable[[Any, Any, Any], Any]


def operations(mesh: Mesh) -> dict[str, Operation]:
    """Returns functions of two matrices of 16 × 16 and a vector of 16."""
    first, last = mesh.axis_names[0], mesh.axis_names[-1]

    def put(value: Any, *spec: Any) -> Any:
        return plugrt.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))

    def map_parts(function: Any, taken: P, given: P, **options: Any) -> Any:
        return plugrt.shard_map(function, mesh=mesh, in_specs=taken, out_specs=given, **options)

    return {
        "negative": lambda x, y, v: -x,
        "add": lambda x, y, v: x + y,
        "add_vector": lambda x, y, v: x + v,
        "compare": lambda x, y, v: x > y,
        "where": lambda x, y, v: xp.where(x > 0, x, y),
        "convert": lambda x, y, v: x.astype(np.int32),
        "complex": lambda x, y, v: (x + 1j * y).real,
        "barrier": lambda x, y, v: lax.optimization_barrier(x * 2),
        "broadcast": lambda x, y, v: xp.broadcast_to(v, (16, 16)),
        "broadcast_more": lambda x, y, v: xp.broadcast_to(x, (3, 16, 16)),
        "expand": lambda x, y, v: x[:, None, :],
        "outer": lambda x, y, v: v[:, None] * v[None],
        "transpose": lambda x, y, v: x.T,
        "flatten": lambda x, y, v: x.reshape(-1),
        "split": lambda x, y, v: x.reshape(2, 8, 16),
        "merge": lambda x, y, v: x.reshape(32, 8),
        "dot": lambda x, y, v: x @ y,
        "dot_transposed": lambda x, y, v: x @ y.T,
        "dot_vector": lambda x, y, v: x @ v,
        "dot_batched": lambda x, y, v: x.reshape(2, 8, 16) @ y.reshape(2, 16, 8),
        "sum_0": lambda x, y, v: x.sum(0),
        "max_1": lambda x, y, v: x.max(1),
        "sum": lambda x, y, v: x.sum(),
        "mean": lambda x, y, v: x.mean(0, keepdims=True),
        "argmax": lambda x, y, v: xp.argmax(x, axis=1),
        "cumulative_sum": lambda x, y, v: xp.cumulative_sum(x, axis=0),
        "sort": lambda x, y, v: xp.sort(x, axis=1),
        "argsort": lambda x, y, v: xp.argsort(x, axis=0),
        "concat_0": lambda x, y, v: xp.concat([x, y], axis=0),
        "concat_1": lambda x, y, v: xp.concat([x, y], axis=1),
        "stack": lambda x, y, v: xp.stack([x, y]),
        "tile": lambda x, y, v: xp.tile(x, (2, 1)),
        "slice": lambda x, y, v: x[2:6],
        "slice_steps": lambda x, y, v: x[:, ::2],
        "slice_uneven": lambda x, y, v: x[:7, :5],
        "row": lambda x, y, v: x[3],
        "element": lambda x, y, v: v[0],
        "reverse": lambda x, y, v: x[::-1],
        "pad": lambda x, y, v: lax.pad(x, np.float32(0), [(0, 0, 0), (8, 8, 0)]),
        "roll": lambda x, y, v: xp.roll(x, 2, axis=1),
        "take": lambda x, y, v: xp.take(x, np.array([1, 3, 5, 7]), axis=0),
        "dynamic_slice": lambda x, y, v: lax.dynamic_slice(x, (1, 0), (8, 16)),
        "dynamic_update": lambda x, y, v: lax.dynamic_update_slice(x, y[:4], (2, 0)),
        "set": lambda x, y, v: x.at[3].set(0),
        "scan": lambda x, y, v: lax.scan(lambda c, r: (c + r, c * r), v, x),
        "fori_loop": lambda x, y, v: lax.fori_loop(0, 3, lambda i, z: z + x, y),
        "while_loop": lambda x, y, v: lax.while_loop(lambda z: z.max() < 50, lambda z: z * 2, x),
        "cond": lambda x, y, v: lax.cond(v[0] > 100, lambda: x.T, lambda: y),
        "call": lambda x, y, v: plugrt.jit(lambda z: z.T + 1)(x),
        "iota": lambda x, y, v: xp.arange(16.0),
        "zeros_like": lambda x, y, v: xp.zeros_like(x),
        "argument": lambda x, y, v: x,
        "constraint": lambda x, y, v: put(x * 2, None, first),
        "constraint_whole": lambda x, y, v: put(x + 2).T,
        "constraint_open": lambda x, y, v: put(x + 3, P.UNCONSTRAINED, None) + 1,
        "map_parts": lambda x, y, v: map_parts(lambda z: z * 2, P(first), P(first))(x),
        "map_columns": lambda x, y, v: map_parts(lambda z: z, P(None, last), P(None, last))(x) + y,
        "map_sum": lambda x, y, v: map_parts(lambda z: lax.psum(z, first), P(first), P())(v),
    }


def cases() -> list[tuple[tuple[int, ...], tuple[P | None, ...]]]:
    """Returns meshes, and how the arguments are divided; None is a host array."""
    found: list[tuple[tuple[int, ...], tuple[P | None, ...]]] = []
    for shape in ((2,), (4,), (2, 2), (4, 2), (2, 2, 2)):
        a, b = "a", "b" if len(shape) > 1 else None
        both = (a, b) if b else a
        found += [
            (shape, (P(a), P(a), P(a))),
            (shape, (P(None, a), P(None, a), P())),
            (shape, (P(a, b), P(a, b), P(b))),
            (shape, (P(b, a), P(), P(a))),
            (shape, (P(a), None, None)),
            (shape, (P(), P(), P())),
            (shape, (P(both), P(None, a), None)),
            (shape, (P(a, b), P(b, a), P(both))),
        ]
    return found


ARGUMENTS = [
    *np.random.default_rng(0).integers(-9, 9, (2, 16, 16)).astype(np.float32),
    np.arange(16, dtype=np.float32),
]


@pytest.fixture(scope="module")
def numpy_client() -> Client:
    return plugin.create_client({"num_devices": 8})


def run_all(
    client: Client, shape: Sequence[int], specs: Sequence[P | None]
) -> tuple[dict[str, Any], Any]:
    """Returns the results of each operation, and how the compiler divided the arguments."""
    devices = np.array(client.devices()[: int(np.prod(shape))]).reshape(shape)
    mesh = Mesh(devices, ("a", "b", "c")[: len(shape)])
    given = [
        x if spec is None else plugrt.device_put(x, NamedSharding(mesh, spec))
        for x, spec in zip(ARGUMENTS, specs, strict=True)
    ]
    functions = operations(mesh)

    @plugrt.jit
    def run(x: Any, y: Any, v: Any) -> dict[str, Any]:
        return {name: function(x, y, v) for name, function in functions.items()}

    taken = run.lower(*given).compile().input_shardings[0]
    return run(*given), [getattr(each, "spec", None) for each in taken]


def places(results: Any) -> list[Any]:
    return [[s.index for s in x.addressable_shards] for x in plugrt.tree.leaves(results)]


@pytest.mark.parametrize(("shape", "specs"), some_of(cases(), 6))
def test_results_and_arguments_are_divided_as_on_the_cpu(
    numpy_client: Client, shape: tuple[int, ...], specs: tuple[P | None, ...]
) -> None:
    (expected, taken), (found, took) = (
        run_all(client, shape, specs) for client in (plugrt.get_backend(), numpy_client)
    )
    other = {name for name in expected if places(found[name]) != places(expected[name])}
    assert other <= LESS_DIVIDED.keys()
    assert all(
        found[name].addressable_data(0).size > expected[name].addressable_data(0).size
        for name in other
    )
    assert took == taken
    for name in expected:
        for x, y in zip(*map(plugrt.tree.leaves, (found[name], expected[name])), strict=True):
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-5, err_msg=name)


def test_parts_of_shard_map_and_pmap_stay_where_they_are(numpy_client: Client) -> None:
    devices = numpy_client.devices()
    mesh = Mesh(np.array(devices), ("x",))
    double = plugrt.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    x = np.arange(8, dtype=np.float32)
    assert plugrt.jit(double)(x).sharding == NamedSharding(mesh, P("x"))
    mapped = plugrt.pmap(lambda x: x + 1, devices=devices)(x)
    assert (mapped * 2).sharding == mapped.sharding
    parts = [s.data.tolist() for s in (mapped * 2).addressable_shards]
    assert parts == [[2.0 * i] for i in range(1, 9)]


def test_a_donated_argument_stays_where_no_result_has_parts_of_its_size(
    numpy_client: Client,
) -> None:
    mesh = Mesh(np.array(numpy_client.devices()), ("x",))
    divided, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    for given, asked, kept in (
        (divided, whole, True),
        (whole, divided, True),
        (divided, None, False),
        (whole, whole, False),
    ):
        x = plugrt.device_put(np.arange(16.0, dtype=np.float32), given)
        run = plugrt.jit(lambda x: x + 1, donate_argnums=0, out_shardings=asked)
        if kept:
            with pytest.warns(UserWarning, match="donated buffers were not usable"):
                run(x)
            assert np.asarray(x).tolist() == list(range(16))
        else:
            run(x)
            assert x.is_deleted()


def test_the_text_of_a_program_has_no_constraints(numpy_client: Client) -> None:
    rows = NamedSharding(Mesh(np.array(numpy_client.devices()[:2]), "a"), P("a"))

    def f(x: Any) -> Any:
        return plugrt.with_sharding_constraint(xp.sin(x), rows) + 1

    lowered = plugrt.jit(f).lower(plugrt.device_put(np.arange(4.0, dtype=np.float32), rows))
    assert "sdy.sharding_constraint" in lowered.as_text()
    text = lowered.compile().as_text()
    assert "sdy.sharding_constraint" not in text
    assert "stablehlo.add" in text
