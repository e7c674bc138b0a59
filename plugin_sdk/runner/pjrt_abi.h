/* Made by generate.py from plugrt.capi.abi.declarations; do not edit. */
#ifndef PLUGRT_PJRT_H
#define PLUGRT_PJRT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#define PJRT_API_MAJOR 0
#define PJRT_API_MINOR 114
#define PJRT_API_OLDEST_MINOR 29
typedef int PJRT_Error_Code;
typedef int PJRT_NamedValue_Type;
typedef int PJRT_ProcessState;
typedef int PJRT_Buffer_Type;
typedef int PJRT_HostBufferSemantics;
typedef int PJRT_Buffer_MemoryLayout_Type;
typedef int PJRT_Extension_Type;
typedef int PJRT_Callback_Type;
typedef struct PJRT_Error PJRT_Error;
typedef struct PJRT_Event PJRT_Event;
typedef struct PJRT_Client PJRT_Client;
typedef struct PJRT_Device PJRT_Device;
typedef struct PJRT_Memory PJRT_Memory;
typedef struct PJRT_DeviceDescription PJRT_DeviceDescription;
typedef struct PJRT_TopologyDescription PJRT_TopologyDescription;
typedef struct PJRT_Executable PJRT_Executable;
typedef struct PJRT_LoadedExecutable PJRT_LoadedExecutable;
typedef struct PJRT_Buffer PJRT_Buffer;
typedef struct PJRT_FulfillAliasBufferCallback PJRT_FulfillAliasBufferCallback;
typedef struct PJRT_AsyncHostToDeviceTransferManager PJRT_AsyncHostToDeviceTransferManager;
typedef struct PJRT_PhaseCompiler PJRT_PhaseCompiler;
typedef struct PJRT_Device_Attributes PJRT_Device_Attributes;
typedef struct PJRT_AsyncTrackingEvent PJRT_AsyncTrackingEvent;
typedef struct PJRT_ExecuteContext PJRT_ExecuteContext;
typedef struct PJRT_DeviceAssignmentSerialized PJRT_DeviceAssignmentSerialized;
typedef struct PJRT_CopyToDeviceStream PJRT_CopyToDeviceStream;
typedef struct PJRT_MultiSlice_Config PJRT_MultiSlice_Config;
typedef struct PJRT_SerializedExecutable PJRT_SerializedExecutable;
typedef struct PJRT_SerializedCompileOptions PJRT_SerializedCompileOptions;
typedef struct PJRT_SerializedTopology PJRT_SerializedTopology;
typedef struct PJRT_Layouts_MemoryLayout PJRT_Layouts_MemoryLayout;
typedef struct PJRT_Layouts_SerializedLayout PJRT_Layouts_SerializedLayout;
typedef struct PJRT_MemoryDescription PJRT_MemoryDescription;
typedef struct PJRT_RuntimeAbiVersion PJRT_RuntimeAbiVersion;
typedef struct PJRT_ExecutableAbiVersion PJRT_ExecutableAbiVersion;
typedef struct PJRT_SerializedProto PJRT_SerializedProto;
typedef struct PJRT_RawBuffer PJRT_RawBuffer;
typedef struct PJRT_NamedValue PJRT_NamedValue;
typedef struct PJRT_ProcessInfo PJRT_ProcessInfo;
typedef struct PJRT_Program PJRT_Program;
typedef struct PJRT_Buffer_MemoryLayout_Tiled PJRT_Buffer_MemoryLayout_Tiled;
typedef struct PJRT_Buffer_MemoryLayout_Strides PJRT_Buffer_MemoryLayout_Strides;
typedef struct PJRT_Buffer_MemoryLayout PJRT_Buffer_MemoryLayout;
typedef struct PJRT_ShapeSpec PJRT_ShapeSpec;
typedef struct PJRT_LogicalDeviceIds PJRT_LogicalDeviceIds;
typedef struct PJRT_Chunk PJRT_Chunk;
typedef struct PJRT_SendCallbackInfo PJRT_SendCallbackInfo;
typedef struct PJRT_RecvCallbackInfo PJRT_RecvCallbackInfo;
typedef struct PJRT_HloOutputCallbackInfo PJRT_HloOutputCallbackInfo;
typedef struct PJRT_ExecuteOptions PJRT_ExecuteOptions;
typedef struct PJRT_LoadOptions PJRT_LoadOptions;
typedef struct PJRT_KeyValueGetCallback_Args PJRT_KeyValueGetCallback_Args;
typedef struct PJRT_KeyValueTryGetCallback_Args PJRT_KeyValueTryGetCallback_Args;
typedef struct PJRT_KeyValuePutCallback_Args PJRT_KeyValuePutCallback_Args;
typedef struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args PJRT_Buffer_CopyRawToHostFuture_Callback_Args;
typedef struct PJRT_Buffer_DonateWithControlDependency_Callback_Args PJRT_Buffer_DonateWithControlDependency_Callback_Args;
typedef struct PJRT_FFI_Type_Info PJRT_FFI_Type_Info;
typedef struct PJRT_FFI_UserData PJRT_FFI_UserData;
typedef struct PJRT_Callback_Tpu_SliceBuilderArgs PJRT_Callback_Tpu_SliceBuilderArgs;
typedef struct PJRT_Callback_PrefatalArgs PJRT_Callback_PrefatalArgs;
typedef struct PJRT_Transfers_RecvNotifierInfo PJRT_Transfers_RecvNotifierInfo;
typedef struct PJRT_Transfers_RemoteSendCallbackInfo PJRT_Transfers_RemoteSendCallbackInfo;
typedef struct PJRT_Extension_Base { size_t struct_size; PJRT_Extension_Type type; struct PJRT_Extension_Base* next; } PJRT_Extension_Base;
typedef struct { size_t struct_size; PJRT_Extension_Base* extension_start; int major_version; int minor_version; } PJRT_Api_Version;
typedef void (*PJRT_Error_PayloadVisitor)(const char* key, size_t key_size, const char* value, size_t value_size, void* user_arg);
typedef PJRT_Error* (*PJRT_CallbackError)(PJRT_Error_Code code, const char* message, size_t message_size);
typedef void (*PJRT_Event_OnReadyCallback)(PJRT_Error* error, void* user_arg);
typedef void (*PJRT_KeyValueGetCallback_ValueDeleter)(char* value);
typedef void (*PJRT_KeyValueTryGetCallback_ValueDeleter)(char* value);
typedef PJRT_Error* (*PJRT_KeyValueGetCallback)(PJRT_KeyValueGetCallback_Args* args);
typedef PJRT_Error* (*PJRT_KeyValueTryGetCallback)(PJRT_KeyValueTryGetCallback_Args* args);
typedef PJRT_Error* (*PJRT_KeyValuePutCallback)(PJRT_KeyValuePutCallback_Args* args);
typedef PJRT_Error* (*PJRT_SendCallback)(PJRT_Chunk* chunk, PJRT_CallbackError* callback_error, size_t total_size_in_bytes, bool done, void* user_arg);
typedef void (*PJRT_RecvCallback)(PJRT_CopyToDeviceStream* stream, void* user_arg);
typedef void (*PJRT_HloOutputCallback)(int64_t replica_id, int64_t partition_id, const void* data, const int64_t* shape_dims, size_t shape_num_dims, PJRT_Buffer_Type shape_element_type, int64_t operand_index, void* user_arg);
struct PJRT_NamedValue { size_t struct_size; PJRT_Extension_Base* extension_start; const char* name; size_t name_size; PJRT_NamedValue_Type type; union { const char* string_value; int64_t int64_value; const int64_t* int64_array_value; float float_value; uint8_t bool_value; }; size_t value_size; };
struct PJRT_ProcessInfo { size_t struct_size; int task_id; uint64_t incarnation_id; PJRT_ProcessState state; int error_code; const char* error_message; size_t error_message_size; };
struct PJRT_Program { size_t struct_size; PJRT_Extension_Base* extension_start; char* code; size_t code_size; const char* format; size_t format_size; };
struct PJRT_Buffer_MemoryLayout_Tiled { size_t struct_size; PJRT_Extension_Base* extension_start; const int64_t* minor_to_major; size_t minor_to_major_size; const int64_t* tile_dims; const size_t* tile_dim_sizes; size_t num_tiles; };
struct PJRT_Buffer_MemoryLayout_Strides { size_t struct_size; PJRT_Extension_Base* extension_start; const int64_t* byte_strides; size_t num_byte_strides; };
struct PJRT_Buffer_MemoryLayout { size_t struct_size; PJRT_Extension_Base* extension_start; union { PJRT_Buffer_MemoryLayout_Tiled tiled; PJRT_Buffer_MemoryLayout_Strides strides; }; PJRT_Buffer_MemoryLayout_Type type; };
struct PJRT_ShapeSpec { size_t struct_size; PJRT_Extension_Base* extension_start; const int64_t* dims; size_t num_dims; PJRT_Buffer_Type element_type; };
struct PJRT_LogicalDeviceIds {  int replica; int partition; };
struct PJRT_Chunk {  void* data; size_t size; void (*deleter)(void* data, void* deleter_arg); void* deleter_arg; };
struct PJRT_SendCallbackInfo {  int64_t channel_id; void* user_arg; PJRT_SendCallback send_callback; };
struct PJRT_RecvCallbackInfo {  int64_t channel_id; void* user_arg; PJRT_RecvCallback recv_callback; };
struct PJRT_HloOutputCallbackInfo {  void* user_arg; PJRT_HloOutputCallback callback; int64_t callback_id; size_t num_operands; };
struct PJRT_ExecuteOptions { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_SendCallbackInfo** send_callbacks; PJRT_RecvCallbackInfo** recv_callbacks; size_t num_send_ops; size_t num_recv_ops; int launch_id; const int64_t* non_donatable_input_indices; size_t num_non_donatable_input_indices; PJRT_ExecuteContext* context; const char* call_location; size_t num_tasks; int* task_ids; int64_t* incarnation_ids; PJRT_MultiSlice_Config* multi_slice_config; uint8_t use_major_to_minor_data_layout_for_callbacks; PJRT_HloOutputCallbackInfo* hlo_output_callbacks; size_t num_hlo_output_callbacks; };
struct PJRT_LoadOptions { size_t struct_size; const int32_t* computation_origin; size_t computation_origin_size; PJRT_MultiSlice_Config* multi_slice_config; };
struct PJRT_KeyValueGetCallback_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const char* key; size_t key_size; int timeout_in_ms; PJRT_CallbackError* callback_error; void* user_arg; char* value; size_t value_size; PJRT_KeyValueGetCallback_ValueDeleter value_deleter_callback; };
struct PJRT_KeyValueTryGetCallback_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const char* key; size_t key_size; PJRT_CallbackError* callback_error; void* user_arg; char* value; size_t value_size; PJRT_KeyValueTryGetCallback_ValueDeleter value_deleter_callback; };
struct PJRT_KeyValuePutCallback_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const char* key; size_t key_size; const char* value; size_t value_size; PJRT_CallbackError* callback_error; void* user_arg; };
struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args { size_t struct_size; void* callback_data; PJRT_Error_Code error_code; const char* error_message; size_t error_message_size; void* dst; };
struct PJRT_Buffer_DonateWithControlDependency_Callback_Args { size_t struct_size; void* callback_data; PJRT_Error_Code error_code; const char* error_message; size_t error_message_size; };
struct PJRT_FFI_Type_Info {  void (*deleter)(void* object); void (*serialize)(); void (*deserialize)(); };
struct PJRT_FFI_UserData {  int64_t type_id; void* data; };
struct PJRT_Callback_Tpu_SliceBuilderArgs { size_t struct_size; int32_t failure_type; };
struct PJRT_Callback_PrefatalArgs { size_t struct_size; PJRT_Error_Code error_code; const char* error_message; size_t error_message_size; };
struct PJRT_Transfers_RecvNotifierInfo {  void* user_arg; void (*notifier)(PJRT_Error* error, const char** serialized_descriptors, size_t* descriptors_sizes, size_t num_descriptors, void* user_arg, void* cancel_notifier, void* cancel_notifier_user_arg); };
struct PJRT_Transfers_RemoteSendCallbackInfo {  void* user_arg; void (*on_done)(PJRT_Error* error, uint8_t sends_were_enqueued, void* user_arg); };
struct PJRT_Error_Destroy_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Error* error; };
struct PJRT_Error_Message_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_Error* error; const char* message; size_t message_size; };
struct PJRT_Error_GetCode_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_Error* error; PJRT_Error_Code code; };
struct PJRT_Plugin_Initialize_Args { size_t struct_size; PJRT_Extension_Base* extension_start;  };
struct PJRT_Plugin_Attributes_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_NamedValue* attributes; size_t num_attributes; };
struct PJRT_Event_Destroy_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Event* event; };
struct PJRT_Event_IsReady_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Event* event; uint8_t is_ready; };
struct PJRT_Event_Error_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Event* event; };
struct PJRT_Event_Await_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Event* event; };
struct PJRT_Event_OnReady_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Event* event; PJRT_Event_OnReadyCallback callback; void* user_arg; };
struct PJRT_Client_Create_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_NamedValue* create_options; size_t num_options; PJRT_KeyValueGetCallback kv_get_callback; void* kv_get_user_arg; PJRT_KeyValuePutCallback kv_put_callback; void* kv_put_user_arg; PJRT_Client* client; PJRT_KeyValueTryGetCallback kv_try_get_callback; void* kv_try_get_user_arg; };
struct PJRT_Client_Destroy_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; };
struct PJRT_Client_PlatformName_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; const char* platform_name; size_t platform_name_size; };
struct PJRT_Client_ProcessIndex_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; int process_index; };
struct PJRT_Client_PlatformVersion_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; const char* platform_version; size_t platform_version_size; };
struct PJRT_Client_Devices_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; PJRT_Device* const* devices; size_t num_devices; };
struct PJRT_Client_AddressableDevices_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; PJRT_Device* const* addressable_devices; size_t num_addressable_devices; };
struct PJRT_Client_LookupDevice_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; int id; PJRT_Device* device; };
struct PJRT_Client_LookupAddressableDevice_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; int local_hardware_id; PJRT_Device* addressable_device; };
struct PJRT_Client_AddressableMemories_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; PJRT_Memory* const* addressable_memories; size_t num_addressable_memories; };
struct PJRT_Client_Compile_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; const PJRT_Program* program; const char* compile_options; size_t compile_options_size; PJRT_LoadedExecutable* executable; };
struct PJRT_Client_DefaultDeviceAssignment_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; int num_replicas; int num_partitions; size_t default_assignment_size; int* default_assignment; };
struct PJRT_Client_BufferFromHostBuffer_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; const void* data; PJRT_Buffer_Type type; const int64_t* dims; size_t num_dims; const int64_t* byte_strides; size_t num_byte_strides; PJRT_HostBufferSemantics host_buffer_semantics; PJRT_Device* device; PJRT_Memory* memory; PJRT_Buffer_MemoryLayout* device_layout; PJRT_Event* done_with_host_buffer; PJRT_Buffer* buffer; };
struct PJRT_DeviceDescription_Id_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_DeviceDescription* device_description; int id; };
struct PJRT_DeviceDescription_ProcessIndex_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_DeviceDescription* device_description; int process_index; };
struct PJRT_DeviceDescription_Attributes_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_DeviceDescription* device_description; size_t num_attributes; const PJRT_NamedValue* attributes; };
struct PJRT_DeviceDescription_Kind_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_DeviceDescription* device_description; const char* device_kind; size_t device_kind_size; };
struct PJRT_DeviceDescription_DebugString_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_DeviceDescription* device_description; const char* debug_string; size_t debug_string_size; };
struct PJRT_DeviceDescription_ToString_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_DeviceDescription* device_description; const char* to_string; size_t to_string_size; };
struct PJRT_Device_GetDescription_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Device* device; PJRT_DeviceDescription* device_description; };
struct PJRT_Device_IsAddressable_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Device* device; uint8_t is_addressable; };
struct PJRT_Device_LocalHardwareId_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Device* device; int local_hardware_id; };
struct PJRT_Device_AddressableMemories_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Device* device; PJRT_Memory* const* memories; size_t num_memories; };
struct PJRT_Device_DefaultMemory_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Device* device; PJRT_Memory* memory; };
struct PJRT_Device_MemoryStats_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Device* device; int64_t bytes_in_use; int64_t peak_bytes_in_use; uint8_t peak_bytes_in_use_is_set; int64_t num_allocs; uint8_t num_allocs_is_set; int64_t largest_alloc_size; uint8_t largest_alloc_size_is_set; int64_t bytes_limit; uint8_t bytes_limit_is_set; int64_t bytes_reserved; uint8_t bytes_reserved_is_set; int64_t peak_bytes_reserved; uint8_t peak_bytes_reserved_is_set; int64_t bytes_reservable_limit; uint8_t bytes_reservable_limit_is_set; int64_t largest_free_block_bytes; uint8_t largest_free_block_bytes_is_set; int64_t pool_bytes; uint8_t pool_bytes_is_set; int64_t peak_pool_bytes; uint8_t peak_pool_bytes_is_set; int64_t peak_allocated_bytes; uint8_t peak_allocated_bytes_is_set; };
struct PJRT_Memory_Id_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Memory* memory; int id; };
struct PJRT_Memory_Kind_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Memory* memory; const char* kind; size_t kind_size; };
struct PJRT_Memory_DebugString_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Memory* memory; const char* debug_string; size_t debug_string_size; };
struct PJRT_Memory_ToString_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Memory* memory; const char* to_string; size_t to_string_size; };
struct PJRT_Memory_AddressableByDevices_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Memory* memory; PJRT_Device* const* devices; size_t num_devices; };
struct PJRT_Executable_Destroy_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; };
struct PJRT_Executable_Name_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; const char* executable_name; size_t executable_name_size; };
struct PJRT_Executable_NumReplicas_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; size_t num_replicas; };
struct PJRT_Executable_NumPartitions_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; size_t num_partitions; };
struct PJRT_Executable_NumOutputs_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; size_t num_outputs; };
struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; int64_t size_in_bytes; };
struct PJRT_Executable_GetCostAnalysis_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; size_t num_properties; const PJRT_NamedValue* properties; };
struct PJRT_Executable_OutputMemoryKinds_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; size_t num_outputs; const char* const* memory_kinds; const size_t* memory_kind_sizes; };
struct PJRT_Executable_OptimizedProgram_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; PJRT_Program* program; };
struct PJRT_Executable_Serialize_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_Executable* executable; const char* serialized_bytes; size_t serialized_bytes_size; PJRT_SerializedExecutable* serialized_executable; void (*serialized_executable_deleter)(PJRT_SerializedExecutable* exec); };
struct PJRT_LoadedExecutable_Destroy_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_LoadedExecutable* executable; };
struct PJRT_LoadedExecutable_GetExecutable_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_LoadedExecutable* loaded_executable; PJRT_Executable* executable; };
struct PJRT_LoadedExecutable_AddressableDevices_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_LoadedExecutable* executable; PJRT_Device* const* addressable_devices; size_t num_addressable_devices; };
struct PJRT_LoadedExecutable_Delete_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_LoadedExecutable* executable; };
struct PJRT_LoadedExecutable_IsDeleted_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_LoadedExecutable* executable; uint8_t is_deleted; };
struct PJRT_LoadedExecutable_Execute_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_LoadedExecutable* executable; PJRT_ExecuteOptions* options; PJRT_Buffer* const* const* argument_lists; size_t num_devices; size_t num_args; PJRT_Buffer** const* output_lists; PJRT_Event** device_complete_events; PJRT_Device* execute_device; };
struct PJRT_Executable_DeserializeAndLoad_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; const char* serialized_executable; size_t serialized_executable_size; PJRT_LoadedExecutable* loaded_executable; const char* overridden_serialized_compile_options; size_t overridden_serialized_compile_options_size; PJRT_LoadOptions* load_options; };
struct PJRT_LoadedExecutable_Fingerprint_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_LoadedExecutable* executable; const char* executable_fingerprint; size_t executable_fingerprint_size; };
struct PJRT_Buffer_Destroy_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; };
struct PJRT_Buffer_ElementType_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; PJRT_Buffer_Type type; };
struct PJRT_Buffer_Dimensions_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; const int64_t* dims; size_t num_dims; };
struct PJRT_Buffer_UnpaddedDimensions_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; const int64_t* unpadded_dims; size_t num_dims; };
struct PJRT_Buffer_DynamicDimensionIndices_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; const size_t* dynamic_dim_indices; size_t num_dynamic_dims; };
struct PJRT_Buffer_GetMemoryLayout_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; PJRT_Buffer_MemoryLayout layout; };
struct PJRT_Buffer_OnDeviceSizeInBytes_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; size_t on_device_size_in_bytes; };
struct PJRT_Buffer_Device_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; PJRT_Device* device; };
struct PJRT_Buffer_Memory_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; PJRT_Memory* memory; };
struct PJRT_Buffer_Delete_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; };
struct PJRT_Buffer_IsDeleted_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; uint8_t is_deleted; };
struct PJRT_Buffer_CopyToDevice_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; PJRT_Device* dst_device; PJRT_Buffer* dst_buffer; };
struct PJRT_Buffer_ToHostBuffer_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* src; PJRT_Buffer_MemoryLayout* host_layout; void* dst; size_t dst_size; PJRT_Event* event; };
struct PJRT_Buffer_IsOnCpu_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; uint8_t is_on_cpu; };
struct PJRT_Buffer_ReadyEvent_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; PJRT_Event* event; };
struct PJRT_Buffer_UnsafePointer_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; uintptr_t buffer_pointer; };
struct PJRT_Buffer_IncreaseExternalReferenceCount_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; };
struct PJRT_Buffer_DecreaseExternalReferenceCount_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; };
struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; void* device_memory_ptr; };
struct PJRT_CopyToDeviceStream_Destroy_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_CopyToDeviceStream* stream; };
struct PJRT_CopyToDeviceStream_AddChunk_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_CopyToDeviceStream* stream; PJRT_Chunk* chunk; PJRT_Event* transfer_complete; };
struct PJRT_CopyToDeviceStream_TotalBytes_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_CopyToDeviceStream* stream; int64_t total_bytes; };
struct PJRT_CopyToDeviceStream_GranuleSize_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_CopyToDeviceStream* stream; int64_t granule_size_in_bytes; };
struct PJRT_CopyToDeviceStream_CurrentBytes_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_CopyToDeviceStream* stream; int64_t current_bytes; };
struct PJRT_TopologyDescription_Create_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const char* topology_name; size_t topology_name_size; const PJRT_NamedValue* create_options; size_t num_options; PJRT_TopologyDescription* topology; };
struct PJRT_TopologyDescription_Destroy_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_TopologyDescription* topology; };
struct PJRT_TopologyDescription_PlatformName_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_TopologyDescription* topology; const char* platform_name; size_t platform_name_size; };
struct PJRT_TopologyDescription_PlatformVersion_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_TopologyDescription* topology; const char* platform_version; size_t platform_version_size; };
struct PJRT_TopologyDescription_GetDeviceDescriptions_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_TopologyDescription* topology; PJRT_DeviceDescription* const* descriptions; size_t num_descriptions; };
struct PJRT_TopologyDescription_Serialize_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_TopologyDescription* topology; const char* serialized_bytes; size_t serialized_bytes_size; PJRT_SerializedTopology* serialized_topology; void (*serialized_topology_deleter)(PJRT_SerializedTopology* serialized_topology); };
struct PJRT_TopologyDescription_Attributes_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_TopologyDescription* topology; const PJRT_NamedValue* attributes; size_t num_attributes; };
struct PJRT_Compile_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_TopologyDescription* topology; const PJRT_Program* program; const char* compile_options; size_t compile_options_size; PJRT_Client* client; PJRT_Executable* executable; };
struct PJRT_Executable_OutputElementTypes_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; PJRT_Buffer_Type* output_types; size_t num_output_types; };
struct PJRT_Executable_OutputDimensions_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; size_t num_outputs; const int64_t* dims; const size_t* dim_sizes; };
struct PJRT_Buffer_CopyToMemory_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; PJRT_Memory* dst_memory; PJRT_Buffer* dst_buffer; };
struct PJRT_Client_CreateViewOfDeviceBuffer_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; void* device_buffer_ptr; const int64_t* dims; size_t num_dims; PJRT_Buffer_Type element_type; PJRT_Buffer_MemoryLayout* layout; PJRT_Device* device; void (*on_delete_callback)(void* device_buffer_ptr, void* user_arg); void* on_delete_callback_arg; intptr_t stream; PJRT_Buffer* buffer; PJRT_Memory* memory; };
struct PJRT_Executable_Fingerprint_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; const char* executable_fingerprint; size_t executable_fingerprint_size; };
struct PJRT_Client_TopologyDescription_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; PJRT_TopologyDescription* topology; };
struct PJRT_Executable_GetCompiledMemoryStats_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; int64_t generated_code_size_in_bytes; int64_t argument_size_in_bytes; int64_t output_size_in_bytes; int64_t alias_size_in_bytes; int64_t temp_size_in_bytes; int64_t host_generated_code_size_in_bytes; int64_t host_argument_size_in_bytes; int64_t host_output_size_in_bytes; int64_t host_alias_size_in_bytes; int64_t host_temp_size_in_bytes; int64_t peak_memory_in_bytes; int64_t total_size_in_bytes; int64_t total_allocation_bytes; int64_t indefinite_allocations; int64_t peak_unpadded_heap_bytes; };
struct PJRT_Memory_Kind_Id_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Memory* memory; int kind_id; };
struct PJRT_ExecuteContext_Create_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_ExecuteContext* context; };
struct PJRT_ExecuteContext_Destroy_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_ExecuteContext* context; };
struct PJRT_Buffer_CopyRawToHost_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; void* dst; int64_t offset; int64_t transfer_size; PJRT_Event* event; };
struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_AsyncHostToDeviceTransferManager* transfer_manager; };
struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_AsyncHostToDeviceTransferManager* transfer_manager; int buffer_index; const void* data; int64_t offset; int64_t transfer_size; uint8_t is_last_transfer; PJRT_Event* done_with_h2d_transfer; };
struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; PJRT_ShapeSpec* shape_specs; size_t num_shape_specs; PJRT_Buffer_MemoryLayout** device_layouts; size_t num_device_layouts; PJRT_Memory* memory; PJRT_AsyncHostToDeviceTransferManager* transfer_manager; };
struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_AsyncHostToDeviceTransferManager* transfer_manager; int buffer_index; PJRT_Buffer* buffer_out; };
struct PJRT_AsyncHostToDeviceTransferManager_Device_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_AsyncHostToDeviceTransferManager* transfer_manager; PJRT_Device* device_out; };
struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_AsyncHostToDeviceTransferManager* transfer_manager; size_t buffer_count; };
struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_AsyncHostToDeviceTransferManager* transfer_manager; int buffer_index; size_t buffer_size; };
struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_AsyncHostToDeviceTransferManager* transfer_manager; int buffer_index; PJRT_Error_Code error_code; const char* error_message; size_t error_message_size; };
struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_AsyncHostToDeviceTransferManager* transfer_manager; const PJRT_NamedValue* transfer_metadata; size_t num_metadata; };
struct PJRT_Client_DmaMap_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; void* data; size_t size; };
struct PJRT_Client_DmaUnmap_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; void* data; };
struct PJRT_Client_CreateUninitializedBuffer_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; const int64_t* shape_dims; size_t shape_num_dims; PJRT_Buffer_Type shape_element_type; PJRT_Buffer_MemoryLayout* shape_layout; PJRT_Device* device; PJRT_Memory* memory; PJRT_Buffer* buffer; };
struct PJRT_Client_UpdateGlobalProcessInfo_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; PJRT_ProcessInfo* process_infos; size_t num_process_infos; };
struct PJRT_TopologyDescription_Deserialize_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const char* serialized_topology; size_t serialized_topology_size; PJRT_TopologyDescription* topology; };
struct PJRT_Client_CreateAliasBuffer_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; PJRT_Memory* memory; const int64_t* shape_dims; size_t shape_num_dims; PJRT_Buffer_Type shape_element_type; PJRT_Buffer_MemoryLayout* shape_layout; PJRT_Buffer* alias_buffer; PJRT_FulfillAliasBufferCallback* fulfill_alias_buffer_cb; };
struct PJRT_Client_FulfillAliasBuffer_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; PJRT_Buffer* buffer; PJRT_Error_Code status_code; const char* error_message; size_t error_message_size; PJRT_FulfillAliasBufferCallback* fulfill_alias_buffer_cb; };
struct PJRT_LoadedExecutable_GetDeviceAssignment_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_LoadedExecutable* executable; const char* serialized_bytes; size_t serialized_bytes_size; PJRT_DeviceAssignmentSerialized* serialized_device_assignment; void (*serialized_device_assignment_deleter)( PJRT_DeviceAssignmentSerialized* da); };
struct PJRT_Client_CreateErrorBuffer_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; PJRT_Error_Code error_code; const char* error_message; size_t error_message_size; const int64_t* shape_dims; size_t shape_num_dims; PJRT_Buffer_Type shape_element_type; PJRT_Buffer_MemoryLayout* shape_layout; PJRT_Memory* memory; PJRT_Buffer* buffer; const PJRT_NamedValue* payload; size_t num_payload; };
struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_AsyncHostToDeviceTransferManager* transfer_manager; int buffer_index; const void* data; const int64_t* shape_dims; size_t shape_num_dims; PJRT_Buffer_Type shape_element_type; PJRT_Buffer_MemoryLayout* shape_layout; PJRT_Event* done_with_h2d_transfer; };
struct PJRT_Buffer_CopyRawToHostFuture_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; int64_t offset; int64_t transfer_size; PJRT_Event* event; void* callback_data; void (*future_ready_callback)( PJRT_Buffer_CopyRawToHostFuture_Callback_Args* args); };
struct PJRT_Device_PoisonExecution_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Device* device; int32_t launch_id; PJRT_Error_Code error_code; const char* error_message; size_t error_message_size; uint8_t poisoned; const PJRT_NamedValue* payload; size_t num_payload; };
struct PJRT_Device_CreateAsyncTrackingEvent_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Device* device; const char* description; size_t description_size; PJRT_AsyncTrackingEvent* event; };
struct PJRT_AsyncTrackingEvent_Destroy_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_AsyncTrackingEvent* event; };
struct PJRT_Executable_GetCompileOptions_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; const char* serialized_bytes; size_t serialized_bytes_size; PJRT_SerializedCompileOptions* serialized_compile_options; void (*serialized_compile_options_deleter)(PJRT_SerializedCompileOptions* options); };
struct PJRT_Buffer_DonateWithControlDependency_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; void* callback_data; void (*dependency_ready_callback)(PJRT_Buffer_DonateWithControlDependency_Callback_Args* args); PJRT_Buffer* out_buffer; };
struct PJRT_Event_Create_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Event* event; };
struct PJRT_Event_Set_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Event* event; PJRT_Error_Code error_code; const char* error_message; size_t error_message_size; };
struct PJRT_Device_GetAttributes_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Device* device; const PJRT_NamedValue* attributes; size_t num_attributes; PJRT_Device_Attributes* device_attributes; void (*attributes_deleter)(PJRT_Device_Attributes* device_attributes); };
struct PJRT_Client_Load_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; PJRT_Executable* executable; const char* compile_options; size_t compile_options_size; PJRT_LoadedExecutable* loaded_executable; };
struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_LoadedExecutable* executable; PJRT_LogicalDeviceIds* addressable_device_logical_ids; size_t num_addressable_device_logical_ids; };
struct PJRT_Buffer_Bitcast_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; PJRT_Buffer_Type element_type; const int64_t* dims; size_t num_dims; PJRT_Buffer_MemoryLayout* device_layout; PJRT_Buffer* out_buffer; };
struct PJRT_Error_ForEachPayload_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_Error* error; PJRT_Error_PayloadVisitor visitor; void* user_arg; };
struct PJRT_TopologyDescription_Fingerprint_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_TopologyDescription* topology; uint64_t fingerprint; };
struct PJRT_Executable_ParameterMemoryKinds_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; size_t num_parameters; const char* const* memory_kinds; const size_t* memory_kind_sizes; };
struct PJRT_Device_ClearMemoryStats_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Device* device; };
struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_TopologyDescription* topology; int memory_space_kind_id; const int64_t* dims; size_t num_dims; PJRT_Buffer_Type element_type; const PJRT_Buffer_MemoryLayout* layout; const char* serialized_shape; size_t serialized_shape_size; void (*serialized_shape_deleter)(const char*); };
struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_TopologyDescription* topology; const int* memory_space_kind_ids; size_t num_memory_space_kind_ids; };
typedef struct { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Api_Version pjrt_api_version;
  void (*Error_Destroy)(struct PJRT_Error_Destroy_Args*);
  void (*Error_Message)(struct PJRT_Error_Message_Args*);
  PJRT_Error* (*Error_GetCode)(struct PJRT_Error_GetCode_Args*);
  PJRT_Error* (*Plugin_Initialize)(struct PJRT_Plugin_Initialize_Args*);
  PJRT_Error* (*Plugin_Attributes)(struct PJRT_Plugin_Attributes_Args*);
  PJRT_Error* (*Event_Destroy)(struct PJRT_Event_Destroy_Args*);
  PJRT_Error* (*Event_IsReady)(struct PJRT_Event_IsReady_Args*);
  PJRT_Error* (*Event_Error)(struct PJRT_Event_Error_Args*);
  PJRT_Error* (*Event_Await)(struct PJRT_Event_Await_Args*);
  PJRT_Error* (*Event_OnReady)(struct PJRT_Event_OnReady_Args*);
  PJRT_Error* (*Client_Create)(struct PJRT_Client_Create_Args*);
  PJRT_Error* (*Client_Destroy)(struct PJRT_Client_Destroy_Args*);
  PJRT_Error* (*Client_PlatformName)(struct PJRT_Client_PlatformName_Args*);
  PJRT_Error* (*Client_ProcessIndex)(struct PJRT_Client_ProcessIndex_Args*);
  PJRT_Error* (*Client_PlatformVersion)(struct PJRT_Client_PlatformVersion_Args*);
  PJRT_Error* (*Client_Devices)(struct PJRT_Client_Devices_Args*);
  PJRT_Error* (*Client_AddressableDevices)(struct PJRT_Client_AddressableDevices_Args*);
  PJRT_Error* (*Client_LookupDevice)(struct PJRT_Client_LookupDevice_Args*);
  PJRT_Error* (*Client_LookupAddressableDevice)(struct PJRT_Client_LookupAddressableDevice_Args*);
  PJRT_Error* (*Client_AddressableMemories)(struct PJRT_Client_AddressableMemories_Args*);
  PJRT_Error* (*Client_Compile)(struct PJRT_Client_Compile_Args*);
  PJRT_Error* (*Client_DefaultDeviceAssignment)(struct PJRT_Client_DefaultDeviceAssignment_Args*);
  PJRT_Error* (*Client_BufferFromHostBuffer)(struct PJRT_Client_BufferFromHostBuffer_Args*);
  PJRT_Error* (*DeviceDescription_Id)(struct PJRT_DeviceDescription_Id_Args*);
  PJRT_Error* (*DeviceDescription_ProcessIndex)(struct PJRT_DeviceDescription_ProcessIndex_Args*);
  PJRT_Error* (*DeviceDescription_Attributes)(struct PJRT_DeviceDescription_Attributes_Args*);
  PJRT_Error* (*DeviceDescription_Kind)(struct PJRT_DeviceDescription_Kind_Args*);
  PJRT_Error* (*DeviceDescription_DebugString)(struct PJRT_DeviceDescription_DebugString_Args*);
  PJRT_Error* (*DeviceDescription_ToString)(struct PJRT_DeviceDescription_ToString_Args*);
  PJRT_Error* (*Device_GetDescription)(struct PJRT_Device_GetDescription_Args*);
  PJRT_Error* (*Device_IsAddressable)(struct PJRT_Device_IsAddressable_Args*);
  PJRT_Error* (*Device_LocalHardwareId)(struct PJRT_Device_LocalHardwareId_Args*);
  PJRT_Error* (*Device_AddressableMemories)(struct PJRT_Device_AddressableMemories_Args*);
  PJRT_Error* (*Device_DefaultMemory)(struct PJRT_Device_DefaultMemory_Args*);
  PJRT_Error* (*Device_MemoryStats)(struct PJRT_Device_MemoryStats_Args*);
  PJRT_Error* (*Memory_Id)(struct PJRT_Memory_Id_Args*);
  PJRT_Error* (*Memory_Kind)(struct PJRT_Memory_Kind_Args*);
  PJRT_Error* (*Memory_DebugString)(struct PJRT_Memory_DebugString_Args*);
  PJRT_Error* (*Memory_ToString)(struct PJRT_Memory_ToString_Args*);
  PJRT_Error* (*Memory_AddressableByDevices)(struct PJRT_Memory_AddressableByDevices_Args*);
  PJRT_Error* (*Executable_Destroy)(struct PJRT_Executable_Destroy_Args*);
  PJRT_Error* (*Executable_Name)(struct PJRT_Executable_Name_Args*);
  PJRT_Error* (*Executable_NumReplicas)(struct PJRT_Executable_NumReplicas_Args*);
  PJRT_Error* (*Executable_NumPartitions)(struct PJRT_Executable_NumPartitions_Args*);
  PJRT_Error* (*Executable_NumOutputs)(struct PJRT_Executable_NumOutputs_Args*);
  PJRT_Error* (*Executable_SizeOfGeneratedCodeInBytes)(struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args*);
  PJRT_Error* (*Executable_GetCostAnalysis)(struct PJRT_Executable_GetCostAnalysis_Args*);
  PJRT_Error* (*Executable_OutputMemoryKinds)(struct PJRT_Executable_OutputMemoryKinds_Args*);
  PJRT_Error* (*Executable_OptimizedProgram)(struct PJRT_Executable_OptimizedProgram_Args*);
  PJRT_Error* (*Executable_Serialize)(struct PJRT_Executable_Serialize_Args*);
  PJRT_Error* (*LoadedExecutable_Destroy)(struct PJRT_LoadedExecutable_Destroy_Args*);
  PJRT_Error* (*LoadedExecutable_GetExecutable)(struct PJRT_LoadedExecutable_GetExecutable_Args*);
  PJRT_Error* (*LoadedExecutable_AddressableDevices)(struct PJRT_LoadedExecutable_AddressableDevices_Args*);
  PJRT_Error* (*LoadedExecutable_Delete)(struct PJRT_LoadedExecutable_Delete_Args*);
  PJRT_Error* (*LoadedExecutable_IsDeleted)(struct PJRT_LoadedExecutable_IsDeleted_Args*);
  PJRT_Error* (*LoadedExecutable_Execute)(struct PJRT_LoadedExecutable_Execute_Args*);
  PJRT_Error* (*Executable_DeserializeAndLoad)(struct PJRT_Executable_DeserializeAndLoad_Args*);
  PJRT_Error* (*LoadedExecutable_Fingerprint)(struct PJRT_LoadedExecutable_Fingerprint_Args*);
  PJRT_Error* (*Buffer_Destroy)(struct PJRT_Buffer_Destroy_Args*);
  PJRT_Error* (*Buffer_ElementType)(struct PJRT_Buffer_ElementType_Args*);
  PJRT_Error* (*Buffer_Dimensions)(struct PJRT_Buffer_Dimensions_Args*);
  PJRT_Error* (*Buffer_UnpaddedDimensions)(struct PJRT_Buffer_UnpaddedDimensions_Args*);
  PJRT_Error* (*Buffer_DynamicDimensionIndices)(struct PJRT_Buffer_DynamicDimensionIndices_Args*);
  PJRT_Error* (*Buffer_GetMemoryLayout)(struct PJRT_Buffer_GetMemoryLayout_Args*);
  PJRT_Error* (*Buffer_OnDeviceSizeInBytes)(struct PJRT_Buffer_OnDeviceSizeInBytes_Args*);
  PJRT_Error* (*Buffer_Device)(struct PJRT_Buffer_Device_Args*);
  PJRT_Error* (*Buffer_Memory)(struct PJRT_Buffer_Memory_Args*);
  PJRT_Error* (*Buffer_Delete)(struct PJRT_Buffer_Delete_Args*);
  PJRT_Error* (*Buffer_IsDeleted)(struct PJRT_Buffer_IsDeleted_Args*);
  PJRT_Error* (*Buffer_CopyToDevice)(struct PJRT_Buffer_CopyToDevice_Args*);
  PJRT_Error* (*Buffer_ToHostBuffer)(struct PJRT_Buffer_ToHostBuffer_Args*);
  PJRT_Error* (*Buffer_IsOnCpu)(struct PJRT_Buffer_IsOnCpu_Args*);
  PJRT_Error* (*Buffer_ReadyEvent)(struct PJRT_Buffer_ReadyEvent_Args*);
  PJRT_Error* (*Buffer_UnsafePointer)(struct PJRT_Buffer_UnsafePointer_Args*);
  PJRT_Error* (*Buffer_IncreaseExternalReferenceCount)(struct PJRT_Buffer_IncreaseExternalReferenceCount_Args*);
  PJRT_Error* (*Buffer_DecreaseExternalReferenceCount)(struct PJRT_Buffer_DecreaseExternalReferenceCount_Args*);
  PJRT_Error* (*Buffer_OpaqueDeviceMemoryDataPointer)(struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args*);
  PJRT_Error* (*CopyToDeviceStream_Destroy)(struct PJRT_CopyToDeviceStream_Destroy_Args*);
  PJRT_Error* (*CopyToDeviceStream_AddChunk)(struct PJRT_CopyToDeviceStream_AddChunk_Args*);
  PJRT_Error* (*CopyToDeviceStream_TotalBytes)(struct PJRT_CopyToDeviceStream_TotalBytes_Args*);
  PJRT_Error* (*CopyToDeviceStream_GranuleSize)(struct PJRT_CopyToDeviceStream_GranuleSize_Args*);
  PJRT_Error* (*CopyToDeviceStream_CurrentBytes)(struct PJRT_CopyToDeviceStream_CurrentBytes_Args*);
  PJRT_Error* (*TopologyDescription_Create)(struct PJRT_TopologyDescription_Create_Args*);
  PJRT_Error* (*TopologyDescription_Destroy)(struct PJRT_TopologyDescription_Destroy_Args*);
  PJRT_Error* (*TopologyDescription_PlatformName)(struct PJRT_TopologyDescription_PlatformName_Args*);
  PJRT_Error* (*TopologyDescription_PlatformVersion)(struct PJRT_TopologyDescription_PlatformVersion_Args*);
  PJRT_Error* (*TopologyDescription_GetDeviceDescriptions)(struct PJRT_TopologyDescription_GetDeviceDescriptions_Args*);
  PJRT_Error* (*TopologyDescription_Serialize)(struct PJRT_TopologyDescription_Serialize_Args*);
  PJRT_Error* (*TopologyDescription_Attributes)(struct PJRT_TopologyDescription_Attributes_Args*);
  PJRT_Error* (*Compile)(struct PJRT_Compile_Args*);
  PJRT_Error* (*Executable_OutputElementTypes)(struct PJRT_Executable_OutputElementTypes_Args*);
  PJRT_Error* (*Executable_OutputDimensions)(struct PJRT_Executable_OutputDimensions_Args*);
  PJRT_Error* (*Buffer_CopyToMemory)(struct PJRT_Buffer_CopyToMemory_Args*);
  PJRT_Error* (*Client_CreateViewOfDeviceBuffer)(struct PJRT_Client_CreateViewOfDeviceBuffer_Args*);
  PJRT_Error* (*Executable_Fingerprint)(struct PJRT_Executable_Fingerprint_Args*);
  PJRT_Error* (*Client_TopologyDescription)(struct PJRT_Client_TopologyDescription_Args*);
  PJRT_Error* (*Executable_GetCompiledMemoryStats)(struct PJRT_Executable_GetCompiledMemoryStats_Args*);
  PJRT_Error* (*Memory_Kind_Id)(struct PJRT_Memory_Kind_Id_Args*);
  PJRT_Error* (*ExecuteContext_Create)(struct PJRT_ExecuteContext_Create_Args*);
  PJRT_Error* (*ExecuteContext_Destroy)(struct PJRT_ExecuteContext_Destroy_Args*);
  PJRT_Error* (*Buffer_CopyRawToHost)(struct PJRT_Buffer_CopyRawToHost_Args*);
  PJRT_Error* (*AsyncHostToDeviceTransferManager_Destroy)(struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args*);
  PJRT_Error* (*AsyncHostToDeviceTransferManager_TransferData)(struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args*);
  PJRT_Error* (*Client_CreateBuffersForAsyncHostToDevice)(struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args*);
  PJRT_Error* (*AsyncHostToDeviceTransferManager_RetrieveBuffer)(struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args*);
  PJRT_Error* (*AsyncHostToDeviceTransferManager_Device)(struct PJRT_AsyncHostToDeviceTransferManager_Device_Args*);
  PJRT_Error* (*AsyncHostToDeviceTransferManager_BufferCount)(struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args*);
  PJRT_Error* (*AsyncHostToDeviceTransferManager_BufferSize)(struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args*);
  PJRT_Error* (*AsyncHostToDeviceTransferManager_SetBufferError)(struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args*);
  PJRT_Error* (*AsyncHostToDeviceTransferManager_AddMetadata)(struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args*);
  PJRT_Error* (*Client_DmaMap)(struct PJRT_Client_DmaMap_Args*);
  PJRT_Error* (*Client_DmaUnmap)(struct PJRT_Client_DmaUnmap_Args*);
  PJRT_Error* (*Client_CreateUninitializedBuffer)(struct PJRT_Client_CreateUninitializedBuffer_Args*);
  PJRT_Error* (*Client_UpdateGlobalProcessInfo)(struct PJRT_Client_UpdateGlobalProcessInfo_Args*);
  PJRT_Error* (*TopologyDescription_Deserialize)(struct PJRT_TopologyDescription_Deserialize_Args*);
  PJRT_Error* (*Client_CreateAliasBuffer)(struct PJRT_Client_CreateAliasBuffer_Args*);
  PJRT_Error* (*Client_FulfillAliasBuffer)(struct PJRT_Client_FulfillAliasBuffer_Args*);
  PJRT_Error* (*LoadedExecutable_GetDeviceAssignment)(struct PJRT_LoadedExecutable_GetDeviceAssignment_Args*);
  PJRT_Error* (*Client_CreateErrorBuffer)(struct PJRT_Client_CreateErrorBuffer_Args*);
  PJRT_Error* (*AsyncHostToDeviceTransferManager_TransferLiteral)(struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args*);
  PJRT_Error* (*Buffer_CopyRawToHostFuture)(struct PJRT_Buffer_CopyRawToHostFuture_Args*);
  PJRT_Error* (*Device_PoisonExecution)(struct PJRT_Device_PoisonExecution_Args*);
  PJRT_Error* (*Device_CreateAsyncTrackingEvent)(struct PJRT_Device_CreateAsyncTrackingEvent_Args*);
  PJRT_Error* (*AsyncTrackingEvent_Destroy)(struct PJRT_AsyncTrackingEvent_Destroy_Args*);
  PJRT_Error* (*Executable_GetCompileOptions)(struct PJRT_Executable_GetCompileOptions_Args*);
  PJRT_Error* (*Buffer_DonateWithControlDependency)(struct PJRT_Buffer_DonateWithControlDependency_Args*);
  PJRT_Error* (*Event_Create)(struct PJRT_Event_Create_Args*);
  PJRT_Error* (*Event_Set)(struct PJRT_Event_Set_Args*);
  PJRT_Error* (*Device_GetAttributes)(struct PJRT_Device_GetAttributes_Args*);
  PJRT_Error* (*Client_Load)(struct PJRT_Client_Load_Args*);
  PJRT_Error* (*LoadedExecutable_AddressableDeviceLogicalIds)(struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args*);
  PJRT_Error* (*Buffer_Bitcast)(struct PJRT_Buffer_Bitcast_Args*);
  PJRT_Error* (*Error_ForEachPayload)(struct PJRT_Error_ForEachPayload_Args*);
  PJRT_Error* (*TopologyDescription_Fingerprint)(struct PJRT_TopologyDescription_Fingerprint_Args*);
  PJRT_Error* (*Executable_ParameterMemoryKinds)(struct PJRT_Executable_ParameterMemoryKinds_Args*);
  PJRT_Error* (*Device_ClearMemoryStats)(struct PJRT_Device_ClearMemoryStats_Args*);
  PJRT_Error* (*TopologyDescription_MakeCanonicalShapeForMemorySpace)(struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args*);
  PJRT_Error* (*TopologyDescription_GetMemorySpaceKindIds)(struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args*);
} PJRT_Api;
struct PJRT_Layouts_MemoryLayout_Destroy_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Layouts_MemoryLayout* layout; };
struct PJRT_Layouts_MemoryLayout_Serialize_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Layouts_MemoryLayout* layout; const char* serialized_bytes; size_t serialized_bytes_size; PJRT_Layouts_SerializedLayout* serialized_layout; void (*serialized_layout_deleter)(PJRT_Layouts_SerializedLayout* layout); };
struct PJRT_Layouts_Client_GetDefaultLayout_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; PJRT_Buffer_Type type; const int64_t* dims; size_t num_dims; PJRT_Layouts_MemoryLayout* layout; };
struct PJRT_Layouts_Buffer_MemoryLayout_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; PJRT_Layouts_MemoryLayout* layout; };
struct PJRT_Layouts_Topology_GetDefaultLayout_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_TopologyDescription* topology_description; PJRT_Buffer_Type type; const int64_t* dims; size_t num_dims; PJRT_Layouts_MemoryLayout* layout; };
struct PJRT_Layouts_Executable_GetOutputLayouts_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; size_t num_outputs; PJRT_Layouts_MemoryLayout** layouts; };
struct PJRT_Layouts_Executable_GetParameterLayouts_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; size_t num_parameters; PJRT_Layouts_MemoryLayout** layouts; };
typedef struct { PJRT_Extension_Base base;
  PJRT_Error* (*Layouts_MemoryLayout_Destroy)(struct PJRT_Layouts_MemoryLayout_Destroy_Args*);
  PJRT_Error* (*Layouts_MemoryLayout_Serialize)(struct PJRT_Layouts_MemoryLayout_Serialize_Args*);
  PJRT_Error* (*Layouts_Client_GetDefaultLayout)(struct PJRT_Layouts_Client_GetDefaultLayout_Args*);
  PJRT_Error* (*Layouts_Buffer_MemoryLayout)(struct PJRT_Layouts_Buffer_MemoryLayout_Args*);
  PJRT_Error* (*Layouts_Topology_GetDefaultLayout)(struct PJRT_Layouts_Topology_GetDefaultLayout_Args*);
  PJRT_Error* (*Layouts_Executable_GetOutputLayouts)(struct PJRT_Layouts_Executable_GetOutputLayouts_Args*);
  PJRT_Error* (*Layouts_Executable_GetParameterLayouts)(struct PJRT_Layouts_Executable_GetParameterLayouts_Args*);
} PJRT_Layouts_Extension;
struct PJRT_Shardings_Executable_ParameterShardings_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; size_t num_parameters; const char* const* shardings; const size_t* sharding_sizes; };
struct PJRT_Shardings_Executable_OutputShardings_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Executable* executable; size_t num_outputs; const char* const* shardings; const size_t* sharding_sizes; };
typedef struct { PJRT_Extension_Base base;
  PJRT_Error* (*Shardings_Executable_ParameterShardings)(struct PJRT_Shardings_Executable_ParameterShardings_Args*);
  PJRT_Error* (*Shardings_Executable_OutputShardings)(struct PJRT_Shardings_Executable_OutputShardings_Args*);
} PJRT_Shardings_Extension;
struct PJRT_FFI_Type_Register_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const char* type_name; size_t type_name_size; int64_t type_id; PJRT_FFI_Type_Info* type_info; };
struct PJRT_FFI_UserData_Add_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_ExecuteContext* context; PJRT_FFI_UserData user_data; };
struct PJRT_FFI_Register_Handler_Args { size_t struct_size; const char* target_name; size_t target_name_size; void* handler; const char* platform_name; size_t platform_name_size; int traits; };
typedef struct { PJRT_Extension_Base base;
  PJRT_Error* (*FFI_Type_Register)(struct PJRT_FFI_Type_Register_Args*);
  PJRT_Error* (*FFI_UserData_Add)(struct PJRT_FFI_UserData_Add_Args*);
  PJRT_Error* (*FFI_Register_Handler)(struct PJRT_FFI_Register_Handler_Args*);
} PJRT_FFI_Extension;
struct PJRT_DeviceDescription_MemoryDescriptions_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_DeviceDescription* device_description; const PJRT_MemoryDescription* const* memory_descriptions; size_t num_memory_descriptions; size_t default_memory_index; };
struct PJRT_MemoryDescription_Kind_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_MemoryDescription* memory_description; const char* kind; size_t kind_size; int kind_id; };
typedef struct { PJRT_Extension_Base base;
  PJRT_Error* (*DeviceDescription_MemoryDescriptions)(struct PJRT_DeviceDescription_MemoryDescriptions_Args*);
  PJRT_Error* (*MemoryDescription_Kind)(struct PJRT_MemoryDescription_Kind_Args*);
} PJRT_MemoryDescriptions_Extension;
struct PJRT_Client_RuntimeAbiVersion_Args { size_t struct_size; PJRT_Client* client; PJRT_RuntimeAbiVersion* abi_version; };
struct PJRT_Executable_GetAbiVersion_Args { size_t struct_size; PJRT_Executable* executable; PJRT_ExecutableAbiVersion* abi_version; };
struct PJRT_RuntimeAbiVersion_Destroy_Args { size_t struct_size; PJRT_RuntimeAbiVersion* abi_version; };
struct PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime_Args { size_t struct_size; const PJRT_RuntimeAbiVersion* abi_version; const PJRT_RuntimeAbiVersion* other_abi_version; };
struct PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args { size_t struct_size; const PJRT_RuntimeAbiVersion* abi_version; const PJRT_ExecutableAbiVersion* executable_abi_version; };
struct PJRT_RuntimeAbiVersion_ToProto_Args { size_t struct_size; const PJRT_RuntimeAbiVersion* abi_version; const char* serialized_proto; size_t serialized_proto_size; PJRT_SerializedProto* serialized_proto_holder; void (*serialized_proto_deleter)(PJRT_SerializedProto* holder); };
struct PJRT_RuntimeAbiVersion_PlatformId_Args { size_t struct_size; const PJRT_RuntimeAbiVersion* abi_version; uint64_t platform_id; };
struct PJRT_ExecutableAbiVersion_Destroy_Args { size_t struct_size; PJRT_ExecutableAbiVersion* abi_version; };
struct PJRT_ExecutableAbiVersion_ToProto_Args { size_t struct_size; const PJRT_ExecutableAbiVersion* abi_version; const char* serialized_proto; size_t serialized_proto_size; PJRT_SerializedProto* serialized_proto_holder; void (*serialized_proto_deleter)(PJRT_SerializedProto* holder); };
struct PJRT_ExecutableAbiVersion_PlatformId_Args { size_t struct_size; const PJRT_ExecutableAbiVersion* abi_version; uint64_t platform_id; };
struct PJRT_RuntimeAbiVersion_FromProto_Args { size_t struct_size; const char* serialized_proto; size_t serialized_proto_size; PJRT_RuntimeAbiVersion* abi_version; };
struct PJRT_ExecutableAbiVersion_FromProto_Args { size_t struct_size; const char* serialized_proto; size_t serialized_proto_size; PJRT_ExecutableAbiVersion* abi_version; };
typedef struct { PJRT_Extension_Base base;
  PJRT_Error* (*Client_RuntimeAbiVersion)(struct PJRT_Client_RuntimeAbiVersion_Args*);
  PJRT_Error* (*Executable_GetAbiVersion)(struct PJRT_Executable_GetAbiVersion_Args*);
  PJRT_Error* (*RuntimeAbiVersion_Destroy)(struct PJRT_RuntimeAbiVersion_Destroy_Args*);
  PJRT_Error* (*RuntimeAbiVersion_IsCompatibleWithRuntime)(struct PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime_Args*);
  PJRT_Error* (*RuntimeAbiVersion_IsCompatibleWithExecutable)(struct PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args*);
  PJRT_Error* (*RuntimeAbiVersion_ToProto)(struct PJRT_RuntimeAbiVersion_ToProto_Args*);
  PJRT_Error* (*RuntimeAbiVersion_PlatformId)(struct PJRT_RuntimeAbiVersion_PlatformId_Args*);
  PJRT_Error* (*ExecutableAbiVersion_Destroy)(struct PJRT_ExecutableAbiVersion_Destroy_Args*);
  PJRT_Error* (*ExecutableAbiVersion_ToProto)(struct PJRT_ExecutableAbiVersion_ToProto_Args*);
  PJRT_Error* (*ExecutableAbiVersion_PlatformId)(struct PJRT_ExecutableAbiVersion_PlatformId_Args*);
  PJRT_Error* (*RuntimeAbiVersion_FromProto)(struct PJRT_RuntimeAbiVersion_FromProto_Args*);
  PJRT_Error* (*ExecutableAbiVersion_FromProto)(struct PJRT_ExecutableAbiVersion_FromProto_Args*);
} PJRT_AbiVersion_Extension;
struct PJRT_Get_Stream_For_External_Ready_Events_Args { size_t struct_size; PJRT_Device* device; intptr_t stream; };
struct PJRT_Wait_Until_Buffer_Ready_On_Stream_Args { size_t struct_size; intptr_t stream; PJRT_Buffer* buffer; };
typedef struct { PJRT_Extension_Base base;
  PJRT_Error* (*Get_Stream_For_External_Ready_Events)(struct PJRT_Get_Stream_For_External_Ready_Events_Args*);
  PJRT_Error* (*Wait_Until_Buffer_Ready_On_Stream)(struct PJRT_Wait_Until_Buffer_Ready_On_Stream_Args*);
} PJRT_Stream_Extension;
struct PJRT_RawBuffer_CreateRawAliasOfBuffer_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; PJRT_RawBuffer* raw_buffer; };
struct PJRT_RawBuffer_Destroy_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_RawBuffer* buffer; };
struct PJRT_RawBuffer_GetOnDeviceSizeInBytes_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_RawBuffer* buffer; size_t on_device_size_in_bytes; };
struct PJRT_RawBuffer_GetMemorySpace_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_RawBuffer* buffer; PJRT_Memory* memory_space; };
struct PJRT_RawBuffer_CopyRawHostToDevice_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_RawBuffer* buffer; const void* src; int64_t offset; int64_t transfer_size; PJRT_Event* event; };
struct PJRT_RawBuffer_CopyRawDeviceToHost_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_RawBuffer* buffer; void* dst; int64_t offset; int64_t transfer_size; PJRT_Event* event; };
struct PJRT_RawBuffer_GetHostPointer_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_RawBuffer* buffer; void* host_pointer; };
typedef struct { PJRT_Extension_Base base;
  PJRT_Error* (*RawBuffer_CreateRawAliasOfBuffer)(struct PJRT_RawBuffer_CreateRawAliasOfBuffer_Args*);
  PJRT_Error* (*RawBuffer_Destroy)(struct PJRT_RawBuffer_Destroy_Args*);
  PJRT_Error* (*RawBuffer_GetOnDeviceSizeInBytes)(struct PJRT_RawBuffer_GetOnDeviceSizeInBytes_Args*);
  PJRT_Error* (*RawBuffer_GetMemorySpace)(struct PJRT_RawBuffer_GetMemorySpace_Args*);
  PJRT_Error* (*RawBuffer_CopyRawHostToDevice)(struct PJRT_RawBuffer_CopyRawHostToDevice_Args*);
  PJRT_Error* (*RawBuffer_CopyRawDeviceToHost)(struct PJRT_RawBuffer_CopyRawDeviceToHost_Args*);
  PJRT_Error* (*RawBuffer_GetHostPointer)(struct PJRT_RawBuffer_GetHostPointer_Args*);
} PJRT_RawBuffer_Extension;
struct PJRT_PhaseCompile_Get_Compiler_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_PhaseCompiler* phase_compiler; };
struct PJRT_PhaseCompile_Destroy_Compiler_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_PhaseCompiler* phase_compiler; };
struct PJRT_PhaseCompile_Run_Phase_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_PhaseCompiler* phase_compiler; const char** input_programs; const size_t* input_programs_sizes; size_t num_input_programs; const char** phases_to_run; const size_t* phases_to_run_sizes; size_t num_phases_to_run; const char* compile_options; size_t compile_options_size; PJRT_TopologyDescription* topology; const char** output_programs; const size_t* output_programs_sizes; size_t num_output_programs; };
struct PJRT_PhaseCompile_Get_PhaseNames_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const PJRT_PhaseCompiler* phase_compiler; const char** phase_names; const size_t* phase_names_sizes; size_t num_phase_names; };
struct PJRT_PhaseCompile_C_Buffers_Destroy_Args { size_t struct_size; PJRT_Extension_Base* extension_start; const char** char_buffers; const size_t* char_buffer_sizes; size_t num_char_buffers; };
typedef struct { PJRT_Extension_Base base;
  PJRT_Error* (*PhaseCompile_Get_Compiler)(struct PJRT_PhaseCompile_Get_Compiler_Args*);
  void (*PhaseCompile_Destroy_Compiler)(struct PJRT_PhaseCompile_Destroy_Compiler_Args*);
  PJRT_Error* (*PhaseCompile_Run_Phase)(struct PJRT_PhaseCompile_Run_Phase_Args*);
  PJRT_Error* (*PhaseCompile_Get_PhaseNames)(struct PJRT_PhaseCompile_Get_PhaseNames_Args*);
  void (*PhaseCompile_C_Buffers_Destroy)(struct PJRT_PhaseCompile_C_Buffers_Destroy_Args*);
} PJRT_PhaseCompile_Extension;
struct PJRT_Callback_RegisterCallback_Args { size_t struct_size; PJRT_Client* client; PJRT_Callback_Type type; void (*callback)(void* args, void* user_arg); void* user_arg; };
struct PJRT_Callback_InvokeCallback_Args { size_t struct_size; PJRT_Client* client; PJRT_Callback_Type type; void* args; };
typedef struct { PJRT_Extension_Base base;
  PJRT_Error* (*Callback_RegisterCallback)(struct PJRT_Callback_RegisterCallback_Args*);
  PJRT_Error* (*Callback_InvokeCallback)(struct PJRT_Callback_InvokeCallback_Args*);
} PJRT_Callback_Extension;
struct PJRT_Transfers_Client_MakeCrossHostReceiveBuffers_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; size_t num_shapes; size_t* shape_num_dims; const int64_t** num_dims; PJRT_Buffer_Type* element_types; PJRT_Buffer_MemoryLayout** layouts; PJRT_Device* device; PJRT_Transfers_RecvNotifierInfo notifier; PJRT_Buffer** buffers; size_t num_buffers; uint8_t allow_cancel_notifier; };
struct PJRT_Transfers_Buffer_CopyToRemoteDevice_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Buffer* buffer; PJRT_Event* event; char** serialized_descriptor; size_t* serialized_descriptor_size; PJRT_Transfers_RemoteSendCallbackInfo on_done; void (*descriptor_destructor)(char** descriptor_data, size_t* descriptor_size); };
struct PJRT_Transfers_Client_CrossHostReceiveBuffers_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; size_t num_shapes; size_t* shape_num_dims; const int64_t** num_dims; PJRT_Buffer_Type* element_types; PJRT_Buffer_MemoryLayout** layouts; PJRT_Device* device; const int64_t* src_global_device_ids; const int64_t* transfer_keys; PJRT_Buffer** buffers; size_t num_tasks; const int* task_ids; const int64_t* incarnation_ids; };
struct PJRT_Transfers_Client_CrossHostSendBuffers_Args { size_t struct_size; PJRT_Extension_Base* extension_start; PJRT_Client* client; size_t num_buffers; PJRT_Buffer** buffers; const int64_t* dst_global_device_ids; const int64_t* transfer_keys; PJRT_Event** send_events; size_t num_tasks; const int* task_ids; const int64_t* incarnation_ids; };
typedef struct { PJRT_Extension_Base base;
  PJRT_Error* (*Transfers_Client_MakeCrossHostReceiveBuffers)(struct PJRT_Transfers_Client_MakeCrossHostReceiveBuffers_Args*);
  void (*Transfers_Buffer_CopyToRemoteDevice)(struct PJRT_Transfers_Buffer_CopyToRemoteDevice_Args*);
  PJRT_Error* (*Transfers_Client_CrossHostReceiveBuffers)(struct PJRT_Transfers_Client_CrossHostReceiveBuffers_Args*);
  PJRT_Error* (*Transfers_Client_CrossHostSendBuffers)(struct PJRT_Transfers_Client_CrossHostSendBuffers_Args*);
} PJRT_CrossHostTransfers_Extension;
typedef struct PLUGIN_Profiler_Error PLUGIN_Profiler_Error;
typedef struct PLUGIN_Profiler_Profiler PLUGIN_Profiler_Profiler;
typedef struct PLUGIN_Profiler_ConsumeResult PLUGIN_Profiler_ConsumeResult;
struct PLUGIN_Profiler_Error_Destroy_Args { size_t struct_size; void* priv; PLUGIN_Profiler_Error* error; };
struct PLUGIN_Profiler_Error_Message_Args { size_t struct_size; void* priv; const PLUGIN_Profiler_Error* error; const char* message; size_t message_size; };
struct PLUGIN_Profiler_Error_GetCode_Args { size_t struct_size; void* priv; const PLUGIN_Profiler_Error* error; int code; };
struct PLUGIN_Profiler_Create_Args { size_t struct_size; const char* options; size_t options_size; PLUGIN_Profiler_Profiler* profiler; };
struct PLUGIN_Profiler_Destroy_Args { size_t struct_size; PLUGIN_Profiler_Profiler* profiler; };
struct PLUGIN_Profiler_Start_Args { size_t struct_size; PLUGIN_Profiler_Profiler* profiler; };
struct PLUGIN_Profiler_Stop_Args { size_t struct_size; PLUGIN_Profiler_Profiler* profiler; };
struct PLUGIN_Profiler_CollectData_Args { size_t struct_size; PLUGIN_Profiler_Profiler* profiler; uint8_t* buffer; size_t buffer_size_in_bytes; };
struct PLUGIN_Profiler_Consume_Args { size_t struct_size; PLUGIN_Profiler_Profiler* profiler; PLUGIN_Profiler_ConsumeResult* result; };
struct PLUGIN_Profiler_ConsumeResult_Destroy_Args { size_t struct_size; PLUGIN_Profiler_ConsumeResult* consume_result; };
struct PLUGIN_Profiler_Serialize_Args { size_t struct_size; PLUGIN_Profiler_Profiler* profiler; PLUGIN_Profiler_ConsumeResult* consume_result; const uint8_t* serialized_bytes; size_t serialized_size; };
typedef struct { size_t struct_size; void* priv;
  void (*Error_Destroy)(struct PLUGIN_Profiler_Error_Destroy_Args*);
  void (*Error_Message)(struct PLUGIN_Profiler_Error_Message_Args*);
  PLUGIN_Profiler_Error* (*Error_GetCode)(struct PLUGIN_Profiler_Error_GetCode_Args*);
  PLUGIN_Profiler_Error* (*Create)(struct PLUGIN_Profiler_Create_Args*);
  PLUGIN_Profiler_Error* (*Destroy)(struct PLUGIN_Profiler_Destroy_Args*);
  PLUGIN_Profiler_Error* (*Start)(struct PLUGIN_Profiler_Start_Args*);
  PLUGIN_Profiler_Error* (*Stop)(struct PLUGIN_Profiler_Stop_Args*);
  PLUGIN_Profiler_Error* (*CollectData)(struct PLUGIN_Profiler_CollectData_Args*);
  PLUGIN_Profiler_Error* (*Consume)(struct PLUGIN_Profiler_Consume_Args*);
  void (*ConsumeResult_Destroy)(struct PLUGIN_Profiler_ConsumeResult_Destroy_Args*);
  PLUGIN_Profiler_Error* (*Serialize)(struct PLUGIN_Profiler_Serialize_Args*);
} PLUGIN_Profiler_Api;
typedef struct { PJRT_Extension_Base base; PLUGIN_Profiler_Api* profiler_api; int64_t traceme_context_id; } PJRT_Profiler_Extension;

