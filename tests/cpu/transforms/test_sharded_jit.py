"""jit over a mesh: shardings of arguments and results, constraints, and dependent arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import devices, get_backend, lax, monitoring
from plugrt.errors import (
    ArgumentError,
    ArgumentMismatch,
    DeviceMismatch,
    InvalidReply,
    ShapeError,
    StructureError,
)
from plugrt.execution.placement.chosen_shardings import read_result_shardings
from plugrt.interface import Device
from plugrt.sharding import (
    AxisType,
    GSPMDSharding,
    Mesh,
    NamedSharding,
    PmapSharding,
    PositionalSharding,
    SingleDeviceSharding,
)
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.compiles import counting
from support.jax_oracle import jax
from support.watched_calls import at_calls

A = np.arange(64, dtype=np.float32).reshape(8, 8)


def grid() -> Mesh:
    return plugrt.make_mesh((2, 4), ("x", "y"))


def over(*entries: Any) -> NamedSharding:
    return NamedSharding(grid(), P(*entries))


def chooses() -> bool:
    """Returns whether the backend divides results without a requested sharding."""
    return get_backend().platform != "numpy"


def spec_of(x: Any) -> P:
    assert isinstance(x.sharding, NamedSharding), x.sharding
    assert x.sharding.mesh == grid()
    return x.sharding.spec


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "x + 1": lambda m, x: x + 1,
    "x @ x": lambda m, x: x @ x,
    "x.T": lambda m, x: x.T,
    "sum": lambda m, x: m.sum(x, axis=0),
    "mean": lambda m, x: m.mean(x),
    "x[0]": lambda m, x: x[0],
    "reshape": lambda m, x: m.reshape(x, (16, 4)),
    "with a NumPy array": lambda m, x: x + np.arange(8, dtype=np.float32),
    "with a scalar": lambda m, x: 2.5 * x,
}


@behaviour(105, "operators and functions on an array over a mesh run on its devices")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_operators_follow_the_array(name: str) -> None:
    x = plugrt.device_put(A, over("x", "y"))
    found = FUNCTIONS[name](xp, x)
    np.testing.assert_allclose(found, FUNCTIONS[name](np, A), rtol=1e-6)
    assert (found.committed, found.sharding.devices) == (True, tuple(devices()[:8]))
    if type(get_backend()).__module__.startswith("plugrt_cpu"):  # JAX has the same compiler
        there = jax.sharding.Mesh(np.array(jax.devices()[:8]).reshape(2, 4), ("x", "y"))
        sharding = jax.sharding.NamedSharding(there, jax.sharding.PartitionSpec("x", "y"))
        expected = FUNCTIONS[name](jax.numpy, jax.device_put(A, sharding)).sharding
        assert _strip(spec_of(found)) == _strip(expected.spec)


def _strip(spec: Any) -> tuple[Any, ...]:
    entries = [*spec]
    while entries and entries[-1] is None:
        entries.pop()
    return tuple(entries)


@behaviour(105, "`in_shardings` places arguments from anywhere, `out_shardings` divides results")
def test_shardings_of_arguments_and_results() -> None:
    f = plugrt.jit(
        lambda a, b: {"product": a @ b, "sum": xp.sum(a)},
        in_shardings=(over("x"), over(None, "y")),
        out_shardings={"product": over("y", "x"), "sum": None},
    )
    line = Mesh(devices()[:8], "z")
    for a in (A, plugrt.device_put(A), plugrt.device_put(A, over("x", None))):
        out = f(a, A)
        assert spec_of(out["product"]) == P("y", "x")
        np.testing.assert_allclose(out["product"], A @ A)
        assert out["sum"] == A.sum()
    shards = out["product"].addressable_shards
    assert [s.data.shape for s in shards] == [(2, 4)] * 8
    assert [s.device for s in shards] == devices()[:8]
    compiled = f.lower(A, A).compile()
    assert compiled.input_shardings == ((over("x"), over(None, "y")), {})
    assert compiled.output_shardings["product"] == over("y", "x")
    np.testing.assert_allclose(compiled(A, A)["product"], A @ A)
    g = plugrt.jit(lambda a: a + 1, in_shardings=NamedSharding(line, P("z")))
    np.testing.assert_array_equal(g(A), A + 1)
    text = f.lower(A, A).as_text()
    assert "mhlo.num_partitions = 8" in text
    assert text.count("sdy.sharding = ") == 3


@behaviour(105, "a result without a stated sharding has the one that the compiler chose")
def test_results_have_the_shardings_that_the_compiler_chose() -> None:
    x = plugrt.device_put(A, over("x", "y"))
    a, b, c, d = plugrt.jit(lambda x, y: (x * y, x, 1.5, xp.sum(x, axis=1)))(x, A)
    expected = [P("x", "y"), P("x", "y"), P(), P("x")]
    found = [*map(spec_of, (a, b, c, d))]
    assert found == expected if chooses() else (found[1], found[2]) == (expected[1], expected[2])
    np.testing.assert_array_equal(a, A * A)
    np.testing.assert_array_equal(b, A)
    np.testing.assert_array_equal(d, A.sum(1))
    # The array has no mesh, so the chosen sharding names no axes.
    tiled = plugrt.device_put(A, GSPMDSharding.from_tiling(
        over("x").devices, over("x", "y").tiling(2)))  # fmt: skip
    e = tiled + 1
    assert isinstance(e.sharding, GSPMDSharding)
    if chooses():
        assert e.sharding.is_equivalent_to(over("x", "y"), 2)
    np.testing.assert_array_equal(e, A + 1)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_which_functions_accept_a_spec_of_more_dimensions(kind: AxisType) -> None:
    """Same as JAX: a spec with more entries than the array has dimensions is refused, but for
    `full`, `zeros` and the like and `make_array_from_callback`, where the further ones are None.
    """
    mesh = plugrt.make_mesh((4,), ("x",), axis_types=(kind,))
    short, long, wrong = (
        NamedSharding(mesh, P(*spec)) for spec in (["x"], ["x", None, None], [None, None, "x"])
    )
    for sharding in (long, wrong):
        for refuses in (
            lambda to: plugrt.device_put(A, to),
            lambda to: plugrt.device_put(plugrt.device_put(A, short), to),
            lambda to: plugrt.jit(lambda v: v + 1, in_shardings=to)(A),
            lambda to: plugrt.jit(lambda v: v + 1, out_shardings=to)(A),
            lambda to: plugrt.jit(lambda v: plugrt.with_sharding_constraint(v, to))(A),
            lambda to: plugrt.ShapeDtypeStruct(A.shape, A.dtype, sharding=to),
            lambda to: xp.eye(*A.shape, device=to),
            lambda to: xp.asarray(A, device=to),
        ):
            with pytest.raises(ShapeError, match="names 3 dimensions, and the array has 2"):
                refuses(sharding)
    makers = (
        lambda to: lax.full(A.shape, np.float32(1), sharding=to),
        lambda to: lax.full_like(A, 1, sharding=to),
        lambda to: xp.full(A.shape, np.float32(1), device=to),
        lambda to: xp.zeros(A.shape, device=to) + 1,
        lambda to: xp.ones_like(A, device=to),
        lambda to: plugrt.make_array_from_callback(A.shape, to, lambda i: np.ones_like(A)[i]),
    )
    for make in makers:
        with pytest.raises(ShapeError, match="names 3 dimensions, and the array has 2"):
            make(wrong)
        made = make(long)
        assert made.sharding.is_equivalent_to(short, 2)
        np.testing.assert_array_equal(made, np.ones_like(A))
    for x in (
        plugrt.jit(lambda x: x)(made),
        plugrt.jit(lambda x: x * 2 - 1)(made),
        lax.full_like(made, 1),
        plugrt.device_put(made, short),
    ):
        np.testing.assert_array_equal(x, np.ones_like(A))
        assert x.sharding.is_equivalent_to(short, 2)
        assert {shard.data.shape for shard in x.addressable_shards} == {(2, 8)}
    if kind is AxisType.Auto:
        assert makers[0](long).sharding == long
    assert lax.full_like(plugrt.device_put(A, short), 1.0).sharding.is_equivalent_to(short, 2)


@behaviour(
    105, "a result that does not divide as `out_shardings` asks is refused, with the numbers"
)
def test_results_that_do_not_divide() -> None:
    places = PositionalSharding(devices()[:8]).reshape(2, 4)
    for function in (lambda x: x + 1, lambda x: x, lambda x: A[:6]):
        for where in (over("y", "x"), places.T):
            f = plugrt.jit(function, out_shardings=where)
            said = r"result 0 of '<lambda>': .*dimension 0 into 4 .* size 6 .* pad it to 8"
            with pytest.raises(ShapeError, match=said):
                f(A[:6])
    with pytest.raises(ShapeError, match=r"result 1 of .*3 dimensions|result 1 of .*names 3"):
        plugrt.jit(lambda x: (x, x + 1), out_shardings=(None, over("x", None, "y")))(A)


def test_a_backend_that_states_too_few_shardings() -> None:
    fewer = at_calls([read_result_shardings], lambda _, stated: stated.pop(), after=True)
    says = "the shardings of 1 results; the program has 2"
    with fewer, pytest.raises(InvalidReply, match=says):
        plugrt.jit(lambda x: (x - 3, x * 5))(plugrt.device_put(A, over("x")))


@behaviour(105, "an uncommitted argument is put in the sharding that the compiler chose")
def test_arguments_are_put_as_the_compiler_chose() -> None:
    product = plugrt.jit(lambda a, b, s: s * (a @ b), out_shardings=over("x", "y"))
    compiled = product.lower(A, A, 2.0).compile()
    [[a, b, s], _] = compiled.input_shardings
    expected = [over("x"), over(None, "y"), over()] if chooses() else [over()] * 3
    assert [a, b, s] == expected
    for given in (A, plugrt.device_put(A)):
        np.testing.assert_allclose(product(given, A, 2.0), 2 * A @ A)
        np.testing.assert_allclose(compiled(given, A, 2.0), 2 * A @ A)
    # An argument that cannot be divided is replicated, and so is a result that returns it.
    x = plugrt.device_put(A, over("x"))
    beside = plugrt.jit(lambda a, b, c: (a[:3] + b, c, a + c)).lower(x, A[:3], A).compile()
    assert beside.input_shardings[0] == (over("x"), over(), over())
    total, c, both = beside(x, A[:3], A)
    np.testing.assert_array_equal(total, A[:3] + A[:3])
    np.testing.assert_array_equal(c, A)
    np.testing.assert_array_equal(both, 2 * A)


@behaviour(105, "`with_sharding_constraint` divides a value of a program, and places one outside")
def test_constraints() -> None:
    rows, tiles = over("x"), over("x", "y")

    @plugrt.jit
    def f(a: Any, b: Any) -> Any:
        both = plugrt.with_sharding_constraint(
            {"p": a @ b, "q": (a, 2 * b)}, {"p": tiles, "q": rows}
        )
        return both["p"], both["q"][1], both["q"][0]

    p, q, a = f(A, A)
    np.testing.assert_allclose(p, A @ A)
    np.testing.assert_array_equal(q, 2 * A)
    np.testing.assert_array_equal(a, A)
    if chooses():
        assert (spec_of(p), spec_of(q)) == (P("x", "y"), P("x"))
    assert "sdy.sharding_constraint" in f.lower(A, A).as_text()
    outer = plugrt.jit(lambda a: lax.fori_loop(0, 2, lambda i, v: f(v, v)[1], a) + 1)
    np.testing.assert_array_equal(outer(A), 4 * A + 1)
    assert outer(A).sharding.devices == tuple(devices()[:8])
    open_ = NamedSharding(grid(), P(P.UNCONSTRAINED, "y"))
    text = plugrt.jit(lambda v: plugrt.with_sharding_constraint(v, open_)).lower(A).as_text()
    assert '[{?}, {"y"}]' in text
    now = plugrt.with_sharding_constraint(A, tiles)
    assert now.sharding == tiles
    np.testing.assert_array_equal(now, A)
    inside = plugrt.jit(lambda v: plugrt.device_put(v, tiles) + 1)(A)
    np.testing.assert_array_equal(inside, A + 1)
    assert inside.sharding.devices == tiles.devices
    one = SingleDeviceSharding(devices()[3])
    assert plugrt.jit(lambda v: plugrt.with_sharding_constraint(v, one) + 1)(A).sharding is one


def _partial(*entries: Any) -> NamedSharding:
    return NamedSharding(grid(), P(*entries))


@behaviour(105, "the compiler settles `UNCONSTRAINED` in `out_shardings`", jax="refused")
@pytest.mark.parametrize(
    "spec", [(P.UNCONSTRAINED, "y"), ("y", P.UNCONSTRAINED), (P.UNCONSTRAINED,)]
)
def test_partial_shardings_of_results_are_settled(spec: tuple[Any, ...]) -> None:
    x = plugrt.device_put(A, _partial("x"))
    f = plugrt.jit(
        lambda v: (v * 2, v, 2.0), out_shardings=(_partial(*spec), _partial(*spec), None)
    )
    doubled, same, _ = f(x)
    np.testing.assert_array_equal(doubled, A * 2)
    np.testing.assert_array_equal(same, A)
    np.testing.assert_array_equal(doubled + 1, A * 2 + 1)
    known = {i: name for i, name in enumerate(spec) if name == "y"}
    for i, name in known.items():
        assert doubled.sharding.spec[i] == name
    for shard in doubled.addressable_shards:
        np.testing.assert_array_equal(shard.data, (A * 2)[shard.index])
    with pytest.raises(ShapeError, match="result 0 of"):
        plugrt.jit(lambda v: v[:3, :3], out_shardings=_partial("x", P.UNCONSTRAINED))(x)


@pytest.mark.parametrize("user", [
    lambda s: plugrt.jit(lambda v: v * 2, in_shardings=s)(A),
    lambda s: plugrt.jit(lambda v: v * 2, in_shardings=s)(plugrt.device_put(A, _partial("x"))),
    lambda s: plugrt.device_put(A, s),
    lambda s: plugrt.device_put(plugrt.device_put(A), s),
    lambda s: plugrt.jit(lambda v: v).lower(plugrt.ShapeDtypeStruct(A.shape, A.dtype, sharding=s)),
    lambda s: plugrt.make_array_from_callback(A.shape, s, lambda index: A[index]),
    lambda s: plugrt.make_array_from_process_local_data(s, A),
    lambda s: plugrt.make_array_from_single_device_arrays(A.shape, s, []),
    lambda s: s.shard_shape(A.shape),
    lambda s: xp.zeros(A.shape, device=s),
])  # fmt: skip
@behaviour(105, "`UNCONSTRAINED` is refused by name where a whole sharding is needed")
def test_partial_shardings_place_no_array(user: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"UNCONSTRAINED.* places no array"):
        user(_partial(P.UNCONSTRAINED, "y"))


@behaviour(105, "a constraint that no result depends on places nothing, and is no effect")
def test_a_constraint_that_is_not_used() -> None:
    def f(v: Any) -> Any:
        plugrt.with_sharding_constraint(v * 2, over("x"))
        return v

    lowered = plugrt.jit(f).lower(A)
    assert "sdy.sharding_constraint" not in lowered.as_text()
    np.testing.assert_array_equal(plugrt.jit(f)(A), A)


@behaviour(105, "donated arguments are taken where their parts fit results, and deleted")
def test_donation() -> None:
    f = plugrt.jit(lambda v: v * 2, donate_argnums=0, out_shardings=over("y"))
    for sharding in (over("y"), over("x")):
        x = plugrt.device_put(A, sharding)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            np.testing.assert_array_equal(f(x), 2 * A)
        assert x.is_deleted() == (sharding == over("y"))  # parts over x have another shape
        kept = [w for w in said if "donated buffers were not usable: float32" in str(w.message)]
        assert len(kept) == (sharding == over("x"))


@behaviour(105, "equivalent shardings of different classes share one trace and one executable")
def test_equivalent_shardings_share_a_program() -> None:
    f = plugrt.jit(lambda v: xp.sin(v) + 3)
    line = Mesh(devices()[:8], "z")
    alike = [
        over("x", "y"),
        over("x", "y").with_memory_kind(devices()[0].default_memory().kind),
        NamedSharding(plugrt.make_mesh((2, 2, 2), ("a", "b", "c")), P("a", ("b", "c"))),
        GSPMDSharding.from_tiling(line.flat_devices, over("x", "y").tiling(2)),
    ]
    arrays = [plugrt.device_put(A, sharding) for sharding in alike]
    with counting() as counts:
        results = [f(x) for x in arrays]
    assert (counts[monitoring.TRACE], counts[monitoring.COMPILE]) == (1, 1)
    for x, result in zip(arrays, results, strict=True):
        np.testing.assert_allclose(result, np.sin(A) + 3, rtol=1e-6)
        if chooses() and isinstance(x.sharding, NamedSharding):
            assert result.sharding.mesh == x.sharding.mesh
    with counting() as counts:
        f(plugrt.device_put(A, over("y", "x")))
    assert counts[monitoring.COMPILE] == 1  # another sharding needs another program


@behaviour(105, "an array of `pmap` meets one over a mesh of its devices")
def test_arrays_of_pmap_are_moved() -> None:
    x = plugrt.device_put(A, over("x"))
    y = plugrt.device_put(A, PmapSharding(devices()[:8]))
    total = plugrt.jit(lambda a, b: a + b)(x, y)
    np.testing.assert_array_equal(total, 2 * A)
    assert total.sharding.devices == x.sharding.devices
    np.testing.assert_array_equal(plugrt.pmap(lambda v: v + 1)(x), A + 1)


def _elsewhere() -> Device:
    return devices()[5]


MISMATCHES: dict[str, tuple[Callable[[], Any], str]] = {
    "an argument and in_shardings": (
        lambda: plugrt.jit(lambda a: a + 1, in_shardings=over("x"))(
            plugrt.device_put(A, _elsewhere())
        ),
        r"in_shardings: NamedSharding.*on the devices \[0, 1, 2, 3, 4, 5, 6, 7\] of"
        r".*\n  argument a: float32\[8,8\] on .*:5 of",
    ),
    "an argument and out_shardings": (
        lambda: plugrt.jit(lambda a: a + 1, out_shardings=over("x"))(
            plugrt.device_put(A, _elsewhere())
        ),
        r"out_shardings: NamedSharding.*\n  argument a: .*:5 of",
    ),
    "two arguments": (
        lambda: plugrt.device_put(A, over("x"))
        + plugrt.device_put(A, NamedSharding(Mesh(devices()[:2], "x"), P("x"))),
        r"'add':\n  argument x1: .*\[0, 1, 2, 3, 4, 5, 6, 7\].*\n  argument x2: .*\[0, 1\] of",
    ),
    "an argument and a constraint": (
        lambda: plugrt.jit(lambda a: plugrt.with_sharding_constraint(a + 1, over("x")))(
            plugrt.device_put(A, _elsewhere())
        ),
        r"with_sharding_constraint, called at .*test_sharded_jit.py:\d+ on the devices \[0, 1, 2,"
        r".*\n  argument a: float32",
    ),
    "an argument and device_put inside": (
        lambda: plugrt.jit(lambda a: plugrt.device_put(a + 1, over("x")))(
            plugrt.device_put(A, _elsewhere())
        ),
        r"device_put, called at .*test_sharded_jit.py:\d+ on the devices",
    ),
    "a constraint in a nested function and the device of the outer one": (
        lambda: plugrt.jit(
            plugrt.jit(lambda a: plugrt.with_sharding_constraint(a + 1, over("x"))),
            device=_elsewhere(),
        )(A),
        r"with_sharding_constraint, called at .*\n  jit's device or backend on .*:5 of",
    ),
    "the same devices in another order": (
        lambda: plugrt.jit(lambda a: plugrt.with_sharding_constraint(a + 1, over("x")))(
            plugrt.device_put(A, NamedSharding(Mesh(devices()[7::-1], "x"), P("x")))
        ),
        r"on the devices \[7, 6, 5, 4, 3, 2, 1, 0\] of(.|\n)*same devices in another order",
    ),
    "in_shardings and out_shardings": (
        lambda: plugrt.jit(
            lambda a: a,
            in_shardings=over("x"),
            out_shardings=NamedSharding(Mesh(devices()[:2], "x"), P()),
        )(A),
        r"for .<lambda>.:\n  in_shardings: NamedSharding.* on the devices \[0, 1, 2.*, 6, 7\]"
        r" of .*\n  out_shardings: NamedSharding.* on the devices \[0, 1\] of .*\nName one device",
    ),
}  # fmt: skip


@behaviour(105, "devices that differ: the error names each constraint, its devices and its line")
@pytest.mark.parametrize("case", MISMATCHES)
def test_devices_that_differ(case: str) -> None:
    call, said = MISMATCHES[case]
    with pytest.raises(DeviceMismatch, match=said):
        call()


def _add_one(a: Any) -> Any:
    return a + 1


def _divide(a: Any) -> Any:
    return plugrt.with_sharding_constraint(a + 1, over("x"))


def _map_over(mesh: Any, a: Any) -> Any:
    return plugrt.shard_map(_add_one, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)


CLAIMING: dict[str, Callable[[Any], Any]] = {
    "constraint": _divide,
    "constraint to a device": lambda a: plugrt.with_sharding_constraint(
        a + 1, SingleDeviceSharding(devices()[2])
    ),
    "device_put": lambda a: plugrt.device_put(a, over("x")),
    "shard_map": lambda a: _map_over(over("x").mesh, a),
    "shard_map over any devices": lambda a: _map_over(over("x").mesh.abstract_mesh, a),
    "in_shardings": lambda a: plugrt.jit(_add_one, in_shardings=over("x"))(a),
    "out_shardings": lambda a: plugrt.jit(_add_one, out_shardings=over("x"))(a),
    "in_shardings of an argument that is returned": lambda a: plugrt.jit(
        lambda a: a, in_shardings=SingleDeviceSharding(devices()[2])
    )(a),
    "device of a jitted function": lambda a: plugrt.jit(_add_one, device=devices()[2])(a),
    "a jitted function": lambda a: plugrt.jit(_divide)(a),
    "a branch": lambda a: lax.cond(xp.sum(a) > 0, _divide, _add_one, a),
    "a loop": lambda a: lax.fori_loop(0, 2, lambda _, a: _divide(a), a),
}


@behaviour(105, "what no result depends on claims no devices")
@pytest.mark.parametrize("case", CLAIMING)
def test_unused_operations_claim_no_devices(case: str) -> None:
    function = CLAIMING[case]
    x = plugrt.device_put(A, _elsewhere())
    unused = plugrt.jit(lambda a: (function(a), a + 2)[1])
    assert unused(x).devices() == {_elsewhere()}
    np.testing.assert_array_equal(unused(x), A + 2)
    within = plugrt.jit(lambda a: (plugrt.jit(function)(a), plugrt.jit(lambda a: a + 2)(a))[1])
    assert within(x).devices() == {_elsewhere()}
    carried = plugrt.jit(
        lambda a: lax.fori_loop(0, 2, lambda _, c: (c[0] + 1, function(c[0])), (a, a))[0]
    )
    assert carried(x).devices() == {_elsewhere()}
    both = plugrt.jit(lambda a: (function(a), a + 2))
    partly = plugrt.jit(lambda a: plugrt.jit(lambda a: both(a))(a)[1])
    assert partly(x).devices() == {_elsewhere()}
    np.testing.assert_array_equal(partly(x), A + 2)
    for lowered in (unused.lower(x), within.lower(x), carried.lower(x), partly.lower(x)):
        assert "plugrt.claims" not in lowered.as_text()
    for used in (function, both, lambda a: both(a)[0], lambda a: plugrt.jit(function)(a) + 1):
        with pytest.raises(DeviceMismatch, match="argument a: "):
            plugrt.jit(lambda a, used=used: used(a))(x)
        assert "plugrt.claims" not in plugrt.jit(used).lower(A).as_text()


@behaviour(
    105, "a committed argument that is divided otherwise than `in_shardings` says is refused"
)
def test_wrong_uses() -> None:
    for where in ({"device": devices()[0]}, {"backend": "cpu"}):
        for shardings in ({"in_shardings": over("x")}, {"out_shardings": (None,)}):
            with pytest.raises(ArgumentError, match=r"jit takes \w+, or in_shardings"):
                plugrt.jit(lambda a: a, **where, **shardings)
    f = plugrt.jit(lambda a, b=0: a + b, in_shardings=over("x"))
    with pytest.raises(ArgumentMismatch, match="argument a is sharded as"):
        f(plugrt.device_put(A, over("y")))
    with pytest.raises(ShapeError, match=r"argument a: .*size 3 cannot be divided by 2"):
        f(A[:3])
    with pytest.raises(ShapeError, match=r"argument a: .*array has 0: PartitionSpec\(\) is"):
        f(1.0)
    with pytest.raises(StructureError, match=r"takes no keywords.*; got b="):
        f(A, b=A)
    with pytest.raises(StructureError, match=r"out_shardings=.* is not a pytree prefix"):
        plugrt.jit(lambda a: a, out_shardings=(over("x"), over("y")))(A)
    two = plugrt.jit(lambda a, n: a * n, static_argnums=1, in_shardings=(over("x"), None))
    said = "arguments that are not static, .*: it has a tuple of 2, where they have a tuple of 1$"
    with pytest.raises(StructureError, match=said):
        two(A, 3)
    constrain = plugrt.with_sharding_constraint
    shape = plugrt.sharding.AbstractMesh((2,), ("x",))
    in_host_memory = NamedSharding(shape, P("x"), memory_kind="pinned_host")
    for wrong, error, said in (
        ("x", TypeError, "takes shardings; got str"),
        (P("x"), ValueError, "there is no mesh in the context"),
        (in_host_memory, NotImplementedError, "device_put within"),
        ([over("x")], TypeError, "not a pytree prefix"),
    ):  # fmt: skip
        with pytest.raises(error, match=said):
            plugrt.jit(lambda a, w=wrong: constrain(a, w)).lower(A)
    with pytest.raises(ShapeError, match=r"x\['b'\] of with_s.*: .*size 3 cannot be divided by 2"):
        plugrt.jit(lambda a: constrain({"a": a, "b": a[:3]}, over("x")))(A)
    with pytest.raises(NotImplementedError, match="within pmap"):
        plugrt.pmap(lambda a: constrain(a, over("x")))(A)


REFUSING: dict[str, Callable[[Any], Any]] = {
    "out_shardings": lambda there: plugrt.jit(_add_one, out_shardings=there),
    "in_shardings": lambda there: plugrt.jit(_add_one, in_shardings=there),
    "a constraint": lambda there: plugrt.jit(
        lambda a: plugrt.with_sharding_constraint(a + 1, there)
    ),
    "a jitted function": lambda there: (
        lambda a: plugrt.jit(lambda b: plugrt.jit(_add_one, device=there.device)(b))(a)
    ),
    "compiled": lambda there: plugrt.jit(_add_one, in_shardings=there).lower(A).compile(),
}


@pytest.mark.parametrize("case", REFUSING)
def test_a_sharding_of_one_device_refuses_with_both_cures(case: str) -> None:
    """Compares each way to name one device.

    Same as JAX: shardings of one device refuse arrays that are committed elsewhere; `in_shardings`
    move whole ones.
    """
    there = SingleDeviceSharding(devices()[-1])
    f = REFUSING[case](there)
    for place in (over("x"), over("x", "y"), over(), SingleDeviceSharding(devices()[1])):
        x = plugrt.device_put(A, place)
        if case == "in_shardings" and place.is_fully_replicated:
            assert f(x).sharding == there  # a replicated array is moved, as in JAX
        else:
            with pytest.raises(ValueError, match=r"(?s)device_put.*device="):
                f(x)
        f_there = plugrt.jit(_add_one, device=there.device)
        moved = f_there(x)
        assert moved.sharding == there
        assert f_there.eval_shape(x).sharding == f_there.lower(x).out_info.sharding == there
        np.testing.assert_array_equal(moved, A + 1)
    assert f(A).sharding == there


@behaviour(105, "conditionals and loops leave their operands divided")
def test_control_flow_stays_divided() -> None:
    x = plugrt.device_put(A, over("x"))

    @plugrt.jit
    def f(v: Any) -> list[Any]:
        return [
            lax.cond(xp.sum(v) > 0, lambda v: v + 1, xp.sin, v),
            lax.cond(v[0, 0], lambda v: v + 1, lambda v: v - 1, v),
            lax.switch(xp.argmax(v[0]), [lambda v: v + 1, xp.sin, lambda v: v * 2], v),
            lax.while_loop(lambda v: xp.sum(v) < 4000, lambda v: v + v, v),
            lax.scan(lambda c, _: (c + 1, None), v, None, length=3)[0],
        ]

    results = f(x)
    for result, expected in zip(results, (A + 1, A - 1, A * 2, A * 2, A + 3), strict=True):
        np.testing.assert_array_equal(result, expected)
    if chooses():
        assert [spec_of(result) for result in results] == [P("x")] * 5


@behaviour(105, "callbacks, `disable_jit`, debug checks and control flow accept arrays over a mesh")
def test_with_everything_else() -> None:
    x = plugrt.device_put(A, over("x", "y"))
    f = plugrt.jit(lambda a: plugrt.with_sharding_constraint(a * 2, over("y")) + 1)
    with plugrt.disable_jit():
        np.testing.assert_array_equal(f(x), 2 * A + 1)
    with plugrt.debug_nans(), pytest.raises(FloatingPointError, match="log"):
        plugrt.jit(lambda a: xp.log(a - 1))(x)
    looped = lax.while_loop(lambda v: xp.sum(v) < 1e5, lambda v: v + v, x)
    np.testing.assert_array_equal(looped, A * 64)
    assert looped.sharding.devices == x.sharding.devices
    assert (float(x[1, 1]), x[7].tolist(), len([*x])) == (9.0, A[7].tolist(), 8)
    found = xp.nonzero(x > 60)
    np.testing.assert_array_equal(found, np.nonzero(A > 60))
    assert found[0].sharding.devices == x.sharding.devices
    np.testing.assert_array_equal(x + found[1][0], A + 5)


LEAVES: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "of one device": lambda: SingleDeviceSharding(devices()[0]),
    "over a mesh": lambda: over("x"),
}


@pytest.mark.parametrize("kind", LEAVES)
@pytest.mark.parametrize("within", [False, True])
def test_shardings_are_prefixes_also_where_they_divide_nothing(kind: str, within: bool) -> None:
    leaf = LEAVES[kind]()

    def jit(f: Any, **options: Any) -> Any:
        jitted = plugrt.jit(f, **options)
        return plugrt.jit(lambda *a: jitted(*a)) if within else jitted

    def f(a: Any, b: Any = 0) -> Any:
        return a + b, a

    for right in (leaf, (leaf,), (leaf, leaf)):
        assert np.array_equal(jit(f, in_shardings=right)(*[A] * np.size(right))[1], A)
    for right in (leaf, (leaf, leaf)):
        assert np.array_equal(jit(f, out_shardings=right)(A)[1], A)
    for wrong in ((leaf,), (leaf,) * 3, ((leaf, leaf), leaf), {"a": leaf}):
        with pytest.raises(StructureError, match="in_shardings"):
            jit(f, in_shardings=wrong)(A, A)
        with pytest.raises(StructureError, match="out_shardings"):
            jit(f, out_shardings=wrong)(A)
    static = plugrt.jit(f, static_argnums=1, in_shardings=(leaf, leaf))
    with pytest.raises(StructureError, match="in_shardings"):
        static(A, 1)


def _map_two(a: Any, b: Any, second: Callable[[Any], Any]) -> Any:
    """Maps two values over eight devices; no result depends on both."""
    mesh = plugrt.make_mesh((8,), ("x",))
    return plugrt.shard_map(
        lambda v, w: (v * 2, second(w), lax.psum(v, "x")),
        mesh=mesh, in_specs=(P("x"), P("x")), out_specs=(P("x"), P("x"), P()),
    )(a, b)  # fmt: skip


@pytest.mark.parametrize("inner", ["argument", "device= within"])
def test_unused_results_of_a_shard_map_claim_no_devices(inner: str) -> None:
    rows = NamedSharding(plugrt.make_mesh((8,), ("x",)), P("x"))
    a, b, second = plugrt.device_put(A, rows), plugrt.device_put(A, devices()[3]), _add_one
    if inner != "argument":
        b, second = A, plugrt.jit(_add_one, device=devices()[5])
    for i, expected in ((0, 2 * A), (2, A.sum(0, keepdims=True))):
        made = plugrt.jit(lambda a, b, i=i: _map_two(a, b, second)[i])(a, b)
        assert made.devices() == {*devices()[:8]}
        np.testing.assert_allclose(made, expected)
    with pytest.raises(DeviceMismatch):
        plugrt.jit(lambda a, b: _map_two(a, b, second)[1])(a, b)


def test_arguments_that_contradict_in_shardings_are_refused_though_unused() -> None:
    there = plugrt.device_put(A, devices()[3])
    first = plugrt.jit(lambda a, b: a + 1, in_shardings=(None, over("x")))
    for a in (A, there):
        with pytest.raises(ArgumentMismatch, match="argument b is sharded as"):
            first(a, there)
    np.testing.assert_array_equal(first(A, A), A + 1)
    np.testing.assert_array_equal(first(A, plugrt.device_put(A, over("x"))), A + 1)


def test_a_memory_that_contradicts_in_shardings_is_refused_on_one_device_as_on_eight() -> None:
    kind = devices()[0].default_memory().kind
    others = [m.kind for m in devices()[0].addressable_memories() if m.kind != kind]
    if not others:
        pytest.skip("no other memory here")
    for sharding in (SingleDeviceSharding(devices()[3]), over("x")):
        x, elsewhere = plugrt.device_put(A, sharding), sharding.with_memory_kind(others[0])
        with pytest.raises(ArgumentMismatch, match="argument a is sharded as"):
            plugrt.jit(lambda a: a, in_shardings=elsewhere)(x)
        plugrt.jit(lambda a: a, in_shardings=elsewhere)(plugrt.device_put(A, elsewhere))


@pytest.mark.parametrize("use", ["argument", "unused", "within", "lowered", "device_put"])
def test_in_shardings_leave_no_dimension_to_the_compiler(use: str) -> None:
    open_ = over(P.UNCONSTRAINED)
    uses: dict[str, Callable[[], Any]] = {
        "argument": lambda: plugrt.jit(_add_one, in_shardings=open_)(A),
        "unused": lambda: plugrt.jit(lambda a, b: a + 1, in_shardings=(None, open_))(A, A),
        "within": lambda: plugrt.jit(lambda a: plugrt.jit(_add_one, in_shardings=open_)(a))(A),
        "lowered": lambda: plugrt.jit(_add_one, in_shardings=open_).lower(A),
        "device_put": lambda: plugrt.jit(lambda a: plugrt.device_put(a, open_))(A),
    }
    with pytest.raises(ValueError, match="leaves a dimension to the compiler"):
        uses[use]()


def test_shapes_are_refused_before_devices_whatever_describes_the_argument() -> None:
    f = plugrt.jit(lambda a, b: (a * 2, b * 2), in_shardings=over("x"))
    there, scalar = plugrt.device_put(A, devices()[3]), np.float32(1)
    for a in (scalar, plugrt.device_put(scalar), plugrt.ShapeDtypeStruct((), np.float32)):
        with pytest.raises(ShapeError, match="argument a"):
            f.lower(a, there).compile()
