"""Over a mesh the NumPy backend divides arrays without a stated sharding like XLA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.errors import Unimplemented
from plugrt.interface import Client, CompileOptions, LoadedExecutable, Program
from plugrt.layout import Format, Layout
from plugrt.sharding import AxisType, Mesh, NamedSharding, reshard
from plugrt.sharding import PartitionSpec as P
from plugrt_numpy import plugin
from support.effort import some_of

Explicit = AxisType.Explicit

LESS_DIVIDED = {
    "dynamic_slice": "XLA makes a slice of one whose start is a constant, before it divides",
    "roll": "it is a dynamic_slice with a constant start",
}
"""The operations whose results the NumPy backend may divide less, each with the reason."""
PARTS_OF_AXES = ("split", "merge", "dot_batched")
"""Operations whose results XLA may divide by a part of an axis. The XLA of JAX removes these parts
(``sdy-remove-sub-axes-in-input-output-shardings``), as no spec can name them; an older one did not.
"""

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
    """Returns the shapes of meshes, and the arguments' specs; None stands for a host array."""
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


def make_arguments(
    client: Client, shape: Sequence[int], specs: Sequence[P | None]
) -> tuple[Mesh, list[Any]]:
    devices = np.array(client.devices()[: int(np.prod(shape))]).reshape(shape)
    mesh = Mesh(devices, ("a", "b", "c")[: len(shape)])
    return mesh, [
        x if spec is None else plugrt.device_put(x, NamedSharding(mesh, spec))
        for x, spec in zip(ARGUMENTS, specs, strict=True)
    ]


def run_all(
    client: Client, shape: Sequence[int], specs: Sequence[P | None]
) -> tuple[dict[str, Any], Any]:
    """Returns the results of each operation, and the shardings of arguments in the program."""
    mesh, given = make_arguments(client, shape, specs)
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
    is_of_jax = plugrt.get_backend().platform_version.startswith("jaxlib")
    assert other <= {*LESS_DIVIDED, *(() if is_of_jax else PARTS_OF_AXES)}
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


def test_open_sums_have_terms_on_devices(numpy_client: Client) -> None:
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    rows = P("x", None, unreduced={"y"})
    functions: dict[str, tuple[Callable[[Any, Any], Any], P, Any, int]] = {
        "a product": (lambda a, b: xp.matmul(a, b, out_sharding=rows), rows, x @ x, 1),
        "a sum": (
            lambda a, b: lax.reduce_sum(b, (0,), out_sharding=P(None, unreduced={"y"})),
            P(None, unreduced={"y"}), x.sum(0), 2,
        ),
        "an argument": (lambda a, b: reshard(b, rows), rows, x, 1),
        "a product that is summed": (
            lambda a, b: reshard(xp.matmul(a, b, out_sharding=rows), P("x")),
            P("x", None), x @ x, 2,
        ),
    }  # fmt: skip
    mesh = Mesh(
        np.array(numpy_client.devices()[:4]).reshape(2, 2), ("x", "y"), (Explicit, Explicit)
    )
    a, b = (plugrt.device_put(x, NamedSharding(mesh, P(*s))) for s in (("x", "y"), ("y",)))
    for name, (function, spec, expected, copies) in functions.items():
        with plugrt.set_mesh(mesh):
            made = plugrt.jit(function)(a, b)
            np.testing.assert_array_equal(reshard(made, P()), expected, err_msg=name)
        assert made.sharding == NamedSharding(mesh, spec), name
        total = np.zeros_like(expected)
        for shard in made.addressable_shards:
            total[shard.index] += np.asarray(shard.data)
        np.testing.assert_array_equal(total, copies * expected, err_msg=name)


def test_a_transposed_argument_keeps_its_order_in_memory_where_the_layout_is_open(
    numpy_client: Client,
) -> None:
    x = np.arange(64, dtype=np.float32).reshape(4, 4, 4)
    auto, other = Format(Layout.AUTO), Layout((1, 0, 2))
    found = []
    for client in (plugrt.get_backend(), numpy_client):
        mesh = Mesh(np.array(client.devices()[:4]).reshape(2, 2), ("x", "y"))
        tiles = NamedSharding(mesh, P("x", "y"))
        given = plugrt.device_put(x, tiles)
        for order in ((2, 1, 0), (2, 0, 1), (0, 1, 2)):
            turn = partial(xp.permute_dims, axes=order)
            for function in (turn, lambda v, turn=turn: turn(v) + 1):
                made = plugrt.jit(function, out_shardings=auto)(given)
                np.testing.assert_array_equal(made, function(x))
                if function is turn:
                    found.append(made.format)
        turned = plugrt.jit(lambda v: v.mT, in_shardings=Format(other, tiles), out_shardings=auto)
        made = turned(plugrt.device_put(x, Format(other, tiles)))
        np.testing.assert_array_equal(made, x.mT)
        if client is numpy_client:
            assert made.format.layout.major_to_minor == (2, 0, 1)
    assert [one.layout for one in found[:3]] == [one.layout for one in found[3:]]


