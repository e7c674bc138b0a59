"""`device_put` and `device_get`: placement, and refused arguments."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

from plugrt import (
    Array,
    ShapeDtypeStruct,
    array_api,
    backends,
    block_until_ready,
    config,
    device_get,
    device_put,
    devices,
    jit,
    random,
)
from plugrt.errors import InvalidArgument, NotAnArray, ResourceExhausted
from plugrt.sharding import SingleDeviceSharding
from support.distributions import run_python
from support.ops import add
from support.platforms import platform_environment

Point = collections.namedtuple("Point", "x y")


def test_pytrees_keep_their_structure() -> None:
    tree = {"a": [np.ones(2), 1.5], "b": Point(np.zeros(1), None), "c": (), "d": True}
    put = device_put(tree)
    assert type(put["b"]) is Point
    assert put["b"].y is None
    assert put["c"] == ()
    assert [type(v) for v in (*put["a"], put["b"].x, put["d"])] == [Array] * 4
    back = device_get(put)
    np.testing.assert_array_equal(back["a"][0], np.ones(2))
    assert isinstance(back["b"].x, np.ndarray)
    assert block_until_ready(put) is put


def test_default_device_is_followed() -> None:
    with config.override(default_device=devices()[4]):
        x = device_put(np.ones(2))
        assert x.device is devices()[4]
        assert not x.committed
        assert add(1, 2).device is devices()[4]
    name = next(iter(backends()))
    with config.override(default_device=f"{name}:3"):
        assert device_put(np.ones(2)).device is devices()[3]
    with (
        config.override(default_device=f"{name}:99"),
        pytest.raises(InvalidArgument, match=rf"{name}:99.*{name}:0.*{name}:7"),
    ):
        device_put(np.ones(2))


def test_unknown_memory_kind() -> None:
    with pytest.raises(InvalidArgument, match="no memory of kind 'nosuch'"):
        SingleDeviceSharding(devices()[0], memory_kind="nosuch")


def test_aliasing_shares_aligned_memory() -> None:
    raw = np.zeros(1024 + 16)
    start = (-raw.__array_interface__["data"][0] % 64) // 8
    aligned = raw[start : start + 1024]
    x = device_put(aligned, may_alias=True)
    assert x.unsafe_buffer_pointer() == aligned.__array_interface__["data"][0]
    y = device_put(aligned, may_alias=False)
    assert y.unsafe_buffer_pointer() != aligned.__array_interface__["data"][0]


@pytest.mark.parametrize(
    "host",
    [
        np.arange(6, dtype=">i4"),
        np.arange(6, dtype=">f8"),
        np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1),
        np.arange(24.0)[::-2],
        np.broadcast_to(np.float32(3), (4, 5)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(5, np.int8),
        np.zeros((0, 3)),
        np.frombuffer(b"abcdefghi", np.uint8)[1:],
    ],
    ids=lambda h: f"{h.dtype.str}{h.shape}",
)
def test_forms_of_host_arrays(host: np.ndarray[Any, Any]) -> None:
    x = device_put(host)
    assert x.dtype == host.dtype.newbyteorder("=")
    np.testing.assert_array_equal(x, host)


def test_nan_payload_survives() -> None:
    bits = np.array([0x7FC00001, 0xFFC00002, 0x7F800001], np.uint32)
    x = device_put(bits.view(np.float32))
    np.testing.assert_array_equal(np.asarray(x).view(np.uint32), bits)


def test_scalars() -> None:
    cases = [(True, "bool"), (3, "int32"), (2**40, "int64"), (np.uint64(2**63), "uint64"),
             (1.5, "float32"), (1j, "complex64"), (np.float16(2), "float16"),
             (np.int64(1), "int64")]  # fmt: skip
    for value, dtype in cases:
        x = device_put(value)
        assert x.dtype.name == dtype
        assert x.item() == value
    with pytest.raises(OverflowError, match=r"does not fit int64.*as a float"):
        device_put(2**64)
    with config.override(enable_x64=True):
        assert device_put(1.5).dtype == np.float64
        assert device_put(3).dtype == np.int64


@pytest.mark.parametrize("value", ["text", object(), {1, 2}, len, np.float32, np.array(["a"])])
def test_values_that_are_no_arrays(value: Any) -> None:
    with pytest.raises(NotAnArray, match=r"at \['params'\]\[1\].*(not an array|<U1)"):
        device_put({"params": [1, value]})


def test_no_room() -> None:
    huge = np.broadcast_to(np.float32(0), (1 << 22, 1 << 22))
    for _ in range(2):
        with pytest.raises(ResourceExhausted):
            device_put(huge)
    np.testing.assert_array_equal(add(device_put(np.ones(2)), 1), [2, 2])


def test_shapes_that_no_device_can_hold() -> None:
    for shape in ((1 << 20, 1 << 20), (1 << 40, 1 << 40), (1 << 62,), (1 << 70,)):
        with pytest.raises(ResourceExhausted):
            array_api.zeros(shape).block_until_ready()
        with pytest.raises(ResourceExhausted):
            np.asarray(jit(lambda x, s=shape: array_api.broadcast_to(x, s))(np.float32(1)))
    with pytest.raises(ResourceExhausted, match="63 bits"):
        jit(lambda x: x).lower(ShapeDtypeStruct((1 << 40, 1 << 40), np.float32))
    np.testing.assert_array_equal(add(device_put(np.ones(2)), 1), [2, 2])


def test_narrowing_warns_once() -> None:
    done = run_python(
        """
        import warnings
        import numpy as np
        from plugrt import device_put
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for host in (np.ones(2), np.arange(3), np.ones(1, complex), np.ones(1, np.uint64)):
                print(device_put(host).dtype, device_put(host).tolist())
        print([(w.category.__name__, w.filename) for w in caught])
        """,
        JAX_ENABLE_X64="0",
        **platform_environment(),
    )
    assert done.stdout.splitlines() == [
        "float32 [1.0, 1.0]",
        "int32 [0, 1, 2]",
        "complex64 [(1+0j)]",
        "uint32 [1]",
        "[('UserWarning', '<string>')]",
    ], done.stderr


def test_device_get_leaves_random_keys() -> None:
    """Same as JAX: `device_get` returns random keys as they are."""
    key = random.key(0)
    found = device_get({"key": key, "x": key.size})
    assert found["key"] is key


def test_device_get_leaves_others_alone() -> None:
    marker = object()
    got = device_get({"x": device_put(np.ones(2)), "y": marker, "z": "text"})
    assert got["y"] is marker
    assert got["z"] == "text"
    assert not got["x"].flags.writeable


def test_device_get_gives_arrays_of_all_that_numpy_reads() -> None:
    class Readable:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
            return np.ones(2)

    got = device_get([np.float32(1), np.bool_(True), Readable(), 1.5, True, np.arange(2)])
    assert [type(x) for x in got] == [np.ndarray] * 3 + [float, bool, np.ndarray]
    assert [x.dtype for x in got[:3]] == [np.float32, np.bool_, np.float64]
