"""The extensions of the PJRT C API that a host uses, with their functions in order."""

EXTENSIONS: dict[str, str] = {
    "Layouts": """
Layouts_MemoryLayout_Destroy: Layouts_MemoryLayout* layout
Layouts_MemoryLayout_Serialize: Layouts_MemoryLayout* layout; =const char* serialized_bytes;
    =size_t serialized_bytes_size; =Layouts_SerializedLayout* serialized_layout;
    =void (*serialized_layout_deleter)(Layouts_SerializedLayout* layout)
Layouts_Client_GetDefaultLayout: Client* client; Buffer_Type type; const int64_t* dims;
    size_t num_dims; =Layouts_MemoryLayout* layout
Layouts_Buffer_MemoryLayout: Buffer* buffer; =Layouts_MemoryLayout* layout
Layouts_Topology_GetDefaultLayout: TopologyDescription* topology_description;
    Buffer_Type type; const int64_t* dims; size_t num_dims; =Layouts_MemoryLayout* layout
Layouts_Executable_GetOutputLayouts: Executable* executable; =size_t num_outputs;
    =Layouts_MemoryLayout** layouts
Layouts_Executable_GetParameterLayouts: Executable* executable; =size_t num_parameters;
    =Layouts_MemoryLayout** layouts
""",
    "Shardings": """
Shardings_Executable_ParameterShardings: Executable* executable; =size_t num_parameters;
    =const char* const* shardings; =const size_t* sharding_sizes
Shardings_Executable_OutputShardings: Executable* executable; =size_t num_outputs;
    =const char* const* shardings; =const size_t* sharding_sizes
""",
    "FFI": """
FFI_Type_Register: const char* type_name; size_t type_name_size; int64_t type_id;
    @80 FFI_Type_Info* type_info
FFI_UserData_Add: ExecuteContext* context; FFI_UserData user_data
!FFI_Register_Handler: const char* target_name; size_t target_name_size; void* handler;
    const char* platform_name; size_t platform_name_size; int traits
""",
    "MemoryDescriptions": """
DeviceDescription_MemoryDescriptions: DeviceDescription* device_description;
    =const MemoryDescription* const* memory_descriptions; =size_t num_memory_descriptions;
    @61 =size_t default_memory_index
MemoryDescription_Kind: const MemoryDescription* memory_description; =const char* kind;
    =size_t kind_size; =int kind_id
""",
    "AbiVersion": """
!Client_RuntimeAbiVersion: Client* client; =RuntimeAbiVersion* abi_version
!Executable_GetAbiVersion: Executable* executable; =ExecutableAbiVersion* abi_version
!RuntimeAbiVersion_Destroy: RuntimeAbiVersion* abi_version
!RuntimeAbiVersion_IsCompatibleWithRuntime: const RuntimeAbiVersion* abi_version;
    const RuntimeAbiVersion* other_abi_version
!RuntimeAbiVersion_IsCompatibleWithExecutable: const RuntimeAbiVersion* abi_version;
    const ExecutableAbiVersion* executable_abi_version
!RuntimeAbiVersion_ToProto: const RuntimeAbiVersion* abi_version;
    =const char* serialized_proto; =size_t serialized_proto_size;
    =SerializedProto* serialized_proto_holder;
    =void (*serialized_proto_deleter)(SerializedProto* holder)
!RuntimeAbiVersion_PlatformId: const RuntimeAbiVersion* abi_version; =uint64_t platform_id
!ExecutableAbiVersion_Destroy: ExecutableAbiVersion* abi_version
!ExecutableAbiVersion_ToProto: const ExecutableAbiVersion* abi_version;
    =const char* serialized_proto; =size_t serialized_proto_size;
    =SerializedProto* serialized_proto_holder;
    =void (*serialized_proto_deleter)(SerializedProto* holder)
!ExecutableAbiVersion_PlatformId: const ExecutableAbiVersion* abi_version;
    =uint64_t platform_id
!RuntimeAbiVersion_FromProto: const char* serialized_proto; size_t serialized_proto_size;
    =RuntimeAbiVersion* abi_version
!ExecutableAbiVersion_FromProto: const char* serialized_proto; size_t serialized_proto_size;
    =ExecutableAbiVersion* abi_version
""",
    "Stream": """
!Get_Stream_For_External_Ready_Events: Device* device; =intptr_t stream
!Wait_Until_Buffer_Ready_On_Stream: intptr_t stream; Buffer* buffer
""",
    "RawBuffer": """
RawBuffer_CreateRawAliasOfBuffer: Buffer* buffer; =RawBuffer* raw_buffer
RawBuffer_Destroy: RawBuffer* buffer
RawBuffer_GetOnDeviceSizeInBytes: RawBuffer* buffer; =size_t on_device_size_in_bytes
RawBuffer_GetMemorySpace: RawBuffer* buffer; =Memory* memory_space
RawBuffer_CopyRawHostToDevice: RawBuffer* buffer; const void* src; int64_t offset;
    int64_t transfer_size; =Event* event
RawBuffer_CopyRawDeviceToHost: RawBuffer* buffer; void* dst; int64_t offset;
    int64_t transfer_size; =Event* event
RawBuffer_GetHostPointer: RawBuffer* buffer; =void* host_pointer
""",
    "PhaseCompile": """
PhaseCompile_Get_Compiler: =const PhaseCompiler* phase_compiler
void PhaseCompile_Destroy_Compiler: const PhaseCompiler* phase_compiler
PhaseCompile_Run_Phase: const PhaseCompiler* phase_compiler; const char** input_programs;
    const size_t* input_programs_sizes; size_t num_input_programs; const char** phases_to_run;
    const size_t* phases_to_run_sizes; size_t num_phases_to_run; const char* compile_options;
    size_t compile_options_size; TopologyDescription* topology; =const char** output_programs;
    =const size_t* output_programs_sizes; =size_t num_output_programs
PhaseCompile_Get_PhaseNames: const PhaseCompiler* phase_compiler; =const char** phase_names;
    =const size_t* phase_names_sizes; =size_t num_phase_names
void PhaseCompile_C_Buffers_Destroy: const char** char_buffers;
    const size_t* char_buffer_sizes; size_t num_char_buffers
""",
    "Callback": """
!Callback_RegisterCallback: Client* client; Callback_Type type;
    void (*callback)(void* args, void* user_arg); void* user_arg
!Callback_InvokeCallback: Client* client; Callback_Type type; void* args
""",
    "CrossHostTransfers": """
Transfers_Client_MakeCrossHostReceiveBuffers: Client* client; size_t num_shapes;
    size_t* shape_num_dims; const int64_t** num_dims; Buffer_Type* element_types;
    Buffer_MemoryLayout** layouts; Device* device; Transfers_RecvNotifierInfo notifier;
    =Buffer** buffers; =size_t num_buffers; bool allow_cancel_notifier
void Transfers_Buffer_CopyToRemoteDevice: Buffer* buffer; Event* event;
    char** serialized_descriptor; size_t* serialized_descriptor_size;
    Transfers_RemoteSendCallbackInfo on_done;
    void (*descriptor_destructor)(char** descriptor_data, size_t* descriptor_size)
Transfers_Client_CrossHostReceiveBuffers: Client* client; size_t num_shapes;
    size_t* shape_num_dims; const int64_t** num_dims; Buffer_Type* element_types;
    Buffer_MemoryLayout** layouts; Device* device; const int64_t* src_global_device_ids;
    const int64_t* transfer_keys; Buffer** buffers; size_t num_tasks; const int* task_ids;
    const int64_t* incarnation_ids
Transfers_Client_CrossHostSendBuffers: Client* client; size_t num_buffers; Buffer** buffers;
    const int64_t* dst_global_device_ids; const int64_t* transfer_keys; Event** send_events;
    size_t num_tasks; const int* task_ids; const int64_t* incarnation_ids
""",
}
"""Extension (`ENUMS["Extension_Type"]`) to its table of functions, in slot order."""

