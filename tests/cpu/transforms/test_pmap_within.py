"""pmap while another function is traced: within pmap, jit, scan and cond.

The expected numbers are from JAX 0.4.20, the last version with this: see `nox -s old_jax`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import devices, lax, pmap
from plugrt.errors import (
    ArgumentMismatch,
    DeviceMismatch,
    InvalidArgument,
    UnboundAxis,
    Unimplemented,
)
from plugrt.sharding import Mesh, NamedSharding, PmapSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour

X = np.arange(16, dtype=np.float32).reshape(2, 4, 2)
ROWS, TOTALS = X.sum(1, keepdims=True), X.sum(0)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Ignores the warning of each jit of pmap, which `test_it_warns_once` tests."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the jitted function")
        yield


def of_both(v: Any) -> Any:
    return (
        lax.psum(v, "j"),
        lax.psum(v, "i"),
        lax.pmax(v, ("i", "j")),
        lax.axis_index(("j", "i")),
        lax.ppermute(v, "i", [(0, 1)]),
        lax.all_gather(v[0], "j"),
    )


@behaviour(107, "pmap within pmap: a device for each pair, collectives over either axis or both",
           jax="0.4.20 had it, whose numbers these are")  # fmt: skip
def test_nested() -> None:
    f = pmap(lambda x: pmap(of_both, "j")(x), "i")
    over_j, over_i, most, index, moved, gathered = f(X)
    np.testing.assert_array_equal(over_j, np.broadcast_to(ROWS, X.shape))
    np.testing.assert_array_equal(over_i, np.stack([TOTALS] * 2))
    np.testing.assert_array_equal(most, np.broadcast_to(X.max((0, 1)), X.shape))
    np.testing.assert_array_equal(index, [[0, 2, 4, 6], [1, 3, 5, 7]])
    np.testing.assert_array_equal(moved, np.stack([0 * X[0], X[0]]))
    np.testing.assert_array_equal(gathered, np.broadcast_to(X[:, None, :, 0], (2, 4, 4)))
    assert over_j.sharding.is_equivalent_to(PmapSharding(devices()[:8], replicas=4), over_j.ndim)
    np.testing.assert_array_equal(f(over_j)[0], np.broadcast_to(4 * ROWS, X.shape))  # not moved
    np.testing.assert_array_equal(over_j[1], np.stack([ROWS[1, 0]] * 4))
    text = f.lower(X).as_text().replace(" ", "")
    assert "[[0,1,2,3],[4,5,6,7]]" in text
    assert "[[0,4],[1,5],[2,6],[3,7]]" in text
    assert "replicas_here" not in text
    within = pmap(lambda x: plugrt.jit(lambda v: lax.psum(v, "i"))(x), "i").lower(X[0])
    assert "replicas_here" not in within.as_text()
    assert PmapSharding(devices()[:8], replicas=4) != PmapSharding(devices()[:8])
    one = pmap(lambda x: pmap(lambda v: v)(x))(X[:1])
    assert (np.asarray(one).shape, one.sharding.mesh.axis_sizes) == ((1, 4, 2), (1, 4))
    compiled = f.lower(X).compile()
    assert compiled.runtime_executable().executable.num_replicas == 8
    where = PmapSharding(devices()[:8], replicas=4)
    assert compiled.input_shardings[0][0].is_equivalent_to(where, 3)
    assert compiled.output_shardings[0].is_equivalent_to(where, 3)


@behaviour(107, "inner pmaps of several sizes: a program has as many replicas as all sizes divide",
           jax="0.4.20 refuses two sizes unless one divides the other")  # fmt: skip
def test_inner_pmaps_of_several_sizes() -> None:
    total = pmap(lambda v: lax.psum(v, "j") + lax.axis_index("j"), "j")

    def f(x: Any) -> Any:
        return total(x[:2]), lax.axis_index("i"), total(x), lax.psum(x, "i")

    pairs, index, fours, over = pmap(f, "i")(X)
    np.testing.assert_array_equal(pairs - xp.arange(2)[:, None], [[[2, 4]] * 2, [[18, 20]] * 2])
    np.testing.assert_array_equal(index, [0, 1])
    np.testing.assert_array_equal(fours - xp.arange(4)[:, None], np.broadcast_to(ROWS, X.shape))
    np.testing.assert_array_equal(over, np.stack([TOTALS] * 2))
    two, three = plugrt.jit(lambda x: (total(x[:2]), total(x[:3])))(X[0])
    np.testing.assert_array_equal(two, [[2, 4], [3, 5]])
    np.testing.assert_array_equal(three, [[6, 9], [7, 10], [8, 11]])


@behaviour(
    107, "the axes of a pmap within: in_axes, out_axes, weak scalars, names shadowed or none"
)
def test_axes_within() -> None:
    def f(x: Any) -> Any:
        inner = pmap(lambda v, s: (v, v * s, lax.psum(v, "j")), "j", in_axes=(1, None),
                     out_axes=(1, -1, None))  # fmt: skip
        return inner(x, 2.0)

    same, twice, total = pmap(f)(X)
    np.testing.assert_array_equal(same, X)
    np.testing.assert_array_equal(twice, 2 * X)
    np.testing.assert_array_equal(total, X.sum(2))
    shadowed = pmap(lambda x: pmap(lambda v: lax.psum(v, "i"), "i")(x), "i")
    np.testing.assert_array_equal(shadowed(X), np.broadcast_to(ROWS, X.shape))
    after = pmap(lambda x: (pmap(lambda v: v, "i")(x), lax.psum(x, "i"))[1], "i")
    np.testing.assert_array_equal(after(X), np.stack([TOTALS] * 2))
    half = pmap(lambda x: pmap(lambda v, s: v + s, in_axes=(0, None))(x, 1.0))
    assert half(X.astype(np.float16)).dtype == np.float16
    with pytest.raises(UnboundAxis, match=r"bound: 'i'$"):
        pmap(lambda x: pmap(lambda v: lax.psum(v, "q"))(x), "i")(X)


@behaviour(
    107, "a jitted function within has collectives over all axes around, its own pmap as well"
)
def test_jit_between() -> None:
    inner = plugrt.jit(
        lambda v: lax.psum(v, "j") + pmap(lambda u: lax.psum(u, ("i", "j", "k")), "k")(v)[0]
    )
    ones = np.ones((2, 2, 2), np.float32)
    found = pmap(lambda x: pmap(inner, "j")(x), "i")(ones)
    np.testing.assert_array_equal(found, 10 * ones)
    assert not np.shares_memory(np.asarray(found), ones)


CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "jit": (
        lambda x: pmap(lambda v: v - lax.psum(v, "i"), "i")(x) * 2,
        lambda x: 2 * (x - x.sum(0)),
    ),
    "jit of jit": (
        lambda x: plugrt.jit(lambda y: pmap(lambda v: lax.psum(v, "i"), "i")(y)[0])(x) + x,
        lambda x: x.sum(0) + x,
    ),
    "scan": (
        lambda x: lax.scan(lambda c, r: (c + pmap(lambda v: lax.psum(v, "i"), "i")(r)[0], c),
                           xp.zeros(()), x)[1],
        lambda x: np.concatenate([[0], np.cumsum(x.sum(1))[:-1]]),
    ),
    "cond": (
        lambda x: lax.cond(x[0, 0] < 1, pmap(lambda v: lax.psum(v, "i"), "i"), lambda y: y, x),
        lambda x: np.broadcast_to(x.sum(0), x.shape),
    ),
    "the other branch": (
        lambda x: lax.cond(x[0, 0] > 1, pmap(lambda v: lax.psum(v, "i"), "i"), lambda y: y, x),
        lambda x: x,
    ),
    "loop": (
        lambda x: lax.fori_loop(0, 3, lambda _, c: pmap(lambda v: lax.pmax(v, "i"), "i")(c) + 1, x),
        lambda x: np.broadcast_to(x.max(0), x.shape) + 3,
    ),
}  # fmt: skip


@behaviour(107, "pmap in jit, scan, cond and loops is a part of that program, on several devices",
           jax="0.4.20 had it, whose numbers these are")  # fmt: skip
@pytest.mark.parametrize("name", CALLS)
def test_within_what_is_traced(name: str) -> None:
    call, expected = CALLS[name]
    function = plugrt.jit(call)
    found = function(X[0])
    whole = NamedSharding(Mesh(found.sharding.devices, "m"), P())
    divided = NamedSharding(whole.mesh, P("m"))
    for place in (None, whole, divided):
        found = function(plugrt.device_put(X[0], place))
        np.testing.assert_array_equal(found, expected(X[0]))
    assert found.sharding.devices == tuple(devices()[: len(found.sharding.devices)])
    if name in ("jit", "loop"):  # results are divided as arguments need to be
        np.testing.assert_array_equal(function(found), expected(np.asarray(found)))
    np.testing.assert_array_equal(found + 1, expected(X[0]) + 1)
    if name != "the other branch":
        np.testing.assert_array_equal(call(xp.asarray(X[0])), expected(X[0]))  # not jitted


@behaviour(107, "a branch that each replica chooses for itself may contain a pmap")
def test_a_branch_by_replica() -> None:
    total = pmap(lambda v: lax.psum(v, "j"), "j")
    f = pmap(lambda x: lax.cond(x[0, 0] > 4, total, lambda y: y, x), "i")
    np.testing.assert_array_equal(f(X), np.stack([X[0], np.broadcast_to(ROWS[1], (4, 2))]))


@behaviour(107, "jit of pmap warns, once for each program, that data gathers on one device")
def test_it_warns_once() -> None:
    f = plugrt.jit(lambda x: pmap(lambda v: v + 1)(x))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for x in (X[0], X[0], pmap(lambda v: v)(X[0])):
            f(x)
        f.lower(X[0])
    [warning] = caught
    assert "'<lambda>' has pmap of '<lambda>'" in str(warning.message)
    assert "Call pmap outside of jit" in str(warning.message)
    assert warning.filename == __file__


@behaviour(107, "jit's options go with a pmap within: donation, static arguments, ahead of time")
def test_options_of_jit() -> None:
    x = xp.asarray(X[0])
    f = plugrt.jit(lambda x, n: pmap(lambda v: v * n)(x), donate_argnums=0, static_argnums=1)
    np.testing.assert_array_equal(f(x, 3), 3 * X[0])
    assert x.is_deleted()
    compiled = f.lower(X[0], 2).compile()
    np.testing.assert_array_equal(compiled(X[0]), 2 * X[0])
    assert compiled.runtime_executable().executable.num_replicas == 4
    assert compiled.output_shardings == PmapSharding(devices()[:4], None)
    whole = plugrt.device_put(X[0], compiled.input_shardings[0][0])
    divided = pmap(lambda v: v)(X[0])
    np.testing.assert_array_equal(compiled(whole), 2 * X[0])
    np.testing.assert_array_equal(f.lower(divided, 2).compile()(divided), 2 * X[0])
    for elsewhere in (divided, plugrt.device_put(X[0], devices()[0])):
        with pytest.raises(ArgumentMismatch, match="compiled for other shardings"):
            compiled(elsewhere)


def test_cures_of_other_devices_are_those_that_help() -> None:
    """The error advises jit's ``device=`` only where no other claim contradicts it."""
    here, there = (plugrt.device_put(X, devices()[i]) for i in (0, 1))
    moves = "jit's device= moves them by itself"
    inner = plugrt.jit(lambda v: v + 1, device=devices()[2])
    other = plugrt.jit(lambda v: v, device=devices()[1])
    with pytest.raises(DeviceMismatch, match=moves):
        plugrt.jit(lambda x, y: x + y)(here, there)
    with pytest.raises(DeviceMismatch, match=moves):
        plugrt.jit(lambda x: inner(x))(here)
    for function, x in (
        (plugrt.jit(lambda x: inner(x), device=devices()[0]), X),
        (plugrt.jit(lambda x: inner(x) + other(x)), X),
        (plugrt.jit(lambda x: pmap(lambda v: v)(x)), there),
    ):
        with pytest.raises(DeviceMismatch) as caught:
            function(x)
        assert moves not in str(caught.value)
        assert "plugrt.device_put" in str(caught.value)


