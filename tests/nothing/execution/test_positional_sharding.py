"""`PositionalSharding`: the part of each device after reshapes, transpositions and copies."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import ArgumentTypeError, AxisError, DeviceMismatch, InvalidArgument, ShapeError
from plugrt.execution.shardings.gspmd_sharding import replicate
from plugrt.execution.shardings.tiling import Tiling
from plugrt.programs.saved_header import decode_sharding, encode_sharding
from plugrt.sharding import Mesh, NamedSharding, PositionalSharding
from plugrt.sharding import PartitionSpec as P
from support.fake_client import FakeClient, FakePlugin
from support.registries import as_own, registry

DEVICES = tuple(FakeClient(count=12).devices())


def over(*shape: int) -> PositionalSharding:
    return PositionalSharding(DEVICES).reshape(shape)


def sets(sharding: PositionalSharding) -> Any:
    """Returns the sets of positions, as in JAX's class, as an array."""
    found = np.empty(sharding.shape, object)
    for at in np.ndindex(sharding.shape):
        found[at] = frozenset(sharding.positions[at].tolist())
    return found


def joined(of: Any, axis: Any, keepdims: bool) -> Any:
    """Returns the union of sets along axes."""
    masks = np.vectorize(lambda ids: sum(1 << i for i in ids), otypes=[object])(of)
    whole = np.asarray(np.sum(masks, axis=axis, keepdims=keepdims), object)
    split = np.vectorize(
        lambda bits: frozenset(i for i in range(12) if bits >> i & 1), otypes=[object]
    )
    return split(whole)


def check(sharding: PositionalSharding, expected: Any) -> None:
    """Fails unless the sets are equal, and each device has the part at its set's position."""
    assert (sharding.shape, sharding.ndim) == (expected.shape, expected.ndim)
    np.testing.assert_array_equal(sets(sharding), expected)
    shape = tuple(3 * size for size in expected.shape)
    where = sharding.devices_indices_map(shape)
    assert tuple(where) == sharding.devices == DEVICES
    for at in np.ndindex(expected.shape):
        for i in expected[at]:
            index = where[DEVICES[i]]
            found = [s.indices(size)[:2] for s, size in zip(index, shape, strict=True)]
            assert found == [(3 * n, 3 * n + 3) for n in at]
    assert sharding.shard_shape(shape) == (3,) * expected.ndim
    assert sharding.whole_shape((3,) * expected.ndim) == shape
    assert sharding.is_fully_replicated == (expected.shape == (1,) * expected.ndim)
    tiling = sharding.tiling(expected.ndim)
    assert PositionalSharding.from_tiling(DEVICES, tiling) == sharding


