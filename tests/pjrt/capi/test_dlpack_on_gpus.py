"""DLPack of memory on a GPU, with a library that declares its memory as such."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.base import dlpack_types
from plugrt.capi import Library, create_client
from plugrt.capi.buffers import dlpack
from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    BufferUnavailable,
    DeletedBuffer,
    InvalidArgument,
    Unimplemented,
)
from plugrt.interface import Client
from support.clib import needs_cc
from support.fake_client import StartedPlugin
from support.gpu_library import FIRST_ID, STREAM, GpuLibrary
from support.native_core import IN_C
from support.registries import as_own, registry

pytestmark = needs_cc
ONE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


class Gpu:
    """A client of a GPU's library, and the requests to that library."""

    def __init__(self, library: GpuLibrary) -> None:
        self.library = library
        self.client: Client = create_client(library.path, {"cpu_device_count": 2}, name="made up")
        self.device = self.client.devices()[0]
        self.capabilities = self.client.capabilities  # needs a put, so before counting

    def put(self, array: Any = ONE) -> Any:
        buffer = self.client.buffer_from_host(np.asarray(array), self.device)
        buffer.block_until_ready()
        self.library.seen()
        return buffer


@pytest.fixture(scope="module")
def make(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Any:
    kept: dict[Any, Gpu] = {}

    def found(platform: str = "cuda", streams: bool = True) -> Gpu:
        key = platform, streams
        if key not in kept:
            folder = tmp_path_factory.mktemp(platform)
            made = GpuLibrary(folder, Path(library.path), platform, streams)
            kept[key] = Gpu(made)
        kept[key].library.seen()
        return kept[key]

    return found


@pytest.fixture
def gpu(make: Any) -> Gpu:
    found: Gpu = make()
    return found


@pytest.fixture
def on_gpu(gpu: Gpu) -> Iterator[Gpu]:
    with plugrt.default_device(gpu.device):
        yield gpu


class Tensor:
    """Another library's tensor on a GPU, in host memory, which the fake GPU uses."""

    def __init__(
        self,
        array: np.ndarray[Any, Any],
        place: tuple[int, int] = (dlpack_types.CUDA, FIRST_ID),
        strides: tuple[int, ...] | None = None,
    ) -> None:
        self.place, self.streams, self.array = place, [], array
        self._strides = strides

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place

    def __dlpack__(self, *, stream: Any) -> Any:
        self.streams.append(stream)
        address, shape = self.array.ctypes.data, self.array.shape
        capsule = dlpack.export(address, shape, self.array.dtype, self.place, self.array)
        if self._strides is not None:
            self._held = dlpack.ffi.new("int64_t[]", list(self._strides))
            dlpack.read(capsule).managed.dl_tensor.strides = self._held
        return capsule

    @property
    def held(self) -> int:
        """The number of its capsules that are not released."""
        gc.collect()
        return sum(reference is self.array for _, _, reference in dlpack._exported.values())


def aligned(array: Any = ONE, offset: int = 0) -> np.ndarray[Any, Any]:
    """A copy of an array at a multiple of 64 bytes plus ``offset``."""
    source = np.asarray(array, order="C")
    memory = np.zeros(source.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    made = memory[start : start + source.nbytes].view(source.dtype).reshape(source.shape)
    made[...] = source
    return made


def test_capabilities_by_platform(gpu: Gpu, make: Any) -> None:
    for found in (gpu, make("rocm"), make(streams=False)):
        assert found.capabilities.dlpack
        assert not found.capabilities.zero_copy_put
        assert not found.capabilities.zero_copy_get
        assert not found.capabilities.host_callbacks
    assert not make("tpu").capabilities.dlpack


def test_the_device_is_named_by_its_hardware_id(gpu: Gpu, make: Any) -> None:
    assert gpu.put().dlpack_device() == (2, FIRST_ID)
    other = gpu.client.buffer_from_host(ONE, gpu.client.devices()[1])
    assert other.dlpack_device() == (2, FIRST_ID + 1)
    assert gpu.put().copy_to_memory(gpu.device.memory("pinned_host")).dlpack_device() == (3, 5)
    rocm = make("rocm")
    assert rocm.put().dlpack_device() == (10, FIRST_ID)
    assert rocm.put().copy_to_memory(rocm.device.memory("pinned_host")).dlpack_device() == (11, 5)


@pytest.mark.parametrize(
    ("stream", "asked"),
    [
        (None, ["ready 0", "refer 1"]),
        (1, ["ready 0", "refer 1"]),
        (2, ["ready 0", "refer 1"]),
        (1 << 40, [f"wait {1 << 40}", "refer 1"]),
        (3, ["wait 3", "refer 1"]),
        (-1, ["refer 1"]),
    ],
)
def test_dlpack_waits_or_leaves_the_wait_to_the_consumer(
    gpu: Gpu, stream: int | None, asked: list[str]
) -> None:
    x = gpu.put()
    capsule = x.to_dlpack(stream)
    assert gpu.library.seen() == asked
    tensor = dlpack.read(capsule)
    assert (tensor.device_type, tensor.device_id) == (2, FIRST_ID)
    assert (tensor.address, tensor.shape, tensor.dtype) == (x.unsafe_pointer(), (2, 3, 4), "f4")
    del capsule, tensor
    gc.collect()
    assert gpu.library.seen() == ["refer -1"]


def test_the_host_waits_where_the_library_has_no_streams(make: Any) -> None:
    gpu = make(streams=False)
    x = gpu.put()
    x.to_dlpack(77)
    assert gpu.library.seen()[:2] == ["ready 0", "refer 1"]
    with pytest.raises(Unimplemented, match="no extension Stream"):
        gpu.device.stream_for_external_ready_events()


def test_the_host_waits_for_pinned_memory(gpu: Gpu) -> None:
    x = gpu.put().copy_to_memory(gpu.device.memory("pinned_host"))
    gpu.library.seen()
    x.to_dlpack(-1)
    assert gpu.library.seen()[:2] == ["ready 0", "refer 1"]


def test_a_capsule_keeps_the_memory(gpu: Gpu) -> None:
    x = gpu.put()
    capsule = x.to_dlpack(77)
    x.delete()
    del x
    gc.collect()
    back = gpu.client.buffer_from_dlpack(capsule, gpu.device)
    np.testing.assert_array_equal(back.to_host(), ONE)


@pytest.mark.parametrize("stream", [None, 77, -1])
def test_deleted_arrays_are_not_exported(gpu: Gpu, stream: int | None) -> None:
    x = gpu.put()
    x.delete()
    with pytest.raises(DeletedBuffer):
        x.to_dlpack(stream)


def test_arrays_take_the_streams_of_the_standard(on_gpu: Gpu) -> None:
    x = plugrt.device_put(ONE)
    assert x.__dlpack_device__() == (2, FIRST_ID)
    on_gpu.library.seen()
    x.__dlpack__(stream=np.int64(77))
    assert "wait 77" in on_gpu.library.seen()
    x.__dlpack__(stream=77, copy=True)
    assert "wait 77" in on_gpu.library.seen()
    x.__dlpack__(stream=-1, copy=True)
    assert on_gpu.library.seen()[:2] == ["ready 0", "refer 1"], "the copy is made in this call"
    assert dlpack.read(x.__dlpack__(stream=-1)).address == x.unsafe_buffer_pointer()
    for wrong in (True, "1", 1.0, object()):
        with pytest.raises(ArgumentTypeError, match="None or an integer"):
            x.__dlpack__(stream=wrong)  # type: ignore[arg-type]
    for number, what in ((0, "0"), (-5, "a negative one")):
        with pytest.raises(ArgumentError, match=f"stream={number} .* and not {what}"):
            x.__dlpack__(stream=number)
    assert on_gpu.library.seen().count("refer 1") == 1, "what is refused is refused first"


@pytest.mark.parametrize("kind", [dlpack_types.ROCM, dlpack_types.CPU, dlpack_types.CUDA_HOST])
def test_the_streams_of_other_memory(kind: int) -> None:
    taken = {dlpack_types.ROCM: (None, -1, 0, 3, 1 << 40)}.get(kind, (None, -1))
    refused = {dlpack_types.ROCM: (-2, 1, 2)}.get(kind, (-2, 0, 1, 2, 3))
    for stream in taken:
        assert dlpack_types.require_stream(stream, kind) == stream
    for stream in refused:
        with pytest.raises(ArgumentError, match=f"stream={stream} "):
            dlpack_types.require_stream(stream, kind)


@pytest.mark.skipif(not IN_C, reason="a capsule's end in Python loses the error")
def test_numpy_refuses_memory_on_the_device(on_gpu: Gpu) -> None:
    x = plugrt.device_put(ONE)
    with pytest.raises((BufferError, RuntimeError), match="Unsupported device"):
        np.from_dlpack(x)
    gc.collect()
    assert on_gpu.library.seen().count("refer -1") == 1, "the refused capsule gave the memory back"


def test_the_host_is_given_a_copy(on_gpu: Gpu) -> None:
    x = plugrt.device_put(ONE)
    np.testing.assert_array_equal(np.asarray(x), ONE)
    copied = dlpack.read(x.__dlpack__(dl_device=(1, 0), stream=1))
    assert (copied.device_type, copied.device_id) == (1, 0)
    assert copied.address != x.unsafe_buffer_pointer()
    with pytest.raises(BufferUnavailable, match="needs a copy"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferUnavailable, match="no way"):
        x.__dlpack__(dl_device=(2, FIRST_ID + 1))


@pytest.mark.parametrize("kind", [dlpack_types.CUDA, dlpack_types.CUDA_MANAGED])
def test_a_tensor_is_shared_and_released(on_gpu: Gpu, kind: int) -> None:
    tensor = Tensor(aligned(), (kind, FIRST_ID))
    x = xp.from_dlpack(tensor)
    assert tensor.streams == [STREAM]
    assert on_gpu.library.seen() == [f"view {STREAM}"]
    assert x.unsafe_buffer_pointer() == tensor.array.ctypes.data
    assert x.devices() == {on_gpu.device}
    np.testing.assert_array_equal(np.asarray(x), ONE)
    assert tensor.held == 1
    del x
    assert tensor.held == 0


@pytest.mark.parametrize("dtype", ["bfloat16", "bool", "complex64", "int32"])
@pytest.mark.parametrize("shape", [(), (3,), (0, 3)])
def test_dtypes_and_shapes(on_gpu: Gpu, dtype: str, shape: tuple[int, ...]) -> None:
    source = np.ones(shape, xp.bfloat16 if dtype == "bfloat16" else dtype)
    tensor = Tensor(aligned(source))
    x = xp.from_dlpack(tensor)
    assert (x.shape, x.dtype, x.device) == (shape, source.dtype, on_gpu.device)
    assert np.asarray(x).tobytes() == source.tobytes()
    assert tensor.held == (1 if source.size else 0)
    back = dlpack.read(x.__dlpack__(stream=77))
    assert (back.shape, back.dtype) == (shape, source.dtype)


def test_another_device_by_its_hardware_id(on_gpu: Gpu) -> None:
    second = on_gpu.client.devices()[1]
    tensor = Tensor(aligned(), (2, FIRST_ID + 1))
    assert xp.from_dlpack(tensor).devices() == {second}
    moved = xp.from_dlpack(tensor, device=on_gpu.device)
    assert moved.devices() == {on_gpu.device}
    np.testing.assert_array_equal(np.asarray(moved), ONE)
    with pytest.raises(ArgumentError, match="copy=False"):
        xp.from_dlpack(tensor, device=on_gpu.device, copy=False)
    shared = xp.from_dlpack(tensor, device=second, copy=False)
    assert shared.unsafe_buffer_pointer() == tensor.array.ctypes.data
    copied = xp.from_dlpack(tensor, copy=True)
    assert copied.unsafe_buffer_pointer() != tensor.array.ctypes.data
    np.testing.assert_array_equal(np.asarray(copied), ONE)
    with pytest.raises(InvalidArgument, match=r"device \(2, 0\).* hardware ids \[5, 6\]"):
        xp.from_dlpack(Tensor(aligned(), (2, 0)))


def test_the_backend_is_found_by_its_platform(gpu: Gpu) -> None:
    cpu = plugrt.get_backend("cpu")
    with (
        as_own(registry(StartedPlugin("cuda", gpu.client), StartedPlugin("cpu", cpu))),
        plugrt.default_device(plugrt.devices("cpu")[0]),
    ):
        assert xp.from_dlpack(Tensor(aligned())).devices() == {gpu.device}
        with pytest.raises(InvalidArgument, match=r"\(10, 5\).*rocm.*to the host first"):
            xp.from_dlpack(Tensor(aligned(), (10, FIRST_ID)))
        with pytest.raises(InvalidArgument, match=r"\(8, 0\); plugrt takes memory of the types"):
            xp.from_dlpack(Tensor(aligned(), (8, 0)))


def test_refused_tensors_are_released(on_gpu: Gpu) -> None:
    order = Tensor(aligned(), strides=(1, 2, 6))
    unaligned = Tensor(aligned(offset=4))
    for tensor, why in ((order, "C order"), (unaligned, "multiple of 16 bytes")):
        with pytest.raises(InvalidArgument, match=why):
            xp.from_dlpack(tensor)
        assert tensor.held == 0
    assert on_gpu.library.seen() == []


def test_memory_of_another_place_is_not_viewed(gpu: Gpu, make: Any) -> None:
    device = gpu.device
    for place in ((2, FIRST_ID + 1), (10, FIRST_ID), (7, FIRST_ID)):
        capsule = Tensor(aligned(), place).__dlpack__(stream=None)
        with pytest.raises(InvalidArgument, match=r"is not that of cuda:0 .* hardware id 5"):
            gpu.client.buffer_from_dlpack(capsule, device)
    tpu = make("tpu")
    capsule = Tensor(aligned()).__dlpack__(stream=None)
    with pytest.raises(InvalidArgument, match="is not that of tpu:0"):
        tpu.client.buffer_from_dlpack(capsule, tpu.device)
    assert not [line for line in gpu.library.seen() + tpu.library.seen() if "view" in line]


@pytest.mark.parametrize("kind", [dlpack_types.CPU, dlpack_types.CUDA_HOST])
def test_host_memory_is_copied_to_the_device(gpu: Gpu, kind: int) -> None:
    tensor = Tensor(aligned(), (kind, 0))
    x = gpu.client.buffer_from_dlpack(tensor.__dlpack__(stream=None), gpu.device)
    tensor.array[...] = 0
    assert not [line for line in gpu.library.seen() if "view" in line]
    assert tensor.held == 0
    np.testing.assert_array_equal(x.to_host(), ONE)


@pytest.mark.parametrize("kind", [dlpack_types.CPU, dlpack_types.CUDA_HOST])
def test_arrays_of_host_memory(on_gpu: Gpu, kind: int) -> None:
    class Pinned(Tensor):
        def __dlpack__(self, **options: Any) -> Any:
            assert options.get("stream") is None
            return super().__dlpack__(stream=None)

    tensor = Pinned(aligned(), (kind, 0))
    x = xp.from_dlpack(tensor)
    assert x.devices() == {on_gpu.device}
    np.testing.assert_array_equal(np.asarray(x), ONE)
    with pytest.raises(ArgumentError, match="copy=False"):
        xp.from_dlpack(tensor, copy=False)


@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("kind", [dlpack_types.CPU, dlpack_types.CUDA_HOST])
def test_host_memory_of_what_numpy_refuses(on_gpu: Gpu, kind: int, copy: bool | None) -> None:
    class Theirs(Tensor):
        def __dlpack__(self, **options: Any) -> Any:
            return super().__dlpack__(stream=options.get("stream"))

    tensor = Theirs(aligned(ONE.astype(xp.bfloat16)), (kind, 0), strides=(1, 2, 6))
    x = xp.from_dlpack(tensor, copy=copy)
    assert (x.dtype, x.devices()) == (xp.bfloat16, {on_gpu.device})
    expected = np.arange(24).reshape(4, 3, 2).T
    np.testing.assert_array_equal(np.asarray(x).astype(int), expected)
    del x
    assert tensor.held == 0
    with pytest.raises(ArgumentError, match="copy=False"):
        xp.from_dlpack(tensor, copy=False)


def test_the_host_is_given_a_copy_of_what_numpy_refuses(on_gpu: Gpu) -> None:
    x = plugrt.device_put(ONE.astype(xp.bfloat16))
    given = dlpack.read(x.__dlpack__(dl_device=(1, 0)))
    assert (given.device_type, given.dtype, given.shape) == (1, xp.bfloat16, ONE.shape)


def test_without_streams_nothing_is_read_too_early(make: Any) -> None:
    gpu = make(streams=False)
    tensor = Tensor(aligned())
    refused = pytest.raises(InvalidArgument, match=r"cannot order work on cuda:0 after .*Tensor")
    with plugrt.default_device(gpu.device), refused:
        xp.from_dlpack(tensor)
    assert tensor.streams == []


def test_an_exported_array_is_imported_again(on_gpu: Gpu) -> None:
    x = plugrt.device_put(ONE)

    class Theirs:
        def __dlpack__(self, stream: Any = None) -> Any:
            return x.__dlpack__(stream=stream)

        def __dlpack_device__(self) -> Any:
            return x.__dlpack_device__()

    on_gpu.library.seen()
    y = xp.from_dlpack(Theirs())
    assert on_gpu.library.seen() == [f"wait {STREAM}", "refer 1", f"view {STREAM}"]
    assert y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(np.asarray(plugrt.jit(lambda a: a + 1)(y)), ONE + 1)