def test_a_backend_of_a_function_within_is_its_first_device() -> None:
    first = devices()[0]
    inner = plugrt.jit(lambda v: v + 1, backend=next(iter(plugrt.backends())))
    outer = plugrt.jit(lambda x: inner(x) * 2)
    assert outer(X).devices() == {first}
    assert outer(X).committed
    assert plugrt.jit(lambda x: (inner(x), x * 2)[1])(
        plugrt.device_put(X, devices()[3])
    ).devices() == {devices()[3]}
    for function, x in (
        (outer, plugrt.device_put(X, devices()[3])),
        (plugrt.jit(lambda x: inner(x), device=devices()[3]), X),
        (plugrt.jit(lambda x: inner(x)), pmap(lambda v: v)(X)),
    ):
        with pytest.raises(DeviceMismatch, match=r"backend= of jitted '<lambda>', called at"):
            function(x)


@behaviour(107, "devices that the outermost pmap lists are for all replicas, in their order")
def test_listed_devices() -> None:
    f = pmap(lambda x: pmap(lambda v: lax.axis_index(("i", "j")), "j")(x), "i",
             devices=devices()[7::-1])  # fmt: skip
    found = f(X)
    assert [s.device.id for s in found.addressable_shards] == [d.id for d in devices()[7::-1]]
    np.testing.assert_array_equal(found, np.arange(8).reshape(2, 4))
    g = plugrt.jit(lambda x: pmap(lambda v: v + 1, devices=devices()[4:8])(x))
    assert g(X[0]).sharding.devices == tuple(devices()[4:8])


