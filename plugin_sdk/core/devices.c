/* PJRT_DeviceDescription, PJRT_Device and PJRT_Memory. C answers from the attributes that it keeps.
   */
#include "core.h"

/* Defines a function that copies a member of a handle to a field of the arguments. */
#define ANSWER(function, name, field, value)                                                       \
  static PJRT_Error *function(struct PJRT_##name##_Args *args) {                                   \
    args->field = value;                                                                           \
    return NULL;                                                                                   \
  }
/* The same for an array or a string and its size. */
#define ANSWER_MANY(function, name, field, value, count_field, count)                              \
  static PJRT_Error *function(struct PJRT_##name##_Args *args) {                                   \
    args->field = value;                                                                           \
    args->count_field = count;                                                                     \
    return NULL;                                                                                   \
  }
#define ANSWER_TEXT(function, name, field, text)                                                   \
  ANSWER_MANY(function, name, field, (text).data, field##_size, (text).size)

ANSWER(description_id, DeviceDescription_Id, id, args->device_description->id)
ANSWER(description_process, DeviceDescription_ProcessIndex, process_index,
       args->device_description->process_index)
ANSWER_MANY(description_attributes, DeviceDescription_Attributes, attributes,
            args->device_description->attributes, num_attributes,
            args->device_description->num_attributes)
ANSWER_TEXT(description_kind, DeviceDescription_Kind, device_kind, args->device_description->kind)
ANSWER_TEXT(description_debug, DeviceDescription_DebugString, debug_string,
            args->device_description->debug_string)
ANSWER_TEXT(description_string, DeviceDescription_ToString, to_string,
            args->device_description->string)

ANSWER(device_description, Device_GetDescription, device_description, &args->device->description)
ANSWER(device_is_addressable, Device_IsAddressable, is_addressable, args->device->is_addressable)
ANSWER(device_hardware_id, Device_LocalHardwareId, local_hardware_id,
       args->device->local_hardware_id)
ANSWER_MANY(device_memories, Device_AddressableMemories, memories, args->device->memories,
            num_memories, args->device->num_memories)
ANSWER(device_default_memory, Device_DefaultMemory, memory, args->device->default_memory)

ANSWER(memory_id, Memory_Id, id, args->memory->id)
ANSWER(memory_kind_id, Memory_Kind_Id, kind_id, args->memory->kind_id)
ANSWER_TEXT(memory_kind, Memory_Kind, kind, args->memory->kind)
ANSWER_TEXT(memory_debug, Memory_DebugString, debug_string, args->memory->debug_string)
ANSWER_TEXT(memory_string, Memory_ToString, to_string, args->memory->string)
ANSWER_MANY(memory_devices, Memory_AddressableByDevices, devices, args->memory->devices,
            num_devices, args->memory->num_devices)

static void keep_attributes(PJRT_Device_Attributes *attributes) { (void)attributes; }

/* The attributes live as long as the device, so the deleter that hosts call does nothing. */
static PJRT_Error *device_attributes(struct PJRT_Device_GetAttributes_Args *args) {
  args->attributes = args->device->description.attributes;
  args->num_attributes = args->device->description.num_attributes;
  args->device_attributes = NULL;
  args->attributes_deleter = keep_attributes;
  return NULL;
}

/* Finds a figure in a mapping; returns whether it exists and is a number. */
static uint8_t find_figure(PyObject *mapping, const char *name, int64_t *figure) {
  PyObject *value = PyMapping_GetItemString(mapping, name);
  *figure = value == NULL ? 0 : PyLong_AsLongLong(value);
  Py_XDECREF(value);
  int failed = PyErr_Occurred() != NULL;
  PyErr_Clear();
  return !failed;
}

/* Writes a figure if the backend states it, and if the host's struct has room for it. */
#define WRITE_STATISTIC(name)                                                                      \
  if (error == NULL && HAS_FIELD(args, name##_is_set))                                             \
    args->name##_is_set = find_figure(statistics, #name, &args->name);

static PJRT_Error *device_memory_stats(struct PJRT_Device_MemoryStats_Args *args) {
  Entry entry;
  PJRT_Error *error = enter_python(&entry, "Device_MemoryStats");
  if (error != NULL)
    return error;
  PyObject *statistics = PyObject_CallMethod(args->device->object, "memory_stats", NULL);
  if (statistics == NULL)
    error = take_exception("Device_MemoryStats");
  else if (!find_figure(statistics, "bytes_in_use", &args->bytes_in_use))
    error = format_error(PJRT_Error_Code_UNIMPLEMENTED,
                         "PJRT_Device_MemoryStats: the backend does not state bytes_in_use");
  WRITE_STATISTIC(peak_bytes_in_use)
  WRITE_STATISTIC(num_allocs)
  WRITE_STATISTIC(largest_alloc_size)
  WRITE_STATISTIC(bytes_limit)
  WRITE_STATISTIC(bytes_reserved)
  WRITE_STATISTIC(peak_bytes_reserved)
  WRITE_STATISTIC(bytes_reservable_limit)
  WRITE_STATISTIC(largest_free_block_bytes)
  WRITE_STATISTIC(pool_bytes)
  WRITE_STATISTIC(peak_pool_bytes)
  WRITE_STATISTIC(peak_allocated_bytes)
  Py_XDECREF(statistics);
  leave_python(&entry);
  return error;
}

/* An accepted launch runs at once: none is pending that could be made to fail. */
static PJRT_Error *poison_execution(struct PJRT_Device_PoisonExecution_Args *args) {
  args->poisoned = 0;
  return NULL;
}

/* Marks host work for tools that show a device's waits; not read here. */
struct PJRT_AsyncTrackingEvent {
  const void *functions;
};

static PJRT_Error *create_tracking_event(struct PJRT_Device_CreateAsyncTrackingEvent_Args *args) {
  args->event = calloc(1, sizeof *args->event);
  if (args->event == NULL)
    return no_host_memory();
  atomic_fetch_add(&live_handles[LIVE_TRACKING_EVENTS], 1);
  return NULL;
}

static PJRT_Error *destroy_tracking_event(struct PJRT_AsyncTrackingEvent_Destroy_Args *args) {
  if (args->event != NULL)
    atomic_fetch_sub(&live_handles[LIVE_TRACKING_EVENTS], 1);
  free(args->event);
  return NULL;
}

void fill_devices(PJRT_Api *api) {
  api->DeviceDescription_Id = description_id;
  api->DeviceDescription_ProcessIndex = description_process;
  api->DeviceDescription_Attributes = description_attributes;
  api->DeviceDescription_Kind = description_kind;
  api->DeviceDescription_DebugString = description_debug;
  api->DeviceDescription_ToString = description_string;
  api->Device_GetDescription = device_description;
  api->Device_IsAddressable = device_is_addressable;
  api->Device_LocalHardwareId = device_hardware_id;
  api->Device_AddressableMemories = device_memories;
  api->Device_DefaultMemory = device_default_memory;
  api->Device_GetAttributes = device_attributes;
  api->Device_MemoryStats = device_memory_stats;
  api->Device_PoisonExecution = poison_execution;
  api->Device_CreateAsyncTrackingEvent = create_tracking_event;
  api->AsyncTrackingEvent_Destroy = destroy_tracking_event;
  api->Memory_Id = memory_id;
  api->Memory_Kind_Id = memory_kind_id;
  api->Memory_Kind = memory_kind;
  api->Memory_DebugString = memory_debug;
  api->Memory_ToString = memory_string;
  api->Memory_AddressableByDevices = memory_devices;
}
