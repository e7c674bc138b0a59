"""Extensions that the CPU library lacks, tested on a tiny library with these extensions."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from plugrt.capi import Library, create_client
from plugrt.capi.buffers.raw_buffer import RawBuffer
from plugrt.capi.client import callback, cross_host
from plugrt.capi.client.phase_compile import PhaseCompiler
from plugrt.capi.extensions import abi_version, shardings, stream
from plugrt.capi.extensions.profiler import Profiler, encode_options
from plugrt.capi.loading.handle_ledger import Ledger
from plugrt.errors import (
    FailedPrecondition,
    Internal,
    InvalidArgument,
    OutOfRange,
    PjrtError,
    Unimplemented,
)
from plugrt.interface import Client, CompileOptions, Program, TensorType
from plugrt.wire.protobuf import fields, messages
from support.changed_headers import rewrite_header
from support.clib import needs_cc, tiny_library
from support.watched_calls import at_calls

pytestmark = needs_cc

FUNCTIONS = r"""
struct buffer { char* data; size_t size; };
static int ready, live_raw = 0, live_abi = 0, live_phases = 0, live_profilers = 0, keeps_trace = 0;
int open_things(void) { return live_raw + live_abi + live_phases + live_profilers; }
static PJRT_Event* new_event(void) { return (PJRT_Event*)&ready; }
static PJRT_Error* event_destroy(struct PJRT_Event_Destroy_Args* a) { return 0; }
static PJRT_Error* event_ready(struct PJRT_Event_IsReady_Args* a) { a->is_ready = 1; return 0; }
static PJRT_Error* event_await(struct PJRT_Event_Await_Args* a) { return 0; }
static PJRT_Error* put(struct PJRT_Client_BufferFromHostBuffer_Args* a) {
  struct buffer* b = malloc(sizeof *b);
  b->size = 4; for (size_t i = 0; i < a->num_dims; i++) b->size *= a->dims[i];
  b->data = malloc(b->size); memcpy(b->data, a->data, b->size);
  a->buffer = (PJRT_Buffer*)b; a->done_with_host_buffer = new_event();
  return 0;
}
static PJRT_Error* buffer_destroy(struct PJRT_Buffer_Destroy_Args* a) {
  free(((struct buffer*)a->buffer)->data); free(a->buffer); return 0;
}
static PJRT_Error* to_host(struct PJRT_Buffer_ToHostBuffer_Args* a) {
  memcpy(a->dst, ((struct buffer*)a->src)->data, a->dst_size); a->event = new_event(); return 0;
}
static PJRT_Error* ready_event(struct PJRT_Buffer_ReadyEvent_Args* a) {
  a->event = new_event(); return 0;
}
static PJRT_Error* compile(struct PJRT_Client_Compile_Args* a) {
  a->executable = (PJRT_LoadedExecutable*)&client; return 0;
}
static PJRT_Error* loaded_destroy(struct PJRT_LoadedExecutable_Destroy_Args* a) { return 0; }
static PJRT_Error* executable_destroy(struct PJRT_Executable_Destroy_Args* a) { return 0; }
static PJRT_Error* get_executable(struct PJRT_LoadedExecutable_GetExecutable_Args* a) {
  a->executable = (PJRT_Executable*)&client; return 0;
}
static PJRT_Error* executable_devices(struct PJRT_LoadedExecutable_AddressableDevices_Args* a) {
  a->addressable_devices = pointers; a->num_addressable_devices = 1; return 0;
}
static PJRT_Error* types(struct PJRT_Executable_OutputElementTypes_Args* a) { return 0; }
static PJRT_Error* dims(struct PJRT_Executable_OutputDimensions_Args* a) { return 0; }
static PJRT_Error* serialize(struct PJRT_Executable_Serialize_Args* a) {
  a->serialized_bytes = "code"; a->serialized_bytes_size = 4; return 0;
}
static PJRT_Error* deserialize(struct PJRT_Executable_DeserializeAndLoad_Args* a) {
  a->loaded_executable = (PJRT_LoadedExecutable*)&client;
  return a->serialized_executable_size == 4 ? 0 : fail(15, "what is this?");
}