def _inner(**options: Any) -> Any:
    return pmap(lambda v: v, "j", **options)


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "too many": (
        lambda: pmap(lambda x: _inner()(x), "i")(np.ones((4, 4))), InvalidArgument,
        r"pmap of '<lambda>' needs 16 replicas for pmap of '<lambda>', called at .*test_pmap_within"
        r".py:\d+, but \w+ has only 8 devices",
    ),
    "too many in jit": (
        lambda: plugrt.jit(lambda x: _inner()(x))(np.ones(9)), InvalidArgument,
        "'<lambda>' needs 9 replicas for pmap of '<lambda>'.* has only 8 devices",
    ),
    "too few devices listed": (
        lambda: pmap(lambda x: _inner()(x), "i", devices=devices()[:2])(X), InvalidArgument,
        "needs 8 replicas for pmap of '<lambda>'.*devices= lists 2",
    ),
    "devices within": (
        lambda: pmap(lambda x: _inner(devices=devices()[:4])(x), "i")(X), InvalidArgument,
        r"pmap of '<lambda>', called at .* with devices= within pmap of '<lambda>'",
    ),
    "a backend within": (
        lambda: pmap(lambda x: _inner(backend=next(iter(plugrt.backends())))(x), "i")(X),
        InvalidArgument, "with backend= within pmap",
    ),
    "jit's device": (
        lambda: plugrt.jit(lambda x: _inner()(x), device=devices()[1])(X), DeviceMismatch,
        r"devices of '<lambda>' are set by jit's device .* on \S*:1 of .*, and also by pmap of",
    ),
    "an argument elsewhere": (
        lambda: plugrt.jit(lambda x: _inner()(x))(plugrt.device_put(X, devices()[5])),
        DeviceMismatch, r"pmap of '<lambda>', called at .* on the devices \[0, 1\] of .*\n"
        r"  argument x: float32\[2,4,2\] on \S*:5 ",
    ),
    "an argument that is passed on": (
        lambda: plugrt.jit(lambda x, y: (_inner()(x), y))(X, plugrt.device_put(X, devices()[0])),
        DeviceMismatch, r"argument y: float32\[2,4,2\] on \S*:0 ",
    ),
    "an argument on other devices, ahead of time": (
        lambda: plugrt.jit(lambda x: _inner()(x)).lower(
            pmap(lambda v: v, devices=devices()[4:6])(X)).compile(),
        DeviceMismatch, r"argument x: float32\[2,4,2\] on the devices \[4, 5\]",
    ),
    "jit's shardings": (
        lambda: plugrt.jit(
            lambda x: _inner()(x),
            in_shardings=NamedSharding(plugrt.make_mesh((2,), ("m",)), P("m")))(X),
        DeviceMismatch, r"are set by in_shardings: NamedSharding.*pmap of",
    ),
    "a constraint": (
        lambda: plugrt.jit(lambda x: _inner()(plugrt.with_sharding_constraint(
            x, NamedSharding(plugrt.make_mesh((2,), ("m",)), P("m")))))(X),
        DeviceMismatch, r"are set by with_sharding_constraint.*pmap of",
    ),
    "a constraint within": (
        lambda: plugrt.jit(lambda x: pmap(lambda v: plugrt.with_sharding_constraint(
            v, NamedSharding(plugrt.make_mesh((2,), ("m",)), P("m"))))(x))(X),
        DeviceMismatch, r"are set by with_sharding_constraint.*pmap of '<lambda>'.*",
    ),
    "in shard_map": (
        lambda: plugrt.shard_map(lambda x: _inner()(x), mesh=plugrt.make_mesh((2,), ("m",)),
                                 in_specs=P("m"), out_specs=P("m"))(X),
        Unimplemented, r"pmap of '<lambda>', called at .* within shard_map over \['m'\]",
    ),
    "two lists of devices": (
        lambda: plugrt.jit(lambda x: (_inner(devices=devices()[:2])(x),
                                      _inner(devices=devices()[2:4])(x)))(X),
        DeviceMismatch, r"with devices=\[0, 1\] and .* with devices=\[2, 3\]",
    ),
    "sizes": (
        lambda: plugrt.jit(lambda x: pmap(lambda a, b: a)(x, x[0]))(X), ValueError,
        "different sizes along their mapped axes",
    ),
    "an axis that is not there": (
        lambda: plugrt.jit(lambda x: pmap(lambda v: v, out_axes=3)(x))(X), ValueError,
        r"at 3 \(out_axes\)",
    ),
    "no array": (
        lambda: plugrt.jit(lambda x: pmap(lambda v: "text")(x))(X), TypeError,
        "result 0 of pmap of '<lambda>'",
    ),
}  # fmt: skip


