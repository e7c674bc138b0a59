"""Rarely called functions: host buffer semantics, transfers in pieces, topologies, layouts."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt.capi import create_client, create_topology, library_in
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.abi.element_types import dtype_to_element_type
from plugrt.capi.buffers.buffer import Buffer
from plugrt.capi.client.async_transfers import (
    AsyncTransfer,
    create_error_buffer,
    create_uninitialized,
)
from plugrt.capi.client.create import topology_from_bytes
from plugrt.errors import (
    Cancelled,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    PjrtError,
    ResourceExhausted,
    Unimplemented,
)
from plugrt.interface import Client, CompileOptions, Program, TensorType
from plugrt.wire.hlo_proto import shape_proto
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient
from plugrt_sdk.export import _core, export_capsule
from plugrt_sdk.loaded_executable import BackendLoadedExecutable
from support.exported import (
    ADD,
    ONE,
    Exported,
    change,
    compile_add,
    find_api,
    find_handles_left,
    put,
    shape_fields,
)
from support.fake_topology import FarPlugin
from support.late_client import Adder, LateAdder

FLOATS = TensorType((3,), np.dtype(np.float32))
F32 = 11


class Telling(BackendClient):
    """A backend whose executables have the methods that a test sets."""

    def __init__(self) -> None:
        super().__init__(LateAdder(2))
        self.of_executables: dict[str, Any] = {}
        self.of_loaded: dict[str, Any] = {}

    def compile(self, program: Program, options: CompileOptions) -> Any:
        loaded = super().compile(program, options)
        change(loaded.executable, **self.of_executables)
        change(loaded, **self.of_loaded)
        return loaded


@pytest.fixture(scope="module")
def late() -> Exported:
    return Exported(Telling, topology_factory=FarPlugin().create_topology)


@pytest.fixture
def client(late: Exported) -> Iterator[Any]:
    """Returns a client; afterwards the host holds no additional handle."""
    gc.collect()
    before = _core.count_handles()
    made = late.client()
    yield made
    late.backend.failures = {}
    made.close()
    del made
    assert find_handles_left(before) == {}


def _call(client: Any, function: str, /, **inputs: Any) -> Any:
    return client.library.call(function, **inputs)


def _adopt(client: Any, pointer: Any) -> Buffer:
    """Returns the host's buffer for a handle of three floats."""
    return Buffer(pointer, put(client)._spec)


def test_functions_refuse_argument_structs_that_are_too_short(late: Exported) -> None:
    """Each function of the table refuses structs that are too short, and writes nothing."""
    api = find_api(late.capsule)
    tried = 0
    for name, field in ffi.typeof("PJRT_Api").fields:
        if name in ("struct_size", "extension_start", "pjrt_api_version", "Plugin_Initialize"):
            continue
        if name in ("Error_Destroy", "Error_Message", "Error_GetCode", "Error_ForEachPayload"):
            continue
        struct = ffi.new(field.type.args[0])
        struct.struct_size = 16
        error = getattr(api, name)(struct)
        message = ffi.new("struct PJRT_Error_Message_Args*", {"error": error})
        message.struct_size = ffi.sizeof(message[0])
        api.Error_Message(message)
        said = ffi.unpack(message.message, message.message_size).decode()
        assert f"PJRT_{name}_Args of the host has 16 bytes; plugins that plugrt_sdk ex" in said
        assert bytes(ffi.buffer(struct))[8:] == bytes(ffi.sizeof(struct[0]) - 8)
        api.Error_Destroy(ffi.new("struct PJRT_Error_Destroy_Args*", {"error": error}))
        tried += 1
    assert tried == 133


def test_arguments_of_a_newer_host_may_be_longer(client: Any) -> None:
    block = ffi.new("char[]", 4096)
    args = ffi.cast("struct PJRT_Client_PlatformName_Args*", block)
    args.struct_size, args.client = 4096, client.handle().pointer
    assert client.library.api.Client_PlatformName(args) == ffi.NULL
    assert ffi.unpack(args.platform_name, args.platform_name_size) == b"adder"


