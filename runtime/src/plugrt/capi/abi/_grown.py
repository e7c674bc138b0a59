# Made by plugrt.capi.abi.generate from the declarations; do not edit.
# ruff: noqa: E501
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

HEADERS: dict[tuple[int, int], tuple[dict[str, str], ...]] = {
    (61, 104): (
        {"PJRT_ExecuteOptions": "num_non_donatable_input_indices"},
        {"PJRT_Client_Create_Args": "client"},
        {"PJRT_Client_Create_Args": "client", "PJRT_ExecuteOptions": "num_non_donatable_input_indices"},
    ),
    (62, 104): (
        {},
    ),
    (62, 110): (
        {"PJRT_ExecuteOptions": "num_non_donatable_input_indices"},
    ),
    (63, 110): (
        {"PJRT_ExecuteOptions": "num_non_donatable_input_indices"},
    ),
    (65, 110): (
        {},
        {"PJRT_Client_CreateViewOfDeviceBuffer_Args": "buffer"},
    ),
    (71, 113): (
        {},
        {"PJRT_Plugin_Attributes_Args": "attributes", "PJRT_Executable_DeserializeAndLoad_Args": "loaded_executable"},
    ),
}
"""(minor, functions in the table) to the structs of each header whose size ends otherwise."""

SINCE: tuple[int, ...] = (
    29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29,
    29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29,
    29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29,
    29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29, 29,
    29, 29, 29, 29, 32, 33, 35, 36, 40, 48, 52, 52, 56, 60, 60, 60, 60, 60, 60, 60, 60, 60,
    67, 67, 69, 73, 75, 77, 77, 79, 82, 83, 84, 85, 86, 86, 87, 88, 89, 89, 92, 95, 96, 98,
    99, 101, 102, 106, 109, 110,
)
"""The minor version of each function of the table; none is older than the oldest."""
