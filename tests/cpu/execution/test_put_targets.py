"""`device_put`: accepted targets, placement, and shared memory, beside JAX."""

from __future__ import annotations

import enum
import threading
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import device_put, devices, jit, make_mesh, monitoring, pmap, register_array_type
from plugrt.errors import (
    ArgumentTypeError,
    InvalidArgument,
    NotAnArray,
    ResourceExhausted,
    ShapeError,
    StructureError,
    Unimplemented,
    UnsupportedDtype,
)
from plugrt.memory import Space
from plugrt.sharding import NamedSharding, PartitionSpec, PmapSharding, SingleDeviceSharding
from support.behaviour import behaviour
from support.jax_oracle import jax
from support.traffic import watch

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Number(enum.IntEnum):
    THREE = 3


@behaviour(1, "a member of an IntEnum is the integer that it is")
def test_members_of_enumerations() -> None:
    ours, theirs = device_put(Number.THREE), jax.device_put(Number.THREE)
    assert (ours.item(), ours.dtype) == (theirs.item(), theirs.dtype)


@behaviour(1, "`float0`, which holds nothing, is False on a device")
def test_float0() -> None:
    nothing = np.zeros((2, 3), jax.dtypes.float0)
    for put in (device_put(nothing), jit(lambda x: x)(nothing)):
        assert (put.shape, put.dtype) == ((2, 3), np.bool_)
        assert not np.asarray(put).any()


class Lazy:
    def __init__(self, value: Any) -> None:
        self.value = value


class ForJax(Lazy):
    def __jax_array__(self) -> Any:
        return self.value


class ForNumpy(Lazy):
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.value, dtype)


class ForDlpack(Lazy):
    def __dlpack__(self, **how: Any) -> Any:
        return self.value.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        return self.value.__dlpack_device__()


@behaviour(
    1,
    "objects with `__jax_array__`, `__array__` or `__dlpack__` are the array that they give",
    jax="JAX no longer accepts these as arguments",
)
@pytest.mark.parametrize("kind", [ForJax, ForNumpy, ForDlpack])
def test_protocols_of_arrays(kind: type[Lazy]) -> None:
    x = kind(X.copy())
    np.testing.assert_array_equal(device_put({"a": [x]})["a"][0], X)
    np.testing.assert_array_equal(jit(lambda a: a + 1)(x), X + 1)
    np.testing.assert_array_equal(pmap(lambda a: a * 2)(kind(X[:1])), X[:1] * 2)
    np.testing.assert_array_equal(jit(lambda a: a + 1).lower(x).compile()(x), X + 1)
    np.testing.assert_array_equal(xp.asarray(x, dtype=np.float16), X.astype(np.float16))


def test_a_protocol_may_give_a_traced_array() -> None:
    np.testing.assert_array_equal(jit(lambda a: xp.add(ForJax(a), xp.asarray(ForJax(a))))(X), 2 * X)
    with pytest.raises(NotAnArray, match=r"asarray.*ForJax, whose __jax_array__ returned 'a'"):
        xp.asarray(ForJax("a"))


@pytest.fixture
def registered() -> type[Lazy]:
    class Mine(Lazy):
        pass

    register_array_type(Mine, lambda x: x.value)
    return Mine


@behaviour(1, "device_put, jit, pmap and operators accept a registered type")
def test_registered_types(registered: type[Lazy]) -> None:
    class Derived(registered):  # type: ignore[misc, valid-type]
        pass

    for kind, value in ((registered, X), (Derived, X), (registered, device_put(X))):
        x = kind(value)
        np.testing.assert_array_equal(device_put(x, devices()[0]), X)
        np.testing.assert_array_equal(jit(lambda a: a + 1)(x), X + 1)
        np.testing.assert_array_equal(jit(lambda a: a + x)(X), X + X)  # noqa: B023
        np.testing.assert_array_equal(jit(lambda a: a + 1).lower(x).compile()(x), X + 1)
        np.testing.assert_array_equal(pmap(lambda a: a + 1)(kind(X[:1])), X[:1] + 1)
        np.testing.assert_array_equal(device_put(X) + x, X + X)
        np.testing.assert_array_equal(x * device_put(X), X * X)
        np.testing.assert_array_equal(xp.add(device_put(X), x), X + X)