def test_figures_are_written_where_the_host_has_room(late: Exported, client: Any) -> None:
    """An older host's struct of statistics is shorter; a newer one's has further fields."""
    figures = {"bytes_in_use": 5, "peak_bytes_in_use": 7, "num_allocs": "many"}
    change(late.made[-1].devices()[0], memory_stats=lambda _: figures)
    assert client.devices()[0].memory_stats() == {"bytes_in_use": 5, "peak_bytes_in_use": 7}
    struct = ffi.new("struct PJRT_Device_MemoryStats_Args*")
    struct.struct_size = ffi.offsetof("struct PJRT_Device_MemoryStats_Args", "num_allocs")
    struct.device, struct.num_allocs, struct.bytes_limit_is_set = (
        client.devices()[0].pointer,
        99,
        99,
    )
    assert client.library.api.Device_MemoryStats(struct) == ffi.NULL
    assert (struct.peak_bytes_in_use, struct.peak_bytes_in_use_is_set) == (7, 1)
    assert (struct.num_allocs, struct.bytes_limit_is_set) == (99, 99)


def test_an_error_buffer_fails_wherever_it_is_used(client: Any) -> None:
    memory = client.devices()[0].default_memory()
    broken = create_error_buffer(client, FLOATS, memory, DataLoss("the host lost it"))
    assert (broken.shape, broken.dtype) == ((3,), np.float32)
    program = compile_add(client)
    for use in (
        broken.block_until_ready,
        broken.to_host,
        lambda: program.execute([(broken,), (put(client),)]),
        lambda: broken.copy_to_device(client.devices()[1]),
    ):
        with pytest.raises(DataLoss, match="the host lost it"):
            use()
    broken.delete()
    assert broken.is_deleted()


def test_an_event_that_fails_with_unimplemented_is_not_a_missing_function(client: Any) -> None:
    memory = client.devices()[0].default_memory()
    broken = create_error_buffer(client, FLOATS, memory, Unimplemented("no such operation"))
    for wait in (broken.block_until_ready, lambda: broken.ready_event().wait()):
        with pytest.raises(Unimplemented, match="no such operation"):
            wait()
        assert client.library.has("Event_Await")


def test_an_uninitialized_buffer_shows_nothing_of_the_process(client: Any) -> None:
    memory = client.devices()[1].default_memory()
    made = create_uninitialized(client, FLOATS, memory)
    assert made.device is client.devices()[1]
    np.testing.assert_array_equal(made.to_host(), [0, 0, 0])


def _alias(client: Any) -> tuple[Buffer, Any]:
    memory = client.devices()[0].default_memory()
    args = _call(
        client, "Client_CreateAliasBuffer", client=client.handle().pointer, memory=memory.pointer,
        **shape_fields((3,), F32),
    )  # fmt: skip
    return _adopt(client, args.alias_buffer), args.fulfill_alias_buffer_cb


def _fulfil(client: Any, callback: Any, buffer: Any, error: PjrtError | None = None) -> None:
    message = ffi.new("char[]", (error.message if error else "").encode())
    _call(
        client, "Client_FulfillAliasBuffer", client=client.handle().pointer,
        buffer=buffer._live() if buffer else ffi.NULL, status_code=error.code if error else 0,
        error_message=message, error_message_size=len(message) - 1,
        fulfill_alias_buffer_cb=callback,
    )  # fmt: skip


def test_an_alias_gets_the_contents_of_another_buffer(client: Any) -> None:
    alias, callback = _alias(client)
    assert not alias.ready_event().is_ready()
    with pytest.raises(Unimplemented, match="have not come yet; await its ready event"):
        compile_add(client).execute([(alias,), (alias,)])
    told = threading.Event()
    alias.ready_event().on_ready(lambda error: told.set())
    source = put(client)
    _fulfil(client, callback, source)
    assert told.wait(60)
    source.delete()  # the alias keeps the contents
    np.testing.assert_array_equal(alias.to_host(), ONE)
    [[double]] = compile_add(client).execute([(alias,), (alias,)])
    np.testing.assert_array_equal(double.to_host(), 2 * ONE)


