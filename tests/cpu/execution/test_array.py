"""`Array`: its attributes, reads, and deletion."""

from __future__ import annotations

import copy
import gc
import io
import operator
import pickle
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt import Array, copy_to_host_async, device_put, jit
from plugrt.array_api import from_dlpack
from plugrt.errors import DeletedBuffer, NotAnArray
from plugrt.execution.arrays.array import ArrayBase
from support.distributions import run_python
from support.native_core import IN_C, runs_in_c
from support.ops import add
from support.platforms import capabilities, platform_environment

DTYPES = [
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, np.float32, np.float64, np.complex64, np.complex128, ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint4,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 1, 3)])
def test_any_dtype_and_shape_come_back_as_they_went(dtype: type, shape: tuple[int, ...]) -> None:
    host = (np.arange(np.prod(shape, dtype=int)) % 5).reshape(shape).astype(dtype)
    x = device_put(host)
    assert (x.shape, x.dtype, x.ndim) == (shape, np.dtype(dtype), len(shape))
    assert (x.size, x.nbytes, x.itemsize) == (host.size, host.nbytes, host.dtype.itemsize)
    back = np.asarray(x)
    assert back.dtype == host.dtype
    assert back.shape == shape
    np.testing.assert_array_equal(back, host)
    assert not back.flags.writeable


def test_arrays_are_not_hashable() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(device_put(1.0))


def test_numpy_reads_without_a_copy() -> None:
    x = device_put(np.arange(1000.0))
    address = np.asarray(x).__array_interface__["data"][0]
    assert (address == x.unsafe_buffer_pointer()) is capabilities().zero_copy_get
    assert np.shares_memory(np.asarray(x), np.asarray(x))
    assert x.__array__() is x.__array__()


def test_numpy_copy_and_dtypes() -> None:
    x = device_put(np.arange(3, dtype=np.int32))
    copied = np.array(x)
    copied[0] = 7
    np.testing.assert_array_equal(x, [0, 1, 2])
    assert np.asarray(x, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="needs a copy"):
        x.__array__(np.float64, copy=False)
    assert np.shares_memory(x.__array__(copy=False), np.asarray(x))


def test_item_and_tolist() -> None:
    x = device_put(np.arange(6, dtype=np.int16).reshape(2, 3))
    assert x.item(1, 2) == 5
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert type(device_put(2.5).item()) is float
    assert device_put(np.float32(2)).tolist() == 2.0
    with pytest.raises(ValueError, match="size"):
        x.item()
    assert x.tobytes() == np.arange(6, dtype=np.int16).tobytes()


def test_python_scalars_of_arrays() -> None:
    assert int(device_put(np.int8(3))) == 3
    assert float(device_put(np.float32(0.5))) == 0.5
    assert complex(device_put(np.complex64(1j))) == 1j
    assert [10, 20, 30][device_put(np.int32(1))] == 20
    assert bool(device_put(np.array([1])))
    assert f"{device_put(np.float32(0.5)):.2f}" == "0.50"
    with pytest.raises(TypeError, match="only integer arrays can be an index"):
        [1, 2][device_put(np.float32(1))]
    with pytest.raises(TypeError, match=r"0-d.*shape \(2,\)"):
        int(device_put(np.ones(2)))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(device_put(np.ones(2)))


def test_length() -> None:
    assert len(device_put(np.ones((4, 2)))) == 4
    with pytest.raises(TypeError, match="0-d"):
        len(device_put(1.0))
    with pytest.raises(TypeError, match="0-d"):
        iter(device_put(1.0))


def test_waiting_for_an_array() -> None:
    x = add(device_put(np.ones(3, np.float32)), 1)
    x.copy_to_host_async()
    both = {"a": x, "b": [3, x]}
    assert copy_to_host_async(both) is both
    deleted = device_put(np.ones(3, np.float32))
    deleted.delete()
    with pytest.raises(DeletedBuffer):
        copy_to_host_async([x, deleted])
    assert x.block_until_ready() is x
    assert x.is_ready()
    assert x.on_device_size_in_bytes() >= 12


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64, np.bool_])
def test_numpy_takes_dlpack_without_a_copy(dtype: type) -> None:
    x = device_put(np.arange(8).astype(dtype))
    there = np.from_dlpack(x)
    np.testing.assert_array_equal(there, np.arange(8).astype(dtype))
    assert there.__array_interface__["data"][0] == x.unsafe_buffer_pointer()
    del x
    gc.collect()
    np.testing.assert_array_equal(there, np.arange(8).astype(dtype))


