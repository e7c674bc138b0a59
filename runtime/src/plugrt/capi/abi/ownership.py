"""Ownership of the PJRT C API's handles: creators, destructors, and fields that may be NULL.

Names lack their prefix ``PJRT_``. Handles that argument structs return and that are not named here
stay the library's: devices, memories, descriptions, a client's topology, the layouts of an
executable.
"""

CREATES: dict[str, tuple[str, ...]] = {
    "Client_Create": ("client",),
    "Client_Compile": ("executable",),
    "Client_Load": ("loaded_executable",),
    "Executable_DeserializeAndLoad": ("loaded_executable",),
    "LoadedExecutable_GetExecutable": ("executable",),
    "LoadedExecutable_Execute": ("output_lists", "device_complete_events"),
    "Compile": ("executable",),
    "TopologyDescription_Create": ("topology",),
    "TopologyDescription_Deserialize": ("topology",),
    "ExecuteContext_Create": ("context",),
    "Device_CreateAsyncTrackingEvent": ("event",),
    "Event_Create": ("event",),
    "Client_BufferFromHostBuffer": ("buffer", "done_with_host_buffer"),
    "Client_CreateViewOfDeviceBuffer": ("buffer",),
    "Client_CreateUninitializedBuffer": ("buffer",),
    "Client_CreateErrorBuffer": ("buffer",),
    "Client_CreateAliasBuffer": ("alias_buffer", "fulfill_alias_buffer_cb"),
    "Client_CreateBuffersForAsyncHostToDevice": ("transfer_manager",),
    "AsyncHostToDeviceTransferManager_RetrieveBuffer": ("buffer_out",),
    "AsyncHostToDeviceTransferManager_TransferData": ("done_with_h2d_transfer",),
    "AsyncHostToDeviceTransferManager_TransferLiteral": ("done_with_h2d_transfer",),
    "Buffer_CopyToDevice": ("dst_buffer",),
    "Buffer_CopyToMemory": ("dst_buffer",),
    "Buffer_ToHostBuffer": ("event",),
    "Buffer_CopyRawToHost": ("event",),
    "Buffer_CopyRawToHostFuture": ("event",),
    "Buffer_DonateWithControlDependency": ("out_buffer",),
    "Buffer_Bitcast": ("out_buffer",),
    "Buffer_ReadyEvent": ("event",),
    "CopyToDeviceStream_AddChunk": ("transfer_complete",),
    "Layouts_Client_GetDefaultLayout": ("layout",),
    "Layouts_Buffer_MemoryLayout": ("layout",),
    "Layouts_Topology_GetDefaultLayout": ("layout",),
    "Client_RuntimeAbiVersion": ("abi_version",),
    "Executable_GetAbiVersion": ("abi_version",),
    "RuntimeAbiVersion_FromProto": ("abi_version",),
    "ExecutableAbiVersion_FromProto": ("abi_version",),
    "RawBuffer_CreateRawAliasOfBuffer": ("raw_buffer",),
    "RawBuffer_CopyRawHostToDevice": ("event",),
    "RawBuffer_CopyRawDeviceToHost": ("event",),
    "PhaseCompile_Get_Compiler": ("phase_compiler",),
    "Transfers_Client_MakeCrossHostReceiveBuffers": ("buffers",),
    "Transfers_Client_CrossHostReceiveBuffers": ("buffers",),
    "Transfers_Client_CrossHostSendBuffers": ("send_events",),
}
"""Maps each function to the fields in which it returns handles that the caller must destroy."""

DESTROYS: dict[str, str] = {
    "Error_Destroy": "error",
    "Event_Destroy": "event",
    "Client_Destroy": "client",
    "Executable_Destroy": "executable",
    "LoadedExecutable_Destroy": "executable",
    "Buffer_Destroy": "buffer",
    "CopyToDeviceStream_Destroy": "stream",
    "TopologyDescription_Destroy": "topology",
    "ExecuteContext_Destroy": "context",
    "AsyncHostToDeviceTransferManager_Destroy": "transfer_manager",
    "AsyncTrackingEvent_Destroy": "event",
    "Client_FulfillAliasBuffer": "fulfill_alias_buffer_cb",
    "Layouts_MemoryLayout_Destroy": "layout",
    "RuntimeAbiVersion_Destroy": "abi_version",
    "ExecutableAbiVersion_Destroy": "abi_version",
    "RawBuffer_Destroy": "buffer",
    "PhaseCompile_Destroy_Compiler": "phase_compiler",
}
"""Maps each function to the field with the handle that it destroys."""

MAY_BE_NULL: dict[str, tuple[str, ...]] = {
    "Error_Destroy": ("error",),
    "Event_Destroy": ("event",),
    "Compile": ("client",),
    "LoadedExecutable_Execute": ("device_complete_events", "execute_device"),
    "Client_BufferFromHostBuffer": ("device", "memory"),
    "Client_CreateViewOfDeviceBuffer": ("device", "memory"),
    "Client_CreateUninitializedBuffer": ("device", "memory"),
    "Client_CreateErrorBuffer": ("memory",),
    "Client_CreateAliasBuffer": ("memory",),
    "Client_CreateBuffersForAsyncHostToDevice": ("memory",),
    "Buffer_CopyRawToHostFuture": ("event",),
    "Buffer_DonateWithControlDependency": ("out_buffer",),
    "PhaseCompile_Run_Phase": ("topology",),
    "Transfers_Buffer_CopyToRemoteDevice": ("event",),
}
"""Function to the handles that may be NULL, given or returned."""
