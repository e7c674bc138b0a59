"""`asarray` and `from_dlpack`: accepted arguments, copies, devices, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
import plugrt.array_api as xp
from plugrt.errors import ArgumentError, InvalidArgument, NotAnArray, ShapeError, UnsupportedDtype
from support.numpy_oracle import ALL, dtype_of, identical, sample, traced


def aligned(count: int) -> Any:
    """Returns a float32 array at a multiple of 64 bytes, the alignment of devices."""
    raw = np.zeros(4 * count + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + 4 * count].view(np.float32)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_numpy_keeps_its_dtype(dtype: str, shape: tuple[int, ...]) -> None:
    a = sample(shape, dtype)
    identical(xp.asarray(a), a)
    identical(xp.asarray(a.T[...]), a.T)
    identical(traced(lambda x: xp.asarray(a))(0.0), a)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(True, "bool"), (3, "int32"), (2**40, "int64"), (1.5, "float32"),
     (2j, "complex64"), ([1, 2], "int32"), ([1, 2.5], "float32"), ([True, False], "bool"),
     ([[1], [2**40]], "int64"), ([1, 2j], "complex64"), ([], "float32"), ([[], []], "float32"),
     ((1, (2)), "int32"), (range(4), "int32"), ([np.float64(1), 2], "float64"),
     ([np.int8(1), np.int8(2)], "int8"), ([np.ones(2), np.zeros(2)], "float64")],
)  # fmt: skip
def test_scalars_and_sequences(value: Any, dtype: str) -> None:
    identical(xp.asarray(value), np.asarray(value).astype(dtype))
    weak = np.ndim(value) == 0 and dtype != "bool"  # as in jax.numpy
    assert xp.asarray(value).weak_type == weak


def test_a_dtype_is_reached_without_rounding_twice() -> None:
    identical(xp.asarray(0.1, dtype=xp.float64), np.float64(0.1))
    identical(xp.asarray([0.1, 0.2], dtype=xp.float64), np.array([0.1, 0.2]))
    identical(xp.asarray([1.7, -1.7], dtype=xp.int8), np.array([1, -1], np.int8))
    identical(xp.asarray([1, 0], dtype=xp.bool), np.array([True, False]))
    identical(xp.asarray(3, dtype=xp.bfloat16), np.asarray(3, dtype_of("bfloat16")))
    with pytest.raises(OverflowError):
        xp.asarray(300, dtype=xp.uint8)


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    identical(xp.asarray(torch.arange(3)), np.arange(3))
    assert xp.asarray(torch.ones(2, dtype=torch.bfloat16)).dtype == xp.bfloat16


@pytest.mark.parametrize(
    ("thing", "error"),
    [(None, NotAnArray), (object(), NotAnArray), ({"a": 1}, NotAnArray), ("text", UnsupportedDtype),
     (["a", "b"], UnsupportedDtype), ([None, 1], UnsupportedDtype), ([[1, 2], [3]], ShapeError),
     (np.zeros(2, [("a", "f4")]), UnsupportedDtype), (np.array(["2020"], "M8"), UnsupportedDtype),
     (np.ma.masked_array([1, 2], [0, 1]), NotAnArray)],
)  # fmt: skip
def test_refusals(thing: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        xp.asarray(thing)


class TestCopy:
    def test_numpy_is_copied_unless_told_not_to(self) -> None:
        for copy in (None, True):
            a = aligned(4)
            x = xp.asarray(a, copy=copy)
            a[0] = 7
            identical(x, np.zeros(4, np.float32))
        a = aligned(4)
        x = xp.asarray(a, copy=False)
        assert x.unsafe_buffer_pointer() == a.ctypes.data

    def test_a_copy_that_is_needed_and_forbidden(self) -> None:
        x = xp.asarray([1, 2])
        for thing, more in [([1, 2], {}), (3, {}), (aligned(4), {"dtype": xp.int8}),
                            (aligned(5)[1:], {}), (x, {"dtype": xp.int8}), ([x, x], {}),
                            (x, {"device": plugrt.devices()[1]})]:  # fmt: skip
            with pytest.raises(ValueError, match="copy=False"):
                xp.asarray(thing, copy=False, **more)

    def test_arrays(self) -> None:
        x = xp.asarray([1, 2])
        assert xp.asarray(x) is x
        assert xp.asarray(x, copy=False) is x
        assert xp.asarray(x, dtype=x.dtype) is x
        y = xp.asarray(x, copy=True)
        assert y.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
        assert traced(lambda a: xp.asarray(a, copy=True))(x) is not x
        x.delete()
        identical(y, np.array([1, 2], np.int32))


class TestDlpack:
    @pytest.mark.parametrize("dtype", [d for d in ALL if d not in ("bool", "bfloat16")])
    def test_numpy(self, dtype: str) -> None:
        a = sample((2, 3), dtype)
        identical(xp.from_dlpack(a), a)
        identical(xp.from_dlpack(a, copy=True), a)

    def test_memory_is_shared_where_it_can_be(self) -> None:
        a = aligned(4)
        assert xp.from_dlpack(a).unsafe_buffer_pointer() == a.ctypes.data
        assert xp.from_dlpack(a, copy=False).unsafe_buffer_pointer() == a.ctypes.data
        assert xp.from_dlpack(a, copy=True).unsafe_buffer_pointer() != a.ctypes.data
        with pytest.raises(ValueError, match="copy=False"):
            xp.from_dlpack(aligned(5)[1:], copy=False)

    @pytest.mark.parametrize("kind", ["flag", "broadcast", "memory map", "read"])
    @pytest.mark.parametrize("dtype", ["float64", "int8", "bfloat16"])
    def test_a_read_only_numpy_array_is_copied(self, kind: str, dtype: str, tmp_path: Path) -> None:
        """NumPy exports it only as a versioned capsule, which plugrt does not request."""
        whole = np.arange(12).reshape(3, 4).astype(getattr(ml_dtypes, dtype, dtype))
        if kind == "memory map":
            np.save(tmp_path / "x.npy", whole.view(f"u{whole.itemsize}"))
            given = np.load(tmp_path / "x.npy", mmap_mode="r").view(whole.dtype)
        else:
            given = {
                "flag": whole.copy(),
                "broadcast": np.broadcast_to(whole, (2, 3, 4)),
                "read": np.asarray(xp.asarray(whole, copy=True)),
            }[kind]
            given.flags.writeable = False
        for copy in (None, True):
            found = xp.from_dlpack(given, copy=copy)
            np.testing.assert_array_equal(np.asarray(found), given)
        with pytest.raises(ValueError, match="copy=False"):
            xp.from_dlpack(given, copy=False)

    def test_bfloat16_and_memory_that_is_read_only(self) -> None:
        class Theirs:
            def __dlpack__(self, **_: Any) -> Any:
                return x.__dlpack__()

            def __dlpack_device__(self) -> tuple[int, int]:
                return (1, 0)

        x = xp.ones(4, dtype=xp.bfloat16)
        shared = xp.from_dlpack(Theirs(), copy=False)
        assert shared.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
        copied = xp.from_dlpack(Theirs(), copy=True)
        assert copied.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
        identical(copied, np.asarray(x))
        a = aligned(4)
        a.flags.writeable = False
        identical(xp.from_dlpack(a, copy=True), a)

    def test_our_own(self) -> None:
        x = xp.asarray([1.0, 2.0])
        assert xp.from_dlpack(x) is x
        assert xp.from_dlpack(x, copy=True).unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
        moved = xp.from_dlpack(x, device=plugrt.devices()[1])
        assert moved.devices() == {plugrt.devices()[1]}
        identical(np.from_dlpack(x), np.array([1, 2], np.float32))

    @pytest.mark.parametrize("place", [(2, 99), (2, -1), (2, 1 << 70), (10, 8)])
    def test_a_device_that_is_not_there(self, place: tuple[int, int]) -> None:
        class There:
            def __dlpack__(self, **_: Any) -> Any:
                raise AssertionError("its data were requested")

            def __dlpack_device__(self) -> tuple[int, int]:
                return place

        with pytest.raises(InvalidArgument, match=rf"There on the DLPack device \({place[0]}, "):
            xp.from_dlpack(There())

    @pytest.mark.parametrize("copy", [None, True, False])
    @pytest.mark.parametrize("version", [None, (1, 0)])
    @pytest.mark.parametrize("place", [(2, 99), (7, 0), (10, 8)])
    def test_its_own_library_copies_it_to_the_host_for_a_device(
        self, place: tuple[int, int], version: tuple[int, int] | None, copy: bool | None
    ) -> None:
        """By the array API standard the consumer passes ``dl_device``, and the producer copies."""

        class There:
            def __dlpack__(self, *, dl_device: Any, copy: Any, max_version: Any = version) -> Any:
                assert dl_device == (1, 0)
                if copy is False:
                    raise BufferError("a copy is needed")
                return a.copy().__dlpack__(max_version=max_version)

            def __dlpack_device__(self) -> tuple[int, int]:
                return place

        a = np.arange(6.0).reshape(2, 3)
        device = plugrt.devices()[1]
        if copy is False:
            with pytest.raises(ArgumentError, match=r"its library says: .*a copy is needed"):
                xp.from_dlpack(There(), device=device, copy=copy)
        else:
            found = xp.from_dlpack(There(), device=device, copy=copy)
            assert found.devices() == {device}
            assert found.committed
            identical(found, a)

    def test_a_library_that_knows_no_dl_device(self) -> None:
        class There:
            def __dlpack__(self, stream: int | None = None) -> Any:
                raise AssertionError("its data were requested")

            def __dlpack_device__(self) -> tuple[int, int]:
                return (2, 99)

        says = r"There on the DLPack device \(2, 99\).*its library says: TypeError.*dl_device"
        with pytest.raises(InvalidArgument, match=says):
            xp.from_dlpack(There(), device=plugrt.devices()[0])

    @pytest.mark.parametrize("place", [None, 1, (1,), (1, 2, 3), ("cpu", 0), (1.5, 0)])
    def test_a_device_that_is_none(self, place: Any) -> None:
        class There:
            def __dlpack__(self, **_: Any) -> Any:
                raise AssertionError("its data were requested")

            def __dlpack_device__(self) -> Any:
                return place

        with pytest.raises(NotAnArray, match="two integers"):
            xp.from_dlpack(There())

    def test_objects_without_dlpack_are_refused(self) -> None:
        with pytest.raises(NotAnArray, match=r"builtins\.list.*__dlpack__"):
            xp.from_dlpack([1, 2])