def test_dlpack_copies_when_asked() -> None:
    x = device_put(np.arange(8.0))
    assert x.__dlpack_device__() == (1, 0)
    there = np.from_dlpack(x, copy=True)
    assert there.__array_interface__["data"][0] != x.unsafe_buffer_pointer()
    there[0] = 5
    assert x.item(0) == 0
    with pytest.raises(BufferError, match="DLPack device"):
        x.__dlpack__(dl_device=(2, 0))


def test_dlpack_copies_what_numpy_refuses() -> None:
    x = device_put(np.arange(8).astype(ml_dtypes.bfloat16))

    class Given:
        """Exports a copy of an array by DLPack."""

        def __dlpack__(self, **_: Any) -> Any:
            return x.__dlpack__(copy=True, max_version=(1, 0))

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    for again in (None, True):
        y = from_dlpack(Given(), copy=again)
        assert y.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
        assert np.asarray(y).tobytes() == np.asarray(x).tobytes()


@pytest.mark.parametrize("wrong", [(1,), "ab", 1, (1, 0, 0), (1.0, 0), (None, 0)])
@pytest.mark.parametrize("name", ["dl_device", "max_version"])
def test_a_pair_of_dlpack_that_is_none(name: str, wrong: Any) -> None:
    with pytest.raises(TypeError, match=rf"got {name}=.*; a pair of integers is expected"):
        device_put(np.arange(8.0)).__dlpack__(**{name: wrong})


@pytest.mark.parametrize("newest", [None, (0, 8), (1, 0), (1, 1), (2, 0)])
def test_every_version_of_dlpack_has_a_capsule(newest: tuple[int, int] | None) -> None:
    for copies in (None, True):
        capsule = device_put(np.arange(8.0)).__dlpack__(max_version=newest, copy=copies)
        assert "dltensor" in repr(capsule)
        if newest is None or newest < (1, 0):
            assert "versioned" not in repr(capsule)


def test_dlpack_of_host_memory_has_no_streams() -> None:
    x = device_put(np.arange(8.0))
    assert x.__dlpack__(stream=None) is not None
    assert x.__dlpack__(stream=-1) is not None
    for wrong in (0, 1, 77):
        with pytest.raises(ValueError, match=f"stream={wrong} for an array in the host's memory"):
            x.__dlpack__(stream=wrong)
    for text in ("1", True):
        with pytest.raises(TypeError, match="None or an integer"):
            x.__dlpack__(stream=text)  # type: ignore[arg-type]


def test_torch_takes_and_gives_dlpack() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = device_put(np.arange(8.0))
    assert torch.from_dlpack(x).data_ptr() == x.unsafe_buffer_pointer()


def test_delete_is_final_and_says_so() -> None:
    x = device_put(np.ones((2, 3), np.float32))
    x.delete()
    x.delete()
    assert x.is_deleted()
    assert x.shape == (2, 3)
    says = r"float32\[2,3\] was deleted, called at .*test_array"
    for use in (np.asarray, Array.tolist, Array.block_until_ready, lambda a: add(a, 1)):
        with pytest.raises(DeletedBuffer, match=says):
            use(x)
    assert "deleted" in repr(x)  # which debuggers call
    assert "deleted" in str(x)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickling(protocol: int) -> None:
    for host in (np.arange(3.0), np.ones((), ml_dtypes.bfloat16), np.zeros((0, 2), np.int8)):
        x = pickle.loads(pickle.dumps(device_put(host), protocol))
        assert x.dtype == host.dtype
        np.testing.assert_array_equal(np.asarray(x), host)


def test_picklers_with_reducers_of_their_own_take_arrays() -> None:
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream)
    pickler.dispatch_table = {}  # without `copyreg`'s reducers
    pickler.dump(device_put(np.arange(3.0)))
    np.testing.assert_array_equal(np.asarray(pickle.loads(stream.getvalue())), np.arange(3.0))


