/* Made by generate.py from plugrt.capi.abi.declarations; do not edit. */
#define PJRT_SLOTS(SLOT) \
  SLOT(Error_GetCode, 0, code) \
  SLOT(Plugin_Initialize, 0, extension_start) \
  SLOT(Plugin_Attributes, 0, num_attributes) \
  SLOT(Event_Destroy, 0, event) \
  SLOT(Event_IsReady, 0, is_ready) \
  SLOT(Event_Error, 0, event) \
  SLOT(Event_Await, 0, event) \
  SLOT(Event_OnReady, 0, user_arg) \
  SLOT(Client_Create, 0, client) \
  SLOT(Client_Destroy, 0, client) \
  SLOT(Client_PlatformName, 0, platform_name_size) \
  SLOT(Client_ProcessIndex, 0, process_index) \
  SLOT(Client_PlatformVersion, 0, platform_version_size) \
  SLOT(Client_Devices, 0, num_devices) \
  SLOT(Client_AddressableDevices, 0, num_addressable_devices) \
  SLOT(Client_LookupDevice, 0, device) \
  SLOT(Client_LookupAddressableDevice, 0, addressable_device) \
  SLOT(Client_AddressableMemories, 0, num_addressable_memories) \
  SLOT(Client_Compile, 0, executable) \
  SLOT(Client_DefaultDeviceAssignment, 0, default_assignment) \
  SLOT(Client_BufferFromHostBuffer, 0, buffer) \
  SLOT(DeviceDescription_Id, 0, id) \
  SLOT(DeviceDescription_ProcessIndex, 0, process_index) \
  SLOT(DeviceDescription_Attributes, 0, attributes) \
  SLOT(DeviceDescription_Kind, 0, device_kind_size) \
  SLOT(DeviceDescription_DebugString, 0, debug_string_size) \
  SLOT(DeviceDescription_ToString, 0, to_string_size) \
  SLOT(Device_GetDescription, 0, device_description) \
  SLOT(Device_IsAddressable, 0, is_addressable) \
  SLOT(Device_LocalHardwareId, 0, local_hardware_id) \
  SLOT(Device_AddressableMemories, 0, num_memories) \
  SLOT(Device_DefaultMemory, 0, memory) \
  SLOT(Device_MemoryStats, 0, bytes_in_use) \
  SLOT(Memory_Id, 0, id) \
  SLOT(Memory_Kind, 0, kind_size) \
  SLOT(Memory_DebugString, 0, debug_string_size) \
  SLOT(Memory_ToString, 0, to_string_size) \
  SLOT(Memory_AddressableByDevices, 0, num_devices) \
  SLOT(Executable_Destroy, 0, executable) \
  SLOT(Executable_Name, 0, executable_name_size) \
  SLOT(Executable_NumReplicas, 0, num_replicas) \
  SLOT(Executable_NumPartitions, 0, num_partitions) \
  SLOT(Executable_NumOutputs, 0, num_outputs) \
  SLOT(Executable_SizeOfGeneratedCodeInBytes, 0, size_in_bytes) \
  SLOT(Executable_GetCostAnalysis, 0, properties) \
  SLOT(Executable_OutputMemoryKinds, 0, memory_kind_sizes) \
  SLOT(Executable_OptimizedProgram, 0, program) \
  SLOT(Executable_Serialize, 0, serialized_executable_deleter) \
  SLOT(LoadedExecutable_Destroy, 0, executable) \
  SLOT(LoadedExecutable_GetExecutable, 0, executable) \
  SLOT(LoadedExecutable_AddressableDevices, 0, num_addressable_devices) \
  SLOT(LoadedExecutable_Delete, 0, executable) \
  SLOT(LoadedExecutable_IsDeleted, 0, is_deleted) \
  SLOT(LoadedExecutable_Execute, 0, execute_device) \
  SLOT(Executable_DeserializeAndLoad, 0, loaded_executable) \
  SLOT(LoadedExecutable_Fingerprint, 0, executable_fingerprint_size) \
  SLOT(Buffer_Destroy, 0, buffer) \
  SLOT(Buffer_ElementType, 0, type) \
  SLOT(Buffer_Dimensions, 0, num_dims) \
  SLOT(Buffer_UnpaddedDimensions, 0, num_dims) \
  SLOT(Buffer_DynamicDimensionIndices, 0, num_dynamic_dims) \
  SLOT(Buffer_GetMemoryLayout, 0, layout) \
  SLOT(Buffer_OnDeviceSizeInBytes, 0, on_device_size_in_bytes) \
  SLOT(Buffer_Device, 0, device) \
  SLOT(Buffer_Memory, 0, memory) \
  SLOT(Buffer_Delete, 0, buffer) \
  SLOT(Buffer_IsDeleted, 0, is_deleted) \
  SLOT(Buffer_CopyToDevice, 0, dst_buffer) \
  SLOT(Buffer_ToHostBuffer, 0, event) \
  SLOT(Buffer_IsOnCpu, 0, is_on_cpu) \
  SLOT(Buffer_ReadyEvent, 0, event) \
  SLOT(Buffer_UnsafePointer, 0, buffer_pointer) \
  SLOT(Buffer_IncreaseExternalReferenceCount, 0, buffer) \
  SLOT(Buffer_DecreaseExternalReferenceCount, 0, buffer) \
  SLOT(Buffer_OpaqueDeviceMemoryDataPointer, 0, device_memory_ptr) \
  SLOT(CopyToDeviceStream_Destroy, 0, stream) \
  SLOT(CopyToDeviceStream_AddChunk, 0, transfer_complete) \
  SLOT(CopyToDeviceStream_TotalBytes, 0, total_bytes) \
  SLOT(CopyToDeviceStream_GranuleSize, 0, granule_size_in_bytes) \
  SLOT(CopyToDeviceStream_CurrentBytes, 0, current_bytes) \
  SLOT(TopologyDescription_Create, 0, topology) \
  SLOT(TopologyDescription_Destroy, 0, topology) \
  SLOT(TopologyDescription_PlatformName, 0, platform_name_size) \
  SLOT(TopologyDescription_PlatformVersion, 0, platform_version_size) \
  SLOT(TopologyDescription_GetDeviceDescriptions, 0, num_descriptions) \
  SLOT(TopologyDescription_Serialize, 0, serialized_topology_deleter) \
  SLOT(TopologyDescription_Attributes, 0, num_attributes) \
  SLOT(Compile, 0, executable) \
  SLOT(Executable_OutputElementTypes, 29, num_output_types) \
  SLOT(Executable_OutputDimensions, 29, dim_sizes) \
  SLOT(Buffer_CopyToMemory, 32, dst_buffer) \
  SLOT(Client_CreateViewOfDeviceBuffer, 33, buffer) \
  SLOT(Executable_Fingerprint, 35, executable_fingerprint_size) \
  SLOT(Client_TopologyDescription, 36, topology) \
  SLOT(Executable_GetCompiledMemoryStats, 40, temp_size_in_bytes) \
  SLOT(Memory_Kind_Id, 48, kind_id) \
  SLOT(ExecuteContext_Create, 52, context) \
  SLOT(ExecuteContext_Destroy, 52, context) \
  SLOT(Buffer_CopyRawToHost, 56, event) \
  SLOT(AsyncHostToDeviceTransferManager_Destroy, 60, transfer_manager) \
  SLOT(AsyncHostToDeviceTransferManager_TransferData, 60, done_with_h2d_transfer) \
  SLOT(Client_CreateBuffersForAsyncHostToDevice, 60, transfer_manager) \
  SLOT(AsyncHostToDeviceTransferManager_RetrieveBuffer, 60, buffer_out) \
  SLOT(AsyncHostToDeviceTransferManager_Device, 60, device_out) \
  SLOT(AsyncHostToDeviceTransferManager_BufferCount, 60, buffer_count) \
  SLOT(AsyncHostToDeviceTransferManager_BufferSize, 60, buffer_size) \
  SLOT(AsyncHostToDeviceTransferManager_SetBufferError, 60, error_message_size) \
  SLOT(AsyncHostToDeviceTransferManager_AddMetadata, 60, num_metadata) \
  SLOT(Client_DmaMap, 67, size) \
  SLOT(Client_DmaUnmap, 67, data) \
  SLOT(Client_CreateUninitializedBuffer, 69, buffer) \
  SLOT(Client_UpdateGlobalProcessInfo, 73, num_process_infos) \
  SLOT(TopologyDescription_Deserialize, 75, topology) \
  SLOT(Client_CreateAliasBuffer, 77, fulfill_alias_buffer_cb) \
  SLOT(Client_FulfillAliasBuffer, 77, fulfill_alias_buffer_cb) \
  SLOT(LoadedExecutable_GetDeviceAssignment, 79, serialized_device_assignment_deleter) \
  SLOT(Client_CreateErrorBuffer, 82, buffer) \
  SLOT(AsyncHostToDeviceTransferManager_TransferLiteral, 83, done_with_h2d_transfer) \
  SLOT(Buffer_CopyRawToHostFuture, 84, future_ready_callback) \
  SLOT(Device_PoisonExecution, 85, num_payload) \
  SLOT(Device_CreateAsyncTrackingEvent, 86, event) \
  SLOT(AsyncTrackingEvent_Destroy, 86, event) \
  SLOT(Executable_GetCompileOptions, 87, serialized_compile_options_deleter) \
  SLOT(Buffer_DonateWithControlDependency, 88, out_buffer) \
  SLOT(Event_Create, 89, event) \
  SLOT(Event_Set, 89, error_message_size) \
  SLOT(Device_GetAttributes, 92, attributes_deleter) \
  SLOT(Client_Load, 95, loaded_executable) \
  SLOT(LoadedExecutable_AddressableDeviceLogicalIds, 96, num_addressable_device_logical_ids) \
  SLOT(Buffer_Bitcast, 98, out_buffer) \
  SLOT(Error_ForEachPayload, 99, user_arg) \
  SLOT(TopologyDescription_Fingerprint, 101, fingerprint) \
  SLOT(Executable_ParameterMemoryKinds, 102, memory_kind_sizes) \
  SLOT(Device_ClearMemoryStats, 106, device) \
  SLOT(TopologyDescription_MakeCanonicalShapeForMemorySpace, 109, serialized_shape_deleter) \
  SLOT(TopologyDescription_GetMemorySpaceKindIds, 110, num_memory_space_kind_ids)

