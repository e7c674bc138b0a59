"""`device_put` and `device_get`: where data go, and what is refused."""

from __future__ import annotations

import collections
import warnings
from typing import Any

import ml_dtypes
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
)
from plugrt.errors import (
    DeletedBuffer,
    InvalidArgument,
    NotAnArray,
    ResourceExhausted,
)
from plugrt.execution.placement import default_device
from plugrt.sharding import PmapSharding, SingleDeviceSharding
from support.distributions import run_python
from support.ops import add
from support.platforms import platform_environment

Point = collections.namedtuple("Point", "x y")


# --- where data go ---------------------------------------------------------------------------


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


def test_committed_and_uncommitted() -> None:
    first, second = devices()[:2]
    x = device_put(np.ones(3))
    assert device_put(x) is x
    there = device_put(x, second)
    assert (there.device, there.committed) == (second, True)
    assert device_put(there) is there
    here = device_put(x, first)
    assert (here.device, here.committed) == (first, True)
    assert here.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert not x.committed
    sharded = device_put(np.ones(3), SingleDeviceSharding(second))
    assert (sharded.device, sharded.committed) == (second, True)


def test_across_devices_and_back() -> None:
    x = device_put(np.arange(5.0), devices()[1])
    y = device_put(x, devices()[3])
    assert y.devices() == {devices()[3]}
    np.testing.assert_array_equal(y, np.arange(5.0))
    assert not x.is_deleted()
    assert device_put(y, devices()[3]) is y


def test_sharded_and_gathered() -> None:
    sharding = PmapSharding(devices()[:4])
    host = np.arange(8.0).reshape(4, 2)
    x = device_put(host, sharding)
    assert x.sharding == sharding
    assert device_put(x, sharding) is x
    gathered = device_put(x, devices()[5])
    assert gathered.devices() == {devices()[5]}
    np.testing.assert_array_equal(gathered, host)
    np.testing.assert_array_equal(device_put(gathered, sharding), host)


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


@pytest.mark.parametrize("memory", [m.kind for m in devices()[0].memories()])
def test_memory_kinds(memory: str) -> None:
    sharding = SingleDeviceSharding(devices()[1], memory_kind=memory)
    for source in (np.arange(3.0), device_put(np.arange(3.0), devices()[2])):
        x = device_put(source, sharding)
        assert x.sharding.memory_kind == memory or memory == devices()[1].default_memory().kind
        assert x.addressable_shards[0].data.devices() == {devices()[1]}
        np.testing.assert_array_equal(x, np.arange(3.0))
        np.testing.assert_array_equal(add(device_put(x, devices()[1]), 1), np.arange(3.0) + 1)


def test_unknown_memory_kind() -> None:
    with pytest.raises(InvalidArgument, match="no memory of kind 'nosuch'"):
        SingleDeviceSharding(devices()[0], memory_kind="nosuch")


def test_donated_sources_are_gone() -> None:
    x = device_put(np.ones(3), devices()[0])
    y = device_put(x, devices()[1], donate=True)
    np.testing.assert_array_equal(y, np.ones(3))
    with pytest.raises(DeletedBuffer, match="donated to 'device_put'"):
        np.asarray(x)
    z = device_put(np.ones(3))
    same = device_put(z, z.device, donate=True)
    np.testing.assert_array_equal(same, np.ones(3))


def test_the_source_may_change_unless_aliased() -> None:
    host = np.ones(1024)
    x = device_put(host)
    host[:] = 2
    np.testing.assert_array_equal(x, np.ones(1024))


def test_aliasing_shares_aligned_memory() -> None:
    raw = np.zeros(1024 + 16)
    start = (-raw.__array_interface__["data"][0] % 64) // 8
    aligned = raw[start : start + 1024]
    x = device_put(aligned, may_alias=True)
    assert x.unsafe_buffer_pointer() == aligned.__array_interface__["data"][0]
    y = device_put(aligned, may_alias=False)
    assert y.unsafe_buffer_pointer() != aligned.__array_interface__["data"][0]


def test_forced_copies_of_arrays() -> None:
    x = device_put(np.arange(4.0))
    for to in (None, x.device):
        y = device_put(x, to, may_alias=False)
        assert y.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
        assert y.committed == (to is not None)


# --- forms of host data ------------------------------------------------------------------------


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


def test_integers_made_of_nan_are_ordinary_integers() -> None:
    with np.errstate(invalid="ignore"):
        host = np.array([np.nan, 1.0]).astype(np.int64)
    np.testing.assert_array_equal(device_put(host), host)


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


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (np.ma.masked_array([1, 2], [0, 1]), "masked array"),
        (np.array([object()]), "dtype object"),
        (np.zeros(2, [("a", "i4"), ("b", "f4")]), "structured dtype"),
        (np.array(["a"]), "<U1"),
        (np.array([b"a"]), "S1"),
        (np.array(["2020-01-01"], "datetime64[D]"), "datetime64"),
        (np.array([1], "timedelta64[s]"), "timedelta64"),
        (np.array([1], np.longdouble), "float128|longdouble"),
        (np.array([b"ab"], "V2"), "V2"),
    ],
)
def test_dtypes_that_devices_lack(host: Any, words: str) -> None:
    for x in (host, {"params": [1, host]}):
        with pytest.raises(NotAnArray, match=words) as caught:
            device_put(x)
    assert "['params'][1]" in str(caught.value)


@pytest.mark.parametrize("value", ["text", object(), {1, 2}, len, np.float32, b"x"])
def test_values_that_are_no_arrays(value: Any) -> None:
    with pytest.raises(NotAnArray, match=r"\[1\].*not an array"):
        device_put([1, value])


def test_device_must_be_a_device() -> None:
    with pytest.raises(InvalidArgument, match=r"plugrt\.devices"):
        device_put(1.0, "cpu")


def test_no_room() -> None:
    huge = np.broadcast_to(np.float32(0), (1 << 22, 1 << 22))
    for _ in range(2):
        with pytest.raises(ResourceExhausted):
            device_put(huge)
    np.testing.assert_array_equal(add(device_put(np.ones(2)), 1), [2, 2])


def test_shapes_beyond_the_address_space() -> None:
    huge = np.broadcast_to(np.float32(0), (1 << 30, 1 << 30))
    with pytest.raises((ResourceExhausted, InvalidArgument)):
        device_put(huge)
    np.testing.assert_array_equal(device_put(np.ones(2)), [1, 1])


def test_shapes_that_no_device_can_hold() -> None:
    for shape in ((1 << 20, 1 << 20), (1 << 40, 1 << 40), (1 << 62,), (1 << 70,)):
        with pytest.raises(ResourceExhausted):
            array_api.zeros(shape).block_until_ready()
        with pytest.raises(ResourceExhausted):
            np.asarray(jit(lambda x, s=shape: array_api.broadcast_to(x, s))(np.float32(1)))
    with pytest.raises(ResourceExhausted, match="63 bits"):
        jit(lambda x: x).lower(ShapeDtypeStruct((1 << 40, 1 << 40), np.float32))
    np.testing.assert_array_equal(add(device_put(np.ones(2)), 1), [2, 2])


# --- 64 bits -------------------------------------------------------------------------------------


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


def test_no_narrowing_by_default() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert device_put(np.ones(2)).dtype == np.float64
        assert device_put(np.ones(2, ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16


# --- device_get --------------------------------------------------------------------------------


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


def test_the_default_devices_of_past_settings_are_forgotten() -> None:
    for size in range(200):
        with config.override(quick_compile_bytes=size + 1):
            device_put(1)
    assert len(default_device._defaults) <= 64
