/* Devices, their descriptions and memories: read once, when the client is made. */
#include "core.h"

#include <string.h>

/* Returns an array of what the client has, by the indices in a sequence; NULL with an exception. */
static void **select_items(PJRT_Client *client, PyObject *indices, void *const *items, size_t count,
                           size_t *selected) {
  Py_ssize_t size = PySequence_Size(indices);
  void **found = size < 0 ? NULL : arena_allocate(&client->arena, (size_t)size * sizeof *found);
  for (Py_ssize_t i = 0; found != NULL && i < size; i++) {
    PyObject *index = PySequence_GetItem(indices, i);
    size_t at = index == NULL ? count : PyLong_AsSize_t(index);
    Py_XDECREF(index);
    if (PyErr_Occurred())
      return NULL;
    if (at >= count) {
      PyErr_Format(PyExc_IndexError, "%zd is not an index of %zd items", at, count);
      return NULL;
    }
    found[i] = items[at];
  }
  *selected = (size_t)size;
  return found;
}

static int read_texts(Arena *arena, PyObject *kind, PyObject *debug_string, PyObject *string,
                      Text *texts[3]) {
  return arena_text(arena, kind, texts[0]) || arena_text(arena, debug_string, texts[1]) ||
         arena_text(arena, string, texts[2]);
}

static int read_memory(PJRT_Client *client, PJRT_Memory *memory, PyObject *tuple) {
  PyObject *object, *kind, *debug_string, *string;
  if (!PyArg_ParseTuple(tuple, "OiiOOO", &object, &memory->id, &memory->kind_id, &kind,
                        &debug_string, &string))
    return -1;
  Py_INCREF(object);
  memory->object = object;
  Text *texts[] = {&memory->kind, &memory->debug_string, &memory->string};
  return read_texts(&client->arena, kind, debug_string, string, texts);
}

static int describe_memories(PJRT_Client *client, PJRT_Device *device) {
  PJRT_DeviceDescription *description = &device->description;
  description->num_memories = device->num_memories;
  description->memories =
      arena_allocate(&client->arena, device->num_memories * sizeof *description->memories);
  for (size_t i = 0; description->memories != NULL && i < device->num_memories; i++) {
    PJRT_MemoryDescription *made = arena_allocate(&client->arena, sizeof *made);
    if (made == NULL)
      return -1;
    made->kind = device->memories[i]->kind;
    made->kind_id = device->memories[i]->kind_id;
    description->memories[i] = made;
    if (device->memories[i] == device->default_memory)
      description->default_memory = i;
  }
  return description->memories == NULL ? -1 : 0;
}

static int read_device(PJRT_Client *client, PJRT_Device *device, PyObject *tuple) {
  PJRT_DeviceDescription *description = &device->description;
  PyObject *object, *kind, *debug_string, *string, *attributes, *memories;
  int is_addressable;
  Py_ssize_t first;
  if (!PyArg_ParseTuple(tuple, "OiiipOOOOOn", &object, &description->id,
                        &description->process_index, &device->local_hardware_id, &is_addressable,
                        &kind, &debug_string, &string, &attributes, &memories, &first))
    return -1;
  Py_INCREF(object);
  device->object = object;
  device->client = client;
  device->is_addressable = (uint8_t)is_addressable;
  Text *texts[] = {&description->kind, &description->debug_string, &description->string};
  if (read_texts(&client->arena, kind, debug_string, string, texts) ||
      arena_named_values(&client->arena, attributes, &description->attributes,
                         &description->num_attributes))
    return -1;
  device->memories = (PJRT_Memory **)select_items(client, memories, (void *const *)client->memories,
                                                  client->num_memories, &device->num_memories);
  if (device->memories == NULL)
    return -1;
  if (first < 0 || (size_t)first >= device->num_memories) {
    PyErr_Format(PyExc_ValueError, "device %d has no default memory", description->id);
    return -1;
  }
  device->default_memory = device->memories[first];
  return describe_memories(client, device);
}

/* Allocates handles for a list of descriptions; NULL with an exception. */
static void **allocate_handles(PJRT_Client *client, PyObject *list, size_t size, size_t *count) {
  Py_ssize_t number = PyList_Size(list);
  void **handles = number < 0 ? NULL
                              : arena_allocate(&client->arena, (size_t)number * sizeof *handles);
  *count = 0;
  for (Py_ssize_t i = 0; handles != NULL && i < number; i++) {
    handles[i] = arena_allocate(&client->arena, size);
    if (handles[i] == NULL)
      return NULL;
    *count += 1;
  }
  return handles;
}