typedef struct XLA_FFI_Error XLA_FFI_Error;
typedef struct { size_t struct_size; int type; void* next; } XLA_FFI_Extension_Base;
typedef struct {
  size_t struct_size; void* extension_start; int major_version; int minor_version;
} XLA_FFI_Api_Version;
typedef struct {
  size_t struct_size; void* extension_start; const char* message; int errc;
} XLA_FFI_Error_Create_Args;
typedef struct {
  size_t struct_size; void* extension_start; XLA_FFI_Error* error; const char* message;
} XLA_FFI_Error_GetMessage_Args;
typedef struct {
  size_t struct_size; void* extension_start; XLA_FFI_Error* error; const char* message; int errc;
} XLA_FFI_Error_GetDetails_Args;
typedef struct {
  size_t struct_size; void* extension_start; XLA_FFI_Error* error;
} XLA_FFI_Error_Destroy_Args;
typedef struct {
  size_t struct_size; void* extension_start; void* ctx; int64_t* type_id; void* data;
} XLA_FFI_ExecutionContext_Get_Args;
typedef struct {
  size_t struct_size; void* extension_start; void* ctx; void* stream;
} XLA_FFI_Stream_Get_Args;
typedef struct {
  size_t struct_size; void* extension_start; void* ctx; int64_t run_id;
} XLA_FFI_RunId_Get_Args;
typedef XLA_FFI_Error* XLA_FFI_Function(void* args);
typedef struct {
  size_t struct_size; void* extension_start; XLA_FFI_Api_Version api_version;
  const void* internal_api; XLA_FFI_Error* (*error_create)(XLA_FFI_Error_Create_Args*);
  void (*error_get_message)(XLA_FFI_Error_GetMessage_Args*);
  void (*error_destroy)(XLA_FFI_Error_Destroy_Args*);
  XLA_FFI_Function* handler_register; XLA_FFI_Function* stream_get;
  XLA_FFI_Function* type_register;
  XLA_FFI_Error* (*execution_context_get)(XLA_FFI_ExecutionContext_Get_Args*);
  XLA_FFI_Function* state_set; XLA_FFI_Function* state_get;
  XLA_FFI_Function* device_memory_allocate; XLA_FFI_Function* device_memory_free;
  XLA_FFI_Function* thread_pool_schedule; XLA_FFI_Function* thread_pool_num_threads;
  XLA_FFI_Function* future_create; XLA_FFI_Function* future_set_available;
  XLA_FFI_Function* future_set_error; XLA_FFI_Function* run_id_get;
  XLA_FFI_Function* device_ordinal_get;
} XLA_FFI_Api;
typedef struct {
  size_t struct_size; void* extension_start; int dtype; void* data; int64_t rank;
  int64_t* dims;
} XLA_FFI_Buffer;
typedef struct { const char* ptr; size_t len; } XLA_FFI_ByteSpan;
typedef struct { int dtype; void* value; } XLA_FFI_Scalar;
typedef struct { int dtype; size_t size; void* data; } XLA_FFI_Array;
typedef struct {
  size_t struct_size; void* extension_start; int64_t size; int* types; void** values;
} XLA_FFI_Values;
typedef struct {
  size_t struct_size; void* extension_start; int64_t size; int* types;
  XLA_FFI_ByteSpan** names; void** values;
} XLA_FFI_Attrs;
typedef struct {
  size_t struct_size; XLA_FFI_Extension_Base* extension_start; const XLA_FFI_Api* api; void* ctx;
  int stage; XLA_FFI_Values args; XLA_FFI_Values rets; XLA_FFI_Attrs attrs; void* future;
} XLA_FFI_CallFrame;
typedef struct {
  size_t struct_size; XLA_FFI_Api_Version api_version; uint32_t traits; int64_t state_type_id;
} XLA_FFI_Metadata;
typedef struct {
  XLA_FFI_Extension_Base base; XLA_FFI_Metadata* metadata;
} XLA_FFI_Metadata_Extension;
typedef XLA_FFI_Error* XLA_FFI_Handler(XLA_FFI_CallFrame* frame);
typedef struct {
  size_t struct_size; void* extension_start; XLA_FFI_ByteSpan name; XLA_FFI_ByteSpan platform;
  void* instantiate; void* prepare; void* initialize; void* execute; uint32_t traits;
} XLA_FFI_Handler_Register_Args;
typedef struct {
  size_t struct_size; void* extension_start; void (*deleter)(void* object);
} XLA_FFI_TypeInfo;
typedef struct {
  size_t struct_size; void* extension_start; XLA_FFI_ByteSpan name; int64_t* type_id;
  const XLA_FFI_TypeInfo* type_info;
} XLA_FFI_Type_Register_Args;
typedef struct {
  size_t struct_size; void* extension_start; void* ctx; int stage; int64_t* type_id; void* state;
} XLA_FFI_State_Args;
typedef struct {
  size_t struct_size; void* extension_start; void* ctx; int64_t* type_id; void* state;
} XLA_FFI_State_Args_Before_0_3;