static PJRT_Error* parameter_shardings(
    struct PJRT_Shardings_Executable_ParameterShardings_Args* a) {
  static const char* s[2] = {"a\0b", ""}; static size_t n[2] = {3, 0};
  a->num_parameters = 2; a->shardings = s; a->sharding_sizes = n; return 0;
}
static PJRT_Error* output_shardings(struct PJRT_Shardings_Executable_OutputShardings_Args* a) {
  a->num_outputs = 3; return 0;
}
static PJRT_Error* get_stream(struct PJRT_Get_Stream_For_External_Ready_Events_Args* a) {
  a->stream = 0x5000 + *(int*)a->device; return 0;
}
static intptr_t waited_on = 0;
static PJRT_Error* wait_stream(struct PJRT_Wait_Until_Buffer_Ready_On_Stream_Args* a) {
  if (a->stream != 0x5000) return fail(3, "no such stream");
  waited_on = a->stream; return 0;
}
static PJRT_Error* raw_create(struct PJRT_RawBuffer_CreateRawAliasOfBuffer_Args* a) {
  live_raw++; a->raw_buffer = (PJRT_RawBuffer*)a->buffer; return 0;
}
static PJRT_Error* raw_destroy(struct PJRT_RawBuffer_Destroy_Args* a) { live_raw--; return 0; }
static PJRT_Error* raw_size(struct PJRT_RawBuffer_GetOnDeviceSizeInBytes_Args* a) {
  a->on_device_size_in_bytes = ((struct buffer*)a->buffer)->size; return 0;
}
static PJRT_Error* raw_read(struct PJRT_RawBuffer_CopyRawDeviceToHost_Args* a) {
  memcpy(a->dst, ((struct buffer*)a->buffer)->data + a->offset, a->transfer_size);
  a->event = new_event(); return 0;
}
static PJRT_Error* raw_write(struct PJRT_RawBuffer_CopyRawHostToDevice_Args* a) {
  memcpy(((struct buffer*)a->buffer)->data + a->offset, a->src, a->transfer_size);
  a->event = new_event(); return 0;
}
static PJRT_Error* raw_host(struct PJRT_RawBuffer_GetHostPointer_Args* a) {
  a->host_pointer = ((struct buffer*)a->buffer)->data; return 0;
}
static void (*told)(void*, void*); static void* told_arg;
static PJRT_Error* register_callback(struct PJRT_Callback_RegisterCallback_Args* a) {
  told = a->callback; told_arg = a->user_arg; return a->type == 2 ? 0 : fail(12, "not here");
}
static PJRT_Error* invoke_callback(struct PJRT_Callback_InvokeCallback_Args* a) {
  told(a->args, told_arg); return 0;
}
static PJRT_Error* runtime_abi(struct PJRT_Client_RuntimeAbiVersion_Args* a) {
  live_abi++; a->abi_version = (PJRT_RuntimeAbiVersion*)&client; return 0;
}
static PJRT_Error* executable_abi(struct PJRT_Executable_GetAbiVersion_Args* a) {
  live_abi++; a->abi_version = (PJRT_ExecutableAbiVersion*)"7"; return 0;
}
static PJRT_Error* runtime_abi_destroy(struct PJRT_RuntimeAbiVersion_Destroy_Args* a) {
  live_abi--; return 0;
}
static PJRT_Error* executable_abi_destroy(struct PJRT_ExecutableAbiVersion_Destroy_Args* a) {
  live_abi--; return 0;
}
static PJRT_Error* fits(struct PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args* a) {
  return *(char*)a->executable_abi_version == '7' ? 0 : fail(9, "made for driver 8");
}
static PJRT_Error* abi_to_proto(struct PJRT_ExecutableAbiVersion_ToProto_Args* a) {
  a->serialized_proto = (char*)a->abi_version; a->serialized_proto_size = 1; return 0;
}
static PJRT_Error* abi_from_proto(struct PJRT_ExecutableAbiVersion_FromProto_Args* a) {
  live_abi++; a->abi_version = (PJRT_ExecutableAbiVersion*)a->serialized_proto; return 0;
}
static PJRT_Error* phase_compiler(struct PJRT_PhaseCompile_Get_Compiler_Args* a) {
  live_phases++; a->phase_compiler = (PJRT_PhaseCompiler*)&client; return 0;
}
static void phase_destroy(struct PJRT_PhaseCompile_Destroy_Compiler_Args* a) { live_phases--; }
static PJRT_Error* phase_names(struct PJRT_PhaseCompile_Get_PhaseNames_Args* a) {
  const char** names = malloc(2 * sizeof *names); size_t* sizes = malloc(2 * sizeof *sizes);
  names[0] = "one"; names[1] = "two"; sizes[0] = sizes[1] = 3; live_phases++;
  a->phase_names = names; a->phase_names_sizes = sizes; a->num_phase_names = 2; return 0;
}
static void phase_free(struct PJRT_PhaseCompile_C_Buffers_Destroy_Args* a) {
  free(a->char_buffers); free((void*)a->char_buffer_sizes); live_phases--;
}
struct perror { int code; };
static PLUGIN_Profiler_Error* profiler_fail(int code) {
  struct perror* e = malloc(sizeof *e); e->code = code; live_profilers++;
  return (PLUGIN_Profiler_Error*)e;
}
static void profiler_error_destroy(struct PLUGIN_Profiler_Error_Destroy_Args* a) {
  free(a->error); live_profilers--;
}
static void profiler_error_message(struct PLUGIN_Profiler_Error_Message_Args* a) {
  a->message = "already"; a->message_size = 7;
}
static PLUGIN_Profiler_Error* profiler_error_code(struct PLUGIN_Profiler_Error_GetCode_Args* a) {
  a->code = ((struct perror*)a->error)->code; return 0;
}
static int running = 0;
static PLUGIN_Profiler_Error* profiler_create(struct PLUGIN_Profiler_Create_Args* a) {
  keeps_trace = a->options_size > 0; live_profilers++;
  a->profiler = (PLUGIN_Profiler_Profiler*)&client; return 0;
}
static PLUGIN_Profiler_Error* profiler_destroy(struct PLUGIN_Profiler_Destroy_Args* a) {
  live_profilers--; return 0;
}
static PLUGIN_Profiler_Error* profiler_start(struct PLUGIN_Profiler_Start_Args* a) {
  if (running) return profiler_fail(9);
  running = 1; return 0;
}
static PLUGIN_Profiler_Error* profiler_stop(struct PLUGIN_Profiler_Stop_Args* a) {
  running = 0; return 0;
}
static PLUGIN_Profiler_Error* profiler_collect(struct PLUGIN_Profiler_CollectData_Args* a) {
  /* With the NUL, as XLA counts. */
  if (keeps_trace) { /* as XLA's profiler does, whatever its header says; it has it once */
    if (!a->buffer) {
      a->buffer = (uint8_t*)"\x0a\x02xs"; a->buffer_size_in_bytes = keeps_trace == 1 ? 5 : 0;
    }
    keeps_trace = 2;
    return 0;
  }
  if (a->buffer) memcpy(a->buffer, "\x0a\x02xs", 5); else a->buffer_size_in_bytes = 5;
  return 0;
}
static struct buffer* in_flight[10];
static PJRT_Error* cross_send(struct PJRT_Transfers_Client_CrossHostSendBuffers_Args* a) {
  for (size_t i = 0; i < a->num_buffers; i++) {
    if (a->dst_global_device_ids[i] != 0) return fail(5, "no such device");
    in_flight[a->transfer_keys[i]] = (struct buffer*)a->buffers[i];
    a->send_events[i] = new_event();
  }
  return 0;
}
static PJRT_Error* cross_receive(struct PJRT_Transfers_Client_CrossHostReceiveBuffers_Args* a) {
  for (size_t i = 0; i < a->num_shapes; i++) {
    struct buffer *b = malloc(sizeof *b), *from = in_flight[a->transfer_keys[i]];
    b->size = 4; for (size_t j = 0; j < a->shape_num_dims[i]; j++) b->size *= a->num_dims[i][j];
    b->data = malloc(b->size); memcpy(b->data, from->data, b->size);
    a->buffers[i] = (PJRT_Buffer*)b;
  }
  return 0;
}
"""

CUSTOMIZE = r"""
api.pjrt_api_version.minor_version = 114;
api.Event_Destroy = event_destroy; api.Event_IsReady = event_ready; api.Event_Await = event_await;
api.Client_BufferFromHostBuffer = put; api.Buffer_Destroy = buffer_destroy;
api.Buffer_ToHostBuffer = to_host; api.Buffer_ReadyEvent = ready_event;
api.Client_Compile = compile; api.LoadedExecutable_Destroy = loaded_destroy;
api.Executable_Destroy = executable_destroy; api.LoadedExecutable_GetExecutable = get_executable;
api.LoadedExecutable_AddressableDevices = executable_devices;
api.Executable_OutputElementTypes = types; api.Executable_OutputDimensions = dims;
api.Executable_Serialize = serialize; api.Executable_DeserializeAndLoad = deserialize;
static PJRT_Extension_Base* last;
#define ADD(name, number, ...) \
  static PJRT_##name##_Extension name = { \
    {sizeof(PJRT_##name##_Extension), number, 0}, __VA_ARGS__}; \
  name.base.next = last; last = &name.base;
ADD(Shardings, 19, parameter_shardings, output_shardings)
ADD(Stream, 3, get_stream, wait_stream)
ADD(RawBuffer, 8, raw_create, raw_destroy, raw_size, 0, raw_write, raw_read, raw_host)
ADD(Callback, 14, register_callback, invoke_callback)
ADD(AbiVersion, 20, runtime_abi, executable_abi, runtime_abi_destroy, 0, fits, 0, 0,
    executable_abi_destroy, abi_to_proto, 0, 0, abi_from_proto)
ADD(PhaseCompile, 9, phase_compiler, phase_destroy, 0, phase_names, phase_free)
ADD(CrossHostTransfers, 12, 0, 0, cross_receive, cross_send)
static PLUGIN_Profiler_Api profiler = {sizeof profiler, 0, profiler_error_destroy,
  profiler_error_message, profiler_error_code, profiler_create, profiler_destroy, profiler_start,
  profiler_stop, profiler_collect};
ADD(Profiler, 1, &profiler, 0)
api.extension_start = last;
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_library(tmp_path_factory.mktemp("extended"), CUSTOMIZE, FUNCTIONS)


@pytest.fixture
def client(path: Path) -> Iterator[Client]:
    import ctypes
    import gc

    made = create_client(path, {}, name="tiny")
    yield made
    made.close()
    del made
    gc.collect()
    assert ctypes.CDLL(str(path)).open_things() == 0


def put(client: Client, *numbers: float) -> Any:
    return client.buffer_from_host(np.array(numbers, np.float32), client.devices()[0])


def compiled(client: Client) -> Any:
    return client.compile(Program(b"module"), CompileOptions())


def test_shardings(client: Client) -> None:
    executable = compiled(client).executable
    assert executable.parameter_shardings() == [b"a\0b", b""]
    # A NULL array states that the program is not partitioned.
    assert shardings.output_shardings(executable.library, executable.pointer) is None


def test_stream(client: Client) -> None:
    library, buffer = client.library, put(client, 1)
    assert client.devices()[0].stream_for_external_ready_events() == 0x5000
    stream.wait_until_ready_on_stream(library, buffer._live(), 0x5000)
    with pytest.raises(InvalidArgument, match="no such stream"):
        stream.wait_until_ready_on_stream(library, buffer._live(), 1)


def test_raw_buffer(client: Client) -> None:
    buffer = put(client, 1, 2)
    raw = RawBuffer(buffer)
    assert len(raw) == 8
    assert raw.read(4, 4) == np.float32(2).tobytes()
    raw.write(0, np.float32(9).tobytes())
    assert buffer.to_host().tolist() == [9, 2]
    assert raw.host_pointer != 0
    assert raw.read(8, 0) == b""
    for offset, size in [(-1, 2), (0, 9), (8, 1)]:
        with pytest.raises(OutOfRange):
            raw.read(offset, size)
    with pytest.raises(Unimplemented, match="RawBuffer_GetMemorySpace"):
        _ = raw.memory


def test_prefatal_callback(client: Client) -> None:
    told: list[PjrtError] = []
    callback.on_prefatal(client, told.append)
    callback.invoke_prefatal(client, Internal("the chip melts"))
    assert [(type(e), e.message) for e in told] == [(Internal, "the chip melts")]
    with pytest.raises(Unimplemented, match="not here"):
        callback.on_slice_failure(client, lambda kind: None)


def test_abi_version_is_stored_and_asked(client: Client) -> None:
    executable = compiled(client).executable
    assert abi_version.executable_abi(client.library, executable.pointer) == b"7"
    stored = executable.serialize()
    client.deserialize_executable(stored)
    # The platform's version differs, but the library reports that it fits.
    client.deserialize_executable(rewrite_header(stored, b'"1.0"', b'"0.9"'))
    other = rewrite_header(stored, b'"Nw=="', b'"OA=="')
    with pytest.raises(FailedPrecondition, match=r"another version .*made for driver 8"):
        client.deserialize_executable(rewrite_header(other, b'"1.0"', b'"0.9"'))


LOAD = "Executable_DeserializeAndLoad"


def test_the_abi_version_of_what_the_library_made_is_asked_when_it_does_not_load(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = compiled(client).executable.serialize()
    other = rewrite_header(stored, b'"Nw=="', b'"OA=="')
    client.deserialize_executable(other)  # version and platform agree

    def fail(inputs: Mapping[str, Any], _: object) -> None:
        if inputs["name"] == LOAD:
            raise Internal("no kernel image")

    def load_and_fail(code: bytes, words: str) -> None:
        with pytest.raises(Internal, match=words), at_calls([Library.call], fail):
            client.deserialize_executable(code)

    load_and_fail(stored, "no kernel image")
    load_and_fail(other, "no kernel image .*library says: made for driver 8")
    cannot_tell = Mock(side_effect=Internal("no answer"))
    monkeypatch.setattr("plugrt.capi.extensions.abi_version.why_incompatible", cannot_tell)
    load_and_fail(other, "no kernel image$")


def test_phases(client: Client) -> None:
    assert PhaseCompiler(client.library).phases == ["one", "two"]


def test_profiler(client: Client, tmp_path: Path) -> None:
    profiler = Profiler(client.library)
    profiler.start()
    with pytest.raises(FailedPrecondition, match="already"):
        profiler.start()
    with pytest.raises(FailedPrecondition, match="still runs"):
        profiler.collect()
    profiler.stop()
    assert profiler.collect() == b"\x0a\x02xs"
    saved = profiler.save(tmp_path)
    assert saved.read_bytes() == b"\x0a\x02xs"
    assert saved.relative_to(tmp_path).parts[:2] == ("plugins", "profile")
    assert saved.name.endswith(".xplane.pb")


def test_a_profiler_that_keeps_its_trace(client: Client) -> None:
    profiler = Profiler(client.library, b"keeps it")
    profiler.start()
    profiler.stop()
    assert profiler.collect() == profiler.collect() == b"\x0a\x02xs"


def test_options_of_a_profiler_are_xlas_proto() -> None:
    content = encode_options(
        {"host_tracer_level": 1, "python_tracer_level": 0, "enable_hlo_proto": True,
         "advanced_configuration": {"a": "b", "c": True, "d": -1}}
    )  # fmt: skip
    numbers = {n: v for n, v in fields(content) if isinstance(v, int)}
    # The version, the device's level, the given options, and XLA's defaults.
    assert numbers == {5: 1, 3: 1, 2: 1, 4: 0, 7: 1, 1: 1}
    entries = [[bytes(v) for _, v in fields(e)] for e in messages(content, 12)]  # type: ignore[arg-type]
    values = {name: [*fields(value)] for name, value in entries}
    assert values == {b"a": [(1, b"b")], b"c": [(2, 1)], b"d": [(3, 2**64 - 1)]}


def test_options_of_a_profiler_are_xlas_defaults_where_none_are_named() -> None:
    """An empty proto means level 0, and XLA's profiler then records nothing of a GPU."""
    assert dict(fields(encode_options({}))) == {5: 1, 3: 1, 2: 2, 7: 1, 1: 1}


def test_a_recording_without_options_asks_for_them(client: Client) -> None:
    asked: list[bytes] = []
    with at_calls([Profiler.__init__], lambda inputs, _: asked.append(inputs["options"])):
        assert client.begin_profile({})() == b"\x0a\x02xs"
    assert asked == [encode_options({})]


def test_cross_host(client: Client) -> None:
    sent = [put(client, 1, 2), put(client, 3)]
    events = cross_host.send(client, sent, [0, 0], [4, 5])
    for event in events:
        event.wait()
    types = [TensorType((1,), np.dtype(np.float32)), TensorType((2,), np.dtype(np.float32))]
    one, two = cross_host.receive(client, client.devices()[0], types, [0, 0], [5, 4])
    assert one.to_host().tolist() == [3]
    assert two.to_host().tolist() == [1, 2]
    with pytest.raises(InvalidArgument, match="have one length; got"):
        cross_host.send(client, [put(client, 1)], [0, 0], [4])
    with pytest.raises(PjrtError, match="no such device"):
        cross_host.send(client, [put(client, 1)], [3], [4])


def test_ledger_finds_a_leak(path: Path, tmp_path: Path) -> None:
    library = create_client(tiny_library(tmp_path, CUSTOMIZE, FUNCTIONS), {}, name="x").library
    # the client and its devices refer to each other, and must live while references are counted
    gc.collect()
    ledger = Ledger(library)
    client = create_client(library, {}, name="y")
    buffer = put(client, 1)
    assert ledger.open_handles() == {"Buffer": 1, "Client": 1}
    library.call("Buffer_ReadyEvent", buffer=buffer._pointer)
    del buffer
    assert ledger.open_handles() == {"Client": 1, "Event": 1}