@behaviour(1, "what is no array is refused, and the message names the cure")
def test_values_that_are_no_arrays_are_refused_with_a_cure(registered: type[Lazy]) -> None:
    with pytest.raises(NotAnArray, match=r"masked array.*\.filled"):
        device_put(np.ma.masked_array([1, 2], [0, 1]))
    with pytest.raises(ValueError, match=r"filled\(\)"):
        jax.device_put(np.ma.masked_array([1, 2], [0, 1]))
    with pytest.raises(UnsupportedDtype, match=r"dtype object.*astype"):
        device_put(np.array([object()]))
    with pytest.raises(NotAnArray, match=r"Mine, whose converter .* returned 'text'"):
        device_put(registered("text"))
    with pytest.raises(TypeError, match="a class and a function"):
        register_array_type(3, lambda x: x)  # type: ignore[arg-type]
    for taken in (int, dict, np.ma.MaskedArray, object):
        with pytest.raises(ArgumentTypeError, match=f"{taken.__name__} is taken as it is"):
            register_array_type(taken, lambda x: x)


@pytest.mark.parametrize(
    ("x", "says"),
    [
        (np.zeros(2, np.longdouble), r"float128.*pass x\.astype\(np\.float64\)"),
        (np.zeros(2, np.clongdouble), r"complex256.*pass x\.astype\(np\.complex128\)"),
        (np.array(["2026-11-22"], "M8[D]"), r"datetime64\[D\].*pass x\.astype\(np\.int64\)"),
        (np.array([3], "m8[s]"), r"timedelta64\[s\].*pass x\.astype\(np\.int64\)"),
        (np.array(["ab", "c"]), r"<U2.*return_inverse"),
        (np.array([b"abcd"]), r"S4.*pass x\.view\(np\.uint8\)"),
        (np.zeros(2, [("a", "f4"), ("b", "i4")]), r"structured dtype.*pass its fields .* x\['a'\]"),
        (np.zeros(2, "V3"), r"\|V3.*pass x\.view\(np\.uint8\)"),
    ],
    ids=["longdouble", "clongdouble", "time", "duration", "texts", "bytes", "fields", "void"],
)
def test_the_cure_for_other_dtypes_works(x: Any, says: str) -> None:
    with pytest.raises(UnsupportedDtype, match=says):
        device_put(x)
    with pytest.raises(NotAnArray, match=f"argument a of .*{says}"):
        jit(lambda a: a + 1)(x)
    cure = says.partition("pass ")[2].replace("\\", "")
    if cure.startswith("x."):
        kept = eval(cure, {"x": x, "np": np})
        np.testing.assert_array_equal(device_put(kept), kept)


@behaviour(2, "a pytree of targets places each leaf")
def test_pytrees_of_targets() -> None:
    first, last = devices()[0], devices()[-1]
    put = device_put({"a": X, "b": (X, 2.0), "c": X}, {"a": first, "b": last, "c": None})
    assert [x.device for x in (put["a"], *put["b"])] == [first, last, last]
    assert [put[k].committed for k in "ac"] == [True, False]
    ours, theirs = (
        device_put((X, X), (first, None)),
        jax.device_put((X, X), (jax.devices()[0], None)),
    )
    assert [x.committed for x in ours] == [x.committed for x in theirs]
    with pytest.raises(StructureError, match=r"device=.*not a pytree prefix"):
        device_put((X, X), (first, first, first))
    with pytest.raises(ValueError, match="must be a tree prefix"):
        jax.device_put((X, X), (jax.devices()[0],) * 3)
    whole, slices = device_put(X, last), PmapSharding(devices()[:3])
    with pytest.raises(ShapeError, match=r"the value at \['b'\]\[0\]: NamedSharding"):
        device_put({"a": whole, "b": [np.ones((2, 2))]}, {"a": first, "b": slices}, donate=True)
    np.testing.assert_array_equal(whole, X)  # the failed call donated nothing