typedef struct {
  void* data; int32_t device_type; int32_t device_id; int32_t ndim; uint8_t code; uint8_t bits;
  uint16_t lanes; int64_t* shape; int64_t* strides; uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
  DLTensor dl_tensor; void* manager_ctx; void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

const PJRT_Api* GetPjrtApi(void);
enum { PJRT_Error_Code_OK, PJRT_Error_Code_CANCELLED, PJRT_Error_Code_UNKNOWN, PJRT_Error_Code_INVALID_ARGUMENT, PJRT_Error_Code_DEADLINE_EXCEEDED, PJRT_Error_Code_NOT_FOUND, PJRT_Error_Code_ALREADY_EXISTS, PJRT_Error_Code_PERMISSION_DENIED, PJRT_Error_Code_RESOURCE_EXHAUSTED, PJRT_Error_Code_FAILED_PRECONDITION, PJRT_Error_Code_ABORTED, PJRT_Error_Code_OUT_OF_RANGE, PJRT_Error_Code_UNIMPLEMENTED, PJRT_Error_Code_INTERNAL, PJRT_Error_Code_UNAVAILABLE, PJRT_Error_Code_DATA_LOSS, PJRT_Error_Code_UNAUTHENTICATED };
enum { PJRT_NamedValue_Type_kString, PJRT_NamedValue_Type_kInt64, PJRT_NamedValue_Type_kInt64List, PJRT_NamedValue_Type_kFloat, PJRT_NamedValue_Type_kBool };
enum { PJRT_ProcessState_kUnspecified, PJRT_ProcessState_kUninitialized, PJRT_ProcessState_kDisconnected, PJRT_ProcessState_kConnected, PJRT_ProcessState_kError };
enum { PJRT_Buffer_Type_INVALID, PJRT_Buffer_Type_PRED, PJRT_Buffer_Type_S8, PJRT_Buffer_Type_S16, PJRT_Buffer_Type_S32, PJRT_Buffer_Type_S64, PJRT_Buffer_Type_U8, PJRT_Buffer_Type_U16, PJRT_Buffer_Type_U32, PJRT_Buffer_Type_U64, PJRT_Buffer_Type_F16, PJRT_Buffer_Type_F32, PJRT_Buffer_Type_F64, PJRT_Buffer_Type_BF16, PJRT_Buffer_Type_C64, PJRT_Buffer_Type_C128, PJRT_Buffer_Type_F8E5M2, PJRT_Buffer_Type_F8E4M3FN, PJRT_Buffer_Type_F8E4M3B11FNUZ, PJRT_Buffer_Type_F8E5M2FNUZ, PJRT_Buffer_Type_F8E4M3FNUZ, PJRT_Buffer_Type_S4, PJRT_Buffer_Type_U4, PJRT_Buffer_Type_TOKEN, PJRT_Buffer_Type_S2, PJRT_Buffer_Type_U2, PJRT_Buffer_Type_F8E4M3, PJRT_Buffer_Type_F8E3M4, PJRT_Buffer_Type_F8E8M0FNU, PJRT_Buffer_Type_F4E2M1FN, PJRT_Buffer_Type_S1, PJRT_Buffer_Type_U1, PJRT_Buffer_Type_F6E2M3FN, PJRT_Buffer_Type_F6E3M2FN };
enum { PJRT_HostBufferSemantics_kImmutableOnlyDuringCall, PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes, PJRT_HostBufferSemantics_kImmutableZeroCopy, PJRT_HostBufferSemantics_kMutableZeroCopy };
enum { PJRT_Buffer_MemoryLayout_Type_Tiled, PJRT_Buffer_MemoryLayout_Type_Strides };
enum { PJRT_Extension_Type_Gpu_Custom_Call, PJRT_Extension_Type_Profiler, PJRT_Extension_Type_Custom_Partitioner, PJRT_Extension_Type_Stream, PJRT_Extension_Type_Layouts, PJRT_Extension_Type_FFI, PJRT_Extension_Type_MemoryDescriptions, PJRT_Extension_Type_Triton, PJRT_Extension_Type_RawBuffer, PJRT_Extension_Type_PhaseCompile, PJRT_Extension_Type_Example, PJRT_Extension_Type_Unknown, PJRT_Extension_Type_CrossHostTransfers, PJRT_Extension_Type_ExecutableMetadata, PJRT_Extension_Type_Callback, PJRT_Extension_Type_HostAllocator, PJRT_Extension_Type_TpuTopology, PJRT_Extension_Type_TpuExecutable, PJRT_Extension_Type_Megascale, PJRT_Extension_Type_Shardings, PJRT_Extension_Type_AbiVersion, PJRT_Extension_Type_Collectives, PJRT_Extension_Type_MultiSlice, PJRT_Extension_Type_HostMemoryAllocator, PJRT_Extension_Type_XlaTransform };
enum { PJRT_Callback_Type_Unknown, PJRT_Callback_Type_Tpu_SliceBuilder, PJRT_Callback_Type_Prefatal };
#define PJRT_Error_Destroy_Args_SIZE (offsetof(struct PJRT_Error_Destroy_Args, error) + sizeof(((struct PJRT_Error_Destroy_Args*)0)->error))
#define PJRT_Error_Message_Args_SIZE (offsetof(struct PJRT_Error_Message_Args, message_size) + sizeof(((struct PJRT_Error_Message_Args*)0)->message_size))
#define PJRT_Error_GetCode_Args_SIZE (offsetof(struct PJRT_Error_GetCode_Args, code) + sizeof(((struct PJRT_Error_GetCode_Args*)0)->code))
#define PJRT_Plugin_Initialize_Args_SIZE (offsetof(struct PJRT_Plugin_Initialize_Args, extension_start) + sizeof(((struct PJRT_Plugin_Initialize_Args*)0)->extension_start))
#define PJRT_Plugin_Attributes_Args_SIZE (offsetof(struct PJRT_Plugin_Attributes_Args, num_attributes) + sizeof(((struct PJRT_Plugin_Attributes_Args*)0)->num_attributes))
#define PJRT_Event_Destroy_Args_SIZE (offsetof(struct PJRT_Event_Destroy_Args, event) + sizeof(((struct PJRT_Event_Destroy_Args*)0)->event))
#define PJRT_Event_IsReady_Args_SIZE (offsetof(struct PJRT_Event_IsReady_Args, is_ready) + sizeof(((struct PJRT_Event_IsReady_Args*)0)->is_ready))
#define PJRT_Event_Error_Args_SIZE (offsetof(struct PJRT_Event_Error_Args, event) + sizeof(((struct PJRT_Event_Error_Args*)0)->event))
#define PJRT_Event_Await_Args_SIZE (offsetof(struct PJRT_Event_Await_Args, event) + sizeof(((struct PJRT_Event_Await_Args*)0)->event))
#define PJRT_Event_OnReady_Args_SIZE (offsetof(struct PJRT_Event_OnReady_Args, user_arg) + sizeof(((struct PJRT_Event_OnReady_Args*)0)->user_arg))
#define PJRT_Client_Create_Args_SIZE (offsetof(struct PJRT_Client_Create_Args, kv_try_get_user_arg) + sizeof(((struct PJRT_Client_Create_Args*)0)->kv_try_get_user_arg))
#define PJRT_Client_Destroy_Args_SIZE (offsetof(struct PJRT_Client_Destroy_Args, client) + sizeof(((struct PJRT_Client_Destroy_Args*)0)->client))
#define PJRT_Client_PlatformName_Args_SIZE (offsetof(struct PJRT_Client_PlatformName_Args, platform_name_size) + sizeof(((struct PJRT_Client_PlatformName_Args*)0)->platform_name_size))
#define PJRT_Client_ProcessIndex_Args_SIZE (offsetof(struct PJRT_Client_ProcessIndex_Args, process_index) + sizeof(((struct PJRT_Client_ProcessIndex_Args*)0)->process_index))
#define PJRT_Client_PlatformVersion_Args_SIZE (offsetof(struct PJRT_Client_PlatformVersion_Args, platform_version_size) + sizeof(((struct PJRT_Client_PlatformVersion_Args*)0)->platform_version_size))
#define PJRT_Client_Devices_Args_SIZE (offsetof(struct PJRT_Client_Devices_Args, num_devices) + sizeof(((struct PJRT_Client_Devices_Args*)0)->num_devices))
#define PJRT_Client_AddressableDevices_Args_SIZE (offsetof(struct PJRT_Client_AddressableDevices_Args, num_addressable_devices) + sizeof(((struct PJRT_Client_AddressableDevices_Args*)0)->num_addressable_devices))
#define PJRT_Client_LookupDevice_Args_SIZE (offsetof(struct PJRT_Client_LookupDevice_Args, device) + sizeof(((struct PJRT_Client_LookupDevice_Args*)0)->device))
#define PJRT_Client_LookupAddressableDevice_Args_SIZE (offsetof(struct PJRT_Client_LookupAddressableDevice_Args, addressable_device) + sizeof(((struct PJRT_Client_LookupAddressableDevice_Args*)0)->addressable_device))
#define PJRT_Client_AddressableMemories_Args_SIZE (offsetof(struct PJRT_Client_AddressableMemories_Args, num_addressable_memories) + sizeof(((struct PJRT_Client_AddressableMemories_Args*)0)->num_addressable_memories))
#define PJRT_Client_Compile_Args_SIZE (offsetof(struct PJRT_Client_Compile_Args, executable) + sizeof(((struct PJRT_Client_Compile_Args*)0)->executable))
#define PJRT_Client_DefaultDeviceAssignment_Args_SIZE (offsetof(struct PJRT_Client_DefaultDeviceAssignment_Args, default_assignment) + sizeof(((struct PJRT_Client_DefaultDeviceAssignment_Args*)0)->default_assignment))
#define PJRT_Client_BufferFromHostBuffer_Args_SIZE (offsetof(struct PJRT_Client_BufferFromHostBuffer_Args, buffer) + sizeof(((struct PJRT_Client_BufferFromHostBuffer_Args*)0)->buffer))
#define PJRT_DeviceDescription_Id_Args_SIZE (offsetof(struct PJRT_DeviceDescription_Id_Args, id) + sizeof(((struct PJRT_DeviceDescription_Id_Args*)0)->id))
#define PJRT_DeviceDescription_ProcessIndex_Args_SIZE (offsetof(struct PJRT_DeviceDescription_ProcessIndex_Args, process_index) + sizeof(((struct PJRT_DeviceDescription_ProcessIndex_Args*)0)->process_index))
#define PJRT_DeviceDescription_Attributes_Args_SIZE (offsetof(struct PJRT_DeviceDescription_Attributes_Args, attributes) + sizeof(((struct PJRT_DeviceDescription_Attributes_Args*)0)->attributes))
#define PJRT_DeviceDescription_Kind_Args_SIZE (offsetof(struct PJRT_DeviceDescription_Kind_Args, device_kind_size) + sizeof(((struct PJRT_DeviceDescription_Kind_Args*)0)->device_kind_size))
#define PJRT_DeviceDescription_DebugString_Args_SIZE (offsetof(struct PJRT_DeviceDescription_DebugString_Args, debug_string_size) + sizeof(((struct PJRT_DeviceDescription_DebugString_Args*)0)->debug_string_size))
#define PJRT_DeviceDescription_ToString_Args_SIZE (offsetof(struct PJRT_DeviceDescription_ToString_Args, to_string_size) + sizeof(((struct PJRT_DeviceDescription_ToString_Args*)0)->to_string_size))
#define PJRT_Device_GetDescription_Args_SIZE (offsetof(struct PJRT_Device_GetDescription_Args, device_description) + sizeof(((struct PJRT_Device_GetDescription_Args*)0)->device_description))
#define PJRT_Device_IsAddressable_Args_SIZE (offsetof(struct PJRT_Device_IsAddressable_Args, is_addressable) + sizeof(((struct PJRT_Device_IsAddressable_Args*)0)->is_addressable))
#define PJRT_Device_LocalHardwareId_Args_SIZE (offsetof(struct PJRT_Device_LocalHardwareId_Args, local_hardware_id) + sizeof(((struct PJRT_Device_LocalHardwareId_Args*)0)->local_hardware_id))
#define PJRT_Device_AddressableMemories_Args_SIZE (offsetof(struct PJRT_Device_AddressableMemories_Args, num_memories) + sizeof(((struct PJRT_Device_AddressableMemories_Args*)0)->num_memories))
#define PJRT_Device_DefaultMemory_Args_SIZE (offsetof(struct PJRT_Device_DefaultMemory_Args, memory) + sizeof(((struct PJRT_Device_DefaultMemory_Args*)0)->memory))
#define PJRT_Device_MemoryStats_Args_SIZE (offsetof(struct PJRT_Device_MemoryStats_Args, peak_allocated_bytes_is_set) + sizeof(((struct PJRT_Device_MemoryStats_Args*)0)->peak_allocated_bytes_is_set))
#define PJRT_Memory_Id_Args_SIZE (offsetof(struct PJRT_Memory_Id_Args, id) + sizeof(((struct PJRT_Memory_Id_Args*)0)->id))
#define PJRT_Memory_Kind_Args_SIZE (offsetof(struct PJRT_Memory_Kind_Args, kind_size) + sizeof(((struct PJRT_Memory_Kind_Args*)0)->kind_size))
#define PJRT_Memory_DebugString_Args_SIZE (offsetof(struct PJRT_Memory_DebugString_Args, debug_string_size) + sizeof(((struct PJRT_Memory_DebugString_Args*)0)->debug_string_size))
#define PJRT_Memory_ToString_Args_SIZE (offsetof(struct PJRT_Memory_ToString_Args, to_string_size) + sizeof(((struct PJRT_Memory_ToString_Args*)0)->to_string_size))
#define PJRT_Memory_AddressableByDevices_Args_SIZE (offsetof(struct PJRT_Memory_AddressableByDevices_Args, num_devices) + sizeof(((struct PJRT_Memory_AddressableByDevices_Args*)0)->num_devices))
#define PJRT_Executable_Destroy_Args_SIZE (offsetof(struct PJRT_Executable_Destroy_Args, executable) + sizeof(((struct PJRT_Executable_Destroy_Args*)0)->executable))
#define PJRT_Executable_Name_Args_SIZE (offsetof(struct PJRT_Executable_Name_Args, executable_name_size) + sizeof(((struct PJRT_Executable_Name_Args*)0)->executable_name_size))
#define PJRT_Executable_NumReplicas_Args_SIZE (offsetof(struct PJRT_Executable_NumReplicas_Args, num_replicas) + sizeof(((struct PJRT_Executable_NumReplicas_Args*)0)->num_replicas))
#define PJRT_Executable_NumPartitions_Args_SIZE (offsetof(struct PJRT_Executable_NumPartitions_Args, num_partitions) + sizeof(((struct PJRT_Executable_NumPartitions_Args*)0)->num_partitions))
#define PJRT_Executable_NumOutputs_Args_SIZE (offsetof(struct PJRT_Executable_NumOutputs_Args, num_outputs) + sizeof(((struct PJRT_Executable_NumOutputs_Args*)0)->num_outputs))
#define PJRT_Executable_SizeOfGeneratedCodeInBytes_Args_SIZE (offsetof(struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, size_in_bytes) + sizeof(((struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args*)0)->size_in_bytes))
#define PJRT_Executable_GetCostAnalysis_Args_SIZE (offsetof(struct PJRT_Executable_GetCostAnalysis_Args, properties) + sizeof(((struct PJRT_Executable_GetCostAnalysis_Args*)0)->properties))
#define PJRT_Executable_OutputMemoryKinds_Args_SIZE (offsetof(struct PJRT_Executable_OutputMemoryKinds_Args, memory_kind_sizes) + sizeof(((struct PJRT_Executable_OutputMemoryKinds_Args*)0)->memory_kind_sizes))
#define PJRT_Executable_OptimizedProgram_Args_SIZE (offsetof(struct PJRT_Executable_OptimizedProgram_Args, program) + sizeof(((struct PJRT_Executable_OptimizedProgram_Args*)0)->program))
#define PJRT_Executable_Serialize_Args_SIZE (offsetof(struct PJRT_Executable_Serialize_Args, serialized_executable_deleter) + sizeof(((struct PJRT_Executable_Serialize_Args*)0)->serialized_executable_deleter))
#define PJRT_LoadedExecutable_Destroy_Args_SIZE (offsetof(struct PJRT_LoadedExecutable_Destroy_Args, executable) + sizeof(((struct PJRT_LoadedExecutable_Destroy_Args*)0)->executable))
#define PJRT_LoadedExecutable_GetExecutable_Args_SIZE (offsetof(struct PJRT_LoadedExecutable_GetExecutable_Args, executable) + sizeof(((struct PJRT_LoadedExecutable_GetExecutable_Args*)0)->executable))
#define PJRT_LoadedExecutable_AddressableDevices_Args_SIZE (offsetof(struct PJRT_LoadedExecutable_AddressableDevices_Args, num_addressable_devices) + sizeof(((struct PJRT_LoadedExecutable_AddressableDevices_Args*)0)->num_addressable_devices))
#define PJRT_LoadedExecutable_Delete_Args_SIZE (offsetof(struct PJRT_LoadedExecutable_Delete_Args, executable) + sizeof(((struct PJRT_LoadedExecutable_Delete_Args*)0)->executable))
#define PJRT_LoadedExecutable_IsDeleted_Args_SIZE (offsetof(struct PJRT_LoadedExecutable_IsDeleted_Args, is_deleted) + sizeof(((struct PJRT_LoadedExecutable_IsDeleted_Args*)0)->is_deleted))
#define PJRT_LoadedExecutable_Execute_Args_SIZE (offsetof(struct PJRT_LoadedExecutable_Execute_Args, execute_device) + sizeof(((struct PJRT_LoadedExecutable_Execute_Args*)0)->execute_device))
#define PJRT_Executable_DeserializeAndLoad_Args_SIZE (offsetof(struct PJRT_Executable_DeserializeAndLoad_Args, load_options) + sizeof(((struct PJRT_Executable_DeserializeAndLoad_Args*)0)->load_options))
#define PJRT_LoadedExecutable_Fingerprint_Args_SIZE (offsetof(struct PJRT_LoadedExecutable_Fingerprint_Args, executable_fingerprint_size) + sizeof(((struct PJRT_LoadedExecutable_Fingerprint_Args*)0)->executable_fingerprint_size))
#define PJRT_Buffer_Destroy_Args_SIZE (offsetof(struct PJRT_Buffer_Destroy_Args, buffer) + sizeof(((struct PJRT_Buffer_Destroy_Args*)0)->buffer))
#define PJRT_Buffer_ElementType_Args_SIZE (offsetof(struct PJRT_Buffer_ElementType_Args, type) + sizeof(((struct PJRT_Buffer_ElementType_Args*)0)->type))
#define PJRT_Buffer_Dimensions_Args_SIZE (offsetof(struct PJRT_Buffer_Dimensions_Args, num_dims) + sizeof(((struct PJRT_Buffer_Dimensions_Args*)0)->num_dims))
#define PJRT_Buffer_UnpaddedDimensions_Args_SIZE (offsetof(struct PJRT_Buffer_UnpaddedDimensions_Args, num_dims) + sizeof(((struct PJRT_Buffer_UnpaddedDimensions_Args*)0)->num_dims))
#define PJRT_Buffer_DynamicDimensionIndices_Args_SIZE (offsetof(struct PJRT_Buffer_DynamicDimensionIndices_Args, num_dynamic_dims) + sizeof(((struct PJRT_Buffer_DynamicDimensionIndices_Args*)0)->num_dynamic_dims))
#define PJRT_Buffer_GetMemoryLayout_Args_SIZE (offsetof(struct PJRT_Buffer_GetMemoryLayout_Args, layout) + sizeof(((struct PJRT_Buffer_GetMemoryLayout_Args*)0)->layout))
#define PJRT_Buffer_OnDeviceSizeInBytes_Args_SIZE (offsetof(struct PJRT_Buffer_OnDeviceSizeInBytes_Args, on_device_size_in_bytes) + sizeof(((struct PJRT_Buffer_OnDeviceSizeInBytes_Args*)0)->on_device_size_in_bytes))
#define PJRT_Buffer_Device_Args_SIZE (offsetof(struct PJRT_Buffer_Device_Args, device) + sizeof(((struct PJRT_Buffer_Device_Args*)0)->device))
#define PJRT_Buffer_Memory_Args_SIZE (offsetof(struct PJRT_Buffer_Memory_Args, memory) + sizeof(((struct PJRT_Buffer_Memory_Args*)0)->memory))
#define PJRT_Buffer_Delete_Args_SIZE (offsetof(struct PJRT_Buffer_Delete_Args, buffer) + sizeof(((struct PJRT_Buffer_Delete_Args*)0)->buffer))
#define PJRT_Buffer_IsDeleted_Args_SIZE (offsetof(struct PJRT_Buffer_IsDeleted_Args, is_deleted) + sizeof(((struct PJRT_Buffer_IsDeleted_Args*)0)->is_deleted))
#define PJRT_Buffer_CopyToDevice_Args_SIZE (offsetof(struct PJRT_Buffer_CopyToDevice_Args, dst_buffer) + sizeof(((struct PJRT_Buffer_CopyToDevice_Args*)0)->dst_buffer))
#define PJRT_Buffer_ToHostBuffer_Args_SIZE (offsetof(struct PJRT_Buffer_ToHostBuffer_Args, event) + sizeof(((struct PJRT_Buffer_ToHostBuffer_Args*)0)->event))
#define PJRT_Buffer_IsOnCpu_Args_SIZE (offsetof(struct PJRT_Buffer_IsOnCpu_Args, is_on_cpu) + sizeof(((struct PJRT_Buffer_IsOnCpu_Args*)0)->is_on_cpu))
#define PJRT_Buffer_ReadyEvent_Args_SIZE (offsetof(struct PJRT_Buffer_ReadyEvent_Args, event) + sizeof(((struct PJRT_Buffer_ReadyEvent_Args*)0)->event))
#define PJRT_Buffer_UnsafePointer_Args_SIZE (offsetof(struct PJRT_Buffer_UnsafePointer_Args, buffer_pointer) + sizeof(((struct PJRT_Buffer_UnsafePointer_Args*)0)->buffer_pointer))
#define PJRT_Buffer_IncreaseExternalReferenceCount_Args_SIZE (offsetof(struct PJRT_Buffer_IncreaseExternalReferenceCount_Args, buffer) + sizeof(((struct PJRT_Buffer_IncreaseExternalReferenceCount_Args*)0)->buffer))
#define PJRT_Buffer_DecreaseExternalReferenceCount_Args_SIZE (offsetof(struct PJRT_Buffer_DecreaseExternalReferenceCount_Args, buffer) + sizeof(((struct PJRT_Buffer_DecreaseExternalReferenceCount_Args*)0)->buffer))
#define PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args_SIZE (offsetof(struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, device_memory_ptr) + sizeof(((struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args*)0)->device_memory_ptr))
#define PJRT_CopyToDeviceStream_Destroy_Args_SIZE (offsetof(struct PJRT_CopyToDeviceStream_Destroy_Args, stream) + sizeof(((struct PJRT_CopyToDeviceStream_Destroy_Args*)0)->stream))
#define PJRT_CopyToDeviceStream_AddChunk_Args_SIZE (offsetof(struct PJRT_CopyToDeviceStream_AddChunk_Args, transfer_complete) + sizeof(((struct PJRT_CopyToDeviceStream_AddChunk_Args*)0)->transfer_complete))
#define PJRT_CopyToDeviceStream_TotalBytes_Args_SIZE (offsetof(struct PJRT_CopyToDeviceStream_TotalBytes_Args, total_bytes) + sizeof(((struct PJRT_CopyToDeviceStream_TotalBytes_Args*)0)->total_bytes))
#define PJRT_CopyToDeviceStream_GranuleSize_Args_SIZE (offsetof(struct PJRT_CopyToDeviceStream_GranuleSize_Args, granule_size_in_bytes) + sizeof(((struct PJRT_CopyToDeviceStream_GranuleSize_Args*)0)->granule_size_in_bytes))
#define PJRT_CopyToDeviceStream_CurrentBytes_Args_SIZE (offsetof(struct PJRT_CopyToDeviceStream_CurrentBytes_Args, current_bytes) + sizeof(((struct PJRT_CopyToDeviceStream_CurrentBytes_Args*)0)->current_bytes))
#define PJRT_TopologyDescription_Create_Args_SIZE (offsetof(struct PJRT_TopologyDescription_Create_Args, topology) + sizeof(((struct PJRT_TopologyDescription_Create_Args*)0)->topology))
#define PJRT_TopologyDescription_Destroy_Args_SIZE (offsetof(struct PJRT_TopologyDescription_Destroy_Args, topology) + sizeof(((struct PJRT_TopologyDescription_Destroy_Args*)0)->topology))
#define PJRT_TopologyDescription_PlatformName_Args_SIZE (offsetof(struct PJRT_TopologyDescription_PlatformName_Args, platform_name_size) + sizeof(((struct PJRT_TopologyDescription_PlatformName_Args*)0)->platform_name_size))
#define PJRT_TopologyDescription_PlatformVersion_Args_SIZE (offsetof(struct PJRT_TopologyDescription_PlatformVersion_Args, platform_version_size) + sizeof(((struct PJRT_TopologyDescription_PlatformVersion_Args*)0)->platform_version_size))
#define PJRT_TopologyDescription_GetDeviceDescriptions_Args_SIZE (offsetof(struct PJRT_TopologyDescription_GetDeviceDescriptions_Args, num_descriptions) + sizeof(((struct PJRT_TopologyDescription_GetDeviceDescriptions_Args*)0)->num_descriptions))
#define PJRT_TopologyDescription_Serialize_Args_SIZE (offsetof(struct PJRT_TopologyDescription_Serialize_Args, serialized_topology_deleter) + sizeof(((struct PJRT_TopologyDescription_Serialize_Args*)0)->serialized_topology_deleter))
#define PJRT_TopologyDescription_Attributes_Args_SIZE (offsetof(struct PJRT_TopologyDescription_Attributes_Args, num_attributes) + sizeof(((struct PJRT_TopologyDescription_Attributes_Args*)0)->num_attributes))
#define PJRT_Compile_Args_SIZE (offsetof(struct PJRT_Compile_Args, executable) + sizeof(((struct PJRT_Compile_Args*)0)->executable))
#define PJRT_Executable_OutputElementTypes_Args_SIZE (offsetof(struct PJRT_Executable_OutputElementTypes_Args, num_output_types) + sizeof(((struct PJRT_Executable_OutputElementTypes_Args*)0)->num_output_types))
#define PJRT_Executable_OutputDimensions_Args_SIZE (offsetof(struct PJRT_Executable_OutputDimensions_Args, dim_sizes) + sizeof(((struct PJRT_Executable_OutputDimensions_Args*)0)->dim_sizes))
#define PJRT_Buffer_CopyToMemory_Args_SIZE (offsetof(struct PJRT_Buffer_CopyToMemory_Args, dst_buffer) + sizeof(((struct PJRT_Buffer_CopyToMemory_Args*)0)->dst_buffer))
#define PJRT_Client_CreateViewOfDeviceBuffer_Args_SIZE (offsetof(struct PJRT_Client_CreateViewOfDeviceBuffer_Args, memory) + sizeof(((struct PJRT_Client_CreateViewOfDeviceBuffer_Args*)0)->memory))
#define PJRT_Executable_Fingerprint_Args_SIZE (offsetof(struct PJRT_Executable_Fingerprint_Args, executable_fingerprint_size) + sizeof(((struct PJRT_Executable_Fingerprint_Args*)0)->executable_fingerprint_size))
#define PJRT_Client_TopologyDescription_Args_SIZE (offsetof(struct PJRT_Client_TopologyDescription_Args, topology) + sizeof(((struct PJRT_Client_TopologyDescription_Args*)0)->topology))
#define PJRT_Executable_GetCompiledMemoryStats_Args_SIZE (offsetof(struct PJRT_Executable_GetCompiledMemoryStats_Args, peak_unpadded_heap_bytes) + sizeof(((struct PJRT_Executable_GetCompiledMemoryStats_Args*)0)->peak_unpadded_heap_bytes))
#define PJRT_Memory_Kind_Id_Args_SIZE (offsetof(struct PJRT_Memory_Kind_Id_Args, kind_id) + sizeof(((struct PJRT_Memory_Kind_Id_Args*)0)->kind_id))
#define PJRT_ExecuteContext_Create_Args_SIZE (offsetof(struct PJRT_ExecuteContext_Create_Args, context) + sizeof(((struct PJRT_ExecuteContext_Create_Args*)0)->context))
#define PJRT_ExecuteContext_Destroy_Args_SIZE (offsetof(struct PJRT_ExecuteContext_Destroy_Args, context) + sizeof(((struct PJRT_ExecuteContext_Destroy_Args*)0)->context))
#define PJRT_Buffer_CopyRawToHost_Args_SIZE (offsetof(struct PJRT_Buffer_CopyRawToHost_Args, event) + sizeof(((struct PJRT_Buffer_CopyRawToHost_Args*)0)->event))
#define PJRT_AsyncHostToDeviceTransferManager_Destroy_Args_SIZE (offsetof(struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args, transfer_manager) + sizeof(((struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args*)0)->transfer_manager))
#define PJRT_AsyncHostToDeviceTransferManager_TransferData_Args_SIZE (offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, done_with_h2d_transfer) + sizeof(((struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args*)0)->done_with_h2d_transfer))
#define PJRT_Client_CreateBuffersForAsyncHostToDevice_Args_SIZE (offsetof(struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, transfer_manager) + sizeof(((struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args*)0)->transfer_manager))
#define PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args_SIZE (offsetof(struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args, buffer_out) + sizeof(((struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args*)0)->buffer_out))
#define PJRT_AsyncHostToDeviceTransferManager_Device_Args_SIZE (offsetof(struct PJRT_AsyncHostToDeviceTransferManager_Device_Args, device_out) + sizeof(((struct PJRT_AsyncHostToDeviceTransferManager_Device_Args*)0)->device_out))
#define PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args_SIZE (offsetof(struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args, buffer_count) + sizeof(((struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args*)0)->buffer_count))
#define PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args_SIZE (offsetof(struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args, buffer_size) + sizeof(((struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args*)0)->buffer_size))
#define PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args_SIZE (offsetof(struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, error_message_size) + sizeof(((struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args*)0)->error_message_size))
#define PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args_SIZE (offsetof(struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args, num_metadata) + sizeof(((struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args*)0)->num_metadata))
#define PJRT_Client_DmaMap_Args_SIZE (offsetof(struct PJRT_Client_DmaMap_Args, size) + sizeof(((struct PJRT_Client_DmaMap_Args*)0)->size))
#define PJRT_Client_DmaUnmap_Args_SIZE (offsetof(struct PJRT_Client_DmaUnmap_Args, data) + sizeof(((struct PJRT_Client_DmaUnmap_Args*)0)->data))
#define PJRT_Client_CreateUninitializedBuffer_Args_SIZE (offsetof(struct PJRT_Client_CreateUninitializedBuffer_Args, buffer) + sizeof(((struct PJRT_Client_CreateUninitializedBuffer_Args*)0)->buffer))
#define PJRT_Client_UpdateGlobalProcessInfo_Args_SIZE (offsetof(struct PJRT_Client_UpdateGlobalProcessInfo_Args, num_process_infos) + sizeof(((struct PJRT_Client_UpdateGlobalProcessInfo_Args*)0)->num_process_infos))
#define PJRT_TopologyDescription_Deserialize_Args_SIZE (offsetof(struct PJRT_TopologyDescription_Deserialize_Args, topology) + sizeof(((struct PJRT_TopologyDescription_Deserialize_Args*)0)->topology))
#define PJRT_Client_CreateAliasBuffer_Args_SIZE (offsetof(struct PJRT_Client_CreateAliasBuffer_Args, fulfill_alias_buffer_cb) + sizeof(((struct PJRT_Client_CreateAliasBuffer_Args*)0)->fulfill_alias_buffer_cb))
#define PJRT_Client_FulfillAliasBuffer_Args_SIZE (offsetof(struct PJRT_Client_FulfillAliasBuffer_Args, fulfill_alias_buffer_cb) + sizeof(((struct PJRT_Client_FulfillAliasBuffer_Args*)0)->fulfill_alias_buffer_cb))
#define PJRT_LoadedExecutable_GetDeviceAssignment_Args_SIZE (offsetof(struct PJRT_LoadedExecutable_GetDeviceAssignment_Args, serialized_device_assignment_deleter) + sizeof(((struct PJRT_LoadedExecutable_GetDeviceAssignment_Args*)0)->serialized_device_assignment_deleter))
#define PJRT_Client_CreateErrorBuffer_Args_SIZE (offsetof(struct PJRT_Client_CreateErrorBuffer_Args, num_payload) + sizeof(((struct PJRT_Client_CreateErrorBuffer_Args*)0)->num_payload))
#define PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args_SIZE (offsetof(struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, done_with_h2d_transfer) + sizeof(((struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args*)0)->done_with_h2d_transfer))
#define PJRT_Buffer_CopyRawToHostFuture_Args_SIZE (offsetof(struct PJRT_Buffer_CopyRawToHostFuture_Args, future_ready_callback) + sizeof(((struct PJRT_Buffer_CopyRawToHostFuture_Args*)0)->future_ready_callback))
#define PJRT_Device_PoisonExecution_Args_SIZE (offsetof(struct PJRT_Device_PoisonExecution_Args, num_payload) + sizeof(((struct PJRT_Device_PoisonExecution_Args*)0)->num_payload))
#define PJRT_Device_CreateAsyncTrackingEvent_Args_SIZE (offsetof(struct PJRT_Device_CreateAsyncTrackingEvent_Args, event) + sizeof(((struct PJRT_Device_CreateAsyncTrackingEvent_Args*)0)->event))
#define PJRT_AsyncTrackingEvent_Destroy_Args_SIZE (offsetof(struct PJRT_AsyncTrackingEvent_Destroy_Args, event) + sizeof(((struct PJRT_AsyncTrackingEvent_Destroy_Args*)0)->event))
#define PJRT_Executable_GetCompileOptions_Args_SIZE (offsetof(struct PJRT_Executable_GetCompileOptions_Args, serialized_compile_options_deleter) + sizeof(((struct PJRT_Executable_GetCompileOptions_Args*)0)->serialized_compile_options_deleter))
#define PJRT_Buffer_DonateWithControlDependency_Args_SIZE (offsetof(struct PJRT_Buffer_DonateWithControlDependency_Args, out_buffer) + sizeof(((struct PJRT_Buffer_DonateWithControlDependency_Args*)0)->out_buffer))
#define PJRT_Event_Create_Args_SIZE (offsetof(struct PJRT_Event_Create_Args, event) + sizeof(((struct PJRT_Event_Create_Args*)0)->event))
#define PJRT_Event_Set_Args_SIZE (offsetof(struct PJRT_Event_Set_Args, error_message_size) + sizeof(((struct PJRT_Event_Set_Args*)0)->error_message_size))
#define PJRT_Device_GetAttributes_Args_SIZE (offsetof(struct PJRT_Device_GetAttributes_Args, attributes_deleter) + sizeof(((struct PJRT_Device_GetAttributes_Args*)0)->attributes_deleter))
#define PJRT_Client_Load_Args_SIZE (offsetof(struct PJRT_Client_Load_Args, loaded_executable) + sizeof(((struct PJRT_Client_Load_Args*)0)->loaded_executable))
#define PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args_SIZE (offsetof(struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, num_addressable_device_logical_ids) + sizeof(((struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args*)0)->num_addressable_device_logical_ids))
#define PJRT_Buffer_Bitcast_Args_SIZE (offsetof(struct PJRT_Buffer_Bitcast_Args, out_buffer) + sizeof(((struct PJRT_Buffer_Bitcast_Args*)0)->out_buffer))
#define PJRT_Error_ForEachPayload_Args_SIZE (offsetof(struct PJRT_Error_ForEachPayload_Args, user_arg) + sizeof(((struct PJRT_Error_ForEachPayload_Args*)0)->user_arg))
#define PJRT_TopologyDescription_Fingerprint_Args_SIZE (offsetof(struct PJRT_TopologyDescription_Fingerprint_Args, fingerprint) + sizeof(((struct PJRT_TopologyDescription_Fingerprint_Args*)0)->fingerprint))
#define PJRT_Executable_ParameterMemoryKinds_Args_SIZE (offsetof(struct PJRT_Executable_ParameterMemoryKinds_Args, memory_kind_sizes) + sizeof(((struct PJRT_Executable_ParameterMemoryKinds_Args*)0)->memory_kind_sizes))
#define PJRT_Device_ClearMemoryStats_Args_SIZE (offsetof(struct PJRT_Device_ClearMemoryStats_Args, device) + sizeof(((struct PJRT_Device_ClearMemoryStats_Args*)0)->device))
#define PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args_SIZE (offsetof(struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, serialized_shape_deleter) + sizeof(((struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args*)0)->serialized_shape_deleter))
#define PJRT_TopologyDescription_GetMemorySpaceKindIds_Args_SIZE (offsetof(struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args, num_memory_space_kind_ids) + sizeof(((struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args*)0)->num_memory_space_kind_ids))
#define PJRT_NamedValue_SIZE (offsetof(struct PJRT_NamedValue, value_size) + sizeof(((struct PJRT_NamedValue*)0)->value_size))
#define PJRT_ProcessInfo_SIZE (offsetof(struct PJRT_ProcessInfo, error_message_size) + sizeof(((struct PJRT_ProcessInfo*)0)->error_message_size))
#define PJRT_Program_SIZE (offsetof(struct PJRT_Program, format_size) + sizeof(((struct PJRT_Program*)0)->format_size))
#define PJRT_Buffer_MemoryLayout_Tiled_SIZE (offsetof(struct PJRT_Buffer_MemoryLayout_Tiled, num_tiles) + sizeof(((struct PJRT_Buffer_MemoryLayout_Tiled*)0)->num_tiles))
#define PJRT_Buffer_MemoryLayout_Strides_SIZE (offsetof(struct PJRT_Buffer_MemoryLayout_Strides, num_byte_strides) + sizeof(((struct PJRT_Buffer_MemoryLayout_Strides*)0)->num_byte_strides))
#define PJRT_Buffer_MemoryLayout_SIZE (offsetof(struct PJRT_Buffer_MemoryLayout, type) + sizeof(((struct PJRT_Buffer_MemoryLayout*)0)->type))
#define PJRT_ShapeSpec_SIZE (offsetof(struct PJRT_ShapeSpec, element_type) + sizeof(((struct PJRT_ShapeSpec*)0)->element_type))
#define PJRT_ExecuteOptions_SIZE (offsetof(struct PJRT_ExecuteOptions, num_hlo_output_callbacks) + sizeof(((struct PJRT_ExecuteOptions*)0)->num_hlo_output_callbacks))
#define PJRT_LoadOptions_SIZE (offsetof(struct PJRT_LoadOptions, multi_slice_config) + sizeof(((struct PJRT_LoadOptions*)0)->multi_slice_config))
#define PJRT_KeyValueGetCallback_Args_SIZE (offsetof(struct PJRT_KeyValueGetCallback_Args, value_deleter_callback) + sizeof(((struct PJRT_KeyValueGetCallback_Args*)0)->value_deleter_callback))
#define PJRT_KeyValueTryGetCallback_Args_SIZE (offsetof(struct PJRT_KeyValueTryGetCallback_Args, value_deleter_callback) + sizeof(((struct PJRT_KeyValueTryGetCallback_Args*)0)->value_deleter_callback))
#define PJRT_KeyValuePutCallback_Args_SIZE (offsetof(struct PJRT_KeyValuePutCallback_Args, user_arg) + sizeof(((struct PJRT_KeyValuePutCallback_Args*)0)->user_arg))
#define PJRT_Buffer_CopyRawToHostFuture_Callback_Args_SIZE (offsetof(struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args, dst) + sizeof(((struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args*)0)->dst))
#define PJRT_Buffer_DonateWithControlDependency_Callback_Args_SIZE (offsetof(struct PJRT_Buffer_DonateWithControlDependency_Callback_Args, error_message_size) + sizeof(((struct PJRT_Buffer_DonateWithControlDependency_Callback_Args*)0)->error_message_size))
static const struct { const char* name; size_t offset; } SLOTS[] = {
  {"Error_Destroy", offsetof(PJRT_Api, Error_Destroy)},
  {"Error_Message", offsetof(PJRT_Api, Error_Message)},
  {"Error_GetCode", offsetof(PJRT_Api, Error_GetCode)},
  {"Plugin_Initialize", offsetof(PJRT_Api, Plugin_Initialize)},
  {"Plugin_Attributes", offsetof(PJRT_Api, Plugin_Attributes)},
  {"Event_Destroy", offsetof(PJRT_Api, Event_Destroy)},
  {"Event_IsReady", offsetof(PJRT_Api, Event_IsReady)},
  {"Event_Error", offsetof(PJRT_Api, Event_Error)},
  {"Event_Await", offsetof(PJRT_Api, Event_Await)},
  {"Event_OnReady", offsetof(PJRT_Api, Event_OnReady)},
  {"Client_Create", offsetof(PJRT_Api, Client_Create)},
  {"Client_Destroy", offsetof(PJRT_Api, Client_Destroy)},
  {"Client_PlatformName", offsetof(PJRT_Api, Client_PlatformName)},
  {"Client_ProcessIndex", offsetof(PJRT_Api, Client_ProcessIndex)},
  {"Client_PlatformVersion", offsetof(PJRT_Api, Client_PlatformVersion)},
  {"Client_Devices", offsetof(PJRT_Api, Client_Devices)},
  {"Client_AddressableDevices", offsetof(PJRT_Api, Client_AddressableDevices)},
  {"Client_LookupDevice", offsetof(PJRT_Api, Client_LookupDevice)},
  {"Client_LookupAddressableDevice", offsetof(PJRT_Api, Client_LookupAddressableDevice)},
  {"Client_AddressableMemories", offsetof(PJRT_Api, Client_AddressableMemories)},
  {"Client_Compile", offsetof(PJRT_Api, Client_Compile)},
  {"Client_DefaultDeviceAssignment", offsetof(PJRT_Api, Client_DefaultDeviceAssignment)},
  {"Client_BufferFromHostBuffer", offsetof(PJRT_Api, Client_BufferFromHostBuffer)},
  {"DeviceDescription_Id", offsetof(PJRT_Api, DeviceDescription_Id)},
  {"DeviceDescription_ProcessIndex", offsetof(PJRT_Api, DeviceDescription_ProcessIndex)},
  {"DeviceDescription_Attributes", offsetof(PJRT_Api, DeviceDescription_Attributes)},
  {"DeviceDescription_Kind", offsetof(PJRT_Api, DeviceDescription_Kind)},
  {"DeviceDescription_DebugString", offsetof(PJRT_Api, DeviceDescription_DebugString)},
  {"DeviceDescription_ToString", offsetof(PJRT_Api, DeviceDescription_ToString)},
  {"Device_GetDescription", offsetof(PJRT_Api, Device_GetDescription)},
  {"Device_IsAddressable", offsetof(PJRT_Api, Device_IsAddressable)},
  {"Device_LocalHardwareId", offsetof(PJRT_Api, Device_LocalHardwareId)},
  {"Device_AddressableMemories", offsetof(PJRT_Api, Device_AddressableMemories)},
  {"Device_DefaultMemory", offsetof(PJRT_Api, Device_DefaultMemory)},
  {"Device_MemoryStats", offsetof(PJRT_Api, Device_MemoryStats)},
  {"Memory_Id", offsetof(PJRT_Api, Memory_Id)},
  {"Memory_Kind", offsetof(PJRT_Api, Memory_Kind)},
  {"Memory_DebugString", offsetof(PJRT_Api, Memory_DebugString)},
  {"Memory_ToString", offsetof(PJRT_Api, Memory_ToString)},
  {"Memory_AddressableByDevices", offsetof(PJRT_Api, Memory_AddressableByDevices)},
  {"Executable_Destroy", offsetof(PJRT_Api, Executable_Destroy)},
  {"Executable_Name", offsetof(PJRT_Api, Executable_Name)},
  {"Executable_NumReplicas", offsetof(PJRT_Api, Executable_NumReplicas)},
  {"Executable_NumPartitions", offsetof(PJRT_Api, Executable_NumPartitions)},
  {"Executable_NumOutputs", offsetof(PJRT_Api, Executable_NumOutputs)},
  {"Executable_SizeOfGeneratedCodeInBytes", offsetof(PJRT_Api, Executable_SizeOfGeneratedCodeInBytes)},
  {"Executable_GetCostAnalysis", offsetof(PJRT_Api, Executable_GetCostAnalysis)},
  {"Executable_OutputMemoryKinds", offsetof(PJRT_Api, Executable_OutputMemoryKinds)},
  {"Executable_OptimizedProgram", offsetof(PJRT_Api, Executable_OptimizedProgram)},
  {"Executable_Serialize", offsetof(PJRT_Api, Executable_Serialize)},
  {"LoadedExecutable_Destroy", offsetof(PJRT_Api, LoadedExecutable_Destroy)},
  {"LoadedExecutable_GetExecutable", offsetof(PJRT_Api, LoadedExecutable_GetExecutable)},
  {"LoadedExecutable_AddressableDevices", offsetof(PJRT_Api, LoadedExecutable_AddressableDevices)},
  {"LoadedExecutable_Delete", offsetof(PJRT_Api, LoadedExecutable_Delete)},
  {"LoadedExecutable_IsDeleted", offsetof(PJRT_Api, LoadedExecutable_IsDeleted)},
  {"LoadedExecutable_Execute", offsetof(PJRT_Api, LoadedExecutable_Execute)},
  {"Executable_DeserializeAndLoad", offsetof(PJRT_Api, Executable_DeserializeAndLoad)},
  {"LoadedExecutable_Fingerprint", offsetof(PJRT_Api, LoadedExecutable_Fingerprint)},
  {"Buffer_Destroy", offsetof(PJRT_Api, Buffer_Destroy)},
  {"Buffer_ElementType", offsetof(PJRT_Api, Buffer_ElementType)},
  {"Buffer_Dimensions", offsetof(PJRT_Api, Buffer_Dimensions)},
  {"Buffer_UnpaddedDimensions", offsetof(PJRT_Api, Buffer_UnpaddedDimensions)},
  {"Buffer_DynamicDimensionIndices", offsetof(PJRT_Api, Buffer_DynamicDimensionIndices)},
  {"Buffer_GetMemoryLayout", offsetof(PJRT_Api, Buffer_GetMemoryLayout)},
  {"Buffer_OnDeviceSizeInBytes", offsetof(PJRT_Api, Buffer_OnDeviceSizeInBytes)},
  {"Buffer_Device", offsetof(PJRT_Api, Buffer_Device)},
  {"Buffer_Memory", offsetof(PJRT_Api, Buffer_Memory)},
  {"Buffer_Delete", offsetof(PJRT_Api, Buffer_Delete)},
  {"Buffer_IsDeleted", offsetof(PJRT_Api, Buffer_IsDeleted)},
  {"Buffer_CopyToDevice", offsetof(PJRT_Api, Buffer_CopyToDevice)},
  {"Buffer_ToHostBuffer", offsetof(PJRT_Api, Buffer_ToHostBuffer)},
  {"Buffer_IsOnCpu", offsetof(PJRT_Api, Buffer_IsOnCpu)},
  {"Buffer_ReadyEvent", offsetof(PJRT_Api, Buffer_ReadyEvent)},
  {"Buffer_UnsafePointer", offsetof(PJRT_Api, Buffer_UnsafePointer)},
  {"Buffer_IncreaseExternalReferenceCount", offsetof(PJRT_Api, Buffer_IncreaseExternalReferenceCount)},
  {"Buffer_DecreaseExternalReferenceCount", offsetof(PJRT_Api, Buffer_DecreaseExternalReferenceCount)},
  {"Buffer_OpaqueDeviceMemoryDataPointer", offsetof(PJRT_Api, Buffer_OpaqueDeviceMemoryDataPointer)},
  {"CopyToDeviceStream_Destroy", offsetof(PJRT_Api, CopyToDeviceStream_Destroy)},
  {"CopyToDeviceStream_AddChunk", offsetof(PJRT_Api, CopyToDeviceStream_AddChunk)},
  {"CopyToDeviceStream_TotalBytes", offsetof(PJRT_Api, CopyToDeviceStream_TotalBytes)},
  {"CopyToDeviceStream_GranuleSize", offsetof(PJRT_Api, CopyToDeviceStream_GranuleSize)},
  {"CopyToDeviceStream_CurrentBytes", offsetof(PJRT_Api, CopyToDeviceStream_CurrentBytes)},
  {"TopologyDescription_Create", offsetof(PJRT_Api, TopologyDescription_Create)},
  {"TopologyDescription_Destroy", offsetof(PJRT_Api, TopologyDescription_Destroy)},
  {"TopologyDescription_PlatformName", offsetof(PJRT_Api, TopologyDescription_PlatformName)},
  {"TopologyDescription_PlatformVersion", offsetof(PJRT_Api, TopologyDescription_PlatformVersion)},
  {"TopologyDescription_GetDeviceDescriptions", offsetof(PJRT_Api, TopologyDescription_GetDeviceDescriptions)},
  {"TopologyDescription_Serialize", offsetof(PJRT_Api, TopologyDescription_Serialize)},
  {"TopologyDescription_Attributes", offsetof(PJRT_Api, TopologyDescription_Attributes)},
  {"Compile", offsetof(PJRT_Api, Compile)},
  {"Executable_OutputElementTypes", offsetof(PJRT_Api, Executable_OutputElementTypes)},
  {"Executable_OutputDimensions", offsetof(PJRT_Api, Executable_OutputDimensions)},
  {"Buffer_CopyToMemory", offsetof(PJRT_Api, Buffer_CopyToMemory)},
  {"Client_CreateViewOfDeviceBuffer", offsetof(PJRT_Api, Client_CreateViewOfDeviceBuffer)},
  {"Executable_Fingerprint", offsetof(PJRT_Api, Executable_Fingerprint)},
  {"Client_TopologyDescription", offsetof(PJRT_Api, Client_TopologyDescription)},
  {"Executable_GetCompiledMemoryStats", offsetof(PJRT_Api, Executable_GetCompiledMemoryStats)},
  {"Memory_Kind_Id", offsetof(PJRT_Api, Memory_Kind_Id)},
  {"ExecuteContext_Create", offsetof(PJRT_Api, ExecuteContext_Create)},
  {"ExecuteContext_Destroy", offsetof(PJRT_Api, ExecuteContext_Destroy)},
  {"Buffer_CopyRawToHost", offsetof(PJRT_Api, Buffer_CopyRawToHost)},
  {"AsyncHostToDeviceTransferManager_Destroy", offsetof(PJRT_Api, AsyncHostToDeviceTransferManager_Destroy)},
  {"AsyncHostToDeviceTransferManager_TransferData", offsetof(PJRT_Api, AsyncHostToDeviceTransferManager_TransferData)},
  {"Client_CreateBuffersForAsyncHostToDevice", offsetof(PJRT_Api, Client_CreateBuffersForAsyncHostToDevice)},
  {"AsyncHostToDeviceTransferManager_RetrieveBuffer", offsetof(PJRT_Api, AsyncHostToDeviceTransferManager_RetrieveBuffer)},
  {"AsyncHostToDeviceTransferManager_Device", offsetof(PJRT_Api, AsyncHostToDeviceTransferManager_Device)},
  {"AsyncHostToDeviceTransferManager_BufferCount", offsetof(PJRT_Api, AsyncHostToDeviceTransferManager_BufferCount)},
  {"AsyncHostToDeviceTransferManager_BufferSize", offsetof(PJRT_Api, AsyncHostToDeviceTransferManager_BufferSize)},
  {"AsyncHostToDeviceTransferManager_SetBufferError", offsetof(PJRT_Api, AsyncHostToDeviceTransferManager_SetBufferError)},
  {"AsyncHostToDeviceTransferManager_AddMetadata", offsetof(PJRT_Api, AsyncHostToDeviceTransferManager_AddMetadata)},
  {"Client_DmaMap", offsetof(PJRT_Api, Client_DmaMap)},
  {"Client_DmaUnmap", offsetof(PJRT_Api, Client_DmaUnmap)},
  {"Client_CreateUninitializedBuffer", offsetof(PJRT_Api, Client_CreateUninitializedBuffer)},
  {"Client_UpdateGlobalProcessInfo", offsetof(PJRT_Api, Client_UpdateGlobalProcessInfo)},
  {"TopologyDescription_Deserialize", offsetof(PJRT_Api, TopologyDescription_Deserialize)},
  {"Client_CreateAliasBuffer", offsetof(PJRT_Api, Client_CreateAliasBuffer)},
  {"Client_FulfillAliasBuffer", offsetof(PJRT_Api, Client_FulfillAliasBuffer)},
  {"LoadedExecutable_GetDeviceAssignment", offsetof(PJRT_Api, LoadedExecutable_GetDeviceAssignment)},
  {"Client_CreateErrorBuffer", offsetof(PJRT_Api, Client_CreateErrorBuffer)},
  {"AsyncHostToDeviceTransferManager_TransferLiteral", offsetof(PJRT_Api, AsyncHostToDeviceTransferManager_TransferLiteral)},
  {"Buffer_CopyRawToHostFuture", offsetof(PJRT_Api, Buffer_CopyRawToHostFuture)},
  {"Device_PoisonExecution", offsetof(PJRT_Api, Device_PoisonExecution)},
  {"Device_CreateAsyncTrackingEvent", offsetof(PJRT_Api, Device_CreateAsyncTrackingEvent)},
  {"AsyncTrackingEvent_Destroy", offsetof(PJRT_Api, AsyncTrackingEvent_Destroy)},
  {"Executable_GetCompileOptions", offsetof(PJRT_Api, Executable_GetCompileOptions)},
  {"Buffer_DonateWithControlDependency", offsetof(PJRT_Api, Buffer_DonateWithControlDependency)},
  {"Event_Create", offsetof(PJRT_Api, Event_Create)},
  {"Event_Set", offsetof(PJRT_Api, Event_Set)},
  {"Device_GetAttributes", offsetof(PJRT_Api, Device_GetAttributes)},
  {"Client_Load", offsetof(PJRT_Api, Client_Load)},
  {"LoadedExecutable_AddressableDeviceLogicalIds", offsetof(PJRT_Api, LoadedExecutable_AddressableDeviceLogicalIds)},
  {"Buffer_Bitcast", offsetof(PJRT_Api, Buffer_Bitcast)},
  {"Error_ForEachPayload", offsetof(PJRT_Api, Error_ForEachPayload)},
  {"TopologyDescription_Fingerprint", offsetof(PJRT_Api, TopologyDescription_Fingerprint)},
  {"Executable_ParameterMemoryKinds", offsetof(PJRT_Api, Executable_ParameterMemoryKinds)},
  {"Device_ClearMemoryStats", offsetof(PJRT_Api, Device_ClearMemoryStats)},
  {"TopologyDescription_MakeCanonicalShapeForMemorySpace", offsetof(PJRT_Api, TopologyDescription_MakeCanonicalShapeForMemorySpace)},
  {"TopologyDescription_GetMemorySpaceKindIds", offsetof(PJRT_Api, TopologyDescription_GetMemorySpaceKindIds)}
};
enum { SLOT_COUNT = sizeof SLOTS / sizeof *SLOTS };
#endif