static int read_memories(PJRT_Client *client, PyObject *list) {
  client->memories = (PJRT_Memory **)allocate_handles(client, list, sizeof(PJRT_Memory),
                                                      &client->num_memories);
  for (size_t i = 0; client->memories != NULL && i < client->num_memories; i++)
    if (read_memory(client, client->memories[i], PyList_GetItem(list, (Py_ssize_t)i)))
      return -1;
  return client->memories == NULL ? -1 : 0;
}

static int read_devices(PJRT_Client *client, PyObject *list) {
  client->devices = (PJRT_Device **)allocate_handles(client, list, sizeof(PJRT_Device),
                                                     &client->num_devices);
  size_t count = client->num_devices;
  client->addressable_devices = arena_allocate(&client->arena, count * sizeof(PJRT_Device *));
  client->topology.devices = arena_allocate(&client->arena, count * sizeof(void *));
  if (!client->devices || !client->addressable_devices || !client->topology.devices)
    return -1;
  for (size_t i = 0; i < count; i++) {
    PJRT_Device *device = client->devices[i];
    if (read_device(client, device, PyList_GetItem(list, (Py_ssize_t)i)))
      return -1;
    client->topology.devices[i] = &device->description;
    if (device->is_addressable)
      client->addressable_devices[client->num_addressable_devices++] = device;
  }
  return 0;
}

static int read_links(PJRT_Client *client, PyObject *links) {
  for (size_t i = 0; i < client->num_memories; i++) {
    PJRT_Memory *memory = client->memories[i];
    PyObject *devices = PyList_GetItem(links, (Py_ssize_t)i);
    if (devices == NULL)
      return -1;
    memory->devices = (PJRT_Device **)select_items(client, devices, (void *const *)client->devices,
                                                   client->num_devices, &memory->num_devices);
    if (memory->devices == NULL)
      return -1;
  }
  return 0;
}

int client_describe(PJRT_Client *client, PyObject *tuple) {
  PyObject *object, *name, *version, *memories, *devices, *links, *attributes;
  if (!PyArg_ParseTuple(tuple, "OOOipppOOOO", &object, &name, &version, &client->process_index,
                        &client->is_asynchronous, &client->donates, &client->has_processes,
                        &memories, &devices, &links, &attributes))
    return -1;
  Py_INCREF(object);
  client->object = object;
  client->topology.client = client;
  return arena_text(&client->arena, name, &client->platform_name) ||
                 arena_text(&client->arena, version, &client->platform_version) ||
                 read_memories(client, memories) || read_devices(client, devices) ||
                 read_links(client, links) ||
                 arena_named_values(&client->arena, attributes, &client->topology.attributes,
                                    &client->topology.num_attributes)
             ? -1
             : 0;
}

/* --- the functions of the table ---------------------------------------------------------------------- */

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

/* The attributes live as long as the device; a host frees them all the same. */
static PJRT_Error *device_attributes(struct PJRT_Device_GetAttributes_Args *args) {
  args->attributes = args->device->description.attributes;
  args->num_attributes = args->device->description.num_attributes;
  args->device_attributes = NULL;
  args->attributes_deleter = keep_attributes;
  return NULL;
}

/* Writes a figure if the backend states it, and if the host's struct has room for it. */
#define WRITE_STATISTIC(name)                                                                      \
  if (error == NULL && HAS_FIELD(args, name##_is_set)) {                                           \
    PyObject *value = PyMapping_GetItemString(statistics, #name);                                  \
    args->name##_is_set = value != NULL;                                                           \
    args->name = value == NULL ? 0 : PyLong_AsLongLong(value);                                     \
    Py_XDECREF(value);                                                                             \
    PyErr_Clear();                                                                                 \
  }

static PJRT_Error *device_memory_stats(struct PJRT_Device_MemoryStats_Args *args) {
  Entry entry;
  PJRT_Error *error = enter_python(&entry, "Device_MemoryStats");
  if (error != NULL)
    return error;
  PyObject *statistics = PyObject_CallMethod(args->device->object, "memory_stats", NULL), *used;
  used = statistics == NULL ? NULL : PyMapping_GetItemString(statistics, "bytes_in_use");
  args->bytes_in_use = used == NULL ? 0 : PyLong_AsLongLong(used);
  Py_XDECREF(used);
  if (PyErr_Occurred())
    error = take_exception("Device_MemoryStats");
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
  api->Memory_Id = memory_id;
  api->Memory_Kind_Id = memory_kind_id;
  api->Memory_Kind = memory_kind;
  api->Memory_DebugString = memory_debug;
  api->Memory_ToString = memory_string;
  api->Memory_AddressableByDevices = memory_devices;
}