#define PJRT_SHARDINGS_SLOTS(SLOT) \
  SLOT(Shardings_Executable_ParameterShardings, 0, sharding_sizes) \
  SLOT(Shardings_Executable_OutputShardings, 0, sharding_sizes)

#define PJRT_LAYOUTS_SLOTS(SLOT) \
  SLOT(Layouts_MemoryLayout_Destroy, 0, layout) \
  SLOT(Layouts_MemoryLayout_Serialize, 0, serialized_layout_deleter) \
  SLOT(Layouts_Client_GetDefaultLayout, 0, layout) \
  SLOT(Layouts_Buffer_MemoryLayout, 0, layout) \
  SLOT(Layouts_Topology_GetDefaultLayout, 0, layout) \
  SLOT(Layouts_Executable_GetOutputLayouts, 0, layouts) \
  SLOT(Layouts_Executable_GetParameterLayouts, 0, layouts)

#define PJRT_MEMORYDESCRIPTIONS_SLOTS(SLOT) \
  SLOT(DeviceDescription_MemoryDescriptions, 0, default_memory_index) \
  SLOT(MemoryDescription_Kind, 0, kind_id)

#define PJRT_ABIVERSION_SLOTS(SLOT) \
  SLOT(Client_RuntimeAbiVersion, 0, abi_version) \
  SLOT(Executable_GetAbiVersion, 0, abi_version) \
  SLOT(RuntimeAbiVersion_Destroy, 0, abi_version) \
  SLOT(RuntimeAbiVersion_IsCompatibleWithRuntime, 0, other_abi_version) \
  SLOT(RuntimeAbiVersion_IsCompatibleWithExecutable, 0, executable_abi_version) \
  SLOT(RuntimeAbiVersion_ToProto, 0, serialized_proto_deleter) \
  SLOT(RuntimeAbiVersion_PlatformId, 0, platform_id) \
  SLOT(ExecutableAbiVersion_Destroy, 0, abi_version) \
  SLOT(ExecutableAbiVersion_ToProto, 0, serialized_proto_deleter) \
  SLOT(ExecutableAbiVersion_PlatformId, 0, platform_id) \
  SLOT(RuntimeAbiVersion_FromProto, 0, abi_version) \
  SLOT(ExecutableAbiVersion_FromProto, 0, abi_version)

#define PJRT_FFI_SLOTS(SLOT) \
  SLOT(FFI_Type_Register, 0, type_id) \
  SLOT(FFI_UserData_Add, 0, user_data) \
  SLOT(FFI_Register_Handler, 0, platform_name_size)