EXTENSION_STRUCTS = """
~FFI_Type_Info: void (*deleter)(void* object); void (*serialize)(); void (*deserialize)()
~FFI_UserData: int64_t type_id; void* data
!Callback_Tpu_SliceBuilderArgs: int32_t failure_type
!Callback_PrefatalArgs: Error_Code error_code; const char* error_message;
    size_t error_message_size
~Transfers_RecvNotifierInfo: void* user_arg; void (*notifier)(Error* error,
    const char** serialized_descriptors, size_t* descriptors_sizes, size_t num_descriptors,
    void* user_arg, void* cancel_notifier, void* cancel_notifier_user_arg)
~Transfers_RemoteSendCallbackInfo: void* user_arg;
    void (*on_done)(Error* error, bool sends_were_enqueued, void* user_arg)
"""

EXTENSION_OPAQUE = (
    "Layouts_MemoryLayout", "Layouts_SerializedLayout", "MemoryDescription",
    "RuntimeAbiVersion", "ExecutableAbiVersion", "SerializedProto", "RawBuffer",
)  # fmt: skip

PROFILER = """
!void Error_Destroy: void* priv; Error* error
!void Error_Message: void* priv; const Error* error; =const char* message;
    =size_t message_size
!Error_GetCode: void* priv; const Error* error; =int code
!Create: const char* options; size_t options_size; =Profiler* profiler
!Destroy: Profiler* profiler
!Start: Profiler* profiler
!Stop: Profiler* profiler
!CollectData: Profiler* profiler; =uint8_t* buffer; =size_t buffer_size_in_bytes
!Consume: Profiler* profiler; =ConsumeResult* result
!void ConsumeResult_Destroy: ConsumeResult* consume_result
!Serialize: Profiler* profiler; ConsumeResult* consume_result;
    =const uint8_t* serialized_bytes; =size_t serialized_size
"""
"""The table of the Profiler extension: a small C API of its own, with its own errors."""