@behaviour(107, "what cannot be is refused with both by name: too many, devices, jit's, shard_map")
@pytest.mark.parametrize("name", WRONG)
def test_wrong_uses(name: str) -> None:
    call, error, said = WRONG[name]
    with pytest.raises(error, match=said):
        call()


MAPPED: dict[str, Callable[[Any], Any]] = {
    "a pmap": pmap(lambda v: v * 2),
    "with a collective": pmap(lambda v: lax.psum(v, "i"), "i"),
    "of equal results": pmap(lambda v: lax.all_gather(v, "i"), "i", out_axes=None),
    "with a loop": pmap(lambda v: lax.fori_loop(0, 2, lambda _, c: lax.psum(c, "i"), v), "i"),
    "a pmap within": pmap(lambda v: _inner()(v) + v),
    "a constraint within": pmap(lambda v: plugrt.with_sharding_constraint(
        v, NamedSharding(plugrt.make_mesh((2,), ("m",)), P("m")))),
}  # fmt: skip

UNUSED: dict[str, Callable[[Any, Any], Any]] = {
    "beside a result": lambda f, a: (f(a), a + 1)[1],
    "all of a jitted function": lambda f, a: (plugrt.jit(f)(a), a + 1)[1],
    "a result of a jitted function": lambda f, a: plugrt.jit(lambda b: (f(b), b + 1))(a)[1],
    "of a function within one": lambda f, a: plugrt.jit(
        lambda b: plugrt.jit(lambda c: (c + 1, f(c)))(b)
    )(a)[0],
    "carried by a loop": lambda f, a: lax.fori_loop(0, 1, lambda _, c: (c[0] + 1, f(c[0])), (a, a))[
        0
    ],
    "the stacked of a scan": lambda f, a: lax.scan(lambda c, _: (c + 1, f(c)), a, None, length=1)[
        0
    ],
    "of a branch": lambda f, a: lax.cond(
        a[0, 0, 0] < 1, lambda b: (b + 1, f(b)), lambda b: (b, b), a
    )[0],
    "in a branch": lambda f, a: lax.cond(
        a[0, 0, 0] < 1, lambda b: (f(b), b + 1)[1], lambda b: b, a
    ),
}


