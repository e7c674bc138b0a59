"""Enumerations, value structs, callbacks, handles and basic functions of the PJRT C API."""

from __future__ import annotations

from plugrt.capi.abi.element_types import BUFFER_TYPES

ENUMS: dict[str, tuple[str, ...]] = {
    "Error_Code": (
        "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
        "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
        "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
        "UNAUTHENTICATED",
    ),
    "NamedValue_Type": ("kString", "kInt64", "kInt64List", "kFloat", "kBool"),
    "ProcessState": ("kUnspecified", "kUninitialized", "kDisconnected", "kConnected", "kError"),
    "Buffer_Type": BUFFER_TYPES,
    "HostBufferSemantics": (
        "kImmutableOnlyDuringCall", "kImmutableUntilTransferCompletes", "kImmutableZeroCopy",
        "kMutableZeroCopy",
    ),
    "Buffer_MemoryLayout_Type": ("Tiled", "Strides"),
    "Extension_Type": (
        "Gpu_Custom_Call", "Profiler", "Custom_Partitioner", "Stream", "Layouts", "FFI",
        "MemoryDescriptions", "Triton", "RawBuffer", "PhaseCompile", "Example", "Unknown",
        "CrossHostTransfers", "ExecutableMetadata", "Callback", "HostAllocator", "TpuTopology",
        "TpuExecutable", "Megascale", "Shardings", "AbiVersion", "Collectives", "MultiSlice",
        "HostMemoryAllocator", "XlaTransform",
    ),
    "Callback_Type": ("Unknown", "Tpu_SliceBuilder", "Prefatal"),
}  # fmt: skip
"""Enumeration to its enumerators, in order from 0. All are 32 bits wide."""

OPAQUE = (
    "Error", "Event", "Client", "Device", "Memory", "DeviceDescription", "TopologyDescription",
    "Executable", "LoadedExecutable", "Buffer", "FulfillAliasBufferCallback",
    "AsyncHostToDeviceTransferManager", "PhaseCompiler", "Device_Attributes",
    "AsyncTrackingEvent", "ExecuteContext", "DeviceAssignmentSerialized", "CopyToDeviceStream",
    "MultiSlice_Config", "SerializedExecutable", "SerializedCompileOptions",
    "SerializedTopology",
)  # fmt: skip
"""Handles whose contents only the library reads.

Newer libraries begin an Error and a Memory with a table of functions; plugrt does not rely on it,
because older ones do not.
"""

STRUCTS = """
NamedValue: const char* name; size_t name_size; NamedValue_Type type;
    union { const char* string_value; int64_t int64_value; const int64_t* int64_array_value;
    float float_value; bool bool_value; }; size_t value_size
!ProcessInfo: int task_id; uint64_t incarnation_id; ProcessState state; int error_code;
    const char* error_message; size_t error_message_size
Program: char* code; size_t code_size; const char* format; size_t format_size
Buffer_MemoryLayout_Tiled: const int64_t* minor_to_major; size_t minor_to_major_size;
    const int64_t* tile_dims; const size_t* tile_dim_sizes; size_t num_tiles
Buffer_MemoryLayout_Strides: const int64_t* byte_strides; size_t num_byte_strides
Buffer_MemoryLayout: union { Buffer_MemoryLayout_Tiled tiled;
    Buffer_MemoryLayout_Strides strides; }; Buffer_MemoryLayout_Type type
ShapeSpec: const int64_t* dims; size_t num_dims; Buffer_Type element_type
~LogicalDeviceIds: int replica; int partition
~Chunk: void* data; size_t size; void (*deleter)(void* data, void* deleter_arg);
    void* deleter_arg
~SendCallbackInfo: int64_t channel_id; void* user_arg; SendCallback send_callback
~RecvCallbackInfo: int64_t channel_id; void* user_arg; RecvCallback recv_callback
~HloOutputCallbackInfo: void* user_arg; HloOutputCallback callback; int64_t callback_id;
    size_t num_operands
ExecuteOptions: SendCallbackInfo** send_callbacks; RecvCallbackInfo** recv_callbacks;
    size_t num_send_ops; size_t num_recv_ops; int launch_id;
    @46 const int64_t* non_donatable_input_indices; size_t num_non_donatable_input_indices;
    @61 ExecuteContext* context; @76 const char* call_location; @78 size_t num_tasks;
    int* task_ids; int64_t* incarnation_ids; @97 MultiSlice_Config* multi_slice_config;
    @108 bool use_major_to_minor_data_layout_for_callbacks;
    @112 HloOutputCallbackInfo* hlo_output_callbacks; size_t num_hlo_output_callbacks
!LoadOptions: const int32_t* computation_origin; size_t computation_origin_size;
    MultiSlice_Config* multi_slice_config
KeyValueGetCallback_Args: const char* key; size_t key_size; int timeout_in_ms;
    CallbackError* callback_error; void* user_arg; =char* value; =size_t value_size;
    =KeyValueGetCallback_ValueDeleter value_deleter_callback
KeyValueTryGetCallback_Args: const char* key; size_t key_size; CallbackError* callback_error;
    void* user_arg; =char* value; =size_t value_size;
    =KeyValueTryGetCallback_ValueDeleter value_deleter_callback
KeyValuePutCallback_Args: const char* key; size_t key_size; const char* value;
    size_t value_size; CallbackError* callback_error; void* user_arg
!Buffer_CopyRawToHostFuture_Callback_Args: void* callback_data; Error_Code error_code;
    const char* error_message; size_t error_message_size; void* dst
!Buffer_DonateWithControlDependency_Callback_Args: void* callback_data; Error_Code error_code;
    const char* error_message; size_t error_message_size
"""

