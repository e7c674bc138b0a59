/* Properties of PJRT_Buffer. Needs no Python: hosts query them while they hold locks. */
#include "core.h"

#include <string.h>

static PJRT_Error *element_type(struct PJRT_Buffer_ElementType_Args *args) {
  args->type = args->buffer->type;
  return NULL;
}

static PJRT_Error *dimensions(struct PJRT_Buffer_Dimensions_Args *args) {
  args->dims = args->buffer->dims;
  args->num_dims = args->buffer->num_dims;
  return NULL;
}

static PJRT_Error *unpadded_dimensions(struct PJRT_Buffer_UnpaddedDimensions_Args *args) {
  args->unpadded_dims = args->buffer->dims;
  args->num_dims = args->buffer->num_dims;
  return NULL;
}

static PJRT_Error *dynamic_dimensions(struct PJRT_Buffer_DynamicDimensionIndices_Args *args) {
  args->dynamic_dim_indices = NULL;
  args->num_dynamic_dims = 0;
  return NULL;
}

static PJRT_Error *memory_layout(struct PJRT_Buffer_GetMemoryLayout_Args *args) {
  PJRT_Buffer *buffer = args->buffer;
  memset(&args->layout, 0, sizeof args->layout);
  args->layout.struct_size = sizeof args->layout;
  args->layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  args->layout.tiled.struct_size = sizeof args->layout.tiled;
  args->layout.tiled.minor_to_major = buffer->dims + buffer->num_dims;
  args->layout.tiled.minor_to_major_size = buffer->num_dims;
  return NULL;
}

static PJRT_Error *size_in_bytes(struct PJRT_Buffer_OnDeviceSizeInBytes_Args *args) {
  args->on_device_size_in_bytes = args->buffer->size;
  return NULL;
}

static PJRT_Error *device(struct PJRT_Buffer_Device_Args *args) {
  args->device = args->buffer->device;
  return NULL;
}

static PJRT_Error *memory(struct PJRT_Buffer_Memory_Args *args) {
  args->memory = args->buffer->memory;
  return NULL;
}

static PJRT_Error *is_deleted(struct PJRT_Buffer_IsDeleted_Args *args) {
  args->is_deleted = (uint8_t)args->buffer->is_deleted;
  return NULL;
}

int has_part_bytes(PJRT_Buffer_Type type) {
  switch (type) {
  case PJRT_Buffer_Type_S1:
  case PJRT_Buffer_Type_U1:
  case PJRT_Buffer_Type_S2:
  case PJRT_Buffer_Type_U2:
  case PJRT_Buffer_Type_S4:
  case PJRT_Buffer_Type_U4:
  case PJRT_Buffer_Type_F4E2M1FN:
    return 1;
  default:
    return 0;
  }
}

/* If true, hosts read through PJRT_Buffer_UnsafePointer, at least one byte per element. */
static PJRT_Error *is_on_cpu(struct PJRT_Buffer_IsOnCpu_Args *args) {
  int readable = args->buffer->client->is_on_host && !has_part_bytes(args->buffer->type);
  args->is_on_cpu = (uint8_t)readable;
  return NULL;
}

static PJRT_Error *ready_event(struct PJRT_Buffer_ReadyEvent_Args *args) {
  static const char deleted[] = "the buffer was deleted or donated";
  Future *future =
      args->buffer->is_deleted
          ? future_failed(PJRT_Error_Code_INVALID_ARGUMENT, deleted, sizeof deleted - 1)
          : future_share(args->buffer->ready);
  args->event = make_event(future);
  return args->event ? NULL : no_host_memory();
}

void fill_buffer_facts(PJRT_Api *api) {
  api->Buffer_ElementType = element_type;
  api->Buffer_Dimensions = dimensions;
  api->Buffer_UnpaddedDimensions = unpadded_dimensions;
  api->Buffer_DynamicDimensionIndices = dynamic_dimensions;
  api->Buffer_GetMemoryLayout = memory_layout;
  api->Buffer_OnDeviceSizeInBytes = size_in_bytes;
  api->Buffer_Device = device;
  api->Buffer_Memory = memory;
  api->Buffer_IsDeleted = is_deleted;
  api->Buffer_IsOnCpu = is_on_cpu;
  api->Buffer_ReadyEvent = ready_event;
}