def test_a_read_that_began_before_the_contents_came(client: Any) -> None:
    alias, callback = _alias(client)
    found: list[Any] = []
    reader = threading.Thread(target=lambda: found.append(alias.to_host().tolist()))
    reader.start()
    _fulfil(client, callback, put(client))
    reader.join()
    assert found == [[1, 2, 3]]


def test_an_alias_gets_an_error_or_is_deleted_before(client: Any) -> None:
    alias, callback = _alias(client)
    _fulfil(client, callback, None, ResourceExhausted("no producer"))
    with pytest.raises(ResourceExhausted, match="no producer"):
        alias.to_host()
    deleted, callback = _alias(client)
    deleted.delete()
    _fulfil(client, callback, put(client))
    freed, callback = _alias(client)
    del freed
    _fulfil(client, callback, put(client))


def test_an_alias_has_the_kind_of_its_contents(client: Any) -> None:
    alias, callback = _alias(client)
    with pytest.raises(InvalidArgument, match="another client, element type or shape"):
        _fulfil(client, callback, put(client, ONE[:2]))
    _fulfil(client, callback, put(client))
    np.testing.assert_array_equal(alias.to_host(), ONE)


def _donate(client: Any, buffer: Any) -> tuple[Buffer, Any]:
    args = _call(client, "Buffer_DonateWithControlDependency", buffer=buffer._live())

    def end(code: int = 0, text: bytes = b"") -> None:
        message = ffi.new("char[]", text)
        ended = ffi.new("PJRT_Buffer_DonateWithControlDependency_Callback_Args*")
        ended.struct_size, ended.callback_data = ffi.sizeof(ended[0]), args.callback_data
        ended.error_code, ended.error_message, ended.error_message_size = code, message, len(text)
        args.dependency_ready_callback(ended)

    return _adopt(client, args.out_buffer), end


def test_a_donation_waits_for_its_dependency(client: Any) -> None:
    giver = put(client)
    taker, end = _donate(client, giver)
    assert _call(client, "Buffer_IsDeleted", buffer=giver._live()).is_deleted
    assert not taker.ready_event().is_ready()
    end()
    np.testing.assert_array_equal(taker.to_host(), ONE)
    taker, end = _donate(client, taker)
    end(8, b"the dependency failed")
    with pytest.raises(ResourceExhausted, match="the dependency failed"):
        taker.to_host()


def test_an_external_reference_keeps_the_contents_of_a_deleted_buffer(
    late: Exported, client: Any
) -> None:
    buffer = put(client)
    buffer.block_until_ready()
    pointer = buffer._live()
    _call(client, "Buffer_IncreaseExternalReferenceCount", buffer=pointer)
    calls: list[object] = []
    inner_delete = late.backend.delete
    late.backend.delete = calls.append
    _call(client, "Buffer_Delete", buffer=pointer)
    assert _call(client, "Buffer_IsDeleted", buffer=pointer).is_deleted
    assert not calls
    _call(client, "Buffer_DecreaseExternalReferenceCount", buffer=pointer)
    assert len(calls) == 1
    late.backend.delete = inner_delete
    with pytest.raises(InvalidArgument, match="was deleted"):
        _call(client, "Buffer_IncreaseExternalReferenceCount", buffer=pointer)
    with pytest.raises(InvalidArgument, match="no external reference to take back"):
        _call(client, "Buffer_DecreaseExternalReferenceCount", buffer=pointer)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"data": ffi.NULL}, "12 bytes at NULL"),
     ({"dims": ffi.new("int64_t[]", [-1])}, "no array has -1 as its dimension 0"),
     ({"dims": ffi.new("int64_t[]", [2**62])}, "no array has 4611686018427387904 as its"),
     ({"type": 63}, "element type 63"),
     ({"byte_strides": ffi.new("int64_t[]", [2**62]), "num_byte_strides": 1}, "beyond all memory"),
     ({"num_byte_strides": 2}, "2 strides for 1 dimensions"),
     ({"host_buffer_semantics": 9}, "no host_buffer_semantics is 9"),
     ({"device": ffi.NULL}, "names neither a device nor a memory")],
)  # fmt: skip
def test_arrays_that_there_are_not(client: Any, change: dict[str, Any], message: str) -> None:
    data, dims = ffi.from_buffer(ONE), ffi.new("int64_t[]", [3])
    inputs = {
        "client": client.handle().pointer, "data": data, "type": F32, "dims": dims, "num_dims": 1,
        "device": client.devices()[0].pointer,
    }  # fmt: skip
    with pytest.raises(PjrtError, match=message):
        _call(client, "Client_BufferFromHostBuffer", **{**inputs, **change})


