# Made by plugrt.capi.abi.generate from the declarations; do not edit.
"""Struct to (minor, field): before that minor version its stated size ends with that field."""

GROWN: dict[str, tuple[tuple[int, str], ...]] = {
    "PJRT_Plugin_Attributes_Args": (
        (71, "attributes"),
    ),
    "PJRT_Client_Create_Args": (
        (61, "client"),
    ),
    "PJRT_Device_MemoryStats_Args": (
        (113, "peak_pool_bytes_is_set"),
    ),
    "PJRT_Executable_DeserializeAndLoad_Args": (
        (71, "loaded_executable"),
        (111, "overridden_serialized_compile_options_size"),
    ),
    "PJRT_Client_CreateViewOfDeviceBuffer_Args": (
        (65, "buffer"),
    ),
    "PJRT_Executable_GetCompiledMemoryStats_Args": (
        (43, "temp_size_in_bytes"),
        (72, "host_temp_size_in_bytes"),
        (90, "peak_memory_in_bytes"),
        (104, "total_size_in_bytes"),
    ),
    "PJRT_Client_CreateErrorBuffer_Args": (
        (103, "buffer"),
    ),
    "PJRT_Device_PoisonExecution_Args": (
        (100, "poisoned"),
    ),
    "PJRT_FFI_Type_Register_Args": (
        (80, "type_id"),
    ),
    "PJRT_DeviceDescription_MemoryDescriptions_Args": (
        (61, "num_memory_descriptions"),
    ),
    "PJRT_ExecuteOptions": (
        (46, "launch_id"),
        (61, "num_non_donatable_input_indices"),
        (76, "context"),
        (78, "call_location"),
        (97, "incarnation_ids"),
        (108, "multi_slice_config"),
        (112, "use_major_to_minor_data_layout_for_callbacks"),
    ),
}