@behaviour(2, "a Python number stays weakly typed wherever it is put")
def test_numbers_stay_weak() -> None:
    half = np.ones(2, np.float16)
    whole = NamedSharding(make_mesh((1,), "x"), PartitionSpec())
    for x in (1.5, 2, 1j):
        expected = (jax.device_put(x, jax.devices()[0]) + half).dtype
        for to in (None, devices()[-1], SingleDeviceSharding(devices()[0]), whole):
            assert (device_put(x, to) + half).dtype == expected
            assert (device_put([x], to)[0] + half).dtype == expected
        assert (device_put(np.float32(1.5), devices()[0]) + half).dtype == np.float32


@behaviour(2, "`src=` is accepted, and checked")
def test_src() -> None:
    x = device_put(X, devices()[0])
    assert device_put(x, devices()[-1], src=devices()[0]).device is devices()[-1]
    with pytest.raises(InvalidArgument, match="takes a device"):
        device_put(x, devices()[-1], src="elsewhere")  # type: ignore[call-overload]


@behaviour(2, "all host data for a device are one call to its backend")
def test_a_batch_is_one_put() -> None:
    with watch(devices()[0].client, "put") as puts:
        put = device_put({"a": X, "b": [1.5, np.int8(3)], "c": (X, X)})
    assert [len(each.arrays) for each in puts] == [5]
    np.testing.assert_array_equal(put["c"][1], X)
    assert put["b"][1].dtype == np.int8


@behaviour(2, "`donate` and `may_alias` may be given for each leaf, but not both for one")
def test_flags_for_each_part() -> None:
    x, y = device_put(X, devices()[0]), device_put(X, devices()[0])
    first, second = device_put((x, y), devices()[-1], donate=(True, False))
    if len(devices()) > 1:
        assert (x.is_deleted(), y.is_deleted()) == (True, False)
    np.testing.assert_array_equal(first, second)
    with pytest.raises(InvalidArgument, match="not both"):
        device_put(X, donate=True, may_alias=True)
    with pytest.raises(ValueError, match="cannot be True at the same time"):
        jax.device_put(X, donate=True, may_alias=True)


pinned = pytest.mark.skipif(
    "pinned_host" not in [m.kind for m in devices()[0].memories()],
    reason="the device has no memory of the kind pinned_host",
)


@pinned
@behaviour(2, "a memory space is a target, for host data and for arrays")
def test_memory_spaces() -> None:
    for source in (X, device_put(X), device_put(X, devices()[-1])):
        there = device_put(source, Space.Host)
        assert there.sharding.memory_kind == "pinned_host"
        np.testing.assert_array_equal(there, X)
        back = device_put(there, Space.Device)
        assert back.sharding.memory_kind is None
        assert back.device == (devices()[0] if source is X else source.device)  # type: ignore[union-attr]
        np.testing.assert_array_equal(back, X)


def _states_memories() -> bool:
    """Returns whether the platform states the memories of a program's results."""
    executable = jit(lambda a: a + 1).lower(1.0).compile().runtime_executable().executable
    try:
        return bool(executable.output_memory_kinds)
    except Unimplemented:
        return False


