"""Backends with several memories, and backends in host memory."""

from __future__ import annotations

import gc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt.capi.buffers import dlpack
from plugrt.errors import Internal, InvalidArgument, Unimplemented
from plugrt.interface import Client, CompileOptions, HostBufferSemantics, Program
from plugrt.plugins import LibraryPlugin
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import Backend, BackendClient
from plugrt_sdk.export import export_capsule

ADD = b"""func.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %a, %b : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""
ONE = np.float32([1, 2, 3])
ZERO_COPY = HostBufferSemantics.IMMUTABLE_ZERO_COPY


class Two(Backend):
    """Devices with a second memory; a handle is (array, device, kind)."""

    platform = "two"

    def devices(self) -> Any:
        return ["chip"] * 2

    def memories(self, device: int) -> Any:
        return ["device", "pinned_host"]

    def put(self, array: Any, device: int) -> Any:
        return self.put_in_memory(array, device, "device")

    def put_in_memory(self, array: Any, device: int, kind: str) -> Any:
        return array.copy(), device, kind

    def get(self, handle: Any) -> Any:
        return handle[0]

    def compile(self, program: Program, options: CompileOptions) -> Any:
        return lambda arguments: [[(arguments[0][0][0] + arguments[1][0][0], 0, "device")]]


class Copying(Two):
    """A backend with a `copy` method of its own."""

    def copy_to_memory(self, handle: Any, device: int, kind: str) -> Any:
        return handle[0].copy(), device, f"copied to {kind}"


class Hosted(Backend):
    """A backend in host memory; counts deletions."""

    platform = "hosted"
    aliases = True

    def __init__(self) -> None:
        self.deleted = 0
        self.consumed: list[Any] = []

    def devices(self) -> Any:
        return ["host"]

    def put(self, array: Any, device: int) -> Any:
        return array.copy()

    def get(self, handle: Any) -> Any:
        raise AssertionError("view is there")

    def view(self, handle: Any) -> Any:
        return handle

    def alias(self, array: Any, device: int) -> Any:
        return array if self.aliases else None

    def delete(self, handle: Any) -> None:
        self.deleted += 1

    def donated(self, program: Program, options: CompileOptions) -> Any:
        return [0]

    def compile(self, program: Program, options: CompileOptions) -> Any:
        def launch(arguments: Any, consumed: Any) -> Any:
            self.consumed.append(set(consumed))
            return [[arguments[0][0] + arguments[1][0]]]

        return launch


@pytest.fixture(params=[Two, Copying])
def backend(request: pytest.FixtureRequest) -> Backend:
    made: Backend = request.param()
    return made


@pytest.fixture(params=["directly", "exported"])
def two(request: pytest.FixtureRequest, backend: Backend) -> Client:
    client: Client = BackendClient(backend)
    if request.param == "directly":
        return client
    return LibraryPlugin("two", c_api=export_capsule(lambda: client)).create_client({})


@pytest.fixture
def hosted() -> Any:
    return BackendClient(Hosted())


def _put(client: Any, array: Any = ONE, **more: Any) -> Any:
    return client.buffer_from_host(array, client.devices()[0], **more)


def test_memories_have_kinds_and_numbers_of_their_own(two: Client) -> None:
    assert two.capabilities.memory_kinds
    found = [memory for device in two.devices() for memory in device.memories()]
    assert [m.kind for m in found] == ["device", "pinned_host"] * 2
    assert len({m.id for m in found}) == 4
    assert [d.default_memory().kind for d in two.devices()] == ["device"] * 2


def test_arrays_are_put_and_copied_into_a_memory(two: Client) -> None:
    near, far = two.devices()
    x = two.buffer_from_host(ONE, near, near.memory("pinned_host"))
    assert x.memory is near.memory("pinned_host")
    for memory in (*near.memories(), *far.memories()):
        y = x.copy_to_memory(memory)
        assert (y.memory, y.device) == (memory, memory.addressable_by_devices()[0])
        np.testing.assert_array_equal(y.to_host(), ONE)


def test_the_backends_own_copies_are_used() -> None:
    client = BackendClient(Copying())
    x = client.buffer_from_host(ONE, client.devices()[0])
    y = x.copy_to_memory(client.devices()[1].memory("pinned_host"))
    assert y.handle[1:] == (1, "copied to pinned_host")


def test_a_memory_of_another_device_is_refused(two: Client) -> None:
    near, far = two.devices()
    with pytest.raises(InvalidArgument):
        two.buffer_from_host(ONE, near, far.memory("pinned_host"))


@pytest.mark.parametrize("kind", ["device", "pinned_host", "unpinned_host"])
def test_results_are_in_the_memory_that_the_program_states(two: Client, kind: str) -> None:
    stated = f'-> (tensor<3xf32> {{mhlo.memory_kind = "{kind}"}})'.encode()
    program = Program(ADD.replace(b"-> tensor<3xf32>", stated))
    if kind == "unpinned_host":
        with pytest.raises(Unimplemented, match="in the memory 'unpinned_host'; 'two' has"):
            two.compile(program, CompileOptions())
        return
    loaded = two.compile(program, CompileOptions())
    assert loaded.executable.output_memory_kinds == [kind] or (
        tuple(loaded.executable.output_memory_kinds) == (kind,)
    )
    x = two.buffer_from_host(ONE, two.devices()[0])
    [[result]] = loaded.execute([(x,), (x,)])
    assert result.memory.kind == kind
    np.testing.assert_array_equal(result.to_host(), 2 * ONE)


@pytest.mark.parametrize("wrong", [None, [], "device", [1], ["device", "device"]])
def test_wrong_memories_are_the_backends_fault(wrong: Any) -> None:
    backend: Any = Two()
    backend.memories = lambda device: wrong
    with pytest.raises(Internal, match=r"Two.memories .* different kinds of memory"):
        BackendClient(backend)


def test_memories_need_a_put() -> None:
    class Half(Hosted):
        def memories(self, device: int) -> Any:
            return ["device", "pinned_host"]

    with pytest.raises(InvalidArgument, match="Half names memories; it needs put_in_memory"):
        BackendClient(Half())


def test_the_capabilities_of_a_host_backend(hosted: Any) -> None:
    can = hosted.capabilities
    assert can.zero_copy_get
    assert can.zero_copy_put
    assert can.dlpack
    assert can.unsafe_pointer


@pytest.mark.parametrize(
    "dtype", ["float32", "bool", "complex128", "bfloat16", "int4", "float8_e5m2"]
)
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)])
def test_reading_is_no_copy_and_keeps_the_memory(hosted: Any, dtype: str, shape: Any) -> None:
    source = np.ones(shape).astype(getattr(ml_dtypes, dtype, dtype))
    x = _put(hosted, source)
    host = x.to_host()
    assert (host.dtype, host.shape, host.flags.writeable) == (source.dtype, shape, False)
    np.testing.assert_array_equal(host, source)
    if source.size:
        assert host.ctypes.data == x.unsafe_pointer()
    part = host.reshape(-1)[:1]
    x.delete()
    del host
    gc.collect()
    assert hosted.backend.deleted == 0, "an array looks at the memory"
    del part
    gc.collect()
    assert hosted.backend.deleted == 1


def test_an_array_with_a_view_is_not_consumed(hosted: Any) -> None:
    program = hosted.compile(Program(ADD), CompileOptions())
    for looked_at in (False, True):
        x, y = _put(hosted), _put(hosted)
        host = x.to_host() if looked_at else None
        program.execute([(x,), (y,)])
        assert x.is_deleted()
        assert hosted.backend.consumed[-1] == (set() if looked_at else {0})
        del host


def test_host_memory_is_aliased_where_the_host_promises_enough(hosted: Any) -> None:
    source = ONE.copy()
    for semantics in HostBufferSemantics:
        x = _put(hosted, source, semantics=semantics)
        shared = semantics >= ZERO_COPY
        assert (x.unsafe_pointer() == source.ctypes.data) == shared
        assert x.handle.flags.writeable == (semantics != ZERO_COPY)
    assert source.flags.writeable
    hosted.backend.aliases = False
    assert _put(hosted, source, semantics=ZERO_COPY).unsafe_pointer() != source.ctypes.data


def test_dlpack_shares_the_memory_both_ways(hosted: Any) -> None:
    x = _put(hosted)
    assert x.dlpack_device() == (1, 0)
    capsule = x.to_dlpack()
    x.delete()
    y = hosted.buffer_from_dlpack(capsule, hosted.devices()[0])
    del x, capsule
    gc.collect()
    assert hosted.backend.deleted == 0, "the second buffer looks at the memory of the first"
    np.testing.assert_array_equal(y.to_host(), ONE)
    y.delete()
    gc.collect()
    assert hosted.backend.deleted == 2


def test_arrays_of_the_other_byte_order_have_dlpacks_dtypes(hosted: Any) -> None:
    x = _put(hosted, ONE.astype(">f4"))
    assert x.to_dlpack() is not None
    np.testing.assert_array_equal(x.to_host(), ONE)


def test_an_unused_capsule_gives_the_memory_back(hosted: Any) -> None:
    x = _put(hosted)
    capsule = x.to_dlpack()
    x.delete()
    del capsule
    gc.collect()
    assert hosted.backend.deleted == 1


def test_capsules_are_read_in_their_own_order_and_dtype(hosted: Any) -> None:
    host = np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3))
    y = hosted.buffer_from_dlpack(host.__dlpack__(), hosted.devices()[0])
    np.testing.assert_array_equal(y.to_host(), host)
    with pytest.raises(InvalidArgument, match="not an unused dltensor capsule"):
        hosted.buffer_from_dlpack("capsule", hosted.devices()[0])
    far = dlpack.export(64, (1,), np.dtype(np.float32), (2, 0), None)
    with pytest.raises(InvalidArgument, match="device type 2"):
        hosted.buffer_from_dlpack(far, hosted.devices()[0])


def test_an_array_that_is_not_row_major_has_no_address(hosted: Any) -> None:
    hosted.backend.put = lambda array, device: np.asfortranarray(array)
    x = _put(hosted, np.ones((2, 3)))
    for ask in (x.unsafe_pointer, x.to_dlpack):
        with pytest.raises(Unimplemented, match="not row-major"):
            ask()


def test_a_pointer_of_the_backends_own(two: Client) -> None:
    backend: Any = Two()
    backend.pointer = lambda handle: 4096
    client: Any = BackendClient(backend)
    x = _put(client)
    assert client.capabilities.unsafe_pointer
    assert not client.capabilities.dlpack
    assert x.unsafe_pointer() == 4096
    for ask in (x.to_dlpack, x.dlpack_device, lambda: client.buffer_from_dlpack(0, x.device)):
        with pytest.raises(Unimplemented, match="'two'"):
            ask()
    backend.pointer = lambda handle: "here"
    with pytest.raises(Internal, match="an address was expected"):
        x.unsafe_pointer()


IDENTITY = b"func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> { return %a : tensor<3xf32> }"
VIEW = b"""func.func @main(%a: tensor<3xf32>) -> tensor<1x3xf32> {
  %0 = stablehlo.reshape %a : (tensor<3xf32>) -> tensor<1x3xf32>
  return %0 : tensor<1x3xf32> }"""


@pytest.mark.parametrize("code", [IDENTITY, VIEW])
def test_numpys_results_and_copies_share_no_memory_of_the_host(code: bytes) -> None:
    """The host may change its array after the deletion of a buffer that aliases it."""
    client = BackendClient(NumpyBackend(2))
    source = ONE.copy()
    x = _put(client, source, semantics=ZERO_COPY)
    assert x.unsafe_pointer() == source.ctypes.data
    [[result]] = client.compile(Program(code), CompileOptions()).execute([(x,)])
    copies = [x.copy_to_device(device) for device in client.devices()]
    x.delete()
    source[:] = 0
    for kept in (result, *copies):
        np.testing.assert_array_equal(kept.to_host().reshape(3), ONE)
