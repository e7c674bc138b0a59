/* The functions of PJRT_Executable and PJRT_LoadedExecutable that use properties kept in C. */
#include "core.h"

static PJRT_Error *loaded_destroy(struct PJRT_LoadedExecutable_Destroy_Args *args) {
  if (args->executable == NULL)
    return NULL;
  atomic_fetch_sub(&live_handles[LIVE_LOADED], 1);
  destroy_loaded(args->executable);
  return NULL;
}

static PJRT_Error *loaded_get_executable(struct PJRT_LoadedExecutable_GetExecutable_Args *args) {
  args->executable = args->loaded_executable->executable;
  atomic_fetch_add(&args->executable->references, 1);
  atomic_fetch_add(&live_handles[LIVE_EXECUTABLES], 1);
  return NULL;
}

static PJRT_Error *loaded_devices(struct PJRT_LoadedExecutable_AddressableDevices_Args *args) {
  args->addressable_devices = args->executable->devices;
  args->num_addressable_devices = args->executable->num_devices;
  return NULL;
}

static PJRT_Error *
loaded_logical_ids(struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args *args) {
  args->addressable_device_logical_ids = args->executable->logical_ids;
  args->num_addressable_device_logical_ids = args->executable->num_devices;
  return NULL;
}

static void keep_assignment(PJRT_DeviceAssignmentSerialized *assignment) { (void)assignment; }

static PJRT_Error *loaded_assignment(struct PJRT_LoadedExecutable_GetDeviceAssignment_Args *args) {
  Text *assignment = &args->executable->executable->device_assignment;
  args->serialized_bytes = assignment->data;
  args->serialized_bytes_size = assignment->size;
  args->serialized_device_assignment = (PJRT_DeviceAssignmentSerialized *)assignment;
  args->serialized_device_assignment_deleter = keep_assignment;
  return NULL;
}

static PJRT_Error *loaded_delete(struct PJRT_LoadedExecutable_Delete_Args *args) {
  Entry entry;
  args->executable->is_deleted = 1;
  if (!try_python(&entry))
    return NULL;
  PyObject *answer = PyObject_CallMethod(args->executable->object, "delete", NULL);
  if (answer == NULL)
    log_exception("LoadedExecutable_Delete"); /* hosts treat an error as fatal */
  Py_XDECREF(answer);
  leave_python(&entry);
  return NULL;
}

static PJRT_Error *loaded_is_deleted(struct PJRT_LoadedExecutable_IsDeleted_Args *args) {
  args->is_deleted = (uint8_t)args->executable->is_deleted;
  return NULL;
}

static PJRT_Error *executable_destroy(struct PJRT_Executable_Destroy_Args *args) {
  if (args->executable == NULL)
    return NULL;
  atomic_fetch_sub(&live_handles[LIVE_EXECUTABLES], 1);
  executable_release(args->executable);
  return NULL;
}

static PJRT_Error *executable_name(struct PJRT_Executable_Name_Args *args) {
  args->executable_name = args->executable->name.data;
  args->executable_name_size = args->executable->name.size;
  return NULL;
}

static PJRT_Error *executable_replicas(struct PJRT_Executable_NumReplicas_Args *args) {
  args->num_replicas = args->executable->num_replicas;
  return NULL;
}

static PJRT_Error *executable_partitions(struct PJRT_Executable_NumPartitions_Args *args) {
  args->num_partitions = args->executable->num_partitions;
  return NULL;
}

static PJRT_Error *executable_outputs(struct PJRT_Executable_NumOutputs_Args *args) {
  args->num_outputs = args->executable->num_outputs;
  return NULL;
}

static PJRT_Error *executable_memory_kinds(struct PJRT_Executable_OutputMemoryKinds_Args *args) {
  const Texts *kinds = &args->executable->output_memory_kinds;
  if (kinds->data == NULL)
    return unimplemented("Executable_OutputMemoryKinds");
  args->num_outputs = kinds->count;
  args->memory_kinds = kinds->data;
  args->memory_kind_sizes = kinds->sizes;
  return NULL;
}

static PJRT_Error *
executable_parameter_kinds(struct PJRT_Executable_ParameterMemoryKinds_Args *args) {
  const Texts *kinds = &args->executable->parameter_memory_kinds;
  if (kinds->data == NULL)
    return unimplemented("Executable_ParameterMemoryKinds");
  args->num_parameters = kinds->count;
  args->memory_kinds = kinds->data;
  args->memory_kind_sizes = kinds->sizes;
  return NULL;
}

static PJRT_Error *executable_types(struct PJRT_Executable_OutputElementTypes_Args *args) {
  args->output_types = args->executable->output_types;
  args->num_output_types = args->executable->num_outputs;
  return NULL;
}

static PJRT_Error *executable_dimensions(struct PJRT_Executable_OutputDimensions_Args *args) {
  args->num_outputs = args->executable->num_outputs;
  args->dims = args->executable->output_dims;
  args->dim_sizes = args->executable->output_dim_sizes;
  return NULL;
}

static void keep_options(PJRT_SerializedCompileOptions *options) { (void)options; }

static PJRT_Error *executable_options(struct PJRT_Executable_GetCompileOptions_Args *args) {
  Text *options = &args->executable->compile_options;
  args->serialized_bytes = options->data;
  args->serialized_bytes_size = options->size;
  args->serialized_compile_options = (PJRT_SerializedCompileOptions *)options;
  args->serialized_compile_options_deleter = keep_options;
  return NULL;
}

void fill_executables(PJRT_Api *api) {
  api->LoadedExecutable_Destroy = loaded_destroy;
  api->LoadedExecutable_GetExecutable = loaded_get_executable;
  api->LoadedExecutable_AddressableDevices = loaded_devices;
  api->LoadedExecutable_AddressableDeviceLogicalIds = loaded_logical_ids;
  api->LoadedExecutable_GetDeviceAssignment = loaded_assignment;
  api->LoadedExecutable_Delete = loaded_delete;
  api->LoadedExecutable_IsDeleted = loaded_is_deleted;
  api->Executable_Destroy = executable_destroy;
  api->Executable_Name = executable_name;
  api->Executable_NumReplicas = executable_replicas;
  api->Executable_NumPartitions = executable_partitions;
  api->Executable_NumOutputs = executable_outputs;
  api->Executable_OutputMemoryKinds = executable_memory_kinds;
  api->Executable_ParameterMemoryKinds = executable_parameter_kinds;
  api->Executable_OutputElementTypes = executable_types;
  api->Executable_OutputDimensions = executable_dimensions;
  api->Executable_GetCompileOptions = executable_options;
}