@pinned
@behaviour(2, "within `jit`, a memory becomes the result's; devices are ignored")
def test_memories_within_jit() -> None:
    if not _states_memories():
        pytest.skip("the library does not state the memories of results")
    there = SingleDeviceSharding(devices()[0], memory_kind="pinned_host")
    for f in (
        lambda a: device_put(a + 1, Space.Host),
        lambda a: device_put(a + 1, there),
        jit(lambda a: device_put(a + 1, Space.Host)),
    ):
        y = jit(f)(X)
        assert y.sharding.memory_kind == "pinned_host"
        np.testing.assert_array_equal(y, X + 1)
    placed = jit(lambda a: (device_put(a, Space.Host), a * 2))(X)
    theirs = jax.jit(lambda a: (jax.device_put(a, jax.memory.Space.Host), a * 2))(X)
    assert placed[0].sharding.memory_kind == theirs[0].sharding.memory_kind == "pinned_host"
    assert placed[1].sharding.memory_kind is None
    assert jit(lambda a: a + 1, out_shardings=there)(X).sharding is there
    assert jit(lambda a: device_put(a + 1, devices()[-1]))(X).device is devices()[0]


@behaviour(3, "an event tells the bytes that `device_put` put, copied or moved")
def test_bytes_of_moves() -> None:
    told: list[Any] = []

    def listen(event: str, duration: float, **facts: Any) -> None:
        if event == monitoring.DEVICE_PUT:
            told.append(facts["bytes"])

    monitoring.register_event_duration_secs_listener(listen)
    try:
        x = device_put(X, devices()[0])
        device_put({"a": X, "b": np.float32(1)})
        device_put(x, devices()[0])
        uncommitted = plugrt.array_api.asarray(X)
        for where in (None, devices()[0], SingleDeviceSharding(devices()[0])):
            device_put(uncommitted, where)
        device_put(device_put(X), devices()[0], may_alias=False)
        jit(lambda a: device_put(a, devices()[0])).lower(X)  # the program is not run
        if len(devices()) > 1:
            device_put(x, devices()[1])
    finally:
        monitoring.unregister_event_duration_listener(listen)
    assert told == [24, 28, 0, 24, 0, 0, 0, 24, 24, 0, 24][: len(told)]
    assert len(told) >= 10


@behaviour(3, "on its own device an array stays where it is; to another it goes without the host")
def test_the_same_device_and_another() -> None:
    x = device_put(X, devices()[0])
    there = device_put(X, devices()[-1])
    jitted = jit(lambda a: a * 2)
    with (
        watch(x.device.client, "put") as puts,
        plugrt.transfer_guard_device_to_host("disallow_explicit"),
    ):
        same = device_put(x, devices()[0])
        moved = device_put(x, devices()[-1])
        copied = device_put(x, devices()[0], may_alias=False)
        results = jitted(x), jitted(there)
    assert puts == []
    assert same.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert copied.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert moved.device is devices()[-1]
    assert [r.device for r in results] == [devices()[0], devices()[-1]]
    for array in (same, moved, copied):
        np.testing.assert_array_equal(array, X)


@behaviour(3, "an array goes to another backend through the host, once")
def test_between_backends() -> None:
    from plugrt_numpy.backend import NumpyBackend
    from plugrt_sdk import BackendClient

    other = BackendClient(NumpyBackend())
    x = device_put(X, devices()[0])
    with watch(other, "put") as puts:
        there = device_put(x, other.devices()[0])
    assert there.device is other.devices()[0]
    assert [array.shape for array, _ in puts.arrays] == [(2, 3)]
    np.testing.assert_array_equal(there, X)
    np.testing.assert_array_equal(device_put(there, devices()[0]), X)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5)])
def test_errors_of_a_warm_put_are_translated(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not plugrt.get_backend().platform_version.startswith("jaxlib"):
        pytest.skip("the library is not jaxlib")
    from plugrt_cpu import adapter

    real, refused = adapter.put, threading.Event()

    def put(*args: Any) -> Any:
        if refused.is_set():
            raise RuntimeError("RESOURCE_EXHAUSTED: no room")
        return real(*args)

    monkeypatch.setattr(adapter, "put", put)
    x, device = np.ones(shape, np.float16), plugrt.devices("cpu")[0]
    for _ in range(3):
        assert (np.asarray(device_put(x, device)) == x).all()
    refused.set()
    try:
        with pytest.raises(ResourceExhausted, match="no room"):
            device_put(x, device)
    finally:
        refused.clear()  # the process keeps this `put` for the type