def test_a_tiled_layout_is_refused(client: Any) -> None:
    order = ffi.new("int64_t[]", [0, 1])
    layout = ffi.new("PJRT_Buffer_MemoryLayout*")
    layout.tiled.minor_to_major, layout.tiled.minor_to_major_size = order, 2
    with pytest.raises(Unimplemented, match="arrays on the device are row-major"):
        _call(
            client, "Client_BufferFromHostBuffer", client=client.handle().pointer,
            data=ffi.from_buffer(np.zeros(6, np.float32)), type=F32, num_dims=2,
            dims=ffi.new("int64_t[]", [2, 3]), device=client.devices()[0].pointer,
            device_layout=layout,
        )  # fmt: skip


def test_bytes_of_an_array(client: Any) -> None:
    x = put(client)
    assert x.copy_raw_to_host(4, 8) == ONE[1:].tobytes()
    for offset, size in ((-1, 4), (8, 5), (13, 0), (2**62, 2**62)):
        with pytest.raises(PjrtError):
            x.copy_raw_to_host(offset, size)


def test_bytes_whose_destination_is_known_later(client: Any) -> None:
    for code in (0, 13):
        x = put(client)
        args = _call(
            client, "Buffer_CopyRawToHostFuture", buffer=x._live(), offset=4, transfer_size=8
        )
        x.delete()  # the read in flight keeps the contents
        target = np.zeros(2, np.float32)
        message = ffi.new("char[]", b"no room")
        known = ffi.new("PJRT_Buffer_CopyRawToHostFuture_Callback_Args*")
        known.struct_size, known.callback_data = ffi.sizeof(known[0]), args.callback_data
        known.error_code, known.error_message, known.error_message_size = code, message, 7
        known.dst = ffi.from_buffer(target)
        args.future_ready_callback(known)
        if code:
            with pytest.raises(PjrtError, match="no room"):
                _call(client, "Event_Await", event=args.event)
        else:
            _call(client, "Event_Await", event=args.event)
            assert target.tolist() == [2, 3]
        _call(client, "Event_Destroy", event=args.event)


def _bitcast(client: Any, buffer: Any, dtype: Any, shape: tuple[int, ...]) -> Buffer:
    dims = ffi.new("int64_t[]", list(shape))
    args = _call(
        client, "Buffer_Bitcast", buffer=buffer._live(), dims=dims, num_dims=len(shape),
        element_type=dtype_to_element_type(np.dtype(dtype), API_MINOR),
    )  # fmt: skip
    return Buffer(args.out_buffer, put(client, np.zeros(shape, dtype), buffer.device.id)._spec)


@pytest.mark.parametrize(
    ("before", "after", "shape"),
    [
        (np.float32, np.int32, (3, 2)),
        (np.float64, np.uint8, (2, 3, 8)),
        (np.int16, np.complex64, (1,)),
        (np.uint8, np.bool_, (6,)),
        (ml_dtypes.bfloat16, np.float16, (6,)),
        (ml_dtypes.int4, ml_dtypes.int4, (3, 2)),
    ],
)
def test_a_bitcast_keeps_the_bytes(
    client: Any, before: Any, after: Any, shape: tuple[int, ...]
) -> None:
    size = {np.int16: 4}.get(before, 6)
    bits = np.random.default_rng(0).integers(0, 2, (size, np.dtype(before).itemsize), np.uint8)
    host = bits.reshape(-1).view(before)
    buffer = put(client, host, 1)
    made = _bitcast(client, buffer, after, shape)
    buffer.delete()  # the contents are in another array
    assert made.to_host().tobytes() == host.tobytes()
    assert _call(client, "Buffer_Device", buffer=made._live()).device == client.devices()[1].pointer