SHARDY = """\
sdy.mesh @m = <["x"=2, "y"=2]>
func.func public @main(
    %a: tensor<4x8xbf16> {sdy.sharding = #sdy.sharding<@m, [{"y"}, {}], unreduced={"x"}>},
    %b: tensor<4x8xbf16> {sdy.sharding = #sdy.sharding<@m, [{}, {"y", "x"}]>})
    -> (tensor<4x8xbf16> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}], unreduced={"y"}>}) {
  %0 = stablehlo.subtract %a, %b : tensor<4x8xbf16>
  return %0 : tensor<4x8xbf16>
}
"""
GSPMD = """\
func.func public @main(
    %a: tensor<4x8xf32> {mhlo.sharding = "{devices=[2,1]1,0}"}, %b: tensor<8xf32>)
    -> (tensor<4x8xf32> {mhlo.sharding = "{devices=[1,2]<=[2]}"}) {
  %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.subtract %a, %0 : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
"""


def check_text(loaded: LoadedExecutable, arguments: Sequence[Sequence[Any]]) -> None:
    """Asserts that a program and its text, run on each device, give the same results."""
    client, executable = loaded.client, loaded.executable
    options = CompileOptions(executable.num_replicas, executable.num_partitions)
    code = executable.as_text()
    assert "sharding" not in code
    again = client.compile(Program(code.encode()), options)
    assert again.executable.input_types == executable.input_types
    assert again.executable.output_types == executable.output_types
    devices = client.devices()
    expected, found = (
        each.execute([[*map(client.buffer_from_host, parts, devices)] for parts in arguments])
        for each in (loaded, again)
    )
    for own, others in zip(expected, found, strict=True):
        for x, y in zip(own, others, strict=True):
            np.testing.assert_array_equal(x.to_host(), y.to_host())


@pytest.mark.parametrize(("shape", "specs"), some_of(cases(), 2))
def test_the_text_is_what_a_device_does(
    numpy_client: Client, shape: tuple[int, ...], specs: tuple[P | None, ...]
) -> None:
    """The text computes a device's parts of the results from its parts of the arguments.

    Differs from JAX: operations in `compile().as_text()` over several devices of the backend
    `numpy` | of a device's parts, on its CPU | those that gather the parts of arguments, compute
    with whole arrays, and cut the parts of results.
    """
    mesh, given = make_arguments(numpy_client, shape, specs)
    functions = operations(mesh)
    run = plugrt.jit(lambda *values: {name: f(*values) for name, f in functions.items()})
    compiled = run.lower(*given).compile()
    arguments = [
        [np.asarray(shard.data) for shard in plugrt.device_put(x, sharding).addressable_shards]
        for x, sharding in zip(given, compiled.input_shardings[0], strict=True)
    ]
    check_text(compiled.runtime_executable(), arguments)


def test_the_text_of_open_sums_replicas_and_shardings_of_gspmd(numpy_client: Client) -> None:
    numbers = np.random.default_rng(0)
    for code, replicas, partitions in ((SHARDY, 1, 4), (GSPMD, 1, 2), (GSPMD, 3, 2)):
        options = CompileOptions(replicas, partitions, use_spmd_partitioning=True)
        loaded = numpy_client.compile(Program(code.encode()), options)
        one, other = loaded.executable.input_types
        count = replicas * partitions
        copies = partitions if code is GSPMD else 1
        arguments = [
            [*numbers.integers(-9, 9, (count, *one.shape)).astype(one.dtype)],
            [*numbers.integers(-9, 9, (count // copies, *other.shape)).astype(other.dtype)],
        ]
        arguments[1] = [part for part in arguments[1] for _ in range(copies)]
        check_text(loaded, arguments)


def test_manual_computations_have_a_text_but_for_those_in_another(numpy_client: Client) -> None:
    mesh = Mesh(np.array(numpy_client.devices()[:4]).reshape(2, 2), ("x", "y"))

    def total(axis: str, function: Any = lambda z: z) -> Any:
        return plugrt.jit(
            plugrt.shard_map(
                lambda z: lax.psum(function(z), axis),
                mesh=mesh, in_specs=P(axis), out_specs=P(), axis_names={axis},
            ),
            inline=False,
        )  # fmt: skip

    x = plugrt.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P()))
    called = plugrt.jit(lambda z: total("x")(total("y")(z)) + 1).lower(x)
    assert "call @" in called.as_text()
    check_text(called.compile().runtime_executable(), [[np.asarray(x)] * 4])
    nested = plugrt.jit(total("x", total("y"))).lower(x).compile()
    with pytest.raises(Unimplemented, match="in another has no form"):
        nested.as_text()