@behaviour(107, "a pmap that no result depends on, also in an inner function, is left out")
@pytest.mark.parametrize("where", UNUSED)
def test_an_unused_pmap_has_no_replicas(where: str) -> None:
    last = devices()[-1]
    x = plugrt.device_put(X, last)
    for what, mapped in MAPPED.items():
        unused = plugrt.jit(lambda a, mapped=mapped: UNUSED[where](mapped, a))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = unused(x)
        assert found.devices() == {last}, what
        assert not unused(X).committed, what
        np.testing.assert_array_equal(found, X + 1)
        text = unused.lower(x).as_text()
        assert text.count("replica") == text.count("mhlo.num_replicas = 1 ") == 1, what
        assert "plugrt." not in text, what


@pytest.mark.parametrize("name", [name for name in MAPPED if name != "a constraint within"])
def test_a_used_pmap_has_replicas_wherever_it_is_called(name: str) -> None:
    mapped = MAPPED[name]
    both = plugrt.jit(lambda b: (b + 1, mapped(b)))
    expected = mapped(X)
    for used in (
        mapped,
        both,
        lambda a: both(a)[1],
        lambda a: plugrt.jit(lambda b: both(b))(a)[1],
        lambda a: lax.scan(lambda c, _: (c, mapped(c)), a, None, length=1)[1][0],
    ):
        f = plugrt.jit(lambda a, used=used: used(a))
        found = plugrt.tree.leaves(f(X))[-1]
        assert found.devices() == expected.devices()
        np.testing.assert_array_equal(found, expected)
        assert "plugrt." not in f.lower(X).as_text()