def test_copies_are_independent_of_deletion() -> None:
    x = device_put(np.arange(3.0))
    for duplicate in (copy.copy(x), copy.deepcopy(x), copy.deepcopy({"a": [x]})["a"][0]):
        np.testing.assert_array_equal(duplicate, np.arange(3.0))
        assert duplicate.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
        assert not duplicate.committed
        duplicate.delete()
        assert not x.is_deleted()


def test_repr_is_short_and_says_the_dtype() -> None:
    assert repr(device_put(np.float32([1, 2]))) == "Array([1., 2.], dtype=float32)"
    assert repr(device_put(np.zeros((0, 3), np.int8))) == "Array([], shape=(0, 3), dtype=int8)"
    text = repr(device_put(np.zeros((500, 500), np.float32)))
    assert len(text) < 600
    assert "shape=(500, 500)" in text
    assert str(device_put(np.float32(2))) == "2.0"
    assert "bfloat16" in repr(device_put(np.ones(2, ml_dtypes.bfloat16)))


@pytest.mark.parametrize(
    "keep",
    [
        "builtins.kept = x",
        "atexit.register(lambda: print(np.asarray(x).sum()))",
        "cycle = [x]; cycle.append(cycle)",
        "import threading; threading.Thread(target=lambda: add(x, 1)).start()",
        "y = [add(x, i) for i in range(20)]; builtins.kept = y",
        "v = np.asarray(x); x.delete(); builtins.kept = v",
        "plugrt.clear_backends(); builtins.kept = x",
    ],
)
def test_the_process_ends_quietly(keep: str) -> None:
    done = run_python(
        f"""
        import atexit, builtins
        import numpy as np
        import plugrt
        from support.ops import add
        from plugrt import device_put
        x = device_put(np.ones(3))
        add(x, 1)
        {keep}
        print("done")
        """,
        **platform_environment(),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.startswith("done")


def test_the_buffer_is_a_read_only_view_that_outlives_the_array() -> None:
    """Only the core supports ``memoryview``.

    Same as JAX: the buffer of an array.
    """
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    x, half = device_put(host.copy()), device_put(np.zeros(2, ml_dtypes.bfloat16))
    get: Any = memoryview
    if not IN_C:
        with pytest.raises(TypeError, match="bytes-like"):
            memoryview(x)
        get = operator.methodcaller("_buffer", 0)
    view = get(x)
    assert (view.readonly, view.shape, view.format) == (True, (2, 3), "f")
    x.delete()
    assert view.tolist() == host.tolist()
    with pytest.raises(DeletedBuffer):
        get(x)
    with pytest.raises(BufferError, match="bfloat16 has no buffer"):
        get(half)


@runs_in_c
@pytest.mark.parametrize("end", ["deleted", "donated", "assigned"])
def test_frombuffer_outlives_what_the_array_had(end: str) -> None:
    host = np.arange(100_000, dtype=np.float32)
    x = device_put(host.copy())
    view = np.frombuffer(x, np.float32)
    if end == "deleted":
        x.delete()
    elif end == "donated":
        jit(lambda x: x * 0, donate_argnums=0)(x)
    else:
        for i in range(3):
            x[i] = -1
    others = [device_put(host * 0) + 0 for _ in range(4)]
    np.testing.assert_array_equal(view, host)
    del others


def test_contents_that_are_kept_keep_no_array() -> None:
    """NumPy's view of a ``__buffer__`` in Python, from 3.12 on, would keep the array."""
    assert not any("__buffer__" in vars(cls) for cls in Array.__mro__ if cls is not ArrayBase)
    arrays = [device_put(np.full(4, i, np.float32)) for i in range(3)]
    kept = [np.asarray(x) for x in arrays]
    ends = [weakref.ref(x) for x in arrays]
    del arrays
    gc.collect()
    assert [end() for end in ends] == [None] * 3
    assert [host[0] for host in kept] == [0, 1, 2]


@pytest.mark.parametrize("call", [Array, lambda: Array.__new__(Array)])
def test_an_array_is_not_made_by_its_class(call: Any) -> None:
    with pytest.raises(
        NotAnArray, match=r"use plugrt.array_api.asarray\(...\) or plugrt.device_put"
    ):
        call()