@pytest.mark.parametrize(
    ("dtype", "shape", "error", "said"),
    [
        (np.float32, (4,), InvalidArgument, "has 12 bytes, and is to be one of 16"),
        (np.int64, (), InvalidArgument, "has 12 bytes, and is to be one of 8"),
        (np.float32, (-3, -1), InvalidArgument, "no array has -3 as its dimension 0"),
        (ml_dtypes.int4, (12,), Unimplemented, "elements of less than a byte"),
    ],
)
def test_impossible_bitcasts_are_refused(
    client: Any, dtype: Any, shape: tuple[int, ...], error: Any, said: str
) -> None:
    with pytest.raises(error, match=said):
        _bitcast(client, put(client), dtype, shape)


def test_memory_is_mapped_where_devices_share_it(client: Any) -> None:
    shared = Exported(lambda: BackendClient(NumpyBackend())).client()
    with shared.dma_mapped(ONE):
        np.testing.assert_array_equal(put(shared).to_host(), ONE)
    with pytest.raises(InvalidArgument, match="12 bytes at NULL"):
        _call(shared, "Client_DmaMap", client=shared.handle().pointer, data=ffi.NULL, size=12)
    shared.close()
    said = "does not declare that its devices share the host's memory"
    with pytest.raises(Unimplemented, match=said), client.dma_mapped(ONE):
        pass


def test_a_launch_that_was_accepted_is_not_poisoned(client: Any) -> None:
    args = _call(
        client, "Device_PoisonExecution", device=client.devices()[0].pointer, launch_id=0,
        error_code=13, error_message=ffi.NULL, error_message_size=0, poisoned=1,
    )  # fmt: skip
    assert args.poisoned == 0


def test_a_host_marks_its_work(client: Any) -> None:
    before = _core.count_handles()["tracking_events"]
    text = ffi.new("char[]", b"waits for the network")
    event = _call(
        client, "Device_CreateAsyncTrackingEvent", device=client.devices()[0].pointer,
        description=text, description_size=21,
    ).event  # fmt: skip
    assert event != ffi.NULL
    assert _core.count_handles()["tracking_events"] == before + 1
    _call(client, "AsyncTrackingEvent_Destroy", event=event)
    _call(client, "AsyncTrackingEvent_Destroy", event=ffi.NULL)