CALLBACKS: dict[str, str] = {
    "Error_PayloadVisitor": (
        "void (*)(const char* key, size_t key_size, const char* value, size_t value_size, "
        "void* user_arg)"
    ),
    "CallbackError": "Error* (*)(Error_Code code, const char* message, size_t message_size)",
    "Event_OnReadyCallback": "void (*)(Error* error, void* user_arg)",
    "KeyValueGetCallback_ValueDeleter": "void (*)(char* value)",
    "KeyValueTryGetCallback_ValueDeleter": "void (*)(char* value)",
    "KeyValueGetCallback": "Error* (*)(KeyValueGetCallback_Args* args)",
    "KeyValueTryGetCallback": "Error* (*)(KeyValueTryGetCallback_Args* args)",
    "KeyValuePutCallback": "Error* (*)(KeyValuePutCallback_Args* args)",
    "SendCallback": (
        "Error* (*)(Chunk* chunk, CallbackError* callback_error, size_t total_size_in_bytes, "
        "bool done, void* user_arg)"
    ),
    "RecvCallback": "void (*)(CopyToDeviceStream* stream, void* user_arg)",
    "HloOutputCallback": (
        "void (*)(int64_t replica_id, int64_t partition_id, const void* data, "
        "const int64_t* shape_dims, size_t shape_num_dims, Buffer_Type shape_element_type, "
        "int64_t operand_index, void* user_arg)"
    ),
}
"""Pointers to functions that a host hands to a library."""


BASICS = """
1 void Error_Destroy: Error* error
2 void Error_Message: const Error* error; =const char* message; =size_t message_size
3 Error_GetCode: const Error* error; =Error_Code code
4 Plugin_Initialize:
5 Plugin_Attributes: =const NamedValue* attributes; @71 =size_t num_attributes
6 Event_Destroy: Event* event
7 Event_IsReady: Event* event; =bool is_ready
8 Event_Error: Event* event
9 Event_Await: Event* event
10 Event_OnReady: Event* event; Event_OnReadyCallback callback; void* user_arg
99@52 ExecuteContext_Create: =ExecuteContext* context
100@52 ExecuteContext_Destroy: ExecuteContext* context
124@86 AsyncTrackingEvent_Destroy: AsyncTrackingEvent* event
127@89 Event_Create: =Event* event
128@89 Event_Set: Event* event; Error_Code error_code; const char* error_message; size_t
    error_message_size
133@99 Error_ForEachPayload: const Error* error; Error_PayloadVisitor visitor; void* user_arg
"""
