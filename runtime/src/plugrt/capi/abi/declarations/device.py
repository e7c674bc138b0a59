"""The device, memory and topology functions of the PJRT C API.

The notation is described in `plugrt.capi.abi.declarations`.
"""

DEVICE = """
24 DeviceDescription_Id: DeviceDescription* device_description; =int id
25 DeviceDescription_ProcessIndex: DeviceDescription* device_description; =int process_index
26 DeviceDescription_Attributes: DeviceDescription* device_description; =size_t num_attributes;
    =const NamedValue* attributes
27 DeviceDescription_Kind: DeviceDescription* device_description; =const char* device_kind;
    =size_t device_kind_size
28 DeviceDescription_DebugString: DeviceDescription* device_description; =const char*
    debug_string; =size_t debug_string_size
29 DeviceDescription_ToString: DeviceDescription* device_description; =const char* to_string;
    =size_t to_string_size
30 Device_GetDescription: Device* device; =DeviceDescription* device_description
31 Device_IsAddressable: Device* device; =bool is_addressable
32 Device_LocalHardwareId: Device* device; =int local_hardware_id
33 Device_AddressableMemories: Device* device; =Memory* const* memories; =size_t num_memories
34 Device_DefaultMemory: Device* device; =Memory* memory
35 Device_MemoryStats: Device* device; =int64_t bytes_in_use; =int64_t peak_bytes_in_use; =bool
    peak_bytes_in_use_is_set; =int64_t num_allocs; =bool num_allocs_is_set; =int64_t
    largest_alloc_size; =bool largest_alloc_size_is_set; =int64_t bytes_limit; =bool
    bytes_limit_is_set; =int64_t bytes_reserved; =bool bytes_reserved_is_set; =int64_t
    peak_bytes_reserved; =bool peak_bytes_reserved_is_set; =int64_t bytes_reservable_limit;
    =bool bytes_reservable_limit_is_set; =int64_t largest_free_block_bytes; =bool
    largest_free_block_bytes_is_set; =int64_t pool_bytes; =bool pool_bytes_is_set; =int64_t
    peak_pool_bytes; =bool peak_pool_bytes_is_set; @113 =int64_t peak_allocated_bytes; =bool
    peak_allocated_bytes_is_set
36 Memory_Id: Memory* memory; =int id
37 Memory_Kind: Memory* memory; =const char* kind; =size_t kind_size
38 Memory_DebugString: Memory* memory; =const char* debug_string; =size_t debug_string_size
39 Memory_ToString: Memory* memory; =const char* to_string; =size_t to_string_size
40 Memory_AddressableByDevices: Memory* memory; =Device* const* devices; =size_t num_devices
83 TopologyDescription_Create: const char* topology_name; size_t topology_name_size; const
    NamedValue* create_options; size_t num_options; =TopologyDescription* topology
84 TopologyDescription_Destroy: TopologyDescription* topology
85 TopologyDescription_PlatformName: const TopologyDescription* topology; =const char*
    platform_name; =size_t platform_name_size
86 TopologyDescription_PlatformVersion: TopologyDescription* topology; =const char*
    platform_version; =size_t platform_version_size
87 TopologyDescription_GetDeviceDescriptions: const TopologyDescription* topology;
    =DeviceDescription* const* descriptions; =size_t num_descriptions
88 TopologyDescription_Serialize: TopologyDescription* topology; =const char* serialized_bytes;
    =size_t serialized_bytes_size; =SerializedTopology* serialized_topology; =void
    (*serialized_topology_deleter)(SerializedTopology* serialized_topology)
89 TopologyDescription_Attributes: TopologyDescription* topology; =const NamedValue* attributes;
    =size_t num_attributes
98@48 Memory_Kind_Id: Memory* memory; =int kind_id
115@75 TopologyDescription_Deserialize: const char* serialized_topology; size_t
    serialized_topology_size; =TopologyDescription* topology
122@85 Device_PoisonExecution: Device* device; int32_t launch_id; Error_Code error_code; const
    char* error_message; size_t error_message_size; =bool poisoned; @100 const NamedValue* payload;
    size_t num_payload
123@86 Device_CreateAsyncTrackingEvent: Device* device; const char* description; size_t
    description_size; =AsyncTrackingEvent* event
129@92 Device_GetAttributes: Device* device; =const NamedValue* attributes; =size_t
    num_attributes; =Device_Attributes* device_attributes; =void
    (*attributes_deleter)(Device_Attributes* device_attributes)
134@101 TopologyDescription_Fingerprint: const TopologyDescription* topology; =uint64_t
    fingerprint
136@106 Device_ClearMemoryStats: Device* device
137@109 TopologyDescription_MakeCanonicalShapeForMemorySpace: const TopologyDescription*
    topology; int memory_space_kind_id; const int64_t* dims; size_t num_dims; Buffer_Type
    element_type; const Buffer_MemoryLayout* layout; =const char* serialized_shape; =size_t
    serialized_shape_size; =void (*serialized_shape_deleter)(const char*)
138@110 TopologyDescription_GetMemorySpaceKindIds: const TopologyDescription* topology; =const
    int* memory_space_kind_ids; =size_t num_memory_space_kind_ids
"""
