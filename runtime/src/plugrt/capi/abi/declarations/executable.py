"""The compiling, executable and launch functions of the PJRT C API.

The notation is described in `plugrt.capi.abi.declarations`.
"""

EXECUTABLE = """
41 Executable_Destroy: Executable* executable
42 Executable_Name: Executable* executable; =const char* executable_name; =size_t
    executable_name_size
43 Executable_NumReplicas: Executable* executable; =size_t num_replicas
44 Executable_NumPartitions: Executable* executable; =size_t num_partitions
45 Executable_NumOutputs: Executable* executable; =size_t num_outputs
46 Executable_SizeOfGeneratedCodeInBytes: Executable* executable; =int64_t size_in_bytes
47 Executable_GetCostAnalysis: Executable* executable; =size_t num_properties; =const
    NamedValue* properties
48 Executable_OutputMemoryKinds: Executable* executable; =size_t num_outputs; =const char* const*
    memory_kinds; =const size_t* memory_kind_sizes
49 Executable_OptimizedProgram: Executable* executable; =Program* program
50 Executable_Serialize: const Executable* executable; =const char* serialized_bytes; =size_t
    serialized_bytes_size; SerializedExecutable* serialized_executable; =void
    (*serialized_executable_deleter)(SerializedExecutable* exec)
51 LoadedExecutable_Destroy: LoadedExecutable* executable
52 LoadedExecutable_GetExecutable: LoadedExecutable* loaded_executable; =Executable* executable
53 LoadedExecutable_AddressableDevices: LoadedExecutable* executable; =Device* const*
    addressable_devices; =size_t num_addressable_devices
54 LoadedExecutable_Delete: LoadedExecutable* executable
55 LoadedExecutable_IsDeleted: LoadedExecutable* executable; =bool is_deleted
56 LoadedExecutable_Execute: LoadedExecutable* executable; ExecuteOptions* options; Buffer*
    const* const* argument_lists; size_t num_devices; size_t num_args; Buffer** const*
    output_lists; Event** device_complete_events; Device* execute_device
57 Executable_DeserializeAndLoad: Client* client; const char* serialized_executable; size_t
    serialized_executable_size; =LoadedExecutable* loaded_executable; @71 const char*
    overridden_serialized_compile_options; size_t overridden_serialized_compile_options_size;
    @111 LoadOptions* load_options
58 LoadedExecutable_Fingerprint: LoadedExecutable* executable; =const char*
    executable_fingerprint; =size_t executable_fingerprint_size
90 Compile: const TopologyDescription* topology; const Program* program; const char*
    compile_options; size_t compile_options_size; Client* client; =Executable* executable
91@29 Executable_OutputElementTypes: Executable* executable; =Buffer_Type* output_types; =size_t
    num_output_types
92@29 Executable_OutputDimensions: Executable* executable; =size_t num_outputs; =const int64_t*
    dims; =const size_t* dim_sizes
95@35 Executable_Fingerprint: Executable* executable; =const char* executable_fingerprint;
    =size_t executable_fingerprint_size
97@40 Executable_GetCompiledMemoryStats: Executable* executable; =int64_t
    generated_code_size_in_bytes; =int64_t argument_size_in_bytes; =int64_t
    output_size_in_bytes; =int64_t alias_size_in_bytes; =int64_t temp_size_in_bytes;
    @43 =int64_t host_generated_code_size_in_bytes; =int64_t host_argument_size_in_bytes; =int64_t
    host_output_size_in_bytes; =int64_t host_alias_size_in_bytes; =int64_t
    host_temp_size_in_bytes; @72 =int64_t peak_memory_in_bytes; @90 =int64_t
    total_size_in_bytes; @104 =int64_t total_allocation_bytes; =int64_t indefinite_allocations;
    =int64_t peak_unpadded_heap_bytes
118@79 LoadedExecutable_GetDeviceAssignment: LoadedExecutable* executable; =const char*
    serialized_bytes; =size_t serialized_bytes_size; DeviceAssignmentSerialized*
    serialized_device_assignment; =void (*serialized_device_assignment_deleter)(
    DeviceAssignmentSerialized* da)
125@87 Executable_GetCompileOptions: Executable* executable; =const char* serialized_bytes;
    =size_t serialized_bytes_size; SerializedCompileOptions* serialized_compile_options; =void
    (*serialized_compile_options_deleter)(SerializedCompileOptions* options)
131@96 LoadedExecutable_AddressableDeviceLogicalIds: LoadedExecutable* executable;
    =LogicalDeviceIds* addressable_device_logical_ids; =size_t
    num_addressable_device_logical_ids
135@102 Executable_ParameterMemoryKinds: Executable* executable; =size_t num_parameters; =const
    char* const* memory_kinds; =const size_t* memory_kind_sizes
"""
