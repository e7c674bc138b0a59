"""The buffer functions of the PJRT C API.

The notation is described in `plugrt.capi.abi.declarations`.
"""

BUFFER = """
59 Buffer_Destroy: Buffer* buffer
60 Buffer_ElementType: Buffer* buffer; =Buffer_Type type
61 Buffer_Dimensions: Buffer* buffer; =const int64_t* dims; =size_t num_dims
62 Buffer_UnpaddedDimensions: Buffer* buffer; =const int64_t* unpadded_dims; =size_t num_dims
63 Buffer_DynamicDimensionIndices: Buffer* buffer; =const size_t* dynamic_dim_indices; =size_t
    num_dynamic_dims
64 Buffer_GetMemoryLayout: Buffer* buffer; =Buffer_MemoryLayout layout
65 Buffer_OnDeviceSizeInBytes: Buffer* buffer; =size_t on_device_size_in_bytes
66 Buffer_Device: Buffer* buffer; =Device* device
67 Buffer_Memory: Buffer* buffer; =Memory* memory
68 Buffer_Delete: Buffer* buffer
69 Buffer_IsDeleted: Buffer* buffer; =bool is_deleted
70 Buffer_CopyToDevice: Buffer* buffer; Device* dst_device; =Buffer* dst_buffer
71 Buffer_ToHostBuffer: Buffer* src; Buffer_MemoryLayout* host_layout; void* dst; size_t
    dst_size; =Event* event
72 Buffer_IsOnCpu: Buffer* buffer; =bool is_on_cpu
73 Buffer_ReadyEvent: Buffer* buffer; =Event* event
74 Buffer_UnsafePointer: Buffer* buffer; =uintptr_t buffer_pointer
75 Buffer_IncreaseExternalReferenceCount: Buffer* buffer
76 Buffer_DecreaseExternalReferenceCount: Buffer* buffer
77 Buffer_OpaqueDeviceMemoryDataPointer: Buffer* buffer; =void* device_memory_ptr
78 CopyToDeviceStream_Destroy: CopyToDeviceStream* stream
79 CopyToDeviceStream_AddChunk: CopyToDeviceStream* stream; Chunk* chunk; =Event*
    transfer_complete
80 CopyToDeviceStream_TotalBytes: CopyToDeviceStream* stream; =int64_t total_bytes
81 CopyToDeviceStream_GranuleSize: CopyToDeviceStream* stream; =int64_t granule_size_in_bytes
82 CopyToDeviceStream_CurrentBytes: CopyToDeviceStream* stream; =int64_t current_bytes
93@32 Buffer_CopyToMemory: Buffer* buffer; Memory* dst_memory; =Buffer* dst_buffer
101@56 Buffer_CopyRawToHost: Buffer* buffer; void* dst; int64_t offset; int64_t transfer_size;
    =Event* event
121@84 Buffer_CopyRawToHostFuture: Buffer* buffer; int64_t offset; int64_t transfer_size;
    =Event* event; =void* callback_data; =void (*future_ready_callback)(
    Buffer_CopyRawToHostFuture_Callback_Args* args)
126@88 Buffer_DonateWithControlDependency: Buffer* buffer; =void* callback_data; =void
    (*dependency_ready_callback)(Buffer_DonateWithControlDependency_Callback_Args* args);
    =Buffer* out_buffer
132@98 Buffer_Bitcast: Buffer* buffer; Buffer_Type element_type; const int64_t* dims; size_t
    num_dims; Buffer_MemoryLayout* device_layout; =Buffer* out_buffer
"""
