"""Random shardings over a client's devices, and the check that arrays move between them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from plugrt import device_put
from plugrt.interface import Device
from plugrt.sharding import (
    Mesh,
    NamedSharding,
    PartitionSpec,
    PmapSharding,
    Sharding,
    SingleDeviceSharding,
)

DTYPES = [
    *(np.dtype(code) for code in "?bBhHiIlLefdFD"),
    *(
        np.dtype(getattr(ml_dtypes, name))
        for name in (
            "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
            "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
            "float4_e2m1fn", "int2", "uint2", "int4", "uint4",
        )
    ),
]  # fmt: skip

_BITS = {
    np.dtype(getattr(ml_dtypes, name)): int(name[-1] if "int" in name else 4)
    for name in ("int2", "uint2", "int4", "uint4", "float4_e2m1fn")
}


def random_host(
    random: np.random.Generator, dtype: np.dtype[Any], sizes: int, smallest: int = 1
) -> np.ndarray:
    """Returns an array of one to three dimensions, each of ``smallest`` to ``sizes``."""
    shape = random.integers(smallest, sizes + 1, random.integers(1, 4))
    if dtype.kind == "c":
        return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(dtype)
    return random.integers(0, 2, shape).astype(dtype)


def random_sharding(
    random: np.random.Generator, devices: list[Device], shape: tuple[int, ...]
) -> Sharding:
    """Returns a sharding for arrays of ``shape``: on one device, in parts, or whole on some."""
    if random.integers(2):
        return random_named_sharding(random, devices, shape)
    ours = [devices[i] for i in random.permutation(len(devices))]
    dims = [dim for dim, size in enumerate(shape) if 1 <= size <= len(ours)]
    kind = random.integers(6)
    if kind == 0:
        return SingleDeviceSharding(ours[0])
    if kind == 1 or not dims:
        return PmapSharding(ours[: random.integers(1, len(ours) + 1)], None)
    dim = int(random.choice(dims))
    return PmapSharding(ours[: shape[dim]], dim)


def random_named_sharding(
    random: np.random.Generator, devices: list[Device], shape: tuple[int, ...]
) -> NamedSharding:
    """Returns a sharding over a mesh of two axes; each divides a dimension if it can."""
    sizes = random.integers(1, 4, 2)
    ours = [devices[i] for i in random.permutation(len(devices))[: sizes.prod()]]
    if len(ours) < sizes.prod():
        sizes = np.array([len(ours), 1])
    own: list[list[str]] = [[] for _ in shape]
    rest = [*shape]
    for name, size in zip("xy", sizes.tolist(), strict=True):
        dims = [dim for dim, n in enumerate(rest) if n % size == 0]
        if dims and random.integers(4):
            dim = int(random.choice(dims))
            own[dim].append(name)
            rest[dim] //= size
    return NamedSharding(Mesh(np.array(ours).reshape(sizes), ("x", "y")), PartitionSpec(*own))


def check_moves(
    random: np.random.Generator, devices: list[Device], traffic: list[Any], smallest: int = 1
) -> None:
    """Moves an array through four random shardings, without a transfer through the host."""
    host = random_host(random, random.choice(np.array(DTYPES, object)), len(devices), smallest)
    x = device_put(host, random_sharding(random, devices, host.shape))
    for _ in range(4):
        target = random_sharding(random, devices, host.shape)
        traffic.clear()
        y = device_put(x, target)
        assert not host.size or traffic == []
        check_contents(y, host, target)
        check_contents(x, host, x.sharding)
        x = y


def check_contents(x: Any, host: np.ndarray, sharding: Sharding) -> None:
    """Fails unless all parts of an array have these contents, bit by bit.

    Of numbers of less than a byte only their own bits count: xla-cpu-pjrt leaves the other bits
    undefined after a program's slice, and ml_dtypes ignores them.
    """
    own = 0xFF if host.dtype not in _BITS else (1 << _BITS[host.dtype]) - 1
    assert (x.sharding, x.shape, x.dtype, x.committed) == (sharding, host.shape, host.dtype, True)
    for shard in x.addressable_shards:
        assert shard.data.devices() == {shard.device}
        part = np.asarray(host[shard.index])
        assert shard.data.shape == part.shape
        found, expected = (
            np.frombuffer(np.ascontiguousarray(a).tobytes(), np.uint8)
            for a in (np.asarray(shard.data), part)
        )
        np.testing.assert_array_equal(found & own, expected & own)
