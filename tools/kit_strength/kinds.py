# ruff: noqa: E501  a statement in C or StableHLO is one line
"""Defects of functions other than those that change an array's elements.

A `Kind` has the part of a wrapper in C that follows the success of the library's own function
(``after``), or all of the wrapper (``WRAP``); each ``{NAME}`` is drawn from ``pools``. ``{WHERE}`` is a condition
over ``info``, the description of the buffer ``a->buffer``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tools.kit_strength import scripts
from tools.kit_strength.arrays import Where

Script = Callable[[Where], list[str]]


@dataclass(frozen=True)
class Kind:
    """One kind: its function, the words of a check that names the fault, and the code."""

    name: str
    function: str
    words: str
    says: str
    after: str
    script: Script
    pools: dict[str, tuple[str, ...]] = field(default_factory=dict)
    wheres: tuple[str, ...] = ()
    family: str = "answers"


_B = ("dtype", "rank", "device", "any")
_D = {"D": ("1", "2", "3")}
_CLONE = "static __thread int64_t out[16]; memcpy(out, {0}, {1} * sizeof *out); {0} = out;"


def _buffer(name: str, function: str, words: str, says: str, code: str,
            wheres: tuple[str, ...] = _B, **pools: tuple[str, ...]) -> Kind:  # fmt: skip
    return Kind(f"buffer.{name}", function, words, f"{says} for an array {{where}}",
                f"Info i, *info = &i; if (describe(a->buffer, info) && ({{WHERE}})) {{{{ {code} }}}}",
                scripts.show_meta, pools, wheres)  # fmt: skip


def _device(name: str, function: str, words: str, says: str, code: str,
            **pools: tuple[str, ...]) -> Kind:  # fmt: skip
    return Kind(f"device.{name}", function, words, says, code, scripts.show_client, pools)


def _program(name: str, function: str, words: str, says: str, code: str,
             script: Script = scripts.show_program, **pools: tuple[str, ...]) -> Kind:  # fmt: skip
    return Kind(f"program.{name}", function, words, says, code, script, pools)


def _wrap(function: str, code: str) -> str:
    return f"WRAP({function}) {{{{ {code} }}}}"


_BUFFERS = (
    _buffer("dimensions.swapped", "Buffer_Dimensions", "dimension|shape", "the last two dimensions are swapped",
            "if (a->num_dims > 1) {{ " + _CLONE.format("a->dims", "a->num_dims") + " out[a->num_dims-1] = i.dims[i.rank-2]; out[a->num_dims-2] = i.dims[i.rank-1]; }}"),
    _buffer("dimensions.more", "Buffer_Dimensions", "dimension|shape", "dimension {K} is one too large",
            "if (a->num_dims > {K}) {{ " + _CLONE.format("a->dims", "a->num_dims") + " out[{K}]++; }}", K=("0", "1", "2")),
    _buffer("type", "Buffer_ElementType", "element.?type|dtype", "the element type is {T}", "a->type = {T};", ("dtype",),
            T=("PJRT_Buffer_Type_U8", "PJRT_Buffer_Type_F16", "PJRT_Buffer_Type_S32", "PJRT_Buffer_Type_F8E5M2", "PJRT_Buffer_Type_U4")),
    _buffer("size", "Buffer_OnDeviceSizeInBytes", "size", "the size in bytes is {S}", "a->on_device_size_in_bytes = {S};",
            S=("0", "a->on_device_size_in_bytes / 2", "a->on_device_size_in_bytes - 1")),
    _buffer("device", "Buffer_Device", "device", "the device is that of the client's first array", "static PJRT_Device* first; if (!first) first = a->device; a->device = first;", ("dtype", "any")),
    _buffer("memory", "Buffer_Memory", "memory|memories", "the memory is that of the first array that was asked", "static PJRT_Memory* first; if (!first) first = a->memory; a->memory = first;", ("dtype", "any")),
    _buffer("never_deleted", "Buffer_IsDeleted", "delete", "an array is never said to be deleted", "a->is_deleted = 0;"),
    _buffer("deleted", "Buffer_IsDeleted", "delete", "an array that lives is said to be deleted", "a->is_deleted = 1;", ("rank", "dtype", "device", "count")),
    _buffer("unpadded", "Buffer_UnpaddedDimensions", "unpadded|dimension|shape", "the unpadded dimensions differ from the dimensions",
            "if (a->num_dims) {{ " + _CLONE.format("a->unpadded_dims", "a->num_dims") + " out[0] {OP}; }}", OP=("+= 1", "-= 1", "= 0")),
    _buffer("dynamic", "Buffer_DynamicDimensionIndices", "dynamic", "a dimension is said to be dynamic",
            "static size_t zero; if (i.rank) {{ a->dynamic_dim_indices = &zero; a->num_dynamic_dims = 1; }}"),
    _buffer("layout", "Buffer_GetMemoryLayout", "layout", "the layout has the dimensions in reverse",
            "static __thread int64_t out[16]; if (a->layout.type == PJRT_Buffer_MemoryLayout_Type_Tiled) {{ size_t r = a->layout.tiled.minor_to_major_size;"
            " for (size_t j = 0; j < r; j++) out[j] = a->layout.tiled.minor_to_major[r - 1 - j]; a->layout.tiled.minor_to_major = out; }}"),
    _buffer("pointer", "Buffer_UnsafePointer", "pointer", "the pointer is {N} bytes too far", "a->buffer_pointer += {N};", N=("1", "8", "64")),
    _buffer("opaque", "Buffer_OpaqueDeviceMemoryDataPointer", "pointer", "the pointer is {N} bytes from the unsafe pointer",
            "a->device_memory_ptr = (char*)a->device_memory_ptr + {N};", N=("1", "8", "64")),
    Kind("buffer.kept", "Buffer_Delete", "delete", "an array {where} is not deleted, and success is reported",
         _wrap("Buffer_Delete", "Info i, *info = &i; if (describe(a->buffer, info) && ({WHERE})) return NULL; return REAL(Buffer_Delete);"), scripts.show_meta, {}, _B),
    Kind("buffer.copy_to_first", "Buffer_CopyToDevice", "copy|copies|copied|another device", "the copy of an array {where} is made on its own device",
         _wrap("Buffer_CopyToDevice", "Info i, *info = &i; if (describe(a->buffer, info) && ({WHERE})) {{ NEW(Buffer_Device, d); d.buffer = a->buffer; REAL_(Buffer_Device, d); a->dst_device = d.device; }} return REAL(Buffer_CopyToDevice);"),
         scripts.show_copy, {}, ("dtype", "rank", "any")),
    Kind("buffer.copy_moves", "Buffer_{C}", "copy|copies|copied|another", "the source of a copy is deleted, of an array {where}",
         "Info i, *info = &i; if (describe(a->buffer, info) && ({WHERE})) {{ NEW(Buffer_Delete, d); d.buffer = a->buffer; drop_error(real.PJRT_Buffer_Delete(&d)); }}",
         scripts.show_memories, {"C": ("CopyToDevice", "CopyToMemory")}, ("dtype", "rank", "any")),
)  # fmt: skip

_PUT = "Client_BufferFromHostBuffer"
_PUT_INFO = (
    "Info i = {{0}}, *info = &i; i.type = a->type; i.rank = (int)a->num_dims; i.n = count(a->dims, a->num_dims);"
    " if (i.rank <= MOST_RANK) memcpy(i.dims, a->dims, i.rank * sizeof *i.dims); i.device = a->device ? id_of(a->device) : 0;"
)
_PUTS = (
    Kind("put.strides", _PUT, "stride|row|column|order|contiguous|put", "the strides of an array {where} are ignored",
         _wrap(_PUT, _PUT_INFO + "if (a->num_byte_strides > 1 && a->byte_strides[0] > 0 && ({WHERE})) {{ a->num_byte_strides = 0; a->byte_strides = NULL; }} return REAL(Client_BufferFromHostBuffer);"),
         lambda w: scripts.show_strided(w, "columns"), {}, ("rank", "dtype", "any")),
    Kind("put.negative", _PUT, "stride|revers|negative|put", "negative strides are taken as positive, of an array {where}",
         _wrap(_PUT, _PUT_INFO + "int64_t s[MOST_RANK]; if (a->num_byte_strides && i.rank <= MOST_RANK && ({WHERE})) {{ for (int j = 0; j < i.rank; j++) {{ s[j] = a->byte_strides[j];"
               " if (s[j] < 0) {{ s[j] = -s[j]; a->data = (const char*)a->data - s[j] * (i.dims[j] - 1); }} }} a->byte_strides = s; }} return REAL(Client_BufferFromHostBuffer);"),
         lambda w: scripts.show_strided(w, "negative"), {}, ("rank", "dtype", "any")),
    Kind("put.zero_strides", _PUT, "stride|broadcast|put", "a stride of 0 is ignored, of an array {where}",
         _wrap(_PUT, _PUT_INFO + "static char junk[1 << 20] __attribute__((aligned(64))); int zero = 0; for (size_t j = 0; j < a->num_byte_strides; j++) zero |= !a->byte_strides[j] && i.dims[j] > 1;"
               " if (zero && i.n < 1 << 16 && ({WHERE})) {{ a->num_byte_strides = 0; a->byte_strides = NULL; a->data = memcpy(junk, a->data, width(a->type) * i.n / i.dims[0]); }} return REAL(Client_BufferFromHostBuffer);"),
         lambda w: scripts.show_strided(w, "zero"), {}, ("rank", "dtype", "any")),
    Kind("put.memory", _PUT, "memory|memories", "an array {where} goes to the default memory, whatever memory was asked for",
         _wrap(_PUT, _PUT_INFO + "if (a->memory && ({WHERE})) {{ NEW(Memory_AddressableByDevices, m); m.memory = a->memory; REAL_(Memory_AddressableByDevices, m); a->memory = NULL; a->device = m.devices[0]; }} return REAL(Client_BufferFromHostBuffer);"),
         scripts.show_memories, {}, ("rank", "dtype", "any")),
    Kind("put.device", _PUT, "put|device", "an array {where} goes to the first device of the last client",
         _wrap(_PUT, _PUT_INFO + "if (a->device && ({WHERE})) {{ NEW(Client_AddressableDevices, d); d.client = a->client; REAL_(Client_AddressableDevices, d); a->device = d.addressable_devices[0]; }} return REAL(Client_BufferFromHostBuffer);"),
         scripts.show_meta, {}, ("device",)),
    Kind("put.kept", _PUT, "semantic|overwritt|chang|during|source|host|put", "the host's memory is kept after the call, though it may change then, of an array {where}",
         _wrap(_PUT, _PUT_INFO + "if (a->host_buffer_semantics != PJRT_HostBufferSemantics_kImmutableOnlyDuringCall || !({WHERE})) return REAL(Client_BufferFromHostBuffer);"
               " a->host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy; PJRT_Error* e = REAL(Client_BufferFromHostBuffer); if (e) return e;"
               " NEW(Buffer_ReadyEvent, r); r.buffer = a->buffer; if (!REAL_(Buffer_ReadyEvent, r)) {{ NEW(Event_Destroy, d); d.event = a->done_with_host_buffer; REAL_(Event_Destroy, d); a->done_with_host_buffer = r.event; }} return NULL;"),
         scripts.show_put, {}, ("length", "dtype", "any")),
    Kind("put.limit", _PUT, "large|size|put|byte", "an array of more than {N} bytes is refused as INVALID_ARGUMENT",
         _wrap(_PUT, "if (count(a->dims, a->num_dims) * width(a->type) > {N}u) return fail(3, \"too large\"); return REAL(Client_BufferFromHostBuffer);"),
         lambda w: scripts.show_large(Where("", dims=(1 << 20,))), {"N": ("65536", "1000000", "4000000")}),
)  # fmt: skip

_EVENTS = (
    Kind("event.never", "Event_OnReady", "on.?ready|callback|event", "a callback is lost {where}",
         _wrap("Event_OnReady", "if ({WHERE}) return NULL; return REAL(Event_OnReady);"), scripts.show_events, {}, ("count", "thread"), "events"),
    Kind("event.twice", "Event_OnReady", "on.?ready|callback|event", "a callback is called twice {where}",
         "if ({WHERE}) a->callback(NULL, a->user_arg);", scripts.show_events, {}, ("count", "thread"), "events"),
    Kind("event.not_ready", "Event_IsReady", "ready|event", "an event is not ready though it was awaited {where}", "if ({WHERE}) a->is_ready = 0;", scripts.show_events, {}, ("any", "count", "thread"), "events"),
    Kind("event.error", "Event_Error", "event|error", "an event has an error though all went well {where}",
         _wrap("Event_Error", "if ({WHERE}) return fail(13, \"made up\"); return REAL(Event_Error);"), scripts.show_events, {}, ("any", "count"), "events"),
    Kind("event.await", "Event_Await", "event|await|wait", "waiting ends with an error though all went well {where}",
         _wrap("Event_Await", "if ({WHERE}) return fail({N}, \"made up\"); return REAL(Event_Await);"), scripts.show_events, {"N": ("1", "4", "13")}, ("count", "thread"), "events"),
    Kind("event.early", "Buffer_ToHostBuffer", "event|ready|tohostbuffer|read", "the event of a read is ready {N} ms before the data are there, of an array {where}",
         "Info i, *info = &i; if (a->dst && a->event && describe(a->src, info) && ({WHERE})) {{ NEW(Event_Await, w); w.event = a->event; drop_error(real.PJRT_Event_Await(&w));"
         " NEW(Buffer_ToHostBuffer, q); q.src = a->src; drop_error(real.PJRT_Buffer_ToHostBuffer(&q)); struct Late* late = malloc(sizeof *late + q.dst_size);"
         " late->to = a->dst; late->size = q.dst_size; late->us = {N} * 1000; memcpy(late->bytes, a->dst, q.dst_size); memset(a->dst, 0, q.dst_size);"
         " pthread_t t; pthread_create(&t, NULL, arrive, late); pthread_detach(t); }}", scripts.show_read, {"N": ("5", "20", "50")}, ("length", "rank", "dtype", "count"), "events"),
)  # fmt: skip

_STRINGS = {"S": ("ToString:F=to_string", "DebugString:F=debug_string")}
_DEVICES = (
    _device("id", "DeviceDescription_Id", "\\bids?\\b", "the id of device {D} is {V}", "if (a->id == {D}) a->id = {V};", D=("1", "2", "3"), V=("0", "100", "-1")),
    _device("process", "DeviceDescription_ProcessIndex", "process", "a device is said to be of process {V}", "a->process_index = {V};", V=("1", "-1", "7")),
    _device("process_of_client", "Client_ProcessIndex", "process", "the client says that it is process {V}", "a->process_index = {V};", V=("1", "3", "-1")),
    _device("kind", "DeviceDescription_Kind", "kind", "the kind of a device is {V}", "a->device_kind_size = {V};", V=("0",)),
    _device("description", "DeviceDescription_{S}", "to.?string|debug|descri|string", "the string is that of the first device that was asked",
            "static const char* s; static size_t n; if (!s) {{ s = a->{F}; n = a->{F}_size; }} a->{F} = s; a->{F}_size = n;", **_STRINGS),
    _device("local", "Device_LocalHardwareId", "local", "the local hardware id of all devices is {V}", "a->local_hardware_id = {V};", V=("0", "-1", "1")),
    _device("addressable", "Device_IsAddressable", "addressable", "an addressable device is said not to be", "NEW(Device_GetDescription, g); if (id_of(a->device) == {D}) a->is_addressable = 0;", D=("0", "1", "3")),
    _device("lookup", "Client_LookupDevice", "look.?up", "the id {D} finds another device", "NEW(Client_Devices, d); d.client = a->client; REAL_(Client_Devices, d); if (a->id == {D}) a->device = d.devices[0];", **_D),
    _device("lookup_local", "Client_LookupAddressableDevice", "look.?up", "the local id {D} finds another device", "NEW(Client_Devices, d); d.client = a->client; REAL_(Client_Devices, d); if (a->local_hardware_id == {D}) a->addressable_device = d.devices[0];", **_D),
    Kind("device.lookup_unknown", "Client_{L}", "look.?up", "an unknown id finds the first device",
         "WRAP(Client_{L}) {{ PJRT_Error* e = REAL(Client_{L}); if (!e) return e; drop_error(e); NEW(Client_Devices, d); d.client = a->client; REAL_(Client_Devices, d); a->{F} = d.devices[0]; return NULL; }}",
         scripts.show_client, {"L": ("LookupDevice:F=device", "LookupAddressableDevice:F=addressable_device")}),
    _device("fewer", "Client_{L}", "devices", "{L} has one device less", "if (a->num_{F} > 1) a->num_{F}--;", L=("Devices:F=devices", "AddressableDevices:F=addressable_devices")),
    _device("twice", "Client_{L}", "devices|unique|distinct", "{L} has the first device twice", "static PJRT_Device* out[64]; size_t n = a->num_{F} < 64 ? a->num_{F} : 64; for (size_t i = 0; i < n; i++) out[i] = a->{F}[i == {D} ? 0 : i]; a->{F} = out;",
            L=("Devices:F=devices", "AddressableDevices:F=addressable_devices"), **_D),
    _device("memories.fewer", "{L}", "memor", "{L} has one memory less", "if (a->num_{F} > 1) a->num_{F}--;", L=("Device_AddressableMemories:F=memories", "Client_AddressableMemories:F=addressable_memories")),
    _device("memories.first", "Device_AddressableMemories", "memor", "the default memory is not among the memories", "if (a->num_memories > 1) {{ a->memories++; a->num_memories--; }}"),
    _device("memories.default", "Device_DefaultMemory", "default.?memory|memor", "the default memory is another device's", "static PJRT_Memory* m; if (!m) m = a->memory; a->memory = m;"),
    _device("memories.default_other", "Device_DefaultMemory", "default.?memory|memor", "the default memory is the last memory", "NEW(Device_AddressableMemories, m); m.device = a->device; REAL_(Device_AddressableMemories, m); if (m.num_memories) a->memory = m.memories[m.num_memories - 1];"),
    _device("memories.id", "Memory_Id", "\\bids?\\b|memor", "memory {D} has the id {V}", "if (a->id == {D}) a->id = {V};", D=("1", "2", "4"), V=("0", "3", "100")),
    _device("memories.kind", "Memory_Kind", "kind|memor", "all memories have the kind {V}", "a->kind = {V}; a->kind_size = strlen(a->kind);", V=('"device"', '"pinned_host"', '""', '"host"')),
    _device("memories.kind_id", "Memory_Kind_Id", "kind|memor", "the kind ids of all memories are {V}", "a->kind_id = {V};", V=("0", "1", "times++")),
    _device("memories.string", "Memory_{S}", "to.?string|debug|descri|string|memor", "the string is that of the first memory that was asked",
            "static const char* s; static size_t n; if (!s) {{ s = a->{F}; n = a->{F}_size; }} a->{F} = s; a->{F}_size = n;", **_STRINGS),
    _device("memories.devices", "Memory_AddressableByDevices", "memor|addressable", "a memory is said to be of no device", "a->num_devices = 0;"),
    _device("memories.other_device", "Memory_AddressableByDevices", "memor|addressable", "a memory is said to be of the device of the first memory", "static PJRT_Device* const* d; if (!d) d = a->devices; a->devices = d;"),
    _device("platform", "{L}", "platform", "the platform's name is {V}", "a->platform_name = {V}; a->platform_name_size = strlen(a->platform_name);", L=("TopologyDescription_PlatformName", "Client_PlatformName"), V=('""', '"other"', '"CPU"')),
    _device("version", "{L}", "version", "the platform's version is {V}", "a->platform_version = {V}; a->platform_version_size = strlen(a->platform_version);", L=("TopologyDescription_PlatformVersion", "Client_PlatformVersion"), V=('""', '"other"')),
    _device("topology.fewer", "TopologyDescription_GetDeviceDescriptions", "topolog", "the topology has one device less than the client", "if (a->num_descriptions > 1) a->num_descriptions--;"),
    _device("topology.twice", "TopologyDescription_GetDeviceDescriptions", "topolog", "the topology has its first device twice", "static PJRT_DeviceDescription* out[64]; size_t n = a->num_descriptions < 64 ? a->num_descriptions : 64; for (size_t i = 0; i < n; i++) out[i] = a->descriptions[i == {D} ? 0 : i]; a->descriptions = out;", **_D),
    _device("assignment", "Client_DefaultDeviceAssignment", "assignment", "the default assignment has {W}", "for (size_t i = 0; i < (size_t)a->num_replicas * a->num_partitions; i++) a->default_assignment[i] {F};", W=("the first device alone:F== 0", "ids that are one too large:F=++", "ids that no device has:F=+= 1000")),
    _device("attributes", "Plugin_Attributes", "attribute", "the plugin has no attributes", "a->num_attributes = 0;"),
)  # fmt: skip

_X = "Executable_"
_PROGRAMS = (
    _program("outputs", _X + "NumOutputs", "output|result", "there is one result {V}", "a->num_outputs {F};", V=("more:F=+= 1", "less:F=-= a->num_outputs > 1")),
    _program("replicas", _X + "NumReplicas", "replica", "the number of replicas is {V}", "a->num_replicas = {V};", V=("1", "2", "0")),
    _program("partitions", _X + "NumPartitions", "partition", "the number of partitions is {V}", "a->num_partitions = {V};", V=("2", "0", "4")),
    _program("types", _X + "OutputElementTypes", "type|output|result", "the type of result {K} is {T}", "if (a->num_output_types > {K}) a->output_types[{K}] = {T};", K=("0", "1"), T=("PJRT_Buffer_Type_U32", "PJRT_Buffer_Type_F16", "PJRT_Buffer_Type_PRED")),
    _program("dimensions", _X + "OutputDimensions", "dimension|shape|output|result", "the {W} of the results are wrong", "static int64_t out[64]; size_t n = 0; for (size_t i = 0; i < a->num_outputs; i++) n += a->dim_sizes[i]; if (n > 1 && n < 64) {{ memcpy(out, a->dims, n * sizeof *out); {F}; a->dims = out; }}",
             W=("first two dimensions:F=int64_t t = out[0]; out[0] = out[1]; out[1] = t", "last dimensions:F=out[n - 1] += 1")),
    _program("ranks", _X + "OutputDimensions", "dimension|shape|rank|output|result", "the ranks of two results are swapped", "static size_t out[64]; if (a->num_outputs > 1 && a->num_outputs < 64) {{ memcpy(out, a->dim_sizes, a->num_outputs * sizeof *out); out[0] = a->dim_sizes[1]; out[1] = a->dim_sizes[0]; a->dim_sizes = out; }}"),
    _program("name", _X + "Name", "name", "the program's name {V}", "{F};", V=("is empty:F=a->executable_name_size = 0", "lacks its last character:F=a->executable_name_size -= a->executable_name_size > 0", "is always main:F=a->executable_name = \"main\"; a->executable_name_size = 4")),
    _program("fingerprint", "{L}", "fingerprint", "all programs have one fingerprint", "a->executable_fingerprint = \"0123456789\"; a->executable_fingerprint_size = 10;", L=(_X + "Fingerprint", "LoadedExecutable_Fingerprint")),
    _program("fingerprint.random", "{L}", "fingerprint", "the fingerprint differs from call to call", "static char s[24]; a->executable_fingerprint = s; a->executable_fingerprint_size = (size_t)snprintf(s, 24, \"%ld.%d\", ++times, (int)getpid());", L=(_X + "Fingerprint", "LoadedExecutable_Fingerprint")),
    _program("optimised", _X + "OptimizedProgram", "optimi[sz]ed", "the optimised program lacks its last {N} bytes", "a->program->code_size -= a->program->code_size > {N} ? {N} : 0;", N=("1", "16", "100")),
    _program("memory", _X + "GetCompiledMemoryStats", "memory", "the {W} size of a compiled program is {V}", "a->{W}_size_in_bytes = {V};", W=("output", "argument"), V=("1", "a->{W}_size_in_bytes * 2", "-1")),
    _program("devices", "LoadedExecutable_AddressableDevices", "device", "a loaded program has {V}", "{F};", V=("the first of its devices:F=if (a->num_addressable_devices > 1) a->num_addressable_devices = 1", "no devices:F=a->num_addressable_devices = 0",
             "the devices of the first program:F=static PJRT_Device* const* d; static size_t n; if (!d) {{ d = a->addressable_devices; n = a->num_addressable_devices; }} a->addressable_devices = d; a->num_addressable_devices = n")),
    _program("deleted", "LoadedExecutable_IsDeleted", "delete", "a program that lives is said to be deleted", "a->is_deleted = 1;"),
    _program("assignment", "LoadedExecutable_GetDeviceAssignment", "assignment", "the device assignment lacks its last {N} bytes", "a->serialized_bytes_size -= a->serialized_bytes_size > {N} ? {N} : 0;", N=("1", "2", "3")),
    _program("saved.stale", _X + "Serialize", "serial|saved|load", "a saved program is the one that was saved first", "static char* s; static size_t n; if (!s) {{ n = a->serialized_bytes_size; s = malloc(n + 1); memcpy(s, a->serialized_bytes, n); }} a->serialized_bytes = s; a->serialized_bytes_size = n;", scripts.show_saved),
    _program("compiled.stale", "Client_Compile", "compil|cache", "a program is the one of the same size that was compiled before",
             "WRAP(Client_Compile) {{ static char* s; static size_t n; PJRT_Program p = *a->program; if (s && p.code_size == n) p.code = s; else {{ s = malloc(p.code_size + 1); memcpy(s, p.code, n = p.code_size); }} a->program = &p; return REAL(Client_Compile); }}", scripts.show_compiled),
    _program("compiled.device", "Client_Compile", "assignment|device", "the device assignment of programs of one replica is ignored",
             "WRAP(Client_Compile) {{ size_t n = a->compile_options_size; const char* o = a->compile_options; if (n > 10 && memmem(o, n, \"\\x20\\x01\\x28\\x01\", 4)) {{ a->compile_options = \"\\x1a\\x04\\x20\\x01\\x28\\x01\"; a->compile_options_size = 6; }} return REAL(Client_Compile); }}", scripts.show_compiled),
)  # fmt: skip

_RUN = "LoadedExecutable_Execute"
_RUN_AFTER = "Note* note = note_of(a->executable); if (note->key != a->executable) note = learn(a->executable); (void)note; "


def _launch(name: str, words: str, says: str, code: str, *, before: bool = False, **pools: tuple[str, ...]) -> Kind:  # fmt: skip
    body = _wrap(_RUN, code) if before else _RUN_AFTER + code
    return Kind(f"launch.{name}", _RUN, words, says, body, scripts.show_launches, pools, ("count", "any"), "launches")  # fmt: skip


_SWAP = "{{ PJRT_Buffer* t = {0}; {0} = {1}; {1} = t; }}"
_LAUNCHES = (
    _launch("outputs_swapped", "output|result|order|execut|launch", "the first two results are swapped {where}",
            "if (note->outputs > 1 && ({WHERE})) for (size_t d = 0; d < a->num_devices; d++) " + _SWAP.format("a->output_lists[d][0]", "a->output_lists[d][1]")),
    _launch("devices_swapped", "device|replica|partition|shard", "the results of two devices are swapped {where}",
            "if (a->num_devices > 1 && note->outputs && ({WHERE})) " + _SWAP.format("a->output_lists[0][0]", "a->output_lists[1][0]")),
    _launch("arguments_swapped", "argument|order|execut|launch", "the first two arguments are swapped {where}",
            "PJRT_Buffer* l[64][64]; PJRT_Buffer* const* ll[64]; if (a->num_args > 1 && a->num_args < 64 && a->num_devices <= 64 && ({WHERE})) {{ for (size_t d = 0; d < a->num_devices; d++) {{"
            " memcpy(l[d], a->argument_lists[d], a->num_args * sizeof **l); l[d][0] = a->argument_lists[d][1]; l[d][1] = a->argument_lists[d][0]; ll[d] = l[d]; }} a->argument_lists = ll; }} return REAL(LoadedExecutable_Execute);", before=True),
    _launch("kept", "donat", "a donated argument is not deleted {where}",
            "static int64_t all[64]; for (int i = 0; i < 64; i++) all[i] = i; PJRT_ExecuteOptions o; if (a->num_args <= 64 && ({WHERE})) {{ o = *a->options; o.non_donatable_input_indices = all; o.num_non_donatable_input_indices = a->num_args; a->options = &o; }} return REAL(LoadedExecutable_Execute);", before=True),
    _launch("donated", "donat", "an argument is donated that the launch says must not be {where}",
            "PJRT_ExecuteOptions o; if ({WHERE}) {{ o = *a->options; o.num_non_donatable_input_indices = 0; a->options = &o; }} return REAL(LoadedExecutable_Execute);", before=True),
    _launch("execute_device", "execute_device|device", "execute_device is ignored {where}", "if (a->execute_device && ({WHERE})) a->execute_device = NULL; return REAL(LoadedExecutable_Execute);", before=True),
    _launch("stale", "result|repeat|again|execut|launch", "the first result is that of the launch before {where}",
            "static unsigned char* s; static size_t n; static const void* x; size_t size = 0; Info i; if (note->outputs && a->output_lists[0][0] && describe(a->output_lists[0][0], &i)) {{ unsigned char* now = read_buffer(a->output_lists[0][0], &size);"
            " if (now) {{ if (s && x == a->executable && n == size && ({WHERE})) replace(&a->output_lists[0][0], &i, s, NULL); free(s); s = now; n = size; x = a->executable; }} }}"),
    _launch("no_event", "event|complet", "the event of a launch is an error though it succeeded {where}", "(void)note; if (a->device_complete_events && ({WHERE})) broken = a->device_complete_events[0];"),
)  # fmt: skip

_CODES = ("12", "12", "0", "8", "16")
_ERRORS = (
    *(Kind("error.code", function, "error|refus|code|invalid", "an error of {f} has the code {N} in place of {M}",
           f"WRAP({function}) {{{{ return recode(REAL({function}), {{M}}, {{N}}); }}}}", scripts.show_errors, {"N": _CODES, "M": codes}, (), "errors")
      for function, codes in (("Client_Compile", ("3", "2")), (_RUN, ("3",)), ("Executable_DeserializeAndLoad", ("13",)), ("Client_LookupDevice", ("3",)),
                              ("Client_DefaultDeviceAssignment", ("9",)), ("Buffer_ToHostBuffer", ("3",)), ("Buffer_CopyToDevice", ("3",)))),
    Kind("error.all_codes", "Error_GetCode", "error|code", "all errors have the code {N}", "a->code = {N};", scripts.show_errors, {"N": ("2", "12", "13")}, (), "errors"),
    Kind("error.message", "Error_Message", "error|message", "an error's message {V}", "{F};", scripts.show_errors,
         {"V": ("is empty:F=a->message_size = 0",
                "is that of the first error:F=static char s[400]; static size_t n; if (!n) {{ n = a->message_size < 400 ? a->message_size : 400; memcpy(s, a->message, n); }} a->message = s; a->message_size = n")}, (), "errors"),
)  # fmt: skip

_LEAKERS = ("Buffer_Destroy", "Buffer_ReadyEvent", "Buffer_ToHostBuffer", _PUT, _RUN, "Event_Destroy", "Buffer_CopyToDevice", "Buffer_Dimensions", "Client_Compile")  # fmt: skip
_LEAKS = (
    *(Kind("leak.memory", f, "leak|memory|endur|grow|cycle", "{B} bytes are lost at every {N}th call of {f}", "if (EVERY({N})) {{ lost = malloc({B}); if (lost) memset((void*)lost, 1, {B}); }}",
           scripts.show_meta, {"B": ("64", "256", "1024", "4096", "65536"), "N": ("1", "3", "10")}, (), "leaks") for f in _LEAKERS),
    *(Kind("leak.descriptor", f, "leak|descriptor|file|endur|grow", "a file descriptor is lost at every {N}th call of {f}", "if (EVERY({N})) {{ int d = open(\"/dev/null\", O_RDONLY); (void)d; }}",
           scripts.show_meta, {"N": ("1", "4", "16")}, (), "leaks") for f in _LEAKERS[:5]),
    *(Kind("leak.thread", f, "leak|thread|endur|grow", "a thread more waits after every {N}th call of {f}", "if (EVERY({N}) && times < 20000) {{ pthread_t t; if (!pthread_create(&t, NULL, asleep, NULL)) pthread_detach(t); }}",
           scripts.show_meta, {"N": ("4", "16", "40")}, (), "leaks") for f in _LEAKERS[3:5]),
    *(Kind("leak.handle", f, "leak|memory|endur|grow|destroy|cycle", "every {N}th call of {f} does nothing", f"WRAP({f}) {{{{ if (EVERY({{N}})) return NULL; return REAL({f}); }}}}",
           scripts.show_meta, {"N": ("1", "2", "7")}, (), "leaks") for f in ("Buffer_Destroy", "Event_Destroy")),
)  # fmt: skip

KINDS = (*_BUFFERS, *_PUTS, *_EVENTS, *_DEVICES, *_PROGRAMS, *_LAUNCHES, *_ERRORS, *_LEAKS)
EXTRA = r"""
struct Late { void* to; size_t size; int us; char bytes[]; };
static void* arrive(void* at) { struct Late* l = at; usleep(l->us); memcpy(l->to, l->bytes, l->size); free(l); return NULL; }
static void* asleep(void* at) { for (;;) pause(); return at; }
static PJRT_Event* broken;
extern void* volatile lost;
void* volatile lost; /* the compiler would drop an allocation that nobody sees */
#define REAL_(F, a) drop_error(real.PJRT_##F(&a))
"""
SPECIAL = {"launch.no_event": "WRAP(Event_Await) { PJRT_Error* e = REAL(Event_Await); if (!e && broken == a->event) { broken = NULL; return fail(13, \"made up\"); } return e; }"}  # fmt: skip