@pytest.mark.parametrize(
    ("dtype", "shape"), [(np.float32, (2, 3)), (np.bool_, ()), (ml_dtypes.bfloat16, (0, 7))]
)
def test_the_canonical_shape_is_row_major(client: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    args = _call(
        client, "TopologyDescription_MakeCanonicalShapeForMemorySpace",
        topology=_call(
            client, "Client_TopologyDescription", client=client.handle().pointer
        ).topology,
        dims=ffi.new("int64_t[]", list(shape)), num_dims=len(shape),
        element_type=dtype_to_element_type(np.dtype(dtype), API_MINOR),
    )  # fmt: skip
    content = bytes(ffi.buffer(args.serialized_shape, args.serialized_shape_size))
    args.serialized_shape_deleter(args.serialized_shape)
    assert content == shape_proto(TensorType(shape, np.dtype(dtype)))


def test_a_buffer_is_filled_in_pieces(late: Exported, client: Any) -> None:
    memory = client.devices()[1].default_memory()
    transfer = AsyncTransfer(client, [FLOATS, FLOATS, FLOATS], memory)
    assert (len(transfer), transfer.buffer_size(0)) == (3, 12)
    assert transfer.device is client.devices()[1]
    pieces, literal, failed = (transfer.retrieve(i) for i in range(3))
    transfer.add_metadata({"tool": "none"})
    transfer.send(0, ONE[1:], 4, last=False)
    assert not pieces.ready_event().is_ready()
    transfer.send(0, ONE[:1], 0)
    transfer.send_literal(1, 10 * ONE)
    transfer.fail(2, DeadlineExceeded("the host is late"))
    np.testing.assert_array_equal(pieces.to_host(), ONE)
    np.testing.assert_array_equal(literal.to_host(), 10 * ONE)
    with pytest.raises(DeadlineExceeded, match="the host is late"):
        failed.to_host()
    with pytest.raises(FailedPrecondition, match="buffer 0 has all its data"):
        transfer.send(0, ONE)
    with pytest.raises(FailedPrecondition, match="was retrieved before"):
        transfer.retrieve(0)


def test_a_transfer_whose_put_fails(late: Exported, client: Any) -> None:
    transfer = AsyncTransfer(client, [FLOATS], client.devices()[0].default_memory())
    buffer = transfer.retrieve(0)
    late.backend.failures = {"put": ResourceExhausted("no room in put")}
    transfer.send(0, ONE)
    with pytest.raises(ResourceExhausted, match="no room in put"):
        buffer.to_host()


def test_a_transfer_that_is_given_up(client: Any) -> None:
    transfer = AsyncTransfer(client, [FLOATS, FLOATS], client.devices()[0].default_memory())
    buffer = transfer.retrieve(0)
    del transfer
    gc.collect()
    with pytest.raises(Cancelled, match="destroyed before all data had come"):
        buffer.to_host()


def test_a_topology_is_made_written_and_read(late: Exported) -> None:
    library = library_in(late.capsule, "exported")
    before = _core.count_handles()
    made = create_topology(library, "3", {"kind": "far"})
    assert (made.platform, made.platform_version) == ("far", "far 1")
    assert [(d.id, d.kind) for d in made.devices] == [(i, "Far 9000") for i in range(3)]
    again = topology_from_bytes(library, made.serialize())
    assert [d.id for d in again.devices] == [0, 1, 2]
    program = again.compile(Program(ADD), CompileOptions())
    assert program.serialize_bare() == b"artifact of main"
    assert [str(t) for t in program.output_types] == ["float32[2]"]
    assert program.cost_analysis()["flops"] == 12
    with pytest.raises(Unimplemented, match="OutputMemoryKinds is not implemented"):
        _ = program.output_memory_kinds
    with pytest.raises(InvalidArgument, match="'many' is no number of devices"):
        create_topology(library, "many", {})
    with pytest.raises(InvalidArgument, match="is not a topology that a plugin exported"):
        topology_from_bytes(library, b"something")
    with pytest.raises(Unimplemented, match="fingerprint is not implemented by the backend"):
        made.fingerprint()
    del made, again, program
    gc.collect()
    assert _core.count_handles() == before


def test_a_plugin_without_topologies_says_so() -> None:
    library = library_in(Exported(lambda: BackendClient(Adder())).capsule, "exported")
    with pytest.raises(Unimplemented, match="cannot compile for absent devices"):
        create_topology(library, "1", {})


def test_programs_are_compiled_for_the_devices_of_a_client(client: Any) -> None:
    program = client.topology().compile(Program(ADD), CompileOptions())
    assert [str(t) for t in program.output_types] == ["float32[3]"]
    with pytest.raises(Unimplemented, match="serialize is not implemented"):
        client.load(program, CompileOptions())


def test_layouts_and_memory_kinds_of_a_program(client: Any) -> None:
    executable = compile_add(client).executable
    assert [x.text for x in executable.output_layouts()] == ["{0}"]
    assert [x.text for x in executable.parameter_layouts()] == ["{0}", "{0}"]
    assert executable.output_memory_kinds == ["device"]
    with pytest.raises(Unimplemented, match="ParameterMemoryKinds is not implemented"):
        _ = executable.parameter_memory_kinds


def test_a_backend_that_states_too_few_shardings_is_told(late: Exported, client: Any) -> None:
    inner: Any = late.made[-1]
    inner.of_executables = {"parameter_shardings": lambda _: [b"", b""],
                            "output_shardings": lambda _: []}  # fmt: skip
    with pytest.raises(PjrtError, match="states 0 shardings of a program with 1 results"):
        compile_add(client)


def test_a_backend_that_returns_too_few_buffers_is_told(late: Exported, client: Any) -> None:
    program, x = compile_add(client), put(client)
    inner: Any = late.made[-1]
    for results, message in (([()], "returned 0 buffers of result 0 for 1 devices"),
                             ([], "returned 0 results of a program with 1")):  # fmt: skip
        inner.of_loaded = {"execute": lambda *_, r=results: r}
        with pytest.raises(PjrtError, match=message):
            compile_add(client).execute([(x,), (x,)])
    del program


def test_results_that_fail_halfway_are_freed(late: Exported, client: Any) -> None:
    class Halfway(list[Any]):
        def __getitem__(self, index: Any) -> Any:
            if index == 1:
                raise ResourceExhausted("no second buffer")
            return super().__getitem__(index)

    execute = BackendLoadedExecutable.execute
    inner: Any = late.made[-1]
    inner.of_loaded = {"execute": lambda *a: [Halfway(s) for s in execute(*a)]}
    program = client.compile(Program(ADD), CompileOptions(num_replicas=2))
    x = (put(client), put(client, ONE, 1))
    with pytest.raises(ResourceExhausted, match="no second buffer"):
        program.execute([x, x])


def test_a_method_that_must_not_fail_leaves_an_exit_to_the_caller(
    late: Exported, client: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """PJRT_Buffer_Delete returns no error. Earlier, SystemExit was printed and lost."""
    x = put(client)
    x.block_until_ready()
    late.backend.failures = {"delete": SystemExit(7)}
    with pytest.raises(SystemExit) as caught:
        x.delete()
    assert caught.value.code == 7
    late.backend.failures = {}
    assert x.is_deleted()
    assert not capfd.readouterr().err


class Store:
    """A host's key-value store, in a dictionary."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def get(self, key: str, timeout_ms: int) -> bytes:
        if key not in self.values:
            raise TimeoutError(f"waited {timeout_ms} ms")
        return self.values[key]

    def try_get(self, key: str) -> bytes | None:
        return self.values.get(key)

    def put(self, key: str, value: bytes) -> None:
        if key == "full":
            raise ResourceExhausted("the store is full")
        self.values[key] = value


def _start_with_store(factory: Any, **options: Any) -> Client:
    library = library_in(export_capsule(factory), "exported")
    return create_client(library, options, name="exported", kv_store=Store())


def test_a_factory_gets_the_store_of_a_host_of_several_processes() -> None:
    found: list[object] = []

    def make(node_id: int, num_nodes: int, kv_store: Any = None) -> Client:
        found.extend((node_id, num_nodes))
        kv_store.put("ä", b"va\0lue")
        found.extend((kv_store.get("ä", 5), kv_store.try_get("ä"), kv_store.try_get("absent")))
        for ask in (lambda: kv_store.get("absent", 7), lambda: kv_store.put("full", b"")):
            with pytest.raises(PjrtError) as caught:
                ask()
            found.append(type(caught.value))
        return BackendClient(Adder())

    _start_with_store(make, node_id=1, num_nodes=2).close()
    assert found == [1, 2, b"va\0lue", b"va\0lue", None, DeadlineExceeded, ResourceExhausted]


def test_a_factory_for_one_process_refuses_several() -> None:
    def make() -> Client:
        return BackendClient(Adder())

    _start_with_store(make).close()
    _start_with_store(make, node_id=0, num_nodes=1).close()
    with pytest.raises(Unimplemented, match="one of 2 processes, and the exported plugin is made"):
        _start_with_store(make, node_id=0, num_nodes=2)


def test_a_store_without_a_number_of_processes_is_not_handed_on() -> None:
    """In a single process JAX passes invalid callbacks: calling them ends the process."""
    found: list[object] = []

    def make(kv_store: Any) -> Client:
        found.append(kv_store)
        return BackendClient(Adder())

    _start_with_store(make).close()
    assert found == [None]
