"""The client and host-to-device transfer functions of the PJRT C API.

The notation is described in `plugrt.capi.abi.declarations`.
"""

CLIENT = """
11 Client_Create: const NamedValue* create_options; size_t num_options; KeyValueGetCallback
    kv_get_callback; void* kv_get_user_arg; KeyValuePutCallback kv_put_callback; void*
    kv_put_user_arg; =Client* client; @61 KeyValueTryGetCallback kv_try_get_callback;
    void* kv_try_get_user_arg
12 Client_Destroy: Client* client
13 Client_PlatformName: Client* client; =const char* platform_name; =size_t platform_name_size
14 Client_ProcessIndex: Client* client; =int process_index
15 Client_PlatformVersion: Client* client; =const char* platform_version; =size_t
    platform_version_size
16 Client_Devices: Client* client; =Device* const* devices; =size_t num_devices
17 Client_AddressableDevices: Client* client; =Device* const* addressable_devices; =size_t
    num_addressable_devices
18 Client_LookupDevice: Client* client; int id; =Device* device
19 Client_LookupAddressableDevice: Client* client; int local_hardware_id; =Device*
    addressable_device
20 Client_AddressableMemories: Client* client; =Memory* const* addressable_memories; =size_t
    num_addressable_memories
21 Client_Compile: Client* client; const Program* program; const char* compile_options; size_t
    compile_options_size; =LoadedExecutable* executable
22 Client_DefaultDeviceAssignment: Client* client; int num_replicas; int num_partitions; size_t
    default_assignment_size; int* default_assignment
23 Client_BufferFromHostBuffer: Client* client; const void* data; Buffer_Type type; const
    int64_t* dims; size_t num_dims; const int64_t* byte_strides; size_t num_byte_strides;
    HostBufferSemantics host_buffer_semantics; Device* device; Memory* memory;
    Buffer_MemoryLayout* device_layout; =Event* done_with_host_buffer; =Buffer* buffer
94@33 Client_CreateViewOfDeviceBuffer: Client* client; void* device_buffer_ptr; const int64_t*
    dims; size_t num_dims; Buffer_Type element_type; Buffer_MemoryLayout* layout; Device*
    device; void (*on_delete_callback)(void* device_buffer_ptr, void* user_arg); void*
    on_delete_callback_arg; intptr_t stream; =Buffer* buffer; @65 Memory* memory
96@36 Client_TopologyDescription: Client* client; =TopologyDescription* topology
102@60 AsyncHostToDeviceTransferManager_Destroy: AsyncHostToDeviceTransferManager*
    transfer_manager
103@60 AsyncHostToDeviceTransferManager_TransferData: AsyncHostToDeviceTransferManager*
    transfer_manager; int buffer_index; const void* data; int64_t offset; int64_t transfer_size;
    bool is_last_transfer; =Event* done_with_h2d_transfer
104@60 Client_CreateBuffersForAsyncHostToDevice: Client* client; ShapeSpec* shape_specs; size_t
    num_shape_specs; Buffer_MemoryLayout** device_layouts; size_t num_device_layouts; Memory*
    memory; =AsyncHostToDeviceTransferManager* transfer_manager
105@60 AsyncHostToDeviceTransferManager_RetrieveBuffer: AsyncHostToDeviceTransferManager*
    transfer_manager; int buffer_index; =Buffer* buffer_out
106@60 AsyncHostToDeviceTransferManager_Device: AsyncHostToDeviceTransferManager*
    transfer_manager; =Device* device_out
107@60 AsyncHostToDeviceTransferManager_BufferCount: AsyncHostToDeviceTransferManager*
    transfer_manager; =size_t buffer_count
108@60 AsyncHostToDeviceTransferManager_BufferSize: AsyncHostToDeviceTransferManager*
    transfer_manager; int buffer_index; =size_t buffer_size
109@60 AsyncHostToDeviceTransferManager_SetBufferError: AsyncHostToDeviceTransferManager*
    transfer_manager; int buffer_index; Error_Code error_code; const char* error_message; size_t
    error_message_size
110@60 AsyncHostToDeviceTransferManager_AddMetadata: AsyncHostToDeviceTransferManager*
    transfer_manager; const NamedValue* transfer_metadata; size_t num_metadata
111@67 Client_DmaMap: Client* client; void* data; size_t size
112@67 Client_DmaUnmap: Client* client; void* data
113@69 Client_CreateUninitializedBuffer: Client* client; const int64_t* shape_dims; size_t
    shape_num_dims; Buffer_Type shape_element_type; Buffer_MemoryLayout* shape_layout; Device*
    device; Memory* memory; =Buffer* buffer
114@73 Client_UpdateGlobalProcessInfo: Client* client; ProcessInfo* process_infos; size_t
    num_process_infos
116@77 Client_CreateAliasBuffer: Client* client; Memory* memory; const int64_t* shape_dims;
    size_t shape_num_dims; Buffer_Type shape_element_type; Buffer_MemoryLayout* shape_layout;
    =Buffer* alias_buffer; =FulfillAliasBufferCallback* fulfill_alias_buffer_cb
117@77 Client_FulfillAliasBuffer: Client* client; Buffer* buffer; Error_Code status_code; const
    char* error_message; size_t error_message_size; FulfillAliasBufferCallback*
    fulfill_alias_buffer_cb
119@82 Client_CreateErrorBuffer: Client* client; Error_Code error_code; const char*
    error_message; size_t error_message_size; const int64_t* shape_dims; size_t shape_num_dims;
    Buffer_Type shape_element_type; Buffer_MemoryLayout* shape_layout; Memory* memory; =Buffer*
    buffer; @103 const NamedValue* payload; size_t num_payload
120@83 AsyncHostToDeviceTransferManager_TransferLiteral: AsyncHostToDeviceTransferManager*
    transfer_manager; int buffer_index; const void* data; const int64_t* shape_dims; size_t
    shape_num_dims; Buffer_Type shape_element_type; Buffer_MemoryLayout* shape_layout; =Event*
    done_with_h2d_transfer
130@95 Client_Load: Client* client; Executable* executable; const char* compile_options; size_t
    compile_options_size; =LoadedExecutable* loaded_executable
"""