def test_random_forms() -> None:
    """Sequences of methods act like NumPy's on an array of sets, as in JAX's class."""
    random = np.random.default_rng(0)
    for _ in range(60):
        sharding = PositionalSharding(DEVICES)
        expected = sets(sharding)
        for _ in range(5):
            kind = random.integers(4)
            if kind == 0:
                size = expected.size
                first = int(random.choice([n for n in range(1, size + 1) if size % n == 0]))
                shape = [(first, -1), (first, 1, size // first)][random.integers(2)]
                sharding, expected = sharding.reshape(*shape), expected.reshape(shape)
            elif kind == 1:
                axes = tuple(random.permutation(expected.ndim).tolist())
                sharding, expected = sharding.transpose(axes), expected.transpose(axes)
            elif kind == 2:
                sharding, expected = sharding.T, expected.T
            elif expected.ndim:
                count = random.integers(1, expected.ndim + 1)
                axis = tuple(
                    d - expected.ndim * int(random.integers(2))
                    for d in random.permutation(expected.ndim)[:count].tolist()
                )
                keep = bool(random.integers(2))
                expected = joined(expected, axis, keep)
                sharding = sharding.replicate(axis, keepdims=keep)
            check(sharding, expected)


def test_all_devices_with_the_whole() -> None:
    whole = over(3, 4).replicate()
    assert (whole.shape, whole.is_fully_replicated) == ((1, 1), True)
    assert over(3, 4).replicate(keepdims=False).shape == ()
    for shape in ((), (5,), (5, 7, 2)):
        assert whole.shard_shape(shape) == shape
    assert replicate(over(3, 4)) == whole
    assert not over(3, 4).replicate(1).is_fully_replicated
    assert over(3, 4).replicate(-1) == over(3, 4).replicate((1,)) != over(3, 4).replicate(0)
    one = PositionalSharding(DEVICES[3])
    assert (one.shape, one.is_fully_replicated, one.devices) == ((), True, (DEVICES[3],))


def test_it_is_a_value() -> None:
    sharding = over(3, 4).replicate(1)
    assert repr(sharding) == (
        "PositionalSharding([[{FAKE 0, 1, 2, 3}] [{FAKE 4, 5, 6, 7}] [{FAKE 8, 9, 10, 11}]])"
    )
    assert sharding == over(3, 4).replicate(1)
    assert hash(sharding) == hash(over(3, 4).replicate(1))
    others = [
        over(3, 4),
        sharding.T,
        PositionalSharding(DEVICES[::-1]).reshape(3, 4).replicate(1),
        sharding.with_memory_kind("host"),
        NamedSharding(Mesh(DEVICES, "x"), P("x")),
    ]
    assert sharding not in others
    # Transposing twice restores the sharding; sets joined in another order are equal.
    assert over(3, 4).T.replicate(0).T == sharding == sharding.T.T
    mesh = Mesh(np.array(DEVICES).reshape(3, 4), ("x", "y"))
    assert sharding.is_equivalent_to(NamedSharding(mesh, P("x")), 2)
    assert over(4, 3).T.is_equivalent_to(NamedSharding(
        Mesh(np.array(DEVICES).reshape(4, 3), ("x", "y")), P("y", "x")), 2)  # fmt: skip
    grid = PositionalSharding(np.array(DEVICES).reshape(3, 4))
    assert grid == over(3, 4)
    assert grid == PositionalSharding([DEVICES[:4], DEVICES[4:8], DEVICES[8:]])


def test_the_kind_of_memory_stays() -> None:
    sharding = over(3, 4).replicate(1).with_memory_kind("host")
    assert (sharding.memory_kind, sharding.shape) == ("host", (3, 1))
    for one in (sharding.T, sharding.reshape(3), sharding.replicate()):
        assert one.memory_kind == "host"
    assert repr(sharding).endswith(", memory_kind='host')")
    assert sharding == PositionalSharding(DEVICES, memory_kind="host").reshape(3, 4).replicate(1)
    with pytest.raises(InvalidArgument, match="elsewhere"):
        PositionalSharding(DEVICES, memory_kind="elsewhere")


def test_saved_and_read() -> None:
    for sharding in (over(3, 4).T.replicate(0), over(2, 6).with_memory_kind("host")):
        stated = encode_sharding(sharding, DEVICES, "f")
        assert decode_sharding(stated, DEVICES) == sharding
        assert decode_sharding(stated, DEVICES[::-1]).devices == DEVICES[::-1]


def test_pickled_by_ids() -> None:
    with as_own(registry(FakePlugin("fakes", count=12))):
        devices = PositionalSharding(plugrt.devices("fakes"))
        sharding = devices.reshape(3, 4).T.replicate(0).with_memory_kind("host")
        content = pickle.dumps(sharding)
        assert pickle.loads(content) == copy.deepcopy(sharding) == sharding
    with (
        as_own(registry(FakePlugin("fakes", count=10))),
        pytest.raises(
            InvalidArgument,
            match=r"a pickled PositionalSharding has the devices \[10, 11\] of fakes",
        ),
    ):
        pickle.loads(content)


def test_wrong_uses() -> None:
    with pytest.raises(ShapeError, match=r"reshaped to \(5, 2\): cannot reshape array of size 12"):
        over(12).reshape(5, 2)
    with pytest.raises(ArgumentTypeError, match="reshape"):
        over(12).reshape("x")  # type: ignore[arg-type]
    for axes in ((0, 0), (0,), (0, 2)):
        with pytest.raises(AxisError, match="cannot be transposed"):
            over(3, 4).transpose(*axes)
    for axis in (2, -3, (0, 0), (0, -2)):
        with pytest.raises(AxisError, match="each once: it has 2"):
            over(3, 4).replicate(axis)
    with pytest.raises(ArgumentTypeError, match="replicate"):
        over(3, 4).replicate(1.5)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="of 2 dimensions, as it has; one has 1: reshape it"):
        over(3, 4).shard_shape((12,))
    with pytest.raises(
        ShapeError, match=r"dimension 1 into 4 equal parts; .* size 6 .* pad it to 8"
    ):
        over(3, 4).shard_shape((3, 6))
    with pytest.raises(InvalidArgument, match=r"at least one .*got none"):
        PositionalSharding([])
    with pytest.raises(InvalidArgument, match="got 3"):
        PositionalSharding([DEVICES[0], 3])
    with pytest.raises(InvalidArgument, match=r"PositionalSharding has each device once; got .*0"):
        PositionalSharding([DEVICES[0], DEVICES[0]])
    with pytest.raises(DeviceMismatch, match="of a PositionalSharding are of one backend"):
        PositionalSharding([DEVICES[0], FakeClient().devices()[0]])
    assert over(3, 4).tiling(2) == Tiling((3, 4), tuple(range(12)))