def test_a_pmap_of_one_slice_has_devices_too() -> None:
    one = plugrt.jit(lambda a: pmap(lambda v: v * 2)(a))
    assert one(X[:1]).sharding.is_equivalent_to(pmap(lambda v: v)(X[:1]).sharding, X.ndim)
    assert one(X[:1]).committed
    over_two = NamedSharding(plugrt.make_mesh((2,), ("m",)), P(None, "m"))
    with pytest.raises(DeviceMismatch, match="are set by with_sharding_constraint"):
        plugrt.jit(lambda a: one(plugrt.with_sharding_constraint(a, over_two)))(X[:1])


@behaviour(107, "groups of several lengths around a pmap within; executables are saved and loaded")
def test_groups_around_and_saved() -> None:
    def f(x: Any) -> Any:
        within = pmap(lambda v: lax.psum(v, "j"), "j")(x)
        return within, lax.psum(x, "i", axis_index_groups=[[0, 1, 2], [3]])

    mapped = pmap(f, "i")
    x = X.reshape(4, 2, 2)
    over_j, over_i = mapped(x)
    np.testing.assert_array_equal(over_j, np.broadcast_to(x.sum(1, keepdims=True), x.shape))
    np.testing.assert_array_equal(over_i, np.stack([x[:3].sum(0)] * 3 + [x[3]]))
    try:
        saved = plugrt.serialize_executable.serialize(mapped.lower(x).compile())
    except Unimplemented as error:
        pytest.skip(f"the library saves no executables: {error}")
    loaded = plugrt.serialize_executable.deserialize_and_load(*saved)
    np.testing.assert_array_equal(loaded(x)[0], over_j)
    assert loaded(x)[0].sharding == over_j.sharding
