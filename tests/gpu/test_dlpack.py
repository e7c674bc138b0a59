"""DLPack on a GPU: arrays shared with PyTorch, JAX and CuPy, in both directions, without a copy."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.errors import ArgumentError, InvalidArgument, PlugrtError
from plugrt.interface import Device
from plugrt.sharding import SingleDeviceSharding

DTYPES = ["float32", "bfloat16", "int32", "bool", "complex64"]
MB64 = 1 << 26
A_WHILE = 500_000_000
"""The argument of `torch.cuda._sleep`, in clock cycles: about a third of a second."""


@pytest.fixture
def torch() -> Any:
    found = pytest.importorskip("torch")
    if not found.cuda.is_available():
        pytest.skip("this PyTorch is built without CUDA")
    return found


def in_use(gpu: Device) -> int:
    gc.collect()
    return gpu.memory_stats()["bytes_in_use"]


def sample(dtype: str, shape: tuple[int, ...] = (3, 4)) -> np.ndarray[Any, Any]:
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    return values.astype(xp.bfloat16 if dtype == "bfloat16" else dtype)


@plugrt.jit
def long(x: Any) -> Any:
    """Multiplies for tens of milliseconds on one H100; results stay between -1 and 1."""
    for _ in range(60):
        x = xp.tanh(x @ x)
    return x


def test_dlpack_states_the_device(on_gpu: Device) -> None:
    x = xp.ones(3)
    assert x.__dlpack_device__() == (2, on_gpu.local_hardware_id)
    assert on_gpu.client.capabilities.dlpack
    assert on_gpu.stream_for_external_ready_events() > 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 4), (), (0, 3)])
def test_to_torch(on_gpu: Device, torch: Any, dtype: str, shape: tuple[int, ...]) -> None:
    source = sample(dtype, shape)
    x = plugrt.device_put(source)
    t = torch.from_dlpack(x)
    assert (t.device.type, t.device.index) == ("cuda", on_gpu.local_hardware_id)
    assert t.dtype == getattr(torch, dtype)
    assert tuple(t.shape) == shape
    if source.size:
        assert t.data_ptr() == x.unsafe_buffer_pointer()
    wide = "complex64" if dtype == "complex64" else "float32"
    np.testing.assert_array_equal(t.to(getattr(torch, wide)).cpu().numpy(), source.astype(wide))


@pytest.mark.parametrize("own_stream", [False, True])
def test_results_on_their_way_to_torch(on_gpu: Device, torch: Any, own_stream: bool) -> None:
    rng = np.random.default_rng(0)
    a = plugrt.device_put(rng.standard_normal((4096, 4096), np.float32) / 40)
    expected = np.asarray(long(a))  # compiles the program
    side = torch.cuda.Stream()
    for _ in range(3):
        x = long(a)
        with torch.cuda.stream(side if own_stream else torch.cuda.default_stream()):
            found = torch.from_dlpack(x).clone()
            copied = found.cpu()
        np.testing.assert_array_equal(copied.numpy(), expected)


def test_a_handle_of_a_stream_does_not_block(on_gpu: Device, torch: Any) -> None:
    rng = np.random.default_rng(0)
    a = plugrt.device_put(rng.standard_normal((4096, 4096), np.float32) / 40)
    np.asarray(long(a))
    torch.from_dlpack(a)  # starts PyTorch and the stream extension
    side = torch.cuda.Stream()
    x = long(a)
    with torch.cuda.stream(side):
        t = torch.from_dlpack(x)
    assert not x.is_ready(), "the host has waited, where only the stream had to"
    del t
    x.block_until_ready()


def test_arrays_that_torch_holds_are_not_overwritten(on_gpu: Device, torch: Any) -> None:
    x = plugrt.device_put(sample("float32"))
    t = torch.from_dlpack(x)
    try:
        y = plugrt.jit(lambda a: a + 1, donate_argnums=0)(x)
    except PlugrtError:  # XLA's clients differ: one refuses the donation, another copies
        y = None
    if y is not None:
        np.testing.assert_array_equal(np.asarray(y), sample("float32") + 1)
    np.testing.assert_array_equal(t.cpu().numpy(), sample("float32"))


def test_memory_is_freed_when_both_are_gone(on_gpu: Device, torch: Any) -> None:
    before = in_use(on_gpu)
    x = xp.zeros(MB64 // 4, dtype=xp.float32)
    x.block_until_ready()
    t = torch.from_dlpack(x)
    del x
    assert in_use(on_gpu) >= before + MB64
    assert float(t.sum()) == 0
    del t
    assert in_use(on_gpu) < before + MB64
    x = xp.zeros(MB64 // 4, dtype=xp.float32)
    unused = x.__dlpack__(stream=1)
    del x, unused
    assert in_use(on_gpu) < before + MB64


def test_deleted_while_torch_holds_it(on_gpu: Device, torch: Any) -> None:
    x = plugrt.device_put(sample("float32"))
    t = torch.from_dlpack(x)
    x.delete()
    others = [xp.full((3, 4), 9.0, dtype=xp.float32) for _ in range(20)]
    np.testing.assert_array_equal(t.cpu().numpy(), sample("float32"))
    del others


def test_copies_and_other_devices(on_gpu: Device) -> None:
    x = plugrt.device_put(sample("float32"))
    here = x.__dlpack_device__()
    for stream in (None, 1, 2, -1):
        x.__dlpack__(stream=stream, dl_device=here, copy=False)
    x.__dlpack__(copy=True)
    with pytest.raises(ArgumentError, match="stream=0"):
        x.__dlpack__(stream=0)
    with pytest.raises(BufferError, match="needs a copy"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises((BufferError, RuntimeError), match="Unsupported device"):
        np.from_dlpack(x)
    np.testing.assert_array_equal(np.asarray(x), sample("float32"))
    np.testing.assert_array_equal(np.from_dlpack(x, device="cpu"), sample("float32"))


def test_pinned_memory(on_gpu: Device) -> None:
    x = plugrt.device_put(
        sample("float32"), SingleDeviceSharding(on_gpu, memory_kind="pinned_host")
    )
    assert x.__dlpack_device__() == (3, on_gpu.local_hardware_id)
    np.testing.assert_array_equal(np.from_dlpack(x), sample("float32"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 4), (), (0, 3)])
def test_from_torch(on_gpu: Device, torch: Any, dtype: str, shape: tuple[int, ...]) -> None:
    t = torch.ones(shape, dtype=getattr(torch, dtype), device="cuda")
    x = xp.from_dlpack(t)
    assert (x.shape, x.dtype.name, x.device) == (shape, dtype, on_gpu)
    if t.numel():
        assert x.unsafe_buffer_pointer() == t.data_ptr()
    assert np.asarray(x).tobytes() == np.ones(shape, x.dtype).tobytes()
    if dtype not in ("bool", "bfloat16"):
        doubled = np.asarray(plugrt.jit(lambda a: a + a)(x))
        np.testing.assert_array_equal(doubled, np.full(shape, 2, x.dtype))


@pytest.mark.parametrize("own_stream", [False, True])
def test_tensors_on_their_way_from_torch(on_gpu: Device, torch: Any, own_stream: bool) -> None:
    stream = torch.cuda.Stream() if own_stream else torch.cuda.default_stream()
    add = plugrt.jit(lambda a: a + 1)
    np.asarray(add(xp.zeros(1 << 20, dtype=xp.float32)))
    with torch.cuda.stream(stream):
        for number in range(3):
            t = torch.zeros(1 << 20, device="cuda")
            torch.cuda._sleep(A_WHILE)
            t.fill_(number + 1)
            x = xp.from_dlpack(t)
            assert not stream.query(), "the host has waited, where only the device had to"
            y = add(x)
            assert float(xp.min(y)) == number + 2
            assert float(xp.max(x)) == number + 1


def test_torchs_memory_is_released(on_gpu: Device, torch: Any) -> None:
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    t = torch.zeros(MB64 // 4, device="cuda")
    x = xp.from_dlpack(t)
    del t
    assert torch.cuda.memory_allocated() >= before + MB64
    assert float(xp.sum(x)) == 0
    del x
    gc.collect()
    plugrt.effects_barrier()
    assert torch.cuda.memory_allocated() == before


def test_torch_tensors_that_need_a_copy_are_refused(on_gpu: Device, torch: Any) -> None:
    t = torch.arange(12.0, device="cuda").reshape(3, 4)
    with pytest.raises(InvalidArgument, match="C order"):
        xp.from_dlpack(t.T)
    with pytest.raises(InvalidArgument, match="C order"):
        xp.from_dlpack(t[:, ::2])
    with pytest.raises(InvalidArgument, match="multiple of 16 bytes"):
        xp.from_dlpack(t.reshape(12)[1:])
    x = xp.from_dlpack(t.T.contiguous())
    np.testing.assert_array_equal(np.asarray(x), t.T.cpu().numpy())


def test_copies_and_devices(on_gpu: Device, torch: Any) -> None:
    t = torch.arange(4.0, device="cuda")
    assert xp.from_dlpack(t, copy=False).unsafe_buffer_pointer() == t.data_ptr()
    assert xp.asarray(t).unsafe_buffer_pointer() == t.data_ptr()
    copied = xp.from_dlpack(t, copy=True)
    assert copied.unsafe_buffer_pointer() != t.data_ptr()
    np.testing.assert_array_equal(np.asarray(copied), np.arange(4.0, dtype=np.float32))
    cpu = plugrt.devices("cpu")[0]
    with pytest.raises(ArgumentError, match="copy=False"):
        xp.from_dlpack(t, device=cpu, copy=False)
    moved = xp.from_dlpack(t, device=cpu)
    assert moved.devices() == {cpu}
    np.testing.assert_array_equal(np.asarray(moved), np.arange(4.0, dtype=np.float32))


def test_the_gpu_need_not_be_the_default(gpu: Device, torch: Any) -> None:
    t = torch.arange(4.0, device="cuda")
    with plugrt.default_device(plugrt.devices("cpu")[0]):
        assert xp.from_dlpack(t).devices() == {gpu}


def test_a_round_trip_through_torch_shares_memory(on_gpu: Device, torch: Any) -> None:
    x = plugrt.device_put(sample("float32"))
    y = xp.from_dlpack(torch.from_dlpack(x))
    assert y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    del x
    gc.collect()
    np.testing.assert_array_equal(np.asarray(y), sample("float32"))


def test_host_tensors_go_to_the_gpu(on_gpu: Device, torch: Any) -> None:
    for t in (torch.arange(4.0), torch.arange(4.0).pin_memory()):
        x = xp.from_dlpack(t)
        assert x.devices() == {on_gpu}
        np.testing.assert_array_equal(np.asarray(x), np.arange(4.0, dtype=np.float32))


def test_cupy(on_gpu: Device) -> None:
    cupy = pytest.importorskip("cupy")
    x = plugrt.device_put(sample("float32"))
    c = cupy.from_dlpack(x)
    assert c.data.ptr == x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(cupy.asnumpy(c), sample("float32"))
    made = cupy.arange(12, dtype=cupy.float32)
    y = xp.from_dlpack(made)
    assert y.unsafe_buffer_pointer() == made.data.ptr
    np.testing.assert_array_equal(np.asarray(y), np.arange(12, dtype=np.float32))


def test_jax(on_gpu: Device) -> None:
    jax = pytest.importorskip("jax")
    try:
        theirs = jax.devices("cuda")[0]
    except RuntimeError as error:
        pytest.skip(f"this JAX has no CUDA: {error}")
    x = plugrt.device_put(sample("float32"))
    j = jax.dlpack.from_dlpack(x)
    assert j.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(np.asarray(j), sample("float32"))
    made = jax.device_put(np.arange(12, dtype=np.float32), theirs) * 2
    y = xp.from_dlpack(made)
    assert y.unsafe_buffer_pointer() == made.unsafe_buffer_pointer()
    np.testing.assert_array_equal(np.asarray(y), np.arange(12, dtype=np.float32) * 2)
