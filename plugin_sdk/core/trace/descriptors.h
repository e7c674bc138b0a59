/* Made by generate.py from plugrt.capi.abi.declarations; do not edit. */
#define MOST_TABLES 8
enum { TYPE_Error, TYPE_Event, TYPE_Client, TYPE_Device, TYPE_Memory, TYPE_DeviceDescription, TYPE_TopologyDescription, TYPE_Executable, TYPE_LoadedExecutable, TYPE_Buffer, TYPE_FulfillAliasBufferCallback, TYPE_AsyncHostToDeviceTransferManager, TYPE_PhaseCompiler, TYPE_AsyncTrackingEvent, TYPE_ExecuteContext, TYPE_CopyToDeviceStream, TYPE_Layouts_MemoryLayout, TYPE_MemoryDescription, TYPE_RuntimeAbiVersion, TYPE_ExecutableAbiVersion, TYPE_RawBuffer, TYPE_COUNT };
enum { ENUM_Error_Code, ENUM_NamedValue_Type, ENUM_ProcessState, ENUM_Buffer_Type, ENUM_HostBufferSemantics, ENUM_Buffer_MemoryLayout_Type, ENUM_Extension_Type, ENUM_Callback_Type, ENUM_COUNT };
enum { FUNCTION_Error_Destroy, FUNCTION_Error_Message, FUNCTION_Error_GetCode, FUNCTION_Plugin_Initialize, FUNCTION_Plugin_Attributes, FUNCTION_Event_Destroy, FUNCTION_Event_IsReady, FUNCTION_Event_Error, FUNCTION_Event_Await, FUNCTION_Event_OnReady, FUNCTION_Client_Create, FUNCTION_Client_Destroy, FUNCTION_Client_PlatformName, FUNCTION_Client_ProcessIndex, FUNCTION_Client_PlatformVersion, FUNCTION_Client_Devices, FUNCTION_Client_AddressableDevices, FUNCTION_Client_LookupDevice, FUNCTION_Client_LookupAddressableDevice, FUNCTION_Client_AddressableMemories, FUNCTION_Client_Compile, FUNCTION_Client_DefaultDeviceAssignment, FUNCTION_Client_BufferFromHostBuffer, FUNCTION_DeviceDescription_Id, FUNCTION_DeviceDescription_ProcessIndex, FUNCTION_DeviceDescription_Attributes, FUNCTION_DeviceDescription_Kind, FUNCTION_DeviceDescription_DebugString, FUNCTION_DeviceDescription_ToString, FUNCTION_Device_GetDescription, FUNCTION_Device_IsAddressable, FUNCTION_Device_LocalHardwareId, FUNCTION_Device_AddressableMemories, FUNCTION_Device_DefaultMemory, FUNCTION_Device_MemoryStats, FUNCTION_Memory_Id, FUNCTION_Memory_Kind, FUNCTION_Memory_DebugString, FUNCTION_Memory_ToString, FUNCTION_Memory_AddressableByDevices, FUNCTION_Executable_Destroy, FUNCTION_Executable_Name, FUNCTION_Executable_NumReplicas, FUNCTION_Executable_NumPartitions, FUNCTION_Executable_NumOutputs, FUNCTION_Executable_SizeOfGeneratedCodeInBytes, FUNCTION_Executable_GetCostAnalysis, FUNCTION_Executable_OutputMemoryKinds, FUNCTION_Executable_OptimizedProgram, FUNCTION_Executable_Serialize, FUNCTION_LoadedExecutable_Destroy, FUNCTION_LoadedExecutable_GetExecutable, FUNCTION_LoadedExecutable_AddressableDevices, FUNCTION_LoadedExecutable_Delete, FUNCTION_LoadedExecutable_IsDeleted, FUNCTION_LoadedExecutable_Execute, FUNCTION_Executable_DeserializeAndLoad, FUNCTION_LoadedExecutable_Fingerprint, FUNCTION_Buffer_Destroy, FUNCTION_Buffer_ElementType, FUNCTION_Buffer_Dimensions, FUNCTION_Buffer_UnpaddedDimensions, FUNCTION_Buffer_DynamicDimensionIndices, FUNCTION_Buffer_GetMemoryLayout, FUNCTION_Buffer_OnDeviceSizeInBytes, FUNCTION_Buffer_Device, FUNCTION_Buffer_Memory, FUNCTION_Buffer_Delete, FUNCTION_Buffer_IsDeleted, FUNCTION_Buffer_CopyToDevice, FUNCTION_Buffer_ToHostBuffer, FUNCTION_Buffer_IsOnCpu, FUNCTION_Buffer_ReadyEvent, FUNCTION_Buffer_UnsafePointer, FUNCTION_Buffer_IncreaseExternalReferenceCount, FUNCTION_Buffer_DecreaseExternalReferenceCount, FUNCTION_Buffer_OpaqueDeviceMemoryDataPointer, FUNCTION_CopyToDeviceStream_Destroy, FUNCTION_CopyToDeviceStream_AddChunk, FUNCTION_CopyToDeviceStream_TotalBytes, FUNCTION_CopyToDeviceStream_GranuleSize, FUNCTION_CopyToDeviceStream_CurrentBytes, FUNCTION_TopologyDescription_Create, FUNCTION_TopologyDescription_Destroy, FUNCTION_TopologyDescription_PlatformName, FUNCTION_TopologyDescription_PlatformVersion, FUNCTION_TopologyDescription_GetDeviceDescriptions, FUNCTION_TopologyDescription_Serialize, FUNCTION_TopologyDescription_Attributes, FUNCTION_Compile, FUNCTION_Executable_OutputElementTypes, FUNCTION_Executable_OutputDimensions, FUNCTION_Buffer_CopyToMemory, FUNCTION_Client_CreateViewOfDeviceBuffer, FUNCTION_Executable_Fingerprint, FUNCTION_Client_TopologyDescription, FUNCTION_Executable_GetCompiledMemoryStats, FUNCTION_Memory_Kind_Id, FUNCTION_ExecuteContext_Create, FUNCTION_ExecuteContext_Destroy, FUNCTION_Buffer_CopyRawToHost, FUNCTION_AsyncHostToDeviceTransferManager_Destroy, FUNCTION_AsyncHostToDeviceTransferManager_TransferData, FUNCTION_Client_CreateBuffersForAsyncHostToDevice, FUNCTION_AsyncHostToDeviceTransferManager_RetrieveBuffer, FUNCTION_AsyncHostToDeviceTransferManager_Device, FUNCTION_AsyncHostToDeviceTransferManager_BufferCount, FUNCTION_AsyncHostToDeviceTransferManager_BufferSize, FUNCTION_AsyncHostToDeviceTransferManager_SetBufferError, FUNCTION_AsyncHostToDeviceTransferManager_AddMetadata, FUNCTION_Client_DmaMap, FUNCTION_Client_DmaUnmap, FUNCTION_Client_CreateUninitializedBuffer, FUNCTION_Client_UpdateGlobalProcessInfo, FUNCTION_TopologyDescription_Deserialize, FUNCTION_Client_CreateAliasBuffer, FUNCTION_Client_FulfillAliasBuffer, FUNCTION_LoadedExecutable_GetDeviceAssignment, FUNCTION_Client_CreateErrorBuffer, FUNCTION_AsyncHostToDeviceTransferManager_TransferLiteral, FUNCTION_Buffer_CopyRawToHostFuture, FUNCTION_Device_PoisonExecution, FUNCTION_Device_CreateAsyncTrackingEvent, FUNCTION_AsyncTrackingEvent_Destroy, FUNCTION_Executable_GetCompileOptions, FUNCTION_Buffer_DonateWithControlDependency, FUNCTION_Event_Create, FUNCTION_Event_Set, FUNCTION_Device_GetAttributes, FUNCTION_Client_Load, FUNCTION_LoadedExecutable_AddressableDeviceLogicalIds, FUNCTION_Buffer_Bitcast, FUNCTION_Error_ForEachPayload, FUNCTION_TopologyDescription_Fingerprint, FUNCTION_Executable_ParameterMemoryKinds, FUNCTION_Device_ClearMemoryStats, FUNCTION_TopologyDescription_MakeCanonicalShapeForMemorySpace, FUNCTION_TopologyDescription_GetMemorySpaceKindIds, FUNCTION_Layouts_MemoryLayout_Destroy, FUNCTION_Layouts_MemoryLayout_Serialize, FUNCTION_Layouts_Client_GetDefaultLayout, FUNCTION_Layouts_Buffer_MemoryLayout, FUNCTION_Layouts_Topology_GetDefaultLayout, FUNCTION_Layouts_Executable_GetOutputLayouts, FUNCTION_Layouts_Executable_GetParameterLayouts, FUNCTION_Shardings_Executable_ParameterShardings, FUNCTION_Shardings_Executable_OutputShardings, FUNCTION_FFI_Type_Register, FUNCTION_FFI_UserData_Add, FUNCTION_FFI_Register_Handler, FUNCTION_DeviceDescription_MemoryDescriptions, FUNCTION_MemoryDescription_Kind, FUNCTION_Client_RuntimeAbiVersion, FUNCTION_Executable_GetAbiVersion, FUNCTION_RuntimeAbiVersion_Destroy, FUNCTION_RuntimeAbiVersion_IsCompatibleWithRuntime, FUNCTION_RuntimeAbiVersion_IsCompatibleWithExecutable, FUNCTION_RuntimeAbiVersion_ToProto, FUNCTION_RuntimeAbiVersion_PlatformId, FUNCTION_ExecutableAbiVersion_Destroy, FUNCTION_ExecutableAbiVersion_ToProto, FUNCTION_ExecutableAbiVersion_PlatformId, FUNCTION_RuntimeAbiVersion_FromProto, FUNCTION_ExecutableAbiVersion_FromProto, FUNCTION_Get_Stream_For_External_Ready_Events, FUNCTION_Wait_Until_Buffer_Ready_On_Stream, FUNCTION_RawBuffer_CreateRawAliasOfBuffer, FUNCTION_RawBuffer_Destroy, FUNCTION_RawBuffer_GetOnDeviceSizeInBytes, FUNCTION_RawBuffer_GetMemorySpace, FUNCTION_RawBuffer_CopyRawHostToDevice, FUNCTION_RawBuffer_CopyRawDeviceToHost, FUNCTION_RawBuffer_GetHostPointer, FUNCTION_PhaseCompile_Get_Compiler, FUNCTION_PhaseCompile_Destroy_Compiler, FUNCTION_PhaseCompile_Run_Phase, FUNCTION_PhaseCompile_Get_PhaseNames, FUNCTION_PhaseCompile_C_Buffers_Destroy, FUNCTION_Callback_RegisterCallback, FUNCTION_Callback_InvokeCallback, FUNCTION_Transfers_Client_MakeCrossHostReceiveBuffers, FUNCTION_Transfers_Buffer_CopyToRemoteDevice, FUNCTION_Transfers_Client_CrossHostReceiveBuffers, FUNCTION_Transfers_Client_CrossHostSendBuffers, FUNCTION_COUNT };
enum { API_FUNCTIONS = 138 };
#ifdef DESCRIBE
#define ARGS(function) struct PJRT_##function##_Args
#define COUNTED(function, name, kind, flags, detail, count) \
  {#name, kind, flags, detail, offsetof(ARGS(function), name), \
   sizeof(((ARGS(function) *)0)->name), offsetof(ARGS(function), count)}
#define FIELD(function, name, kind, flags, detail) \
  {#name, kind, flags, detail, offsetof(ARGS(function), name), \
   sizeof(((ARGS(function) *)0)->name), 0}
