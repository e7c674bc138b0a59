"""Arrays of random keys, compared with JAX's typed keys.

Same as JAX: arrays of random keys: what moves, chooses and compares them, in shapes and shardings
of the keys' rank; arithmetic on them is refused.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax, random
from plugrt.errors import DtypeError, ShapeError
from plugrt.sharding import NamedSharding, PositionalSharding
from plugrt.sharding import PartitionSpec as P
from support.jax_oracle import same

IMPLS = ("threefry2x32", "rbg", "unsafe_rbg")
RANKS: list[tuple[int, ...]] = [(), (1,), (4,), (2, 3), (2, 1, 3), (0, 2)]


def make(shape: tuple[int, ...], impl: str = "threefry2x32", seed: int = 0) -> tuple[Any, Any]:
    """Returns the same random keys as an array of plugrt's and of JAX's."""
    words = np.random.default_rng(seed).integers(
        0, 2**32, (*shape, 2 if impl == "threefry2x32" else 4), np.uint32
    )
    return random.wrap_key_data(words, impl=impl), jax.random.wrap_key_data(words, impl=impl)


def same_keys(found: Any, expected: Any) -> None:
    """Asserts that the leaves of two pytrees have the same keys, or the same numbers."""
    ours, theirs = plugrt.tree.leaves(found), jax.tree.leaves(expected)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        if jax.numpy.issubdtype(other.dtype, jax.dtypes.prng_key):
            assert (one.shape, one.dtype.name) == (other.shape, other.dtype.name)
            one, other = random.key_data(one), jax.random.key_data(other)
        same(one, other)


MOVES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "reshape": lambda xp, lax, k: k.reshape(-1),
    "ravel": lambda xp, lax, k: (k.ravel(), k.flatten()),
    "transpose": lambda xp, lax, k: (k.T, k.transpose(), xp.permute_dims(k, range(k.ndim)[::-1])),
    "swapaxes": lambda xp, lax, k: k.swapaxes(0, -1) if k.ndim else k,
    "moveaxis": lambda xp, lax, k: xp.moveaxis(k, 0, -1) if k.ndim else k,
    "squeeze": lambda xp, lax, k: (k.squeeze(), xp.expand_dims(k, 0)),
    "broadcast": lambda xp, lax, k: (xp.broadcast_to(k, (3, *k.shape)), lax.broadcast(k, (2,))),
    "stack": lambda xp, lax, k: (xp.stack([k, k]), xp.stack([k, k], axis=-1)),
    "concat": lambda xp, lax, k: xp.concat([k[None], k[None]]),
    "unstack": lambda xp, lax, k: xp.unstack(k[None]),
    "flip": lambda xp, lax, k: xp.flip(k) if k.ndim else k,
    "roll": lambda xp, lax, k: xp.roll(k, 1),
    "repeat": lambda xp, lax, k: (xp.repeat(k, 2), xp.tile(k, (2,))),
    "take": lambda xp, lax, k: xp.take(k[None], np.array([0, 0]), axis=0),
    "where": lambda xp, lax, k: (
        xp.where(xp.arange(k.size).reshape(k.shape) % 2 == 0, k, k[::-1])
        if k.ndim
        else xp.where(True, k, k)
    ),
    "select": lambda xp, lax, k: lax.select(xp.zeros(k.shape, bool), k, k),
    "compare": lambda xp, lax, k: (k == k, k != k, k == k[..., ::-1] if k.ndim else k),
    "lax_compare": lambda xp, lax, k: (lax.eq(k, k), lax.ne(k, k)),
    "index": lambda xp, lax, k: (k[None], k[...], k[::-1], k[..., :2]) if k.ndim else k[()],
    "gather": lambda xp, lax, k: k[np.array([0, -1])] if 0 not in k.shape and k.ndim else k,
    "beyond": lambda xp, lax, k: k.at[100].get(mode="fill") if k.ndim and k.shape[0] else k,
    "mask": lambda xp, lax, k: k.at[...].set(k) if k.ndim else k,
    "at": lambda xp, lax, k: k.at[0].set(k[-1]) if 0 not in k.shape and k.ndim else k,
    "dynamic": lambda xp, lax, k: (
        (lax.dynamic_index_in_dim(k, np.int16(1)), lax.dynamic_update_index_in_dim(k, k[0], 1, 0))
        if k.ndim and k.shape[0] > 1
        else k
    ),
    "rev": lambda xp, lax, k: lax.rev(k, [0]) if k.ndim else k,
    "full": lambda xp, lax, k: (
        (lax.full((2,), k), xp.full((2,), k), xp.full_like(k, k)) if not k.ndim else k
    ),
    "full_like": lambda xp, lax, k: lax.full_like(k[None], k.reshape(-1)[0]) if k.size else k,
    "full of a number": lambda xp, lax, k: (
        xp.full((2,), 100, dtype=k.dtype),
        xp.full_like(k, np.int32(-1)),
    ),
    "full of keys": lambda xp, lax, k: xp.full((2, *k.shape), k, dtype=k.dtype),
    "empty": lambda xp, lax, k: xp.zeros((2,), dtype=k.dtype),
    "barrier": lambda xp, lax, k: lax.optimization_barrier(k),
    "map": lambda xp, lax, k: lax.map(lambda one: one, k) if k.ndim else k,
    "scan": lambda xp, lax, k: (
        lax.scan(lambda c, one: (c, (one, c)), k[-1:], k, reverse=True)
        if k.ndim and k.shape[0]
        else k
    ),
    "unrolled": lambda xp, lax, k: (
        lax.scan(lambda c, one: (c, one), k[:1], k, unroll=True) if k.ndim and k.shape[0] else k
    ),
    "cond": lambda xp, lax, k: lax.cond(k.size > 2, lambda x: x, lambda x: x.at[...].set(x), k),
    "switch": lambda xp, lax, k: lax.switch(1, [lambda x: x[None], lambda x: x[None]], k),
    "while": lambda xp, lax, k: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1][None][0]), (0, k)
    )[1],
    "fori": lambda xp, lax, k: lax.fori_loop(0, 3, lambda i, c: c[::-1] if c.ndim else c, k),
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("impl", IMPLS[:2])
def test_functions_that_move_keys_match_jax(name: str, impl: str) -> None:
    run = MOVES[name]
    for shape in RANKS if impl == IMPLS[0] else RANKS[2:4]:
        ours, theirs = make(shape, impl)
        expected = run(jax.numpy, jax.lax, theirs)
        same_keys(plugrt.jit(lambda k: run(xp, lax, k))(ours), expected)
        if len(shape) == 1:
            same_keys(run(xp, lax, ours), expected)


@pytest.mark.parametrize("impl", IMPLS)
def test_making_keys_matches_jax(impl: str) -> None:
    for seed in (0, -1, 123456789):
        ours, theirs = random.key(seed, impl=impl), jax.random.key(seed, impl=impl)
        same_keys(ours, theirs)
        same_keys(random.key(seed, dtype=ours.dtype), theirs)
        same(random.PRNGKey(seed, impl=impl), jax.random.PRNGKey(seed, impl=impl))
        for num in (1, 3, (2, 2), ()):
            same_keys(random.split(ours, num), jax.random.split(theirs, num))
        same_keys(random.fold_in(ours, 7), jax.random.fold_in(theirs, 7))
        same_keys(random.clone(ours), theirs)
        for dtype in (np.uint8, np.uint16, np.uint32):
            same(random.bits(ours, (3, 5), dtype), jax.random.bits(theirs, (3, 5), dtype))
        same(random.normal(ours, (9,)), jax.random.normal(theirs, (9,)), rtol=1e-6)
        same(random.permutation(ours, 9), jax.random.permutation(theirs, 9))
        assert random.key_impl(ours) == jax.random.key_impl(theirs)
        assert ours.dtype == random.key_dtype(impl)
        words = random.key_data(ours)
        same_keys(random.wrap_key_data(words, dtype=impl), theirs)
        with plugrt.config.override(default_prng_impl=impl):
            same_keys(random.key(seed), theirs)
            same(random.split(words), jax.random.key_data(jax.random.split(theirs)))


def test_choosing_among_keys_matches_jax() -> None:
    ours, theirs = make((6,))
    grid, of_jax = ours.reshape(3, 2), theirs.reshape(3, 2)
    same_keys(random.permutation(ours[0], grid), jax.random.permutation(theirs[0], of_jax))
    order = jax.random.permutation(theirs[0], 6)  # JAX fails to shuffle a vector of keys
    same_keys(random.permutation(ours[0], ours), theirs[order])
    same_keys(random.choice(ours[0], ours, (4,)), jax.random.choice(theirs[0], theirs, (4,)))


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda xp, k: k + 1,
    "add keys": lambda xp, k: k + k,
    "negative": lambda xp, k: -k,
    "less": lambda xp, k: k < k,
    "sum": lambda xp, k: xp.sum(k),
    "sort": lambda xp, k: xp.sort(k),
    "equal": lambda xp, k: k == 1,
    "where": lambda xp, k: xp.where(True, k, 1),
    "set": lambda xp, k: k.at[0].set(1),
    "add at": lambda xp, k: k.at[0].add(k[0]),
    "exp": lambda xp, k: xp.exp(k),
    "astype": lambda xp, k: k.astype(xp.uint32),
    "numpy": lambda xp, k: np.asarray(k),
    "bool": lambda xp, k: bool(k[0]),
    "int": lambda xp, k: int(k[0]),
    "len": lambda xp, k: len(k[0]),
    "hash": lambda xp, k: hash(k),
    "normal": lambda xp, k: (random if xp is not jax.numpy else jax.random).normal(k),
    "mixed": lambda xp, k: xp.stack(
        [k[0], (random if xp is not jax.numpy else jax.random).key(0, impl="rbg")]
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_operations_that_keys_lack_raise_jaxs_class_of_error(name: str) -> None:
    ours, theirs = make((4,))
    with pytest.raises(Exception) as expected:
        REFUSED[name](jax.numpy, theirs)
    with pytest.raises(TypeError if isinstance(expected.value, TypeError) else ValueError):
        REFUSED[name](xp, ours)


def test_errors_say_what_is_refused() -> None:
    keys, _ = make((4,))
    with pytest.raises(DtypeError, match=r"add does not accept dtype key<fry>.*key_data"):
        _ = keys + 1
    with pytest.raises(DtypeError, match="multiply does not accept dtype key<fry>"):
        plugrt.jit(lambda k: 2 * k)(keys)
    with pytest.raises(DtypeError, match=r"where does not accept random keys together.*float32"):
        xp.where(True, keys, 1.5)
    with pytest.raises(DtypeError, match="key<fry>, key<rbg>"):
        xp.concat([keys, make((4,), "rbg")[0]])
    with pytest.raises(ShapeError, match=r"normal takes one key; found keys of shape \(4,\)"):
        random.normal(keys)
    with pytest.raises(TypeError, match="random keys, which are no NumPy data"):
        np.asarray(keys)
    for read in (memoryview, np.from_dlpack, lambda k: k.tolist(), lambda k: k.item()):
        with pytest.raises((TypeError, BufferError)):
            read(keys)  # type: ignore[operator]


def test_keys_print_as_jaxs() -> None:
    for shape in ((), (2,)):
        ours, theirs = make(shape)
        assert repr(ours) == repr(theirs)
        assert str(ours.dtype) == str(theirs.dtype)


def test_keys_are_arrays() -> None:
    keys, theirs = make((2, 3), "rbg")
    assert isinstance(keys, plugrt.Array)
    for name in ("shape", "ndim", "size", "itemsize", "nbytes"):
        assert getattr(keys, name) == getattr(theirs, name), name
    assert [row.shape for row in keys] == [(3,), (3,)]
    for copied in (pickle.loads(pickle.dumps(keys)), copy.deepcopy(keys), copy.copy(keys)):
        same_keys(copied, theirs)
    again = keys.copy()
    again.delete()
    assert again.is_deleted()
    assert not keys.is_deleted()
    assigned = random.split(keys[0, 0], 3)
    assigned[1] = assigned[0]
    assert (assigned[1] == assigned[0]).item()


def test_programs_of_keys() -> None:
    keys, theirs = make((4,))
    struct = plugrt.ShapeDtypeStruct((4,), keys.dtype)
    lowered = plugrt.jit(lambda k: (random.split(k[0]), k[::-1])).lower(struct)
    assert "tensor<4x2xui32>" in lowered.as_text()
    assert "key<" not in lowered.as_text()
    same_keys(lowered.compile()(keys), (jax.random.split(theirs[0]), theirs[::-1]))
    shapes = plugrt.jit(lambda k: random.split(k[0], (2, 3))).eval_shape(struct)
    assert (shapes.shape, shapes.dtype) == ((2, 3), keys.dtype)
    inner = plugrt.jit(lambda k: random.fold_in(k, 3))
    twice = jax.random.fold_in(jax.random.fold_in(theirs[1], 3), 3)
    same_keys(plugrt.jit(lambda k: inner(inner(k)))(keys[1]), twice)
    one, one_of_jax = keys[2], theirs[2]
    same(plugrt.jit(lambda x: random.normal(one) + x)(1.0), jax.random.normal(one_of_jax) + 1.0)
    donated = random.split(one, 4)
    result = plugrt.jit(lambda k: k[::-1], donate_argnums=0)(donated)
    assert donated.is_deleted()
    same_keys(result, jax.random.split(one_of_jax, 4)[::-1])
    made = plugrt.jit(lambda n: random.key(n))(np.int32(7))
    same_keys(made, jax.random.key(7))


@pytest.fixture
def grid() -> Any:
    return plugrt.make_mesh((2, 2), ("x", "y"))


def test_shardings_of_keys_have_their_rank(grid: Any) -> None:
    keys, theirs = make((4, 2))
    rows, both = NamedSharding(grid, P("x")), NamedSharding(grid, P("y", "x"))
    devices = plugrt.devices()[:4]
    positional = PositionalSharding(devices).reshape(4, 1)
    divided = plugrt.device_put(keys, rows)
    assert divided.sharding == rows
    assert {part.data.shape for part in divided.addressable_shards} == {(2, 2)}
    for x in (keys, divided):
        for where in (rows, both, positional, devices[3]):
            put = plugrt.device_put(x, where)
            same_keys(put, theirs)
            if where is not devices[3]:
                assert put.sharding == where
            same_keys(plugrt.jit(lambda k: k.T)(put), theirs.T)
            same_keys(plugrt.jit(lambda k: k)(put), theirs)
            same_keys([*put], [*theirs])
    with pytest.raises(ShapeError):
        plugrt.device_put(keys, NamedSharding(grid, P("x", None, "y")))
    out = plugrt.jit(lambda k: random.split(k[0, 0], 4), out_shardings=rows)(divided)
    assert out.sharding == rows
    same_keys(out, jax.random.split(theirs[0, 0], 4))
    constrained = plugrt.jit(lambda k: lax.with_sharding_constraint(k[::-1], both))(keys)
    assert constrained.sharding == both
    same_keys(constrained, theirs[::-1])
    filled = lax.full((4,), keys[0, 0], sharding=rows)
    assert filled.sharding == lax.full_like(divided, keys[0, 0], shape=(4,), sharding=rows).sharding
    assert filled.sharding == rows
    parts = [part.data for part in divided.addressable_shards]
    same_keys(plugrt.make_array_from_single_device_arrays((4, 2), rows, parts), theirs)
    called = plugrt.make_array_from_callback((4, 2), both, lambda index: keys[index])
    assert called.sharding == both
    same_keys(called, theirs)
    compiled = (
        plugrt.jit(lambda k: k.T)
        .lower(plugrt.ShapeDtypeStruct((4, 2), keys.dtype, sharding=rows))
        .compile()
    )
    assert compiled.input_shardings[0] == (rows,)
    same_keys(compiled(divided), theirs.T)


def test_programs_on_several_devices_divide_keys(grid: Any) -> None:
    keys, theirs = make((4,))
    expected = jax.numpy.stack([jax.random.normal(k, (2,)) for k in theirs])
    same(plugrt.pmap(lambda k: random.normal(k, (2,)))(keys), expected, rtol=1e-6)
    same_keys(
        plugrt.pmap(lambda k: random.fold_in(k, 1))(keys),
        jax.numpy.stack([jax.random.fold_in(k, 1) for k in theirs]),
    )
    split = plugrt.pmap(lambda k: random.split(k[0], 2), in_axes=1)
    same_keys(
        plugrt.jit(split)(keys.reshape(1, 4)),  # pmap within jit becomes a part of its program
        jax.numpy.stack([jax.random.split(k, 2) for k in theirs]),
    )
    whole = plugrt.pmap(lambda k, x: random.normal(k) + x, in_axes=(None, 0))
    same(whole(keys[0], np.zeros(4, np.float32)), np.full(4, jax.random.normal(theirs[0])))

    rows = P(("x", "y"))

    def mapped(function: Callable[[Any], Any], out: Any = rows) -> Any:
        return plugrt.shard_map(function, mesh=grid, in_specs=rows, out_specs=out, check_vma=False)

    same(mapped(lambda k: random.normal(k[0], (1, 2)))(keys), expected, rtol=1e-6)
    same_keys(mapped(lambda k: k)(keys), theirs)
    same_keys(mapped(lambda k: lax.all_gather(k, ("x", "y"), tiled=True), P())(keys), theirs)
    same_keys(mapped(lambda k: lax.all_gather(k[0], ("x", "y")), P())(keys), theirs)
    turned = mapped(lambda k: lax.ppermute(k, ("x", "y"), [(i, (i + 1) % 4) for i in range(4)]))
    same_keys(turned(keys), jax.numpy.roll(theirs, 1))
    with pytest.raises(DtypeError, match="key<fry>"):
        mapped(lambda k: lax.psum(k, "x"))(keys)


def test_explicit_axes_divide_keys() -> None:
    keys, theirs = make((4,))
    types = (plugrt.sharding.AxisType.Explicit,) * 2
    mesh = plugrt.make_mesh((2, 2), ("x", "y"), axis_types=types)
    with plugrt.set_mesh(mesh):
        divided = plugrt.device_put(keys, NamedSharding(mesh, P("x")))
        assert divided.aval.sharding.spec == P("x")
        seen = []

        def run(k: Any) -> Any:
            seen.append(plugrt.typeof(k).sharding.spec)
            return xp.where(k == k, k, k), k.reshape(4, 1)

        first, second = plugrt.jit(run)(divided)
        assert seen == [P("x")]
        assert first.sharding.spec == P("x")
        assert second.sharding.spec == P("x", None)
    same_keys((first, second), (theirs, theirs.reshape(4, 1)))