const char *const type_names[] = {"Error", "Event", "Client", "Device", "Memory", "DeviceDescription", "TopologyDescription", "Executable", "LoadedExecutable", "Buffer", "FulfillAliasBufferCallback", "AsyncHostToDeviceTransferManager", "PhaseCompiler", "AsyncTrackingEvent", "ExecuteContext", "CopyToDeviceStream", "Layouts_MemoryLayout", "MemoryDescription", "RuntimeAbiVersion", "ExecutableAbiVersion", "RawBuffer"};
static const char *const names_Error_Code[] = {"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"};
static const char *const names_NamedValue_Type[] = {"kString", "kInt64", "kInt64List", "kFloat", "kBool"};
static const char *const names_ProcessState[] = {"kUnspecified", "kUninitialized", "kDisconnected", "kConnected", "kError"};
static const char *const names_Buffer_Type[] = {"INVALID", "PRED", "S8", "S16", "S32", "S64", "U8", "U16", "U32", "U64", "F16", "F32", "F64", "BF16", "C64", "C128", "F8E5M2", "F8E4M3FN", "F8E4M3B11FNUZ", "F8E5M2FNUZ", "F8E4M3FNUZ", "S4", "U4", "TOKEN", "S2", "U2", "F8E4M3", "F8E3M4", "F8E8M0FNU", "F4E2M1FN", "S1", "U1", "F6E2M3FN", "F6E3M2FN"};
static const char *const names_HostBufferSemantics[] = {"kImmutableOnlyDuringCall", "kImmutableUntilTransferCompletes", "kImmutableZeroCopy", "kMutableZeroCopy"};
static const char *const names_Buffer_MemoryLayout_Type[] = {"Tiled", "Strides"};
static const char *const names_Extension_Type[] = {"Gpu_Custom_Call", "Profiler", "Custom_Partitioner", "Stream", "Layouts", "FFI", "MemoryDescriptions", "Triton", "RawBuffer", "PhaseCompile", "Example", "Unknown", "CrossHostTransfers", "ExecutableMetadata", "Callback", "HostAllocator", "TpuTopology", "TpuExecutable", "Megascale", "Shardings", "AbiVersion", "Collectives", "MultiSlice", "HostMemoryAllocator", "XlaTransform"};
static const char *const names_Callback_Type[] = {"Unknown", "Tpu_SliceBuilder", "Prefatal"};
const Enumeration enumerations[] = {
  {names_Error_Code, 17},
  {names_NamedValue_Type, 5},
  {names_ProcessState, 5},
  {names_Buffer_Type, 34},
  {names_HostBufferSemantics, 4},
  {names_Buffer_MemoryLayout_Type, 2},
  {names_Extension_Type, 25},
  {names_Callback_Type, 3},
};
static const Field fields_Error_Destroy[] = {
  FIELD(Error_Destroy, error, HANDLE, DESTROYED | MAY_BE_NULL, TYPE_Error),
};
static const Field fields_Error_Message[] = {
  FIELD(Error_Message, error, HANDLE, 0, TYPE_Error),
  COUNTED(Error_Message, message, STRING, OUT, 0, message_size),
  FIELD(Error_Message, message_size, SIZE, OUT, 0),
};
static const Field fields_Error_GetCode[] = {
  FIELD(Error_GetCode, error, HANDLE, 0, TYPE_Error),
  FIELD(Error_GetCode, code, ENUM, OUT, ENUM_Error_Code),
};
static const Field fields_Plugin_Attributes[] = {
  COUNTED(Plugin_Attributes, attributes, NAMED_VALUES, OUT, 0, num_attributes),
  FIELD(Plugin_Attributes, num_attributes, SIZE, OUT, 0),
};
static const Field fields_Event_Destroy[] = {
  FIELD(Event_Destroy, event, HANDLE, DESTROYED | MAY_BE_NULL, TYPE_Event),
};
static const Field fields_Event_IsReady[] = {
  FIELD(Event_IsReady, event, HANDLE, 0, TYPE_Event),
  FIELD(Event_IsReady, is_ready, BOOL, OUT, 0),
};
static const Field fields_Event_Error[] = {
  FIELD(Event_Error, event, HANDLE, 0, TYPE_Event),
};
static const Field fields_Event_Await[] = {
  FIELD(Event_Await, event, HANDLE, 0, TYPE_Event),
};
static const Field fields_Event_OnReady[] = {
  FIELD(Event_OnReady, event, HANDLE, 0, TYPE_Event),
  FIELD(Event_OnReady, callback, OPAQUE, 0, 0),
  FIELD(Event_OnReady, user_arg, OPAQUE, 0, 0),
};
static const Field fields_Client_Create[] = {
  COUNTED(Client_Create, create_options, NAMED_VALUES, 0, 0, num_options),
  FIELD(Client_Create, num_options, SIZE, 0, 0),
  FIELD(Client_Create, kv_get_callback, OPAQUE, 0, 0),
  FIELD(Client_Create, kv_get_user_arg, OPAQUE, 0, 0),
  FIELD(Client_Create, kv_put_callback, OPAQUE, 0, 0),
  FIELD(Client_Create, kv_put_user_arg, OPAQUE, 0, 0),
  FIELD(Client_Create, client, HANDLE, OUT | OWNED, TYPE_Client),
  FIELD(Client_Create, kv_try_get_callback, OPAQUE, 0, 0),
  FIELD(Client_Create, kv_try_get_user_arg, OPAQUE, 0, 0),
};
static const Field fields_Client_Destroy[] = {
  FIELD(Client_Destroy, client, HANDLE, DESTROYED, TYPE_Client),
};
static const Field fields_Client_PlatformName[] = {
  FIELD(Client_PlatformName, client, HANDLE, 0, TYPE_Client),
  COUNTED(Client_PlatformName, platform_name, STRING, OUT, 0, platform_name_size),
  FIELD(Client_PlatformName, platform_name_size, SIZE, OUT, 0),
};
static const Field fields_Client_ProcessIndex[] = {
  FIELD(Client_ProcessIndex, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_ProcessIndex, process_index, INT32, OUT, 0),
};
static const Field fields_Client_PlatformVersion[] = {
  FIELD(Client_PlatformVersion, client, HANDLE, 0, TYPE_Client),
  COUNTED(Client_PlatformVersion, platform_version, STRING, OUT, 0, platform_version_size),
  FIELD(Client_PlatformVersion, platform_version_size, SIZE, OUT, 0),
};
static const Field fields_Client_Devices[] = {
  FIELD(Client_Devices, client, HANDLE, 0, TYPE_Client),
  COUNTED(Client_Devices, devices, HANDLES, OUT, TYPE_Device, num_devices),
  FIELD(Client_Devices, num_devices, SIZE, OUT, 0),
};
static const Field fields_Client_AddressableDevices[] = {
  FIELD(Client_AddressableDevices, client, HANDLE, 0, TYPE_Client),
  COUNTED(Client_AddressableDevices, addressable_devices, HANDLES, OUT, TYPE_Device, num_addressable_devices),
  FIELD(Client_AddressableDevices, num_addressable_devices, SIZE, OUT, 0),
};
static const Field fields_Client_LookupDevice[] = {
  FIELD(Client_LookupDevice, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_LookupDevice, id, INT32, 0, 0),
  FIELD(Client_LookupDevice, device, HANDLE, OUT, TYPE_Device),
};
static const Field fields_Client_LookupAddressableDevice[] = {
  FIELD(Client_LookupAddressableDevice, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_LookupAddressableDevice, local_hardware_id, INT32, 0, 0),
  FIELD(Client_LookupAddressableDevice, addressable_device, HANDLE, OUT, TYPE_Device),
};
static const Field fields_Client_AddressableMemories[] = {
  FIELD(Client_AddressableMemories, client, HANDLE, 0, TYPE_Client),
  COUNTED(Client_AddressableMemories, addressable_memories, HANDLES, OUT, TYPE_Memory, num_addressable_memories),
  FIELD(Client_AddressableMemories, num_addressable_memories, SIZE, OUT, 0),
};
static const Field fields_Client_Compile[] = {
  FIELD(Client_Compile, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_Compile, program, PROGRAM, 0, 0),
  COUNTED(Client_Compile, compile_options, BYTES, 0, 0, compile_options_size),
  FIELD(Client_Compile, compile_options_size, SIZE, 0, 0),
  FIELD(Client_Compile, executable, HANDLE, OUT | OWNED, TYPE_LoadedExecutable),
};
static const Field fields_Client_DefaultDeviceAssignment[] = {
  FIELD(Client_DefaultDeviceAssignment, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_DefaultDeviceAssignment, num_replicas, INT32, 0, 0),
  FIELD(Client_DefaultDeviceAssignment, num_partitions, INT32, 0, 0),
  FIELD(Client_DefaultDeviceAssignment, default_assignment_size, SIZE, 0, 0),
  FIELD(Client_DefaultDeviceAssignment, default_assignment, OPAQUE, 0, 0),
};
static const Field fields_Client_BufferFromHostBuffer[] = {
  FIELD(Client_BufferFromHostBuffer, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_BufferFromHostBuffer, data, OPAQUE, 0, 0),
  FIELD(Client_BufferFromHostBuffer, type, ENUM, 0, ENUM_Buffer_Type),
  COUNTED(Client_BufferFromHostBuffer, dims, DIMS, 0, 0, num_dims),
  FIELD(Client_BufferFromHostBuffer, num_dims, SIZE, 0, 0),
  COUNTED(Client_BufferFromHostBuffer, byte_strides, DIMS, 0, 0, num_byte_strides),
  FIELD(Client_BufferFromHostBuffer, num_byte_strides, SIZE, 0, 0),
  FIELD(Client_BufferFromHostBuffer, host_buffer_semantics, ENUM, 0, ENUM_HostBufferSemantics),
  FIELD(Client_BufferFromHostBuffer, device, HANDLE, MAY_BE_NULL, TYPE_Device),
  FIELD(Client_BufferFromHostBuffer, memory, HANDLE, MAY_BE_NULL, TYPE_Memory),
  FIELD(Client_BufferFromHostBuffer, device_layout, OPAQUE, 0, 0),
  FIELD(Client_BufferFromHostBuffer, done_with_host_buffer, HANDLE, OUT | OWNED, TYPE_Event),
  FIELD(Client_BufferFromHostBuffer, buffer, HANDLE, OUT | OWNED, TYPE_Buffer),
};
static const Field fields_DeviceDescription_Id[] = {
  FIELD(DeviceDescription_Id, device_description, HANDLE, 0, TYPE_DeviceDescription),
  FIELD(DeviceDescription_Id, id, INT32, OUT, 0),
};
static const Field fields_DeviceDescription_ProcessIndex[] = {
  FIELD(DeviceDescription_ProcessIndex, device_description, HANDLE, 0, TYPE_DeviceDescription),
  FIELD(DeviceDescription_ProcessIndex, process_index, INT32, OUT, 0),
};
static const Field fields_DeviceDescription_Attributes[] = {
  FIELD(DeviceDescription_Attributes, device_description, HANDLE, 0, TYPE_DeviceDescription),
  FIELD(DeviceDescription_Attributes, num_attributes, SIZE, OUT, 0),
  COUNTED(DeviceDescription_Attributes, attributes, NAMED_VALUES, OUT, 0, num_attributes),
};
static const Field fields_DeviceDescription_Kind[] = {
  FIELD(DeviceDescription_Kind, device_description, HANDLE, 0, TYPE_DeviceDescription),
  COUNTED(DeviceDescription_Kind, device_kind, STRING, OUT, 0, device_kind_size),
  FIELD(DeviceDescription_Kind, device_kind_size, SIZE, OUT, 0),
};
static const Field fields_DeviceDescription_DebugString[] = {
  FIELD(DeviceDescription_DebugString, device_description, HANDLE, 0, TYPE_DeviceDescription),
  COUNTED(DeviceDescription_DebugString, debug_string, STRING, OUT, 0, debug_string_size),
  FIELD(DeviceDescription_DebugString, debug_string_size, SIZE, OUT, 0),
};
static const Field fields_DeviceDescription_ToString[] = {
  FIELD(DeviceDescription_ToString, device_description, HANDLE, 0, TYPE_DeviceDescription),
  COUNTED(DeviceDescription_ToString, to_string, STRING, OUT, 0, to_string_size),
  FIELD(DeviceDescription_ToString, to_string_size, SIZE, OUT, 0),
};
static const Field fields_Device_GetDescription[] = {
  FIELD(Device_GetDescription, device, HANDLE, 0, TYPE_Device),
  FIELD(Device_GetDescription, device_description, HANDLE, OUT, TYPE_DeviceDescription),
};
static const Field fields_Device_IsAddressable[] = {
  FIELD(Device_IsAddressable, device, HANDLE, 0, TYPE_Device),
  FIELD(Device_IsAddressable, is_addressable, BOOL, OUT, 0),
};
static const Field fields_Device_LocalHardwareId[] = {
  FIELD(Device_LocalHardwareId, device, HANDLE, 0, TYPE_Device),
  FIELD(Device_LocalHardwareId, local_hardware_id, INT32, OUT, 0),
};
static const Field fields_Device_AddressableMemories[] = {
  FIELD(Device_AddressableMemories, device, HANDLE, 0, TYPE_Device),
  COUNTED(Device_AddressableMemories, memories, HANDLES, OUT, TYPE_Memory, num_memories),
  FIELD(Device_AddressableMemories, num_memories, SIZE, OUT, 0),
};
static const Field fields_Device_DefaultMemory[] = {
  FIELD(Device_DefaultMemory, device, HANDLE, 0, TYPE_Device),
  FIELD(Device_DefaultMemory, memory, HANDLE, OUT, TYPE_Memory),
};
static const Field fields_Device_MemoryStats[] = {
  FIELD(Device_MemoryStats, device, HANDLE, 0, TYPE_Device),
  FIELD(Device_MemoryStats, bytes_in_use, INT64, OUT, 0),
  FIELD(Device_MemoryStats, peak_bytes_in_use, INT64, OUT, 0),
  FIELD(Device_MemoryStats, peak_bytes_in_use_is_set, BOOL, OUT, 0),
  FIELD(Device_MemoryStats, num_allocs, INT64, OUT, 0),
  FIELD(Device_MemoryStats, num_allocs_is_set, BOOL, OUT, 0),
  FIELD(Device_MemoryStats, largest_alloc_size, INT64, OUT, 0),
  FIELD(Device_MemoryStats, largest_alloc_size_is_set, BOOL, OUT, 0),
  FIELD(Device_MemoryStats, bytes_limit, INT64, OUT, 0),
  FIELD(Device_MemoryStats, bytes_limit_is_set, BOOL, OUT, 0),
  FIELD(Device_MemoryStats, bytes_reserved, INT64, OUT, 0),
  FIELD(Device_MemoryStats, bytes_reserved_is_set, BOOL, OUT, 0),
  FIELD(Device_MemoryStats, peak_bytes_reserved, INT64, OUT, 0),
  FIELD(Device_MemoryStats, peak_bytes_reserved_is_set, BOOL, OUT, 0),
  FIELD(Device_MemoryStats, bytes_reservable_limit, INT64, OUT, 0),
  FIELD(Device_MemoryStats, bytes_reservable_limit_is_set, BOOL, OUT, 0),
  FIELD(Device_MemoryStats, largest_free_block_bytes, INT64, OUT, 0),
  FIELD(Device_MemoryStats, largest_free_block_bytes_is_set, BOOL, OUT, 0),
  FIELD(Device_MemoryStats, pool_bytes, INT64, OUT, 0),
  FIELD(Device_MemoryStats, pool_bytes_is_set, BOOL, OUT, 0),
  FIELD(Device_MemoryStats, peak_pool_bytes, INT64, OUT, 0),
  FIELD(Device_MemoryStats, peak_pool_bytes_is_set, BOOL, OUT, 0),
  FIELD(Device_MemoryStats, peak_allocated_bytes, INT64, OUT, 0),
  FIELD(Device_MemoryStats, peak_allocated_bytes_is_set, BOOL, OUT, 0),
};
static const Field fields_Memory_Id[] = {
  FIELD(Memory_Id, memory, HANDLE, 0, TYPE_Memory),
  FIELD(Memory_Id, id, INT32, OUT, 0),
};
static const Field fields_Memory_Kind[] = {
  FIELD(Memory_Kind, memory, HANDLE, 0, TYPE_Memory),
  COUNTED(Memory_Kind, kind, STRING, OUT, 0, kind_size),
  FIELD(Memory_Kind, kind_size, SIZE, OUT, 0),
};
static const Field fields_Memory_DebugString[] = {
  FIELD(Memory_DebugString, memory, HANDLE, 0, TYPE_Memory),
  COUNTED(Memory_DebugString, debug_string, STRING, OUT, 0, debug_string_size),
  FIELD(Memory_DebugString, debug_string_size, SIZE, OUT, 0),
};
static const Field fields_Memory_ToString[] = {
  FIELD(Memory_ToString, memory, HANDLE, 0, TYPE_Memory),
  COUNTED(Memory_ToString, to_string, STRING, OUT, 0, to_string_size),
  FIELD(Memory_ToString, to_string_size, SIZE, OUT, 0),
};
static const Field fields_Memory_AddressableByDevices[] = {
  FIELD(Memory_AddressableByDevices, memory, HANDLE, 0, TYPE_Memory),
  COUNTED(Memory_AddressableByDevices, devices, HANDLES, OUT, TYPE_Device, num_devices),
  FIELD(Memory_AddressableByDevices, num_devices, SIZE, OUT, 0),
};
static const Field fields_Executable_Destroy[] = {
  FIELD(Executable_Destroy, executable, HANDLE, DESTROYED, TYPE_Executable),
};
static const Field fields_Executable_Name[] = {
  FIELD(Executable_Name, executable, HANDLE, 0, TYPE_Executable),
  COUNTED(Executable_Name, executable_name, STRING, OUT, 0, executable_name_size),
  FIELD(Executable_Name, executable_name_size, SIZE, OUT, 0),
};
static const Field fields_Executable_NumReplicas[] = {
  FIELD(Executable_NumReplicas, executable, HANDLE, 0, TYPE_Executable),
  FIELD(Executable_NumReplicas, num_replicas, SIZE, OUT, 0),
};
static const Field fields_Executable_NumPartitions[] = {
  FIELD(Executable_NumPartitions, executable, HANDLE, 0, TYPE_Executable),
  FIELD(Executable_NumPartitions, num_partitions, SIZE, OUT, 0),
};
static const Field fields_Executable_NumOutputs[] = {
  FIELD(Executable_NumOutputs, executable, HANDLE, 0, TYPE_Executable),
  FIELD(Executable_NumOutputs, num_outputs, SIZE, OUT, 0),
};
static const Field fields_Executable_SizeOfGeneratedCodeInBytes[] = {
  FIELD(Executable_SizeOfGeneratedCodeInBytes, executable, HANDLE, 0, TYPE_Executable),
  FIELD(Executable_SizeOfGeneratedCodeInBytes, size_in_bytes, INT64, OUT, 0),
};
static const Field fields_Executable_GetCostAnalysis[] = {
  FIELD(Executable_GetCostAnalysis, executable, HANDLE, 0, TYPE_Executable),
  FIELD(Executable_GetCostAnalysis, num_properties, SIZE, OUT, 0),
  COUNTED(Executable_GetCostAnalysis, properties, NAMED_VALUES, OUT, 0, num_properties),
};
static const Field fields_Executable_OutputMemoryKinds[] = {
  FIELD(Executable_OutputMemoryKinds, executable, HANDLE, 0, TYPE_Executable),
  FIELD(Executable_OutputMemoryKinds, num_outputs, SIZE, OUT, 0),
  FIELD(Executable_OutputMemoryKinds, memory_kinds, OPAQUE, OUT, 0),
  FIELD(Executable_OutputMemoryKinds, memory_kind_sizes, OPAQUE, OUT, 0),
};
static const Field fields_Executable_OptimizedProgram[] = {
  FIELD(Executable_OptimizedProgram, executable, HANDLE, 0, TYPE_Executable),
  FIELD(Executable_OptimizedProgram, program, PROGRAM, OUT, 0),
};
static const Field fields_Executable_Serialize[] = {
  FIELD(Executable_Serialize, executable, HANDLE, 0, TYPE_Executable),
  COUNTED(Executable_Serialize, serialized_bytes, BYTES, OUT, 0, serialized_bytes_size),
  FIELD(Executable_Serialize, serialized_bytes_size, SIZE, OUT, 0),
  FIELD(Executable_Serialize, serialized_executable, OPAQUE, 0, 0),
  FIELD(Executable_Serialize, serialized_executable_deleter, OPAQUE, OUT, 0),
};
static const Field fields_LoadedExecutable_Destroy[] = {
  FIELD(LoadedExecutable_Destroy, executable, HANDLE, DESTROYED, TYPE_LoadedExecutable),
};
static const Field fields_LoadedExecutable_GetExecutable[] = {
  FIELD(LoadedExecutable_GetExecutable, loaded_executable, HANDLE, 0, TYPE_LoadedExecutable),
  FIELD(LoadedExecutable_GetExecutable, executable, HANDLE, OUT | OWNED, TYPE_Executable),
};
static const Field fields_LoadedExecutable_AddressableDevices[] = {
  FIELD(LoadedExecutable_AddressableDevices, executable, HANDLE, 0, TYPE_LoadedExecutable),
  COUNTED(LoadedExecutable_AddressableDevices, addressable_devices, HANDLES, OUT, TYPE_Device, num_addressable_devices),
  FIELD(LoadedExecutable_AddressableDevices, num_addressable_devices, SIZE, OUT, 0),
};
static const Field fields_LoadedExecutable_Delete[] = {
  FIELD(LoadedExecutable_Delete, executable, HANDLE, 0, TYPE_LoadedExecutable),
};
static const Field fields_LoadedExecutable_IsDeleted[] = {
  FIELD(LoadedExecutable_IsDeleted, executable, HANDLE, 0, TYPE_LoadedExecutable),
  FIELD(LoadedExecutable_IsDeleted, is_deleted, BOOL, OUT, 0),
};
static const Field fields_LoadedExecutable_Execute[] = {
  FIELD(LoadedExecutable_Execute, executable, HANDLE, 0, TYPE_LoadedExecutable),
  FIELD(LoadedExecutable_Execute, options, OPAQUE, 0, 0),
  FIELD(LoadedExecutable_Execute, argument_lists, LISTS, 0, TYPE_Buffer),
  FIELD(LoadedExecutable_Execute, num_devices, SIZE, 0, 0),
  FIELD(LoadedExecutable_Execute, num_args, SIZE, 0, 0),
  FIELD(LoadedExecutable_Execute, output_lists, RESULT_LISTS, OUT | OWNED, TYPE_Buffer),
  COUNTED(LoadedExecutable_Execute, device_complete_events, HANDLES, OUT | OWNED | MAY_BE_NULL, TYPE_Event, num_devices),
  FIELD(LoadedExecutable_Execute, execute_device, HANDLE, MAY_BE_NULL, TYPE_Device),
};
static const Field fields_Executable_DeserializeAndLoad[] = {
  FIELD(Executable_DeserializeAndLoad, client, HANDLE, 0, TYPE_Client),
  COUNTED(Executable_DeserializeAndLoad, serialized_executable, BYTES, 0, 0, serialized_executable_size),
  FIELD(Executable_DeserializeAndLoad, serialized_executable_size, SIZE, 0, 0),
  FIELD(Executable_DeserializeAndLoad, loaded_executable, HANDLE, OUT | OWNED, TYPE_LoadedExecutable),
  COUNTED(Executable_DeserializeAndLoad, overridden_serialized_compile_options, BYTES, 0, 0, overridden_serialized_compile_options_size),
  FIELD(Executable_DeserializeAndLoad, overridden_serialized_compile_options_size, SIZE, 0, 0),
  FIELD(Executable_DeserializeAndLoad, load_options, OPAQUE, 0, 0),
};
static const Field fields_LoadedExecutable_Fingerprint[] = {
  FIELD(LoadedExecutable_Fingerprint, executable, HANDLE, 0, TYPE_LoadedExecutable),
  COUNTED(LoadedExecutable_Fingerprint, executable_fingerprint, STRING, OUT, 0, executable_fingerprint_size),
  FIELD(LoadedExecutable_Fingerprint, executable_fingerprint_size, SIZE, OUT, 0),
};
static const Field fields_Buffer_Destroy[] = {
  FIELD(Buffer_Destroy, buffer, HANDLE, DESTROYED, TYPE_Buffer),
};
static const Field fields_Buffer_ElementType[] = {
  FIELD(Buffer_ElementType, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_ElementType, type, ENUM, OUT, ENUM_Buffer_Type),
};
static const Field fields_Buffer_Dimensions[] = {
  FIELD(Buffer_Dimensions, buffer, HANDLE, 0, TYPE_Buffer),
  COUNTED(Buffer_Dimensions, dims, DIMS, OUT, 0, num_dims),
  FIELD(Buffer_Dimensions, num_dims, SIZE, OUT, 0),
};
static const Field fields_Buffer_UnpaddedDimensions[] = {
  FIELD(Buffer_UnpaddedDimensions, buffer, HANDLE, 0, TYPE_Buffer),
  COUNTED(Buffer_UnpaddedDimensions, unpadded_dims, DIMS, OUT, 0, num_dims),
  FIELD(Buffer_UnpaddedDimensions, num_dims, SIZE, OUT, 0),
};
static const Field fields_Buffer_DynamicDimensionIndices[] = {
  FIELD(Buffer_DynamicDimensionIndices, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_DynamicDimensionIndices, dynamic_dim_indices, OPAQUE, OUT, 0),
  FIELD(Buffer_DynamicDimensionIndices, num_dynamic_dims, SIZE, OUT, 0),
};
static const Field fields_Buffer_GetMemoryLayout[] = {
  FIELD(Buffer_GetMemoryLayout, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_GetMemoryLayout, layout, OPAQUE, OUT, 0),
};
static const Field fields_Buffer_OnDeviceSizeInBytes[] = {
  FIELD(Buffer_OnDeviceSizeInBytes, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_OnDeviceSizeInBytes, on_device_size_in_bytes, SIZE, OUT, 0),
};
static const Field fields_Buffer_Device[] = {
  FIELD(Buffer_Device, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_Device, device, HANDLE, OUT, TYPE_Device),
};
static const Field fields_Buffer_Memory[] = {
  FIELD(Buffer_Memory, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_Memory, memory, HANDLE, OUT, TYPE_Memory),
};
static const Field fields_Buffer_Delete[] = {
  FIELD(Buffer_Delete, buffer, HANDLE, 0, TYPE_Buffer),
};
static const Field fields_Buffer_IsDeleted[] = {
  FIELD(Buffer_IsDeleted, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_IsDeleted, is_deleted, BOOL, OUT, 0),
};
static const Field fields_Buffer_CopyToDevice[] = {
  FIELD(Buffer_CopyToDevice, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_CopyToDevice, dst_device, HANDLE, 0, TYPE_Device),
  FIELD(Buffer_CopyToDevice, dst_buffer, HANDLE, OUT | OWNED, TYPE_Buffer),
};
static const Field fields_Buffer_ToHostBuffer[] = {
  FIELD(Buffer_ToHostBuffer, src, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_ToHostBuffer, host_layout, OPAQUE, 0, 0),
  FIELD(Buffer_ToHostBuffer, dst, OPAQUE, 0, 0),
  FIELD(Buffer_ToHostBuffer, dst_size, SIZE, 0, 0),
  FIELD(Buffer_ToHostBuffer, event, HANDLE, OUT | OWNED, TYPE_Event),
};
static const Field fields_Buffer_IsOnCpu[] = {
  FIELD(Buffer_IsOnCpu, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_IsOnCpu, is_on_cpu, BOOL, OUT, 0),
};
static const Field fields_Buffer_ReadyEvent[] = {
  FIELD(Buffer_ReadyEvent, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_ReadyEvent, event, HANDLE, OUT | OWNED, TYPE_Event),
};
static const Field fields_Buffer_UnsafePointer[] = {
  FIELD(Buffer_UnsafePointer, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_UnsafePointer, buffer_pointer, SIZE, OUT, 0),
};
static const Field fields_Buffer_IncreaseExternalReferenceCount[] = {
  FIELD(Buffer_IncreaseExternalReferenceCount, buffer, HANDLE, 0, TYPE_Buffer),
};
static const Field fields_Buffer_DecreaseExternalReferenceCount[] = {
  FIELD(Buffer_DecreaseExternalReferenceCount, buffer, HANDLE, 0, TYPE_Buffer),
};
static const Field fields_Buffer_OpaqueDeviceMemoryDataPointer[] = {
  FIELD(Buffer_OpaqueDeviceMemoryDataPointer, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_OpaqueDeviceMemoryDataPointer, device_memory_ptr, OPAQUE, OUT, 0),
};
static const Field fields_CopyToDeviceStream_Destroy[] = {
  FIELD(CopyToDeviceStream_Destroy, stream, HANDLE, DESTROYED, TYPE_CopyToDeviceStream),
};
static const Field fields_CopyToDeviceStream_AddChunk[] = {
  FIELD(CopyToDeviceStream_AddChunk, stream, HANDLE, 0, TYPE_CopyToDeviceStream),
  FIELD(CopyToDeviceStream_AddChunk, chunk, OPAQUE, 0, 0),
  FIELD(CopyToDeviceStream_AddChunk, transfer_complete, HANDLE, OUT | OWNED, TYPE_Event),
};
static const Field fields_CopyToDeviceStream_TotalBytes[] = {
  FIELD(CopyToDeviceStream_TotalBytes, stream, HANDLE, 0, TYPE_CopyToDeviceStream),
  FIELD(CopyToDeviceStream_TotalBytes, total_bytes, INT64, OUT, 0),
};
static const Field fields_CopyToDeviceStream_GranuleSize[] = {
  FIELD(CopyToDeviceStream_GranuleSize, stream, HANDLE, 0, TYPE_CopyToDeviceStream),
  FIELD(CopyToDeviceStream_GranuleSize, granule_size_in_bytes, INT64, OUT, 0),
};
static const Field fields_CopyToDeviceStream_CurrentBytes[] = {
  FIELD(CopyToDeviceStream_CurrentBytes, stream, HANDLE, 0, TYPE_CopyToDeviceStream),
  FIELD(CopyToDeviceStream_CurrentBytes, current_bytes, INT64, OUT, 0),
};
static const Field fields_TopologyDescription_Create[] = {
  COUNTED(TopologyDescription_Create, topology_name, STRING, 0, 0, topology_name_size),
  FIELD(TopologyDescription_Create, topology_name_size, SIZE, 0, 0),
  COUNTED(TopologyDescription_Create, create_options, NAMED_VALUES, 0, 0, num_options),
  FIELD(TopologyDescription_Create, num_options, SIZE, 0, 0),
  FIELD(TopologyDescription_Create, topology, HANDLE, OUT | OWNED, TYPE_TopologyDescription),
};
static const Field fields_TopologyDescription_Destroy[] = {
  FIELD(TopologyDescription_Destroy, topology, HANDLE, DESTROYED, TYPE_TopologyDescription),
};
static const Field fields_TopologyDescription_PlatformName[] = {
  FIELD(TopologyDescription_PlatformName, topology, HANDLE, 0, TYPE_TopologyDescription),
  COUNTED(TopologyDescription_PlatformName, platform_name, STRING, OUT, 0, platform_name_size),
  FIELD(TopologyDescription_PlatformName, platform_name_size, SIZE, OUT, 0),
};
static const Field fields_TopologyDescription_PlatformVersion[] = {
  FIELD(TopologyDescription_PlatformVersion, topology, HANDLE, 0, TYPE_TopologyDescription),
  COUNTED(TopologyDescription_PlatformVersion, platform_version, STRING, OUT, 0, platform_version_size),
  FIELD(TopologyDescription_PlatformVersion, platform_version_size, SIZE, OUT, 0),
};
static const Field fields_TopologyDescription_GetDeviceDescriptions[] = {
  FIELD(TopologyDescription_GetDeviceDescriptions, topology, HANDLE, 0, TYPE_TopologyDescription),
  COUNTED(TopologyDescription_GetDeviceDescriptions, descriptions, HANDLES, OUT, TYPE_DeviceDescription, num_descriptions),
  FIELD(TopologyDescription_GetDeviceDescriptions, num_descriptions, SIZE, OUT, 0),
};
static const Field fields_TopologyDescription_Serialize[] = {
  FIELD(TopologyDescription_Serialize, topology, HANDLE, 0, TYPE_TopologyDescription),
  COUNTED(TopologyDescription_Serialize, serialized_bytes, BYTES, OUT, 0, serialized_bytes_size),
  FIELD(TopologyDescription_Serialize, serialized_bytes_size, SIZE, OUT, 0),
  FIELD(TopologyDescription_Serialize, serialized_topology, OPAQUE, OUT, 0),
  FIELD(TopologyDescription_Serialize, serialized_topology_deleter, OPAQUE, OUT, 0),
};
static const Field fields_TopologyDescription_Attributes[] = {
  FIELD(TopologyDescription_Attributes, topology, HANDLE, 0, TYPE_TopologyDescription),
  COUNTED(TopologyDescription_Attributes, attributes, NAMED_VALUES, OUT, 0, num_attributes),
  FIELD(TopologyDescription_Attributes, num_attributes, SIZE, OUT, 0),
};
static const Field fields_Compile[] = {
  FIELD(Compile, topology, HANDLE, 0, TYPE_TopologyDescription),
  FIELD(Compile, program, PROGRAM, 0, 0),
  COUNTED(Compile, compile_options, BYTES, 0, 0, compile_options_size),
  FIELD(Compile, compile_options_size, SIZE, 0, 0),
  FIELD(Compile, client, HANDLE, MAY_BE_NULL, TYPE_Client),
  FIELD(Compile, executable, HANDLE, OUT | OWNED, TYPE_Executable),
};
static const Field fields_Executable_OutputElementTypes[] = {
  FIELD(Executable_OutputElementTypes, executable, HANDLE, 0, TYPE_Executable),
  FIELD(Executable_OutputElementTypes, output_types, OPAQUE, OUT, 0),
  FIELD(Executable_OutputElementTypes, num_output_types, SIZE, OUT, 0),
};
static const Field fields_Executable_OutputDimensions[] = {
  FIELD(Executable_OutputDimensions, executable, HANDLE, 0, TYPE_Executable),
  FIELD(Executable_OutputDimensions, num_outputs, SIZE, OUT, 0),
  FIELD(Executable_OutputDimensions, dims, OPAQUE, OUT, 0),
  FIELD(Executable_OutputDimensions, dim_sizes, OPAQUE, OUT, 0),
};
static const Field fields_Buffer_CopyToMemory[] = {
  FIELD(Buffer_CopyToMemory, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_CopyToMemory, dst_memory, HANDLE, 0, TYPE_Memory),
  FIELD(Buffer_CopyToMemory, dst_buffer, HANDLE, OUT | OWNED, TYPE_Buffer),
};
static const Field fields_Client_CreateViewOfDeviceBuffer[] = {
  FIELD(Client_CreateViewOfDeviceBuffer, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_CreateViewOfDeviceBuffer, device_buffer_ptr, OPAQUE, 0, 0),
  COUNTED(Client_CreateViewOfDeviceBuffer, dims, DIMS, 0, 0, num_dims),
  FIELD(Client_CreateViewOfDeviceBuffer, num_dims, SIZE, 0, 0),
  FIELD(Client_CreateViewOfDeviceBuffer, element_type, ENUM, 0, ENUM_Buffer_Type),
  FIELD(Client_CreateViewOfDeviceBuffer, layout, OPAQUE, 0, 0),
  FIELD(Client_CreateViewOfDeviceBuffer, device, HANDLE, MAY_BE_NULL, TYPE_Device),
  FIELD(Client_CreateViewOfDeviceBuffer, on_delete_callback, OPAQUE, 0, 0),
  FIELD(Client_CreateViewOfDeviceBuffer, on_delete_callback_arg, OPAQUE, 0, 0),
  FIELD(Client_CreateViewOfDeviceBuffer, stream, INT64, 0, 0),
  FIELD(Client_CreateViewOfDeviceBuffer, buffer, HANDLE, OUT | OWNED, TYPE_Buffer),
  FIELD(Client_CreateViewOfDeviceBuffer, memory, HANDLE, MAY_BE_NULL, TYPE_Memory),
};
static const Field fields_Executable_Fingerprint[] = {
  FIELD(Executable_Fingerprint, executable, HANDLE, 0, TYPE_Executable),
  COUNTED(Executable_Fingerprint, executable_fingerprint, STRING, OUT, 0, executable_fingerprint_size),
  FIELD(Executable_Fingerprint, executable_fingerprint_size, SIZE, OUT, 0),
};
static const Field fields_Client_TopologyDescription[] = {
  FIELD(Client_TopologyDescription, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_TopologyDescription, topology, HANDLE, OUT, TYPE_TopologyDescription),
};
static const Field fields_Executable_GetCompiledMemoryStats[] = {
  FIELD(Executable_GetCompiledMemoryStats, executable, HANDLE, 0, TYPE_Executable),
  FIELD(Executable_GetCompiledMemoryStats, generated_code_size_in_bytes, INT64, OUT, 0),
  FIELD(Executable_GetCompiledMemoryStats, argument_size_in_bytes, INT64, OUT, 0),
  FIELD(Executable_GetCompiledMemoryStats, output_size_in_bytes, INT64, OUT, 0),
  FIELD(Executable_GetCompiledMemoryStats, alias_size_in_bytes, INT64, OUT, 0),
  FIELD(Executable_GetCompiledMemoryStats, temp_size_in_bytes, INT64, OUT, 0),
  FIELD(Executable_GetCompiledMemoryStats, host_generated_code_size_in_bytes, INT64, OUT, 0),
  FIELD(Executable_GetCompiledMemoryStats, host_argument_size_in_bytes, INT64, OUT, 0),
  FIELD(Executable_GetCompiledMemoryStats, host_output_size_in_bytes, INT64, OUT, 0),
  FIELD(Executable_GetCompiledMemoryStats, host_alias_size_in_bytes, INT64, OUT, 0),
  FIELD(Executable_GetCompiledMemoryStats, host_temp_size_in_bytes, INT64, OUT, 0),
  FIELD(Executable_GetCompiledMemoryStats, peak_memory_in_bytes, INT64, OUT, 0),
  FIELD(Executable_GetCompiledMemoryStats, total_size_in_bytes, INT64, OUT, 0),
  FIELD(Executable_GetCompiledMemoryStats, total_allocation_bytes, INT64, OUT, 0),
  FIELD(Executable_GetCompiledMemoryStats, indefinite_allocations, INT64, OUT, 0),
  FIELD(Executable_GetCompiledMemoryStats, peak_unpadded_heap_bytes, INT64, OUT, 0),
};
static const Field fields_Memory_Kind_Id[] = {
  FIELD(Memory_Kind_Id, memory, HANDLE, 0, TYPE_Memory),
  FIELD(Memory_Kind_Id, kind_id, INT32, OUT, 0),
};
static const Field fields_ExecuteContext_Create[] = {
  FIELD(ExecuteContext_Create, context, HANDLE, OUT | OWNED, TYPE_ExecuteContext),
};
static const Field fields_ExecuteContext_Destroy[] = {
  FIELD(ExecuteContext_Destroy, context, HANDLE, DESTROYED, TYPE_ExecuteContext),
};
static const Field fields_Buffer_CopyRawToHost[] = {
  FIELD(Buffer_CopyRawToHost, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_CopyRawToHost, dst, OPAQUE, 0, 0),
  FIELD(Buffer_CopyRawToHost, offset, INT64, 0, 0),
  FIELD(Buffer_CopyRawToHost, transfer_size, INT64, 0, 0),
  FIELD(Buffer_CopyRawToHost, event, HANDLE, OUT | OWNED, TYPE_Event),
};
static const Field fields_AsyncHostToDeviceTransferManager_Destroy[] = {
  FIELD(AsyncHostToDeviceTransferManager_Destroy, transfer_manager, HANDLE, DESTROYED, TYPE_AsyncHostToDeviceTransferManager),
};
static const Field fields_AsyncHostToDeviceTransferManager_TransferData[] = {
  FIELD(AsyncHostToDeviceTransferManager_TransferData, transfer_manager, HANDLE, 0, TYPE_AsyncHostToDeviceTransferManager),
  FIELD(AsyncHostToDeviceTransferManager_TransferData, buffer_index, INT32, 0, 0),
  FIELD(AsyncHostToDeviceTransferManager_TransferData, data, OPAQUE, 0, 0),
  FIELD(AsyncHostToDeviceTransferManager_TransferData, offset, INT64, 0, 0),
  FIELD(AsyncHostToDeviceTransferManager_TransferData, transfer_size, INT64, 0, 0),
  FIELD(AsyncHostToDeviceTransferManager_TransferData, is_last_transfer, BOOL, 0, 0),
  FIELD(AsyncHostToDeviceTransferManager_TransferData, done_with_h2d_transfer, HANDLE, OUT | OWNED, TYPE_Event),
};
static const Field fields_Client_CreateBuffersForAsyncHostToDevice[] = {
  FIELD(Client_CreateBuffersForAsyncHostToDevice, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_CreateBuffersForAsyncHostToDevice, shape_specs, OPAQUE, 0, 0),
  FIELD(Client_CreateBuffersForAsyncHostToDevice, num_shape_specs, SIZE, 0, 0),
  FIELD(Client_CreateBuffersForAsyncHostToDevice, device_layouts, OPAQUE, 0, 0),
  FIELD(Client_CreateBuffersForAsyncHostToDevice, num_device_layouts, SIZE, 0, 0),
  FIELD(Client_CreateBuffersForAsyncHostToDevice, memory, HANDLE, MAY_BE_NULL, TYPE_Memory),
  FIELD(Client_CreateBuffersForAsyncHostToDevice, transfer_manager, HANDLE, OUT | OWNED, TYPE_AsyncHostToDeviceTransferManager),
};
static const Field fields_AsyncHostToDeviceTransferManager_RetrieveBuffer[] = {
  FIELD(AsyncHostToDeviceTransferManager_RetrieveBuffer, transfer_manager, HANDLE, 0, TYPE_AsyncHostToDeviceTransferManager),
  FIELD(AsyncHostToDeviceTransferManager_RetrieveBuffer, buffer_index, INT32, 0, 0),
  FIELD(AsyncHostToDeviceTransferManager_RetrieveBuffer, buffer_out, HANDLE, OUT | OWNED, TYPE_Buffer),
};
static const Field fields_AsyncHostToDeviceTransferManager_Device[] = {
  FIELD(AsyncHostToDeviceTransferManager_Device, transfer_manager, HANDLE, 0, TYPE_AsyncHostToDeviceTransferManager),
  FIELD(AsyncHostToDeviceTransferManager_Device, device_out, HANDLE, OUT, TYPE_Device),
};
static const Field fields_AsyncHostToDeviceTransferManager_BufferCount[] = {
  FIELD(AsyncHostToDeviceTransferManager_BufferCount, transfer_manager, HANDLE, 0, TYPE_AsyncHostToDeviceTransferManager),
  FIELD(AsyncHostToDeviceTransferManager_BufferCount, buffer_count, SIZE, OUT, 0),
};
static const Field fields_AsyncHostToDeviceTransferManager_BufferSize[] = {
  FIELD(AsyncHostToDeviceTransferManager_BufferSize, transfer_manager, HANDLE, 0, TYPE_AsyncHostToDeviceTransferManager),
  FIELD(AsyncHostToDeviceTransferManager_BufferSize, buffer_index, INT32, 0, 0),
  FIELD(AsyncHostToDeviceTransferManager_BufferSize, buffer_size, SIZE, OUT, 0),
};
static const Field fields_AsyncHostToDeviceTransferManager_SetBufferError[] = {
  FIELD(AsyncHostToDeviceTransferManager_SetBufferError, transfer_manager, HANDLE, 0, TYPE_AsyncHostToDeviceTransferManager),
  FIELD(AsyncHostToDeviceTransferManager_SetBufferError, buffer_index, INT32, 0, 0),
  FIELD(AsyncHostToDeviceTransferManager_SetBufferError, error_code, ENUM, 0, ENUM_Error_Code),
  COUNTED(AsyncHostToDeviceTransferManager_SetBufferError, error_message, STRING, 0, 0, error_message_size),
  FIELD(AsyncHostToDeviceTransferManager_SetBufferError, error_message_size, SIZE, 0, 0),
};
static const Field fields_AsyncHostToDeviceTransferManager_AddMetadata[] = {
  FIELD(AsyncHostToDeviceTransferManager_AddMetadata, transfer_manager, HANDLE, 0, TYPE_AsyncHostToDeviceTransferManager),
  COUNTED(AsyncHostToDeviceTransferManager_AddMetadata, transfer_metadata, NAMED_VALUES, 0, 0, num_metadata),
  FIELD(AsyncHostToDeviceTransferManager_AddMetadata, num_metadata, SIZE, 0, 0),
};
static const Field fields_Client_DmaMap[] = {
  FIELD(Client_DmaMap, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_DmaMap, data, OPAQUE, 0, 0),
  FIELD(Client_DmaMap, size, SIZE, 0, 0),
};
static const Field fields_Client_DmaUnmap[] = {
  FIELD(Client_DmaUnmap, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_DmaUnmap, data, OPAQUE, 0, 0),
};
static const Field fields_Client_CreateUninitializedBuffer[] = {
  FIELD(Client_CreateUninitializedBuffer, client, HANDLE, 0, TYPE_Client),
  COUNTED(Client_CreateUninitializedBuffer, shape_dims, DIMS, 0, 0, shape_num_dims),
  FIELD(Client_CreateUninitializedBuffer, shape_num_dims, SIZE, 0, 0),
  FIELD(Client_CreateUninitializedBuffer, shape_element_type, ENUM, 0, ENUM_Buffer_Type),
  FIELD(Client_CreateUninitializedBuffer, shape_layout, OPAQUE, 0, 0),
  FIELD(Client_CreateUninitializedBuffer, device, HANDLE, MAY_BE_NULL, TYPE_Device),
  FIELD(Client_CreateUninitializedBuffer, memory, HANDLE, MAY_BE_NULL, TYPE_Memory),
  FIELD(Client_CreateUninitializedBuffer, buffer, HANDLE, OUT | OWNED, TYPE_Buffer),
};
static const Field fields_Client_UpdateGlobalProcessInfo[] = {
  FIELD(Client_UpdateGlobalProcessInfo, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_UpdateGlobalProcessInfo, process_infos, OPAQUE, 0, 0),
  FIELD(Client_UpdateGlobalProcessInfo, num_process_infos, SIZE, 0, 0),
};
static const Field fields_TopologyDescription_Deserialize[] = {
  COUNTED(TopologyDescription_Deserialize, serialized_topology, BYTES, 0, 0, serialized_topology_size),
  FIELD(TopologyDescription_Deserialize, serialized_topology_size, SIZE, 0, 0),
  FIELD(TopologyDescription_Deserialize, topology, HANDLE, OUT | OWNED, TYPE_TopologyDescription),
};
static const Field fields_Client_CreateAliasBuffer[] = {
  FIELD(Client_CreateAliasBuffer, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_CreateAliasBuffer, memory, HANDLE, MAY_BE_NULL, TYPE_Memory),
  COUNTED(Client_CreateAliasBuffer, shape_dims, DIMS, 0, 0, shape_num_dims),
  FIELD(Client_CreateAliasBuffer, shape_num_dims, SIZE, 0, 0),
  FIELD(Client_CreateAliasBuffer, shape_element_type, ENUM, 0, ENUM_Buffer_Type),
  FIELD(Client_CreateAliasBuffer, shape_layout, OPAQUE, 0, 0),
  FIELD(Client_CreateAliasBuffer, alias_buffer, HANDLE, OUT | OWNED, TYPE_Buffer),
  FIELD(Client_CreateAliasBuffer, fulfill_alias_buffer_cb, HANDLE, OUT | OWNED, TYPE_FulfillAliasBufferCallback),
};
static const Field fields_Client_FulfillAliasBuffer[] = {
  FIELD(Client_FulfillAliasBuffer, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_FulfillAliasBuffer, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Client_FulfillAliasBuffer, status_code, ENUM, 0, ENUM_Error_Code),
  COUNTED(Client_FulfillAliasBuffer, error_message, STRING, 0, 0, error_message_size),
  FIELD(Client_FulfillAliasBuffer, error_message_size, SIZE, 0, 0),
  FIELD(Client_FulfillAliasBuffer, fulfill_alias_buffer_cb, HANDLE, DESTROYED, TYPE_FulfillAliasBufferCallback),
};
static const Field fields_LoadedExecutable_GetDeviceAssignment[] = {
  FIELD(LoadedExecutable_GetDeviceAssignment, executable, HANDLE, 0, TYPE_LoadedExecutable),
  COUNTED(LoadedExecutable_GetDeviceAssignment, serialized_bytes, BYTES, OUT, 0, serialized_bytes_size),
  FIELD(LoadedExecutable_GetDeviceAssignment, serialized_bytes_size, SIZE, OUT, 0),
  FIELD(LoadedExecutable_GetDeviceAssignment, serialized_device_assignment, OPAQUE, 0, 0),
  FIELD(LoadedExecutable_GetDeviceAssignment, serialized_device_assignment_deleter, OPAQUE, OUT, 0),
};
static const Field fields_Client_CreateErrorBuffer[] = {
  FIELD(Client_CreateErrorBuffer, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_CreateErrorBuffer, error_code, ENUM, 0, ENUM_Error_Code),
  COUNTED(Client_CreateErrorBuffer, error_message, STRING, 0, 0, error_message_size),
  FIELD(Client_CreateErrorBuffer, error_message_size, SIZE, 0, 0),
  COUNTED(Client_CreateErrorBuffer, shape_dims, DIMS, 0, 0, shape_num_dims),
  FIELD(Client_CreateErrorBuffer, shape_num_dims, SIZE, 0, 0),
  FIELD(Client_CreateErrorBuffer, shape_element_type, ENUM, 0, ENUM_Buffer_Type),
  FIELD(Client_CreateErrorBuffer, shape_layout, OPAQUE, 0, 0),
  FIELD(Client_CreateErrorBuffer, memory, HANDLE, MAY_BE_NULL, TYPE_Memory),
  FIELD(Client_CreateErrorBuffer, buffer, HANDLE, OUT | OWNED, TYPE_Buffer),
  COUNTED(Client_CreateErrorBuffer, payload, NAMED_VALUES, 0, 0, num_payload),
  FIELD(Client_CreateErrorBuffer, num_payload, SIZE, 0, 0),
};
static const Field fields_AsyncHostToDeviceTransferManager_TransferLiteral[] = {
  FIELD(AsyncHostToDeviceTransferManager_TransferLiteral, transfer_manager, HANDLE, 0, TYPE_AsyncHostToDeviceTransferManager),
  FIELD(AsyncHostToDeviceTransferManager_TransferLiteral, buffer_index, INT32, 0, 0),
  FIELD(AsyncHostToDeviceTransferManager_TransferLiteral, data, OPAQUE, 0, 0),
  COUNTED(AsyncHostToDeviceTransferManager_TransferLiteral, shape_dims, DIMS, 0, 0, shape_num_dims),
  FIELD(AsyncHostToDeviceTransferManager_TransferLiteral, shape_num_dims, SIZE, 0, 0),
  FIELD(AsyncHostToDeviceTransferManager_TransferLiteral, shape_element_type, ENUM, 0, ENUM_Buffer_Type),
  FIELD(AsyncHostToDeviceTransferManager_TransferLiteral, shape_layout, OPAQUE, 0, 0),
  FIELD(AsyncHostToDeviceTransferManager_TransferLiteral, done_with_h2d_transfer, HANDLE, OUT | OWNED, TYPE_Event),
};
static const Field fields_Buffer_CopyRawToHostFuture[] = {
  FIELD(Buffer_CopyRawToHostFuture, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_CopyRawToHostFuture, offset, INT64, 0, 0),
  FIELD(Buffer_CopyRawToHostFuture, transfer_size, INT64, 0, 0),
  FIELD(Buffer_CopyRawToHostFuture, event, HANDLE, OUT | OWNED | MAY_BE_NULL, TYPE_Event),
  FIELD(Buffer_CopyRawToHostFuture, callback_data, OPAQUE, OUT, 0),
  FIELD(Buffer_CopyRawToHostFuture, future_ready_callback, OPAQUE, OUT, 0),
};
static const Field fields_Device_PoisonExecution[] = {
  FIELD(Device_PoisonExecution, device, HANDLE, 0, TYPE_Device),
  FIELD(Device_PoisonExecution, launch_id, INT32, 0, 0),
  FIELD(Device_PoisonExecution, error_code, ENUM, 0, ENUM_Error_Code),
  COUNTED(Device_PoisonExecution, error_message, STRING, 0, 0, error_message_size),
  FIELD(Device_PoisonExecution, error_message_size, SIZE, 0, 0),
  FIELD(Device_PoisonExecution, poisoned, BOOL, OUT, 0),
  COUNTED(Device_PoisonExecution, payload, NAMED_VALUES, 0, 0, num_payload),
  FIELD(Device_PoisonExecution, num_payload, SIZE, 0, 0),
};
static const Field fields_Device_CreateAsyncTrackingEvent[] = {
  FIELD(Device_CreateAsyncTrackingEvent, device, HANDLE, 0, TYPE_Device),
  COUNTED(Device_CreateAsyncTrackingEvent, description, STRING, 0, 0, description_size),
  FIELD(Device_CreateAsyncTrackingEvent, description_size, SIZE, 0, 0),
  FIELD(Device_CreateAsyncTrackingEvent, event, HANDLE, OUT | OWNED, TYPE_AsyncTrackingEvent),
};
static const Field fields_AsyncTrackingEvent_Destroy[] = {
  FIELD(AsyncTrackingEvent_Destroy, event, HANDLE, DESTROYED, TYPE_AsyncTrackingEvent),
};
static const Field fields_Executable_GetCompileOptions[] = {
  FIELD(Executable_GetCompileOptions, executable, HANDLE, 0, TYPE_Executable),
  COUNTED(Executable_GetCompileOptions, serialized_bytes, BYTES, OUT, 0, serialized_bytes_size),
  FIELD(Executable_GetCompileOptions, serialized_bytes_size, SIZE, OUT, 0),
  FIELD(Executable_GetCompileOptions, serialized_compile_options, OPAQUE, 0, 0),
  FIELD(Executable_GetCompileOptions, serialized_compile_options_deleter, OPAQUE, OUT, 0),
};
static const Field fields_Buffer_DonateWithControlDependency[] = {
  FIELD(Buffer_DonateWithControlDependency, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_DonateWithControlDependency, callback_data, OPAQUE, OUT, 0),
  FIELD(Buffer_DonateWithControlDependency, dependency_ready_callback, OPAQUE, OUT, 0),
  FIELD(Buffer_DonateWithControlDependency, out_buffer, HANDLE, OUT | OWNED | MAY_BE_NULL, TYPE_Buffer),
};
static const Field fields_Event_Create[] = {
  FIELD(Event_Create, event, HANDLE, OUT | OWNED, TYPE_Event),
};
static const Field fields_Event_Set[] = {
  FIELD(Event_Set, event, HANDLE, 0, TYPE_Event),
  FIELD(Event_Set, error_code, ENUM, 0, ENUM_Error_Code),
  COUNTED(Event_Set, error_message, STRING, 0, 0, error_message_size),
  FIELD(Event_Set, error_message_size, SIZE, 0, 0),
};
static const Field fields_Device_GetAttributes[] = {
  FIELD(Device_GetAttributes, device, HANDLE, 0, TYPE_Device),
  COUNTED(Device_GetAttributes, attributes, NAMED_VALUES, OUT, 0, num_attributes),
  FIELD(Device_GetAttributes, num_attributes, SIZE, OUT, 0),
  FIELD(Device_GetAttributes, device_attributes, OPAQUE, OUT, 0),
  FIELD(Device_GetAttributes, attributes_deleter, OPAQUE, OUT, 0),
};
static const Field fields_Client_Load[] = {
  FIELD(Client_Load, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_Load, executable, HANDLE, 0, TYPE_Executable),
  COUNTED(Client_Load, compile_options, BYTES, 0, 0, compile_options_size),
  FIELD(Client_Load, compile_options_size, SIZE, 0, 0),
  FIELD(Client_Load, loaded_executable, HANDLE, OUT | OWNED, TYPE_LoadedExecutable),
};
static const Field fields_LoadedExecutable_AddressableDeviceLogicalIds[] = {
  FIELD(LoadedExecutable_AddressableDeviceLogicalIds, executable, HANDLE, 0, TYPE_LoadedExecutable),
  FIELD(LoadedExecutable_AddressableDeviceLogicalIds, addressable_device_logical_ids, OPAQUE, OUT, 0),
  FIELD(LoadedExecutable_AddressableDeviceLogicalIds, num_addressable_device_logical_ids, SIZE, OUT, 0),
};
static const Field fields_Buffer_Bitcast[] = {
  FIELD(Buffer_Bitcast, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Buffer_Bitcast, element_type, ENUM, 0, ENUM_Buffer_Type),
  COUNTED(Buffer_Bitcast, dims, DIMS, 0, 0, num_dims),
  FIELD(Buffer_Bitcast, num_dims, SIZE, 0, 0),
  FIELD(Buffer_Bitcast, device_layout, OPAQUE, 0, 0),
  FIELD(Buffer_Bitcast, out_buffer, HANDLE, OUT | OWNED, TYPE_Buffer),
};
static const Field fields_Error_ForEachPayload[] = {
  FIELD(Error_ForEachPayload, error, HANDLE, 0, TYPE_Error),
  FIELD(Error_ForEachPayload, visitor, OPAQUE, 0, 0),
  FIELD(Error_ForEachPayload, user_arg, OPAQUE, 0, 0),
};
static const Field fields_TopologyDescription_Fingerprint[] = {
  FIELD(TopologyDescription_Fingerprint, topology, HANDLE, 0, TYPE_TopologyDescription),
  FIELD(TopologyDescription_Fingerprint, fingerprint, SIZE, OUT, 0),
};
static const Field fields_Executable_ParameterMemoryKinds[] = {
  FIELD(Executable_ParameterMemoryKinds, executable, HANDLE, 0, TYPE_Executable),
  FIELD(Executable_ParameterMemoryKinds, num_parameters, SIZE, OUT, 0),
  FIELD(Executable_ParameterMemoryKinds, memory_kinds, OPAQUE, OUT, 0),
  FIELD(Executable_ParameterMemoryKinds, memory_kind_sizes, OPAQUE, OUT, 0),
};
static const Field fields_Device_ClearMemoryStats[] = {
  FIELD(Device_ClearMemoryStats, device, HANDLE, 0, TYPE_Device),
};
static const Field fields_TopologyDescription_MakeCanonicalShapeForMemorySpace[] = {
  FIELD(TopologyDescription_MakeCanonicalShapeForMemorySpace, topology, HANDLE, 0, TYPE_TopologyDescription),
  FIELD(TopologyDescription_MakeCanonicalShapeForMemorySpace, memory_space_kind_id, INT32, 0, 0),
  COUNTED(TopologyDescription_MakeCanonicalShapeForMemorySpace, dims, DIMS, 0, 0, num_dims),
  FIELD(TopologyDescription_MakeCanonicalShapeForMemorySpace, num_dims, SIZE, 0, 0),
  FIELD(TopologyDescription_MakeCanonicalShapeForMemorySpace, element_type, ENUM, 0, ENUM_Buffer_Type),
  FIELD(TopologyDescription_MakeCanonicalShapeForMemorySpace, layout, OPAQUE, 0, 0),
  COUNTED(TopologyDescription_MakeCanonicalShapeForMemorySpace, serialized_shape, BYTES, OUT, 0, serialized_shape_size),
  FIELD(TopologyDescription_MakeCanonicalShapeForMemorySpace, serialized_shape_size, SIZE, OUT, 0),
  FIELD(TopologyDescription_MakeCanonicalShapeForMemorySpace, serialized_shape_deleter, OPAQUE, OUT, 0),
};
static const Field fields_TopologyDescription_GetMemorySpaceKindIds[] = {
  FIELD(TopologyDescription_GetMemorySpaceKindIds, topology, HANDLE, 0, TYPE_TopologyDescription),
  FIELD(TopologyDescription_GetMemorySpaceKindIds, memory_space_kind_ids, OPAQUE, OUT, 0),
  FIELD(TopologyDescription_GetMemorySpaceKindIds, num_memory_space_kind_ids, SIZE, OUT, 0),
};
static const Field fields_Layouts_MemoryLayout_Destroy[] = {
  FIELD(Layouts_MemoryLayout_Destroy, layout, HANDLE, DESTROYED, TYPE_Layouts_MemoryLayout),
};
static const Field fields_Layouts_MemoryLayout_Serialize[] = {
  FIELD(Layouts_MemoryLayout_Serialize, layout, HANDLE, 0, TYPE_Layouts_MemoryLayout),
  COUNTED(Layouts_MemoryLayout_Serialize, serialized_bytes, BYTES, OUT, 0, serialized_bytes_size),
  FIELD(Layouts_MemoryLayout_Serialize, serialized_bytes_size, SIZE, OUT, 0),
  FIELD(Layouts_MemoryLayout_Serialize, serialized_layout, OPAQUE, OUT, 0),
  FIELD(Layouts_MemoryLayout_Serialize, serialized_layout_deleter, OPAQUE, OUT, 0),
};
static const Field fields_Layouts_Client_GetDefaultLayout[] = {
  FIELD(Layouts_Client_GetDefaultLayout, client, HANDLE, 0, TYPE_Client),
  FIELD(Layouts_Client_GetDefaultLayout, type, ENUM, 0, ENUM_Buffer_Type),
  COUNTED(Layouts_Client_GetDefaultLayout, dims, DIMS, 0, 0, num_dims),
  FIELD(Layouts_Client_GetDefaultLayout, num_dims, SIZE, 0, 0),
  FIELD(Layouts_Client_GetDefaultLayout, layout, HANDLE, OUT | OWNED, TYPE_Layouts_MemoryLayout),
};
static const Field fields_Layouts_Buffer_MemoryLayout[] = {
  FIELD(Layouts_Buffer_MemoryLayout, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Layouts_Buffer_MemoryLayout, layout, HANDLE, OUT | OWNED, TYPE_Layouts_MemoryLayout),
};
static const Field fields_Layouts_Topology_GetDefaultLayout[] = {
  FIELD(Layouts_Topology_GetDefaultLayout, topology_description, HANDLE, 0, TYPE_TopologyDescription),
  FIELD(Layouts_Topology_GetDefaultLayout, type, ENUM, 0, ENUM_Buffer_Type),
  COUNTED(Layouts_Topology_GetDefaultLayout, dims, DIMS, 0, 0, num_dims),
  FIELD(Layouts_Topology_GetDefaultLayout, num_dims, SIZE, 0, 0),
  FIELD(Layouts_Topology_GetDefaultLayout, layout, HANDLE, OUT | OWNED, TYPE_Layouts_MemoryLayout),
};
static const Field fields_Layouts_Executable_GetOutputLayouts[] = {
  FIELD(Layouts_Executable_GetOutputLayouts, executable, HANDLE, 0, TYPE_Executable),
  FIELD(Layouts_Executable_GetOutputLayouts, num_outputs, SIZE, OUT, 0),
  COUNTED(Layouts_Executable_GetOutputLayouts, layouts, HANDLES, OUT, TYPE_Layouts_MemoryLayout, num_outputs),
};
static const Field fields_Layouts_Executable_GetParameterLayouts[] = {
  FIELD(Layouts_Executable_GetParameterLayouts, executable, HANDLE, 0, TYPE_Executable),
  FIELD(Layouts_Executable_GetParameterLayouts, num_parameters, SIZE, OUT, 0),
  COUNTED(Layouts_Executable_GetParameterLayouts, layouts, HANDLES, OUT, TYPE_Layouts_MemoryLayout, num_parameters),
};
static const Field fields_Shardings_Executable_ParameterShardings[] = {
  FIELD(Shardings_Executable_ParameterShardings, executable, HANDLE, 0, TYPE_Executable),
  FIELD(Shardings_Executable_ParameterShardings, num_parameters, SIZE, OUT, 0),
  FIELD(Shardings_Executable_ParameterShardings, shardings, OPAQUE, OUT, 0),
  FIELD(Shardings_Executable_ParameterShardings, sharding_sizes, OPAQUE, OUT, 0),
};
static const Field fields_Shardings_Executable_OutputShardings[] = {
  FIELD(Shardings_Executable_OutputShardings, executable, HANDLE, 0, TYPE_Executable),
  FIELD(Shardings_Executable_OutputShardings, num_outputs, SIZE, OUT, 0),
  FIELD(Shardings_Executable_OutputShardings, shardings, OPAQUE, OUT, 0),
  FIELD(Shardings_Executable_OutputShardings, sharding_sizes, OPAQUE, OUT, 0),
};
static const Field fields_FFI_Type_Register[] = {
  COUNTED(FFI_Type_Register, type_name, STRING, 0, 0, type_name_size),
  FIELD(FFI_Type_Register, type_name_size, SIZE, 0, 0),
  FIELD(FFI_Type_Register, type_id, INT64, 0, 0),
  FIELD(FFI_Type_Register, type_info, OPAQUE, 0, 0),
};
static const Field fields_FFI_UserData_Add[] = {
  FIELD(FFI_UserData_Add, context, HANDLE, 0, TYPE_ExecuteContext),
  FIELD(FFI_UserData_Add, user_data, OPAQUE, 0, 0),
};
static const Field fields_FFI_Register_Handler[] = {
  COUNTED(FFI_Register_Handler, target_name, STRING, 0, 0, target_name_size),
  FIELD(FFI_Register_Handler, target_name_size, SIZE, 0, 0),
  FIELD(FFI_Register_Handler, handler, OPAQUE, 0, 0),
  COUNTED(FFI_Register_Handler, platform_name, STRING, 0, 0, platform_name_size),
  FIELD(FFI_Register_Handler, platform_name_size, SIZE, 0, 0),
  FIELD(FFI_Register_Handler, traits, INT32, 0, 0),
};
static const Field fields_DeviceDescription_MemoryDescriptions[] = {
  FIELD(DeviceDescription_MemoryDescriptions, device_description, HANDLE, 0, TYPE_DeviceDescription),
  COUNTED(DeviceDescription_MemoryDescriptions, memory_descriptions, HANDLES, OUT, TYPE_MemoryDescription, num_memory_descriptions),
  FIELD(DeviceDescription_MemoryDescriptions, num_memory_descriptions, SIZE, OUT, 0),
  FIELD(DeviceDescription_MemoryDescriptions, default_memory_index, SIZE, OUT, 0),
};
static const Field fields_MemoryDescription_Kind[] = {
  FIELD(MemoryDescription_Kind, memory_description, HANDLE, 0, TYPE_MemoryDescription),
  COUNTED(MemoryDescription_Kind, kind, STRING, OUT, 0, kind_size),
  FIELD(MemoryDescription_Kind, kind_size, SIZE, OUT, 0),
  FIELD(MemoryDescription_Kind, kind_id, INT32, OUT, 0),
};
static const Field fields_Client_RuntimeAbiVersion[] = {
  FIELD(Client_RuntimeAbiVersion, client, HANDLE, 0, TYPE_Client),
  FIELD(Client_RuntimeAbiVersion, abi_version, HANDLE, OUT | OWNED, TYPE_RuntimeAbiVersion),
};
static const Field fields_Executable_GetAbiVersion[] = {
  FIELD(Executable_GetAbiVersion, executable, HANDLE, 0, TYPE_Executable),
  FIELD(Executable_GetAbiVersion, abi_version, HANDLE, OUT | OWNED, TYPE_ExecutableAbiVersion),
};
static const Field fields_RuntimeAbiVersion_Destroy[] = {
  FIELD(RuntimeAbiVersion_Destroy, abi_version, HANDLE, DESTROYED, TYPE_RuntimeAbiVersion),
};
static const Field fields_RuntimeAbiVersion_IsCompatibleWithRuntime[] = {
  FIELD(RuntimeAbiVersion_IsCompatibleWithRuntime, abi_version, HANDLE, 0, TYPE_RuntimeAbiVersion),
  FIELD(RuntimeAbiVersion_IsCompatibleWithRuntime, other_abi_version, HANDLE, 0, TYPE_RuntimeAbiVersion),
};
static const Field fields_RuntimeAbiVersion_IsCompatibleWithExecutable[] = {
  FIELD(RuntimeAbiVersion_IsCompatibleWithExecutable, abi_version, HANDLE, 0, TYPE_RuntimeAbiVersion),
  FIELD(RuntimeAbiVersion_IsCompatibleWithExecutable, executable_abi_version, HANDLE, 0, TYPE_ExecutableAbiVersion),
};
static const Field fields_RuntimeAbiVersion_ToProto[] = {
  FIELD(RuntimeAbiVersion_ToProto, abi_version, HANDLE, 0, TYPE_RuntimeAbiVersion),
  COUNTED(RuntimeAbiVersion_ToProto, serialized_proto, BYTES, OUT, 0, serialized_proto_size),
  FIELD(RuntimeAbiVersion_ToProto, serialized_proto_size, SIZE, OUT, 0),
  FIELD(RuntimeAbiVersion_ToProto, serialized_proto_holder, OPAQUE, OUT, 0),
  FIELD(RuntimeAbiVersion_ToProto, serialized_proto_deleter, OPAQUE, OUT, 0),
};
static const Field fields_RuntimeAbiVersion_PlatformId[] = {
  FIELD(RuntimeAbiVersion_PlatformId, abi_version, HANDLE, 0, TYPE_RuntimeAbiVersion),
  FIELD(RuntimeAbiVersion_PlatformId, platform_id, SIZE, OUT, 0),
};
static const Field fields_ExecutableAbiVersion_Destroy[] = {
  FIELD(ExecutableAbiVersion_Destroy, abi_version, HANDLE, DESTROYED, TYPE_ExecutableAbiVersion),
};
static const Field fields_ExecutableAbiVersion_ToProto[] = {
  FIELD(ExecutableAbiVersion_ToProto, abi_version, HANDLE, 0, TYPE_ExecutableAbiVersion),
  COUNTED(ExecutableAbiVersion_ToProto, serialized_proto, BYTES, OUT, 0, serialized_proto_size),
  FIELD(ExecutableAbiVersion_ToProto, serialized_proto_size, SIZE, OUT, 0),
  FIELD(ExecutableAbiVersion_ToProto, serialized_proto_holder, OPAQUE, OUT, 0),
  FIELD(ExecutableAbiVersion_ToProto, serialized_proto_deleter, OPAQUE, OUT, 0),
};
static const Field fields_ExecutableAbiVersion_PlatformId[] = {
  FIELD(ExecutableAbiVersion_PlatformId, abi_version, HANDLE, 0, TYPE_ExecutableAbiVersion),
  FIELD(ExecutableAbiVersion_PlatformId, platform_id, SIZE, OUT, 0),
};
static const Field fields_RuntimeAbiVersion_FromProto[] = {
  COUNTED(RuntimeAbiVersion_FromProto, serialized_proto, BYTES, 0, 0, serialized_proto_size),
  FIELD(RuntimeAbiVersion_FromProto, serialized_proto_size, SIZE, 0, 0),
  FIELD(RuntimeAbiVersion_FromProto, abi_version, HANDLE, OUT | OWNED, TYPE_RuntimeAbiVersion),
};
static const Field fields_ExecutableAbiVersion_FromProto[] = {
  COUNTED(ExecutableAbiVersion_FromProto, serialized_proto, BYTES, 0, 0, serialized_proto_size),
  FIELD(ExecutableAbiVersion_FromProto, serialized_proto_size, SIZE, 0, 0),
  FIELD(ExecutableAbiVersion_FromProto, abi_version, HANDLE, OUT | OWNED, TYPE_ExecutableAbiVersion),
};
static const Field fields_Get_Stream_For_External_Ready_Events[] = {
  FIELD(Get_Stream_For_External_Ready_Events, device, HANDLE, 0, TYPE_Device),
  FIELD(Get_Stream_For_External_Ready_Events, stream, INT64, OUT, 0),
};
static const Field fields_Wait_Until_Buffer_Ready_On_Stream[] = {
  FIELD(Wait_Until_Buffer_Ready_On_Stream, stream, INT64, 0, 0),
  FIELD(Wait_Until_Buffer_Ready_On_Stream, buffer, HANDLE, 0, TYPE_Buffer),
};
static const Field fields_RawBuffer_CreateRawAliasOfBuffer[] = {
  FIELD(RawBuffer_CreateRawAliasOfBuffer, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(RawBuffer_CreateRawAliasOfBuffer, raw_buffer, HANDLE, OUT | OWNED, TYPE_RawBuffer),
};
static const Field fields_RawBuffer_Destroy[] = {
  FIELD(RawBuffer_Destroy, buffer, HANDLE, DESTROYED, TYPE_RawBuffer),
};
static const Field fields_RawBuffer_GetOnDeviceSizeInBytes[] = {
  FIELD(RawBuffer_GetOnDeviceSizeInBytes, buffer, HANDLE, 0, TYPE_RawBuffer),
  FIELD(RawBuffer_GetOnDeviceSizeInBytes, on_device_size_in_bytes, SIZE, OUT, 0),
};
static const Field fields_RawBuffer_GetMemorySpace[] = {
  FIELD(RawBuffer_GetMemorySpace, buffer, HANDLE, 0, TYPE_RawBuffer),
  FIELD(RawBuffer_GetMemorySpace, memory_space, HANDLE, OUT, TYPE_Memory),
};
static const Field fields_RawBuffer_CopyRawHostToDevice[] = {
  FIELD(RawBuffer_CopyRawHostToDevice, buffer, HANDLE, 0, TYPE_RawBuffer),
  FIELD(RawBuffer_CopyRawHostToDevice, src, OPAQUE, 0, 0),
  FIELD(RawBuffer_CopyRawHostToDevice, offset, INT64, 0, 0),
  FIELD(RawBuffer_CopyRawHostToDevice, transfer_size, INT64, 0, 0),
  FIELD(RawBuffer_CopyRawHostToDevice, event, HANDLE, OUT | OWNED, TYPE_Event),
};
static const Field fields_RawBuffer_CopyRawDeviceToHost[] = {
  FIELD(RawBuffer_CopyRawDeviceToHost, buffer, HANDLE, 0, TYPE_RawBuffer),
  FIELD(RawBuffer_CopyRawDeviceToHost, dst, OPAQUE, 0, 0),
  FIELD(RawBuffer_CopyRawDeviceToHost, offset, INT64, 0, 0),
  FIELD(RawBuffer_CopyRawDeviceToHost, transfer_size, INT64, 0, 0),
  FIELD(RawBuffer_CopyRawDeviceToHost, event, HANDLE, OUT | OWNED, TYPE_Event),
};
static const Field fields_RawBuffer_GetHostPointer[] = {
  FIELD(RawBuffer_GetHostPointer, buffer, HANDLE, 0, TYPE_RawBuffer),
  FIELD(RawBuffer_GetHostPointer, host_pointer, OPAQUE, OUT, 0),
};
static const Field fields_PhaseCompile_Get_Compiler[] = {
  FIELD(PhaseCompile_Get_Compiler, phase_compiler, HANDLE, OUT | OWNED, TYPE_PhaseCompiler),
};
static const Field fields_PhaseCompile_Destroy_Compiler[] = {
  FIELD(PhaseCompile_Destroy_Compiler, phase_compiler, HANDLE, DESTROYED, TYPE_PhaseCompiler),
};
static const Field fields_PhaseCompile_Run_Phase[] = {
  FIELD(PhaseCompile_Run_Phase, phase_compiler, HANDLE, 0, TYPE_PhaseCompiler),
  FIELD(PhaseCompile_Run_Phase, input_programs, OPAQUE, 0, 0),
  FIELD(PhaseCompile_Run_Phase, input_programs_sizes, OPAQUE, 0, 0),
  FIELD(PhaseCompile_Run_Phase, num_input_programs, SIZE, 0, 0),
  FIELD(PhaseCompile_Run_Phase, phases_to_run, OPAQUE, 0, 0),
  FIELD(PhaseCompile_Run_Phase, phases_to_run_sizes, OPAQUE, 0, 0),
  FIELD(PhaseCompile_Run_Phase, num_phases_to_run, SIZE, 0, 0),
  COUNTED(PhaseCompile_Run_Phase, compile_options, BYTES, 0, 0, compile_options_size),
  FIELD(PhaseCompile_Run_Phase, compile_options_size, SIZE, 0, 0),
  FIELD(PhaseCompile_Run_Phase, topology, HANDLE, MAY_BE_NULL, TYPE_TopologyDescription),
  FIELD(PhaseCompile_Run_Phase, output_programs, OPAQUE, OUT, 0),
  FIELD(PhaseCompile_Run_Phase, output_programs_sizes, OPAQUE, OUT, 0),
  FIELD(PhaseCompile_Run_Phase, num_output_programs, SIZE, OUT, 0),
};
static const Field fields_PhaseCompile_Get_PhaseNames[] = {
  FIELD(PhaseCompile_Get_PhaseNames, phase_compiler, HANDLE, 0, TYPE_PhaseCompiler),
  FIELD(PhaseCompile_Get_PhaseNames, phase_names, OPAQUE, OUT, 0),
  FIELD(PhaseCompile_Get_PhaseNames, phase_names_sizes, OPAQUE, OUT, 0),
  FIELD(PhaseCompile_Get_PhaseNames, num_phase_names, SIZE, OUT, 0),
};
static const Field fields_PhaseCompile_C_Buffers_Destroy[] = {
  FIELD(PhaseCompile_C_Buffers_Destroy, char_buffers, OPAQUE, 0, 0),
  FIELD(PhaseCompile_C_Buffers_Destroy, char_buffer_sizes, OPAQUE, 0, 0),
  FIELD(PhaseCompile_C_Buffers_Destroy, num_char_buffers, SIZE, 0, 0),
};
static const Field fields_Callback_RegisterCallback[] = {
  FIELD(Callback_RegisterCallback, client, HANDLE, 0, TYPE_Client),
  FIELD(Callback_RegisterCallback, type, ENUM, 0, ENUM_Callback_Type),
  FIELD(Callback_RegisterCallback, callback, OPAQUE, 0, 0),
  FIELD(Callback_RegisterCallback, user_arg, OPAQUE, 0, 0),
};
static const Field fields_Callback_InvokeCallback[] = {
  FIELD(Callback_InvokeCallback, client, HANDLE, 0, TYPE_Client),
  FIELD(Callback_InvokeCallback, type, ENUM, 0, ENUM_Callback_Type),
  FIELD(Callback_InvokeCallback, args, OPAQUE, 0, 0),
};
static const Field fields_Transfers_Client_MakeCrossHostReceiveBuffers[] = {
  FIELD(Transfers_Client_MakeCrossHostReceiveBuffers, client, HANDLE, 0, TYPE_Client),
  FIELD(Transfers_Client_MakeCrossHostReceiveBuffers, num_shapes, SIZE, 0, 0),
  FIELD(Transfers_Client_MakeCrossHostReceiveBuffers, shape_num_dims, OPAQUE, 0, 0),
  FIELD(Transfers_Client_MakeCrossHostReceiveBuffers, num_dims, OPAQUE, 0, 0),
  FIELD(Transfers_Client_MakeCrossHostReceiveBuffers, element_types, OPAQUE, 0, 0),
  FIELD(Transfers_Client_MakeCrossHostReceiveBuffers, layouts, OPAQUE, 0, 0),
  FIELD(Transfers_Client_MakeCrossHostReceiveBuffers, device, HANDLE, 0, TYPE_Device),
  FIELD(Transfers_Client_MakeCrossHostReceiveBuffers, notifier, OPAQUE, 0, 0),
  COUNTED(Transfers_Client_MakeCrossHostReceiveBuffers, buffers, HANDLES, OUT | OWNED, TYPE_Buffer, num_buffers),
  FIELD(Transfers_Client_MakeCrossHostReceiveBuffers, num_buffers, SIZE, OUT, 0),
  FIELD(Transfers_Client_MakeCrossHostReceiveBuffers, allow_cancel_notifier, BOOL, 0, 0),
};
static const Field fields_Transfers_Buffer_CopyToRemoteDevice[] = {
  FIELD(Transfers_Buffer_CopyToRemoteDevice, buffer, HANDLE, 0, TYPE_Buffer),
  FIELD(Transfers_Buffer_CopyToRemoteDevice, event, HANDLE, MAY_BE_NULL, TYPE_Event),
  FIELD(Transfers_Buffer_CopyToRemoteDevice, serialized_descriptor, OPAQUE, 0, 0),
  FIELD(Transfers_Buffer_CopyToRemoteDevice, serialized_descriptor_size, OPAQUE, 0, 0),
  FIELD(Transfers_Buffer_CopyToRemoteDevice, on_done, OPAQUE, 0, 0),
  FIELD(Transfers_Buffer_CopyToRemoteDevice, descriptor_destructor, OPAQUE, 0, 0),
};
static const Field fields_Transfers_Client_CrossHostReceiveBuffers[] = {
  FIELD(Transfers_Client_CrossHostReceiveBuffers, client, HANDLE, 0, TYPE_Client),
  FIELD(Transfers_Client_CrossHostReceiveBuffers, num_shapes, SIZE, 0, 0),
  FIELD(Transfers_Client_CrossHostReceiveBuffers, shape_num_dims, OPAQUE, 0, 0),
  FIELD(Transfers_Client_CrossHostReceiveBuffers, num_dims, OPAQUE, 0, 0),
  FIELD(Transfers_Client_CrossHostReceiveBuffers, element_types, OPAQUE, 0, 0),
  FIELD(Transfers_Client_CrossHostReceiveBuffers, layouts, OPAQUE, 0, 0),
  FIELD(Transfers_Client_CrossHostReceiveBuffers, device, HANDLE, 0, TYPE_Device),
  FIELD(Transfers_Client_CrossHostReceiveBuffers, src_global_device_ids, OPAQUE, 0, 0),
  FIELD(Transfers_Client_CrossHostReceiveBuffers, transfer_keys, OPAQUE, 0, 0),
  COUNTED(Transfers_Client_CrossHostReceiveBuffers, buffers, HANDLES, OUT | OWNED, TYPE_Buffer, num_shapes),
  FIELD(Transfers_Client_CrossHostReceiveBuffers, num_tasks, SIZE, 0, 0),
  FIELD(Transfers_Client_CrossHostReceiveBuffers, task_ids, OPAQUE, 0, 0),
  FIELD(Transfers_Client_CrossHostReceiveBuffers, incarnation_ids, OPAQUE, 0, 0),
};
static const Field fields_Transfers_Client_CrossHostSendBuffers[] = {
  FIELD(Transfers_Client_CrossHostSendBuffers, client, HANDLE, 0, TYPE_Client),
  FIELD(Transfers_Client_CrossHostSendBuffers, num_buffers, SIZE, 0, 0),
  COUNTED(Transfers_Client_CrossHostSendBuffers, buffers, HANDLES, 0, TYPE_Buffer, num_buffers),
  FIELD(Transfers_Client_CrossHostSendBuffers, dst_global_device_ids, OPAQUE, 0, 0),
  FIELD(Transfers_Client_CrossHostSendBuffers, transfer_keys, OPAQUE, 0, 0),
  COUNTED(Transfers_Client_CrossHostSendBuffers, send_events, HANDLES, OUT | OWNED, TYPE_Event, num_buffers),
  FIELD(Transfers_Client_CrossHostSendBuffers, num_tasks, SIZE, 0, 0),
  FIELD(Transfers_Client_CrossHostSendBuffers, task_ids, OPAQUE, 0, 0),
  FIELD(Transfers_Client_CrossHostSendBuffers, incarnation_ids, OPAQUE, 0, 0),
};
const Function functions[] = {
  {"Error_Destroy", fields_Error_Destroy, 1, 16, sizeof(struct PJRT_Error_Destroy_Args), 0, 0},
  {"Error_Message", fields_Error_Message, 3, 16, sizeof(struct PJRT_Error_Message_Args), 0, 0},
  {"Error_GetCode", fields_Error_GetCode, 2, 16, sizeof(struct PJRT_Error_GetCode_Args), 0, 1},
  {"Plugin_Initialize", NULL, 0, 16, sizeof(struct PJRT_Plugin_Initialize_Args), 0, 1},
  {"Plugin_Attributes", fields_Plugin_Attributes, 2, 16, sizeof(struct PJRT_Plugin_Attributes_Args), 0, 1},
  {"Event_Destroy", fields_Event_Destroy, 1, 16, sizeof(struct PJRT_Event_Destroy_Args), 0, 1},
  {"Event_IsReady", fields_Event_IsReady, 2, 16, sizeof(struct PJRT_Event_IsReady_Args), 0, 1},
  {"Event_Error", fields_Event_Error, 1, 16, sizeof(struct PJRT_Event_Error_Args), 0, 1},
  {"Event_Await", fields_Event_Await, 1, 16, sizeof(struct PJRT_Event_Await_Args), 0, 1},
  {"Event_OnReady", fields_Event_OnReady, 3, 16, sizeof(struct PJRT_Event_OnReady_Args), 0, 1},
  {"Client_Create", fields_Client_Create, 9, 16, sizeof(struct PJRT_Client_Create_Args), 0, 1},
  {"Client_Destroy", fields_Client_Destroy, 1, 16, sizeof(struct PJRT_Client_Destroy_Args), 0, 1},
  {"Client_PlatformName", fields_Client_PlatformName, 3, 16, sizeof(struct PJRT_Client_PlatformName_Args), 0, 1},
  {"Client_ProcessIndex", fields_Client_ProcessIndex, 2, 16, sizeof(struct PJRT_Client_ProcessIndex_Args), 0, 1},
  {"Client_PlatformVersion", fields_Client_PlatformVersion, 3, 16, sizeof(struct PJRT_Client_PlatformVersion_Args), 0, 1},
  {"Client_Devices", fields_Client_Devices, 3, 16, sizeof(struct PJRT_Client_Devices_Args), 0, 1},
  {"Client_AddressableDevices", fields_Client_AddressableDevices, 3, 16, sizeof(struct PJRT_Client_AddressableDevices_Args), 0, 1},
  {"Client_LookupDevice", fields_Client_LookupDevice, 3, 16, sizeof(struct PJRT_Client_LookupDevice_Args), 0, 1},
  {"Client_LookupAddressableDevice", fields_Client_LookupAddressableDevice, 3, 16, sizeof(struct PJRT_Client_LookupAddressableDevice_Args), 0, 1},
  {"Client_AddressableMemories", fields_Client_AddressableMemories, 3, 16, sizeof(struct PJRT_Client_AddressableMemories_Args), 0, 1},
  {"Client_Compile", fields_Client_Compile, 5, 16, sizeof(struct PJRT_Client_Compile_Args), 0, 1},
  {"Client_DefaultDeviceAssignment", fields_Client_DefaultDeviceAssignment, 5, 16, sizeof(struct PJRT_Client_DefaultDeviceAssignment_Args), 0, 1},
  {"Client_BufferFromHostBuffer", fields_Client_BufferFromHostBuffer, 13, 16, sizeof(struct PJRT_Client_BufferFromHostBuffer_Args), 0, 1},
  {"DeviceDescription_Id", fields_DeviceDescription_Id, 2, 16, sizeof(struct PJRT_DeviceDescription_Id_Args), 0, 1},
  {"DeviceDescription_ProcessIndex", fields_DeviceDescription_ProcessIndex, 2, 16, sizeof(struct PJRT_DeviceDescription_ProcessIndex_Args), 0, 1},
  {"DeviceDescription_Attributes", fields_DeviceDescription_Attributes, 3, 16, sizeof(struct PJRT_DeviceDescription_Attributes_Args), 0, 1},
  {"DeviceDescription_Kind", fields_DeviceDescription_Kind, 3, 16, sizeof(struct PJRT_DeviceDescription_Kind_Args), 0, 1},
  {"DeviceDescription_DebugString", fields_DeviceDescription_DebugString, 3, 16, sizeof(struct PJRT_DeviceDescription_DebugString_Args), 0, 1},
  {"DeviceDescription_ToString", fields_DeviceDescription_ToString, 3, 16, sizeof(struct PJRT_DeviceDescription_ToString_Args), 0, 1},
  {"Device_GetDescription", fields_Device_GetDescription, 2, 16, sizeof(struct PJRT_Device_GetDescription_Args), 0, 1},
  {"Device_IsAddressable", fields_Device_IsAddressable, 2, 16, sizeof(struct PJRT_Device_IsAddressable_Args), 0, 1},
  {"Device_LocalHardwareId", fields_Device_LocalHardwareId, 2, 16, sizeof(struct PJRT_Device_LocalHardwareId_Args), 0, 1},
  {"Device_AddressableMemories", fields_Device_AddressableMemories, 3, 16, sizeof(struct PJRT_Device_AddressableMemories_Args), 0, 1},
  {"Device_DefaultMemory", fields_Device_DefaultMemory, 2, 16, sizeof(struct PJRT_Device_DefaultMemory_Args), 0, 1},
  {"Device_MemoryStats", fields_Device_MemoryStats, 24, 16, sizeof(struct PJRT_Device_MemoryStats_Args), 0, 1},
  {"Memory_Id", fields_Memory_Id, 2, 16, sizeof(struct PJRT_Memory_Id_Args), 0, 1},
  {"Memory_Kind", fields_Memory_Kind, 3, 16, sizeof(struct PJRT_Memory_Kind_Args), 0, 1},
  {"Memory_DebugString", fields_Memory_DebugString, 3, 16, sizeof(struct PJRT_Memory_DebugString_Args), 0, 1},
  {"Memory_ToString", fields_Memory_ToString, 3, 16, sizeof(struct PJRT_Memory_ToString_Args), 0, 1},
  {"Memory_AddressableByDevices", fields_Memory_AddressableByDevices, 3, 16, sizeof(struct PJRT_Memory_AddressableByDevices_Args), 0, 1},
  {"Executable_Destroy", fields_Executable_Destroy, 1, 16, sizeof(struct PJRT_Executable_Destroy_Args), 0, 1},
  {"Executable_Name", fields_Executable_Name, 3, 16, sizeof(struct PJRT_Executable_Name_Args), 0, 1},
  {"Executable_NumReplicas", fields_Executable_NumReplicas, 2, 16, sizeof(struct PJRT_Executable_NumReplicas_Args), 0, 1},
  {"Executable_NumPartitions", fields_Executable_NumPartitions, 2, 16, sizeof(struct PJRT_Executable_NumPartitions_Args), 0, 1},
  {"Executable_NumOutputs", fields_Executable_NumOutputs, 2, 16, sizeof(struct PJRT_Executable_NumOutputs_Args), 0, 1},
  {"Executable_SizeOfGeneratedCodeInBytes", fields_Executable_SizeOfGeneratedCodeInBytes, 2, 16, sizeof(struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args), 0, 1},
  {"Executable_GetCostAnalysis", fields_Executable_GetCostAnalysis, 3, 16, sizeof(struct PJRT_Executable_GetCostAnalysis_Args), 0, 1},
  {"Executable_OutputMemoryKinds", fields_Executable_OutputMemoryKinds, 4, 16, sizeof(struct PJRT_Executable_OutputMemoryKinds_Args), 0, 1},
  {"Executable_OptimizedProgram", fields_Executable_OptimizedProgram, 2, 16, sizeof(struct PJRT_Executable_OptimizedProgram_Args), 0, 1},
  {"Executable_Serialize", fields_Executable_Serialize, 5, 16, sizeof(struct PJRT_Executable_Serialize_Args), 0, 1},
  {"LoadedExecutable_Destroy", fields_LoadedExecutable_Destroy, 1, 16, sizeof(struct PJRT_LoadedExecutable_Destroy_Args), 0, 1},
  {"LoadedExecutable_GetExecutable", fields_LoadedExecutable_GetExecutable, 2, 16, sizeof(struct PJRT_LoadedExecutable_GetExecutable_Args), 0, 1},
  {"LoadedExecutable_AddressableDevices", fields_LoadedExecutable_AddressableDevices, 3, 16, sizeof(struct PJRT_LoadedExecutable_AddressableDevices_Args), 0, 1},
  {"LoadedExecutable_Delete", fields_LoadedExecutable_Delete, 1, 16, sizeof(struct PJRT_LoadedExecutable_Delete_Args), 0, 1},
  {"LoadedExecutable_IsDeleted", fields_LoadedExecutable_IsDeleted, 2, 16, sizeof(struct PJRT_LoadedExecutable_IsDeleted_Args), 0, 1},
  {"LoadedExecutable_Execute", fields_LoadedExecutable_Execute, 8, 16, sizeof(struct PJRT_LoadedExecutable_Execute_Args), 0, 1},
  {"Executable_DeserializeAndLoad", fields_Executable_DeserializeAndLoad, 7, 16, sizeof(struct PJRT_Executable_DeserializeAndLoad_Args), 0, 1},
  {"LoadedExecutable_Fingerprint", fields_LoadedExecutable_Fingerprint, 3, 16, sizeof(struct PJRT_LoadedExecutable_Fingerprint_Args), 0, 1},
  {"Buffer_Destroy", fields_Buffer_Destroy, 1, 16, sizeof(struct PJRT_Buffer_Destroy_Args), 0, 1},
  {"Buffer_ElementType", fields_Buffer_ElementType, 2, 16, sizeof(struct PJRT_Buffer_ElementType_Args), 0, 1},
  {"Buffer_Dimensions", fields_Buffer_Dimensions, 3, 16, sizeof(struct PJRT_Buffer_Dimensions_Args), 0, 1},
  {"Buffer_UnpaddedDimensions", fields_Buffer_UnpaddedDimensions, 3, 16, sizeof(struct PJRT_Buffer_UnpaddedDimensions_Args), 0, 1},
  {"Buffer_DynamicDimensionIndices", fields_Buffer_DynamicDimensionIndices, 3, 16, sizeof(struct PJRT_Buffer_DynamicDimensionIndices_Args), 0, 1},
  {"Buffer_GetMemoryLayout", fields_Buffer_GetMemoryLayout, 2, 16, sizeof(struct PJRT_Buffer_GetMemoryLayout_Args), 0, 1},
  {"Buffer_OnDeviceSizeInBytes", fields_Buffer_OnDeviceSizeInBytes, 2, 16, sizeof(struct PJRT_Buffer_OnDeviceSizeInBytes_Args), 0, 1},
  {"Buffer_Device", fields_Buffer_Device, 2, 16, sizeof(struct PJRT_Buffer_Device_Args), 0, 1},
  {"Buffer_Memory", fields_Buffer_Memory, 2, 16, sizeof(struct PJRT_Buffer_Memory_Args), 0, 1},
  {"Buffer_Delete", fields_Buffer_Delete, 1, 16, sizeof(struct PJRT_Buffer_Delete_Args), 0, 1},
  {"Buffer_IsDeleted", fields_Buffer_IsDeleted, 2, 16, sizeof(struct PJRT_Buffer_IsDeleted_Args), 0, 1},
  {"Buffer_CopyToDevice", fields_Buffer_CopyToDevice, 3, 16, sizeof(struct PJRT_Buffer_CopyToDevice_Args), 0, 1},
  {"Buffer_ToHostBuffer", fields_Buffer_ToHostBuffer, 5, 16, sizeof(struct PJRT_Buffer_ToHostBuffer_Args), 0, 1},
  {"Buffer_IsOnCpu", fields_Buffer_IsOnCpu, 2, 16, sizeof(struct PJRT_Buffer_IsOnCpu_Args), 0, 1},
  {"Buffer_ReadyEvent", fields_Buffer_ReadyEvent, 2, 16, sizeof(struct PJRT_Buffer_ReadyEvent_Args), 0, 1},
  {"Buffer_UnsafePointer", fields_Buffer_UnsafePointer, 2, 16, sizeof(struct PJRT_Buffer_UnsafePointer_Args), 0, 1},
  {"Buffer_IncreaseExternalReferenceCount", fields_Buffer_IncreaseExternalReferenceCount, 1, 16, sizeof(struct PJRT_Buffer_IncreaseExternalReferenceCount_Args), 0, 1},
  {"Buffer_DecreaseExternalReferenceCount", fields_Buffer_DecreaseExternalReferenceCount, 1, 16, sizeof(struct PJRT_Buffer_DecreaseExternalReferenceCount_Args), 0, 1},
  {"Buffer_OpaqueDeviceMemoryDataPointer", fields_Buffer_OpaqueDeviceMemoryDataPointer, 2, 16, sizeof(struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args), 0, 1},
  {"CopyToDeviceStream_Destroy", fields_CopyToDeviceStream_Destroy, 1, 16, sizeof(struct PJRT_CopyToDeviceStream_Destroy_Args), 0, 1},
  {"CopyToDeviceStream_AddChunk", fields_CopyToDeviceStream_AddChunk, 3, 16, sizeof(struct PJRT_CopyToDeviceStream_AddChunk_Args), 0, 1},
  {"CopyToDeviceStream_TotalBytes", fields_CopyToDeviceStream_TotalBytes, 2, 16, sizeof(struct PJRT_CopyToDeviceStream_TotalBytes_Args), 0, 1},
  {"CopyToDeviceStream_GranuleSize", fields_CopyToDeviceStream_GranuleSize, 2, 16, sizeof(struct PJRT_CopyToDeviceStream_GranuleSize_Args), 0, 1},
  {"CopyToDeviceStream_CurrentBytes", fields_CopyToDeviceStream_CurrentBytes, 2, 16, sizeof(struct PJRT_CopyToDeviceStream_CurrentBytes_Args), 0, 1},
  {"TopologyDescription_Create", fields_TopologyDescription_Create, 5, 16, sizeof(struct PJRT_TopologyDescription_Create_Args), 0, 1},
  {"TopologyDescription_Destroy", fields_TopologyDescription_Destroy, 1, 16, sizeof(struct PJRT_TopologyDescription_Destroy_Args), 0, 1},
  {"TopologyDescription_PlatformName", fields_TopologyDescription_PlatformName, 3, 16, sizeof(struct PJRT_TopologyDescription_PlatformName_Args), 0, 1},
  {"TopologyDescription_PlatformVersion", fields_TopologyDescription_PlatformVersion, 3, 16, sizeof(struct PJRT_TopologyDescription_PlatformVersion_Args), 0, 1},
  {"TopologyDescription_GetDeviceDescriptions", fields_TopologyDescription_GetDeviceDescriptions, 3, 16, sizeof(struct PJRT_TopologyDescription_GetDeviceDescriptions_Args), 0, 1},
  {"TopologyDescription_Serialize", fields_TopologyDescription_Serialize, 5, 16, sizeof(struct PJRT_TopologyDescription_Serialize_Args), 0, 1},
  {"TopologyDescription_Attributes", fields_TopologyDescription_Attributes, 3, 16, sizeof(struct PJRT_TopologyDescription_Attributes_Args), 0, 1},
  {"Compile", fields_Compile, 6, 16, sizeof(struct PJRT_Compile_Args), 0, 1},
  {"Executable_OutputElementTypes", fields_Executable_OutputElementTypes, 3, 16, sizeof(struct PJRT_Executable_OutputElementTypes_Args), 29, 1},
  {"Executable_OutputDimensions", fields_Executable_OutputDimensions, 4, 16, sizeof(struct PJRT_Executable_OutputDimensions_Args), 29, 1},
  {"Buffer_CopyToMemory", fields_Buffer_CopyToMemory, 3, 16, sizeof(struct PJRT_Buffer_CopyToMemory_Args), 32, 1},
  {"Client_CreateViewOfDeviceBuffer", fields_Client_CreateViewOfDeviceBuffer, 12, 16, sizeof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args), 33, 1},
  {"Executable_Fingerprint", fields_Executable_Fingerprint, 3, 16, sizeof(struct PJRT_Executable_Fingerprint_Args), 35, 1},
  {"Client_TopologyDescription", fields_Client_TopologyDescription, 2, 16, sizeof(struct PJRT_Client_TopologyDescription_Args), 36, 1},
  {"Executable_GetCompiledMemoryStats", fields_Executable_GetCompiledMemoryStats, 16, 16, sizeof(struct PJRT_Executable_GetCompiledMemoryStats_Args), 40, 1},
  {"Memory_Kind_Id", fields_Memory_Kind_Id, 2, 16, sizeof(struct PJRT_Memory_Kind_Id_Args), 48, 1},
  {"ExecuteContext_Create", fields_ExecuteContext_Create, 1, 16, sizeof(struct PJRT_ExecuteContext_Create_Args), 52, 1},
  {"ExecuteContext_Destroy", fields_ExecuteContext_Destroy, 1, 16, sizeof(struct PJRT_ExecuteContext_Destroy_Args), 52, 1},
  {"Buffer_CopyRawToHost", fields_Buffer_CopyRawToHost, 5, 16, sizeof(struct PJRT_Buffer_CopyRawToHost_Args), 56, 1},
  {"AsyncHostToDeviceTransferManager_Destroy", fields_AsyncHostToDeviceTransferManager_Destroy, 1, 16, sizeof(struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args), 60, 1},
  {"AsyncHostToDeviceTransferManager_TransferData", fields_AsyncHostToDeviceTransferManager_TransferData, 7, 16, sizeof(struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args), 60, 1},
  {"Client_CreateBuffersForAsyncHostToDevice", fields_Client_CreateBuffersForAsyncHostToDevice, 7, 16, sizeof(struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args), 60, 1},
  {"AsyncHostToDeviceTransferManager_RetrieveBuffer", fields_AsyncHostToDeviceTransferManager_RetrieveBuffer, 3, 16, sizeof(struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args), 60, 1},
  {"AsyncHostToDeviceTransferManager_Device", fields_AsyncHostToDeviceTransferManager_Device, 2, 16, sizeof(struct PJRT_AsyncHostToDeviceTransferManager_Device_Args), 60, 1},
  {"AsyncHostToDeviceTransferManager_BufferCount", fields_AsyncHostToDeviceTransferManager_BufferCount, 2, 16, sizeof(struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args), 60, 1},
  {"AsyncHostToDeviceTransferManager_BufferSize", fields_AsyncHostToDeviceTransferManager_BufferSize, 3, 16, sizeof(struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args), 60, 1},
  {"AsyncHostToDeviceTransferManager_SetBufferError", fields_AsyncHostToDeviceTransferManager_SetBufferError, 5, 16, sizeof(struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args), 60, 1},
  {"AsyncHostToDeviceTransferManager_AddMetadata", fields_AsyncHostToDeviceTransferManager_AddMetadata, 3, 16, sizeof(struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args), 60, 1},
  {"Client_DmaMap", fields_Client_DmaMap, 3, 16, sizeof(struct PJRT_Client_DmaMap_Args), 67, 1},
  {"Client_DmaUnmap", fields_Client_DmaUnmap, 2, 16, sizeof(struct PJRT_Client_DmaUnmap_Args), 67, 1},
  {"Client_CreateUninitializedBuffer", fields_Client_CreateUninitializedBuffer, 8, 16, sizeof(struct PJRT_Client_CreateUninitializedBuffer_Args), 69, 1},
  {"Client_UpdateGlobalProcessInfo", fields_Client_UpdateGlobalProcessInfo, 3, 16, sizeof(struct PJRT_Client_UpdateGlobalProcessInfo_Args), 73, 1},
  {"TopologyDescription_Deserialize", fields_TopologyDescription_Deserialize, 3, 16, sizeof(struct PJRT_TopologyDescription_Deserialize_Args), 75, 1},
  {"Client_CreateAliasBuffer", fields_Client_CreateAliasBuffer, 8, 16, sizeof(struct PJRT_Client_CreateAliasBuffer_Args), 77, 1},
  {"Client_FulfillAliasBuffer", fields_Client_FulfillAliasBuffer, 6, 16, sizeof(struct PJRT_Client_FulfillAliasBuffer_Args), 77, 1},
  {"LoadedExecutable_GetDeviceAssignment", fields_LoadedExecutable_GetDeviceAssignment, 5, 16, sizeof(struct PJRT_LoadedExecutable_GetDeviceAssignment_Args), 79, 1},
  {"Client_CreateErrorBuffer", fields_Client_CreateErrorBuffer, 12, 16, sizeof(struct PJRT_Client_CreateErrorBuffer_Args), 82, 1},
  {"AsyncHostToDeviceTransferManager_TransferLiteral", fields_AsyncHostToDeviceTransferManager_TransferLiteral, 8, 16, sizeof(struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args), 83, 1},
  {"Buffer_CopyRawToHostFuture", fields_Buffer_CopyRawToHostFuture, 6, 16, sizeof(struct PJRT_Buffer_CopyRawToHostFuture_Args), 84, 1},
  {"Device_PoisonExecution", fields_Device_PoisonExecution, 8, 16, sizeof(struct PJRT_Device_PoisonExecution_Args), 85, 1},
  {"Device_CreateAsyncTrackingEvent", fields_Device_CreateAsyncTrackingEvent, 4, 16, sizeof(struct PJRT_Device_CreateAsyncTrackingEvent_Args), 86, 1},
  {"AsyncTrackingEvent_Destroy", fields_AsyncTrackingEvent_Destroy, 1, 16, sizeof(struct PJRT_AsyncTrackingEvent_Destroy_Args), 86, 1},
  {"Executable_GetCompileOptions", fields_Executable_GetCompileOptions, 5, 16, sizeof(struct PJRT_Executable_GetCompileOptions_Args), 87, 1},
  {"Buffer_DonateWithControlDependency", fields_Buffer_DonateWithControlDependency, 4, 16, sizeof(struct PJRT_Buffer_DonateWithControlDependency_Args), 88, 1},
  {"Event_Create", fields_Event_Create, 1, 16, sizeof(struct PJRT_Event_Create_Args), 89, 1},
  {"Event_Set", fields_Event_Set, 4, 16, sizeof(struct PJRT_Event_Set_Args), 89, 1},
  {"Device_GetAttributes", fields_Device_GetAttributes, 5, 16, sizeof(struct PJRT_Device_GetAttributes_Args), 92, 1},
  {"Client_Load", fields_Client_Load, 5, 16, sizeof(struct PJRT_Client_Load_Args), 95, 1},
  {"LoadedExecutable_AddressableDeviceLogicalIds", fields_LoadedExecutable_AddressableDeviceLogicalIds, 3, 16, sizeof(struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args), 96, 1},
  {"Buffer_Bitcast", fields_Buffer_Bitcast, 6, 16, sizeof(struct PJRT_Buffer_Bitcast_Args), 98, 1},
  {"Error_ForEachPayload", fields_Error_ForEachPayload, 3, 16, sizeof(struct PJRT_Error_ForEachPayload_Args), 99, 1},
  {"TopologyDescription_Fingerprint", fields_TopologyDescription_Fingerprint, 2, 16, sizeof(struct PJRT_TopologyDescription_Fingerprint_Args), 101, 1},
  {"Executable_ParameterMemoryKinds", fields_Executable_ParameterMemoryKinds, 4, 16, sizeof(struct PJRT_Executable_ParameterMemoryKinds_Args), 102, 1},
  {"Device_ClearMemoryStats", fields_Device_ClearMemoryStats, 1, 16, sizeof(struct PJRT_Device_ClearMemoryStats_Args), 106, 1},
  {"TopologyDescription_MakeCanonicalShapeForMemorySpace", fields_TopologyDescription_MakeCanonicalShapeForMemorySpace, 9, 16, sizeof(struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args), 109, 1},
  {"TopologyDescription_GetMemorySpaceKindIds", fields_TopologyDescription_GetMemorySpaceKindIds, 3, 16, sizeof(struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args), 110, 1},
  {"Layouts_MemoryLayout_Destroy", fields_Layouts_MemoryLayout_Destroy, 1, 16, sizeof(struct PJRT_Layouts_MemoryLayout_Destroy_Args), 0, 1},
  {"Layouts_MemoryLayout_Serialize", fields_Layouts_MemoryLayout_Serialize, 5, 16, sizeof(struct PJRT_Layouts_MemoryLayout_Serialize_Args), 0, 1},
  {"Layouts_Client_GetDefaultLayout", fields_Layouts_Client_GetDefaultLayout, 5, 16, sizeof(struct PJRT_Layouts_Client_GetDefaultLayout_Args), 0, 1},
  {"Layouts_Buffer_MemoryLayout", fields_Layouts_Buffer_MemoryLayout, 2, 16, sizeof(struct PJRT_Layouts_Buffer_MemoryLayout_Args), 0, 1},
  {"Layouts_Topology_GetDefaultLayout", fields_Layouts_Topology_GetDefaultLayout, 5, 16, sizeof(struct PJRT_Layouts_Topology_GetDefaultLayout_Args), 0, 1},
  {"Layouts_Executable_GetOutputLayouts", fields_Layouts_Executable_GetOutputLayouts, 3, 16, sizeof(struct PJRT_Layouts_Executable_GetOutputLayouts_Args), 0, 1},
  {"Layouts_Executable_GetParameterLayouts", fields_Layouts_Executable_GetParameterLayouts, 3, 16, sizeof(struct PJRT_Layouts_Executable_GetParameterLayouts_Args), 0, 1},
  {"Shardings_Executable_ParameterShardings", fields_Shardings_Executable_ParameterShardings, 4, 16, sizeof(struct PJRT_Shardings_Executable_ParameterShardings_Args), 0, 1},
  {"Shardings_Executable_OutputShardings", fields_Shardings_Executable_OutputShardings, 4, 16, sizeof(struct PJRT_Shardings_Executable_OutputShardings_Args), 0, 1},
  {"FFI_Type_Register", fields_FFI_Type_Register, 4, 16, sizeof(struct PJRT_FFI_Type_Register_Args), 0, 1},
  {"FFI_UserData_Add", fields_FFI_UserData_Add, 2, 16, sizeof(struct PJRT_FFI_UserData_Add_Args), 0, 1},
  {"FFI_Register_Handler", fields_FFI_Register_Handler, 6, 8, sizeof(struct PJRT_FFI_Register_Handler_Args), 0, 1},
  {"DeviceDescription_MemoryDescriptions", fields_DeviceDescription_MemoryDescriptions, 4, 16, sizeof(struct PJRT_DeviceDescription_MemoryDescriptions_Args), 0, 1},
  {"MemoryDescription_Kind", fields_MemoryDescription_Kind, 4, 16, sizeof(struct PJRT_MemoryDescription_Kind_Args), 0, 1},
  {"Client_RuntimeAbiVersion", fields_Client_RuntimeAbiVersion, 2, 8, sizeof(struct PJRT_Client_RuntimeAbiVersion_Args), 0, 1},
  {"Executable_GetAbiVersion", fields_Executable_GetAbiVersion, 2, 8, sizeof(struct PJRT_Executable_GetAbiVersion_Args), 0, 1},
  {"RuntimeAbiVersion_Destroy", fields_RuntimeAbiVersion_Destroy, 1, 8, sizeof(struct PJRT_RuntimeAbiVersion_Destroy_Args), 0, 1},
  {"RuntimeAbiVersion_IsCompatibleWithRuntime", fields_RuntimeAbiVersion_IsCompatibleWithRuntime, 2, 8, sizeof(struct PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime_Args), 0, 1},
  {"RuntimeAbiVersion_IsCompatibleWithExecutable", fields_RuntimeAbiVersion_IsCompatibleWithExecutable, 2, 8, sizeof(struct PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args), 0, 1},
  {"RuntimeAbiVersion_ToProto", fields_RuntimeAbiVersion_ToProto, 5, 8, sizeof(struct PJRT_RuntimeAbiVersion_ToProto_Args), 0, 1},
  {"RuntimeAbiVersion_PlatformId", fields_RuntimeAbiVersion_PlatformId, 2, 8, sizeof(struct PJRT_RuntimeAbiVersion_PlatformId_Args), 0, 1},
  {"ExecutableAbiVersion_Destroy", fields_ExecutableAbiVersion_Destroy, 1, 8, sizeof(struct PJRT_ExecutableAbiVersion_Destroy_Args), 0, 1},
  {"ExecutableAbiVersion_ToProto", fields_ExecutableAbiVersion_ToProto, 5, 8, sizeof(struct PJRT_ExecutableAbiVersion_ToProto_Args), 0, 1},
  {"ExecutableAbiVersion_PlatformId", fields_ExecutableAbiVersion_PlatformId, 2, 8, sizeof(struct PJRT_ExecutableAbiVersion_PlatformId_Args), 0, 1},
  {"RuntimeAbiVersion_FromProto", fields_RuntimeAbiVersion_FromProto, 3, 8, sizeof(struct PJRT_RuntimeAbiVersion_FromProto_Args), 0, 1},
  {"ExecutableAbiVersion_FromProto", fields_ExecutableAbiVersion_FromProto, 3, 8, sizeof(struct PJRT_ExecutableAbiVersion_FromProto_Args), 0, 1},
  {"Get_Stream_For_External_Ready_Events", fields_Get_Stream_For_External_Ready_Events, 2, 8, sizeof(struct PJRT_Get_Stream_For_External_Ready_Events_Args), 0, 1},
  {"Wait_Until_Buffer_Ready_On_Stream", fields_Wait_Until_Buffer_Ready_On_Stream, 2, 8, sizeof(struct PJRT_Wait_Until_Buffer_Ready_On_Stream_Args), 0, 1},
  {"RawBuffer_CreateRawAliasOfBuffer", fields_RawBuffer_CreateRawAliasOfBuffer, 2, 16, sizeof(struct PJRT_RawBuffer_CreateRawAliasOfBuffer_Args), 0, 1},
  {"RawBuffer_Destroy", fields_RawBuffer_Destroy, 1, 16, sizeof(struct PJRT_RawBuffer_Destroy_Args), 0, 1},
  {"RawBuffer_GetOnDeviceSizeInBytes", fields_RawBuffer_GetOnDeviceSizeInBytes, 2, 16, sizeof(struct PJRT_RawBuffer_GetOnDeviceSizeInBytes_Args), 0, 1},
  {"RawBuffer_GetMemorySpace", fields_RawBuffer_GetMemorySpace, 2, 16, sizeof(struct PJRT_RawBuffer_GetMemorySpace_Args), 0, 1},
  {"RawBuffer_CopyRawHostToDevice", fields_RawBuffer_CopyRawHostToDevice, 5, 16, sizeof(struct PJRT_RawBuffer_CopyRawHostToDevice_Args), 0, 1},
  {"RawBuffer_CopyRawDeviceToHost", fields_RawBuffer_CopyRawDeviceToHost, 5, 16, sizeof(struct PJRT_RawBuffer_CopyRawDeviceToHost_Args), 0, 1},
  {"RawBuffer_GetHostPointer", fields_RawBuffer_GetHostPointer, 2, 16, sizeof(struct PJRT_RawBuffer_GetHostPointer_Args), 0, 1},
  {"PhaseCompile_Get_Compiler", fields_PhaseCompile_Get_Compiler, 1, 16, sizeof(struct PJRT_PhaseCompile_Get_Compiler_Args), 0, 1},
  {"PhaseCompile_Destroy_Compiler", fields_PhaseCompile_Destroy_Compiler, 1, 16, sizeof(struct PJRT_PhaseCompile_Destroy_Compiler_Args), 0, 0},
  {"PhaseCompile_Run_Phase", fields_PhaseCompile_Run_Phase, 13, 16, sizeof(struct PJRT_PhaseCompile_Run_Phase_Args), 0, 1},
  {"PhaseCompile_Get_PhaseNames", fields_PhaseCompile_Get_PhaseNames, 4, 16, sizeof(struct PJRT_PhaseCompile_Get_PhaseNames_Args), 0, 1},
  {"PhaseCompile_C_Buffers_Destroy", fields_PhaseCompile_C_Buffers_Destroy, 3, 16, sizeof(struct PJRT_PhaseCompile_C_Buffers_Destroy_Args), 0, 0},
  {"Callback_RegisterCallback", fields_Callback_RegisterCallback, 4, 8, sizeof(struct PJRT_Callback_RegisterCallback_Args), 0, 1},
  {"Callback_InvokeCallback", fields_Callback_InvokeCallback, 3, 8, sizeof(struct PJRT_Callback_InvokeCallback_Args), 0, 1},
  {"Transfers_Client_MakeCrossHostReceiveBuffers", fields_Transfers_Client_MakeCrossHostReceiveBuffers, 11, 16, sizeof(struct PJRT_Transfers_Client_MakeCrossHostReceiveBuffers_Args), 0, 1},
  {"Transfers_Buffer_CopyToRemoteDevice", fields_Transfers_Buffer_CopyToRemoteDevice, 6, 16, sizeof(struct PJRT_Transfers_Buffer_CopyToRemoteDevice_Args), 0, 0},
  {"Transfers_Client_CrossHostReceiveBuffers", fields_Transfers_Client_CrossHostReceiveBuffers, 13, 16, sizeof(struct PJRT_Transfers_Client_CrossHostReceiveBuffers_Args), 0, 1},
  {"Transfers_Client_CrossHostSendBuffers", fields_Transfers_Client_CrossHostSendBuffers, 9, 16, sizeof(struct PJRT_Transfers_Client_CrossHostSendBuffers_Args), 0, 1},
};
const Extension extensions[] = {
  {"Layouts", PJRT_Extension_Type_Layouts, 138, 7},
  {"Shardings", PJRT_Extension_Type_Shardings, 145, 2},
  {"FFI", PJRT_Extension_Type_FFI, 147, 3},
  {"MemoryDescriptions", PJRT_Extension_Type_MemoryDescriptions, 150, 2},
  {"AbiVersion", PJRT_Extension_Type_AbiVersion, 152, 12},
  {"Stream", PJRT_Extension_Type_Stream, 164, 2},
  {"RawBuffer", PJRT_Extension_Type_RawBuffer, 166, 7},
  {"PhaseCompile", PJRT_Extension_Type_PhaseCompile, 173, 5},
  {"Callback", PJRT_Extension_Type_Callback, 178, 2},
  {"CrossHostTransfers", PJRT_Extension_Type_CrossHostTransfers, 180, 4},
};
const size_t num_extensions = 10;
#endif
#ifdef THUNKS
#define EACH_FUNCTION(table, FUNCTION, PROCEDURE) \
  PROCEDURE(table, 0) \
  PROCEDURE(table, 1) \
  FUNCTION(table, 2) \
  FUNCTION(table, 3) \
  FUNCTION(table, 4) \
  FUNCTION(table, 5) \
  FUNCTION(table, 6) \
  FUNCTION(table, 7) \
  FUNCTION(table, 8) \
  FUNCTION(table, 9) \
  FUNCTION(table, 10) \
  FUNCTION(table, 11) \
  FUNCTION(table, 12) \
  FUNCTION(table, 13) \
  FUNCTION(table, 14) \
  FUNCTION(table, 15) \
  FUNCTION(table, 16) \
  FUNCTION(table, 17) \
  FUNCTION(table, 18) \
  FUNCTION(table, 19) \
  FUNCTION(table, 20) \
  FUNCTION(table, 21) \
  FUNCTION(table, 22) \
  FUNCTION(table, 23) \
  FUNCTION(table, 24) \
  FUNCTION(table, 25) \
  FUNCTION(table, 26) \
  FUNCTION(table, 27) \
  FUNCTION(table, 28) \
  FUNCTION(table, 29) \
  FUNCTION(table, 30) \
  FUNCTION(table, 31) \
  FUNCTION(table, 32) \
  FUNCTION(table, 33) \
  FUNCTION(table, 34) \
  FUNCTION(table, 35) \
  FUNCTION(table, 36) \
  FUNCTION(table, 37) \
  FUNCTION(table, 38) \
  FUNCTION(table, 39) \
  FUNCTION(table, 40) \
  FUNCTION(table, 41) \
  FUNCTION(table, 42) \
  FUNCTION(table, 43) \
  FUNCTION(table, 44) \
  FUNCTION(table, 45) \
  FUNCTION(table, 46) \
  FUNCTION(table, 47) \
  FUNCTION(table, 48) \
  FUNCTION(table, 49) \
  FUNCTION(table, 50) \
  FUNCTION(table, 51) \
  FUNCTION(table, 52) \
  FUNCTION(table, 53) \
  FUNCTION(table, 54) \
  FUNCTION(table, 55) \
  FUNCTION(table, 56) \
  FUNCTION(table, 57) \
  FUNCTION(table, 58) \
  FUNCTION(table, 59) \
  FUNCTION(table, 60) \
  FUNCTION(table, 61) \
  FUNCTION(table, 62) \
  FUNCTION(table, 63) \
  FUNCTION(table, 64) \
  FUNCTION(table, 65) \
  FUNCTION(table, 66) \
  FUNCTION(table, 67) \
  FUNCTION(table, 68) \
  FUNCTION(table, 69) \
  FUNCTION(table, 70) \
  FUNCTION(table, 71) \
  FUNCTION(table, 72) \
  FUNCTION(table, 73) \
  FUNCTION(table, 74) \
  FUNCTION(table, 75) \
  FUNCTION(table, 76) \
  FUNCTION(table, 77) \
  FUNCTION(table, 78) \
  FUNCTION(table, 79) \
  FUNCTION(table, 80) \
  FUNCTION(table, 81) \
  FUNCTION(table, 82) \
  FUNCTION(table, 83) \
  FUNCTION(table, 84) \
  FUNCTION(table, 85) \
  FUNCTION(table, 86) \
  FUNCTION(table, 87) \
  FUNCTION(table, 88) \
  FUNCTION(table, 89) \
  FUNCTION(table, 90) \
  FUNCTION(table, 91) \
  FUNCTION(table, 92) \
  FUNCTION(table, 93) \
  FUNCTION(table, 94) \
  FUNCTION(table, 95) \
  FUNCTION(table, 96) \
  FUNCTION(table, 97) \
  FUNCTION(table, 98) \
  FUNCTION(table, 99) \
  FUNCTION(table, 100) \
  FUNCTION(table, 101) \
  FUNCTION(table, 102) \
  FUNCTION(table, 103) \
  FUNCTION(table, 104) \
  FUNCTION(table, 105) \
  FUNCTION(table, 106) \
  FUNCTION(table, 107) \
  FUNCTION(table, 108) \
  FUNCTION(table, 109) \
  FUNCTION(table, 110) \
  FUNCTION(table, 111) \
  FUNCTION(table, 112) \
  FUNCTION(table, 113) \
  FUNCTION(table, 114) \
  FUNCTION(table, 115) \
  FUNCTION(table, 116) \
  FUNCTION(table, 117) \
  FUNCTION(table, 118) \
  FUNCTION(table, 119) \
  FUNCTION(table, 120) \
  FUNCTION(table, 121) \
  FUNCTION(table, 122) \
  FUNCTION(table, 123) \
  FUNCTION(table, 124) \
  FUNCTION(table, 125) \
  FUNCTION(table, 126) \
  FUNCTION(table, 127) \
  FUNCTION(table, 128) \
  FUNCTION(table, 129) \
  FUNCTION(table, 130) \
  FUNCTION(table, 131) \
  FUNCTION(table, 132) \
  FUNCTION(table, 133) \
  FUNCTION(table, 134) \
  FUNCTION(table, 135) \
  FUNCTION(table, 136) \
  FUNCTION(table, 137) \
  FUNCTION(table, 138) \
  FUNCTION(table, 139) \
  FUNCTION(table, 140) \
  FUNCTION(table, 141) \
  FUNCTION(table, 142) \
  FUNCTION(table, 143) \
  FUNCTION(table, 144) \
  FUNCTION(table, 145) \
  FUNCTION(table, 146) \
  FUNCTION(table, 147) \
  FUNCTION(table, 148) \
  FUNCTION(table, 149) \
  FUNCTION(table, 150) \
  FUNCTION(table, 151) \
  FUNCTION(table, 152) \
  FUNCTION(table, 153) \
  FUNCTION(table, 154) \
  FUNCTION(table, 155) \
  FUNCTION(table, 156) \
  FUNCTION(table, 157) \
  FUNCTION(table, 158) \
  FUNCTION(table, 159) \
  FUNCTION(table, 160) \
  FUNCTION(table, 161) \
  FUNCTION(table, 162) \
  FUNCTION(table, 163) \
  FUNCTION(table, 164) \
  FUNCTION(table, 165) \
  FUNCTION(table, 166) \
  FUNCTION(table, 167) \
  FUNCTION(table, 168) \
  FUNCTION(table, 169) \
  FUNCTION(table, 170) \
  FUNCTION(table, 171) \
  FUNCTION(table, 172) \
  FUNCTION(table, 173) \
  PROCEDURE(table, 174) \
  FUNCTION(table, 175) \
  FUNCTION(table, 176) \
  PROCEDURE(table, 177) \
  FUNCTION(table, 178) \
  FUNCTION(table, 179) \
  FUNCTION(table, 180) \
  PROCEDURE(table, 181) \
  FUNCTION(table, 182) \
  FUNCTION(table, 183)
#endif
