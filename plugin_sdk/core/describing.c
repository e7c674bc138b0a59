/* Reads Bridge's description of a new client: its names, memories and devices. */
#include "core.h"

/* Returns the client's items at the indices in a sequence; NULL with an exception on failure. */
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

static int read_memory(PJRT_Client *client, PJRT_Memory *memory, PyObject *tuple) {
  PyObject *object, *kind, *debug_string, *string;
  if (!PyArg_ParseTuple(tuple, "OiiOOO", &object, &memory->id, &memory->kind_id, &kind,
                        &debug_string, &string))
    return -1;
  memory->object = Py_NewRef(object);
  return arena_text(&client->arena, kind, &memory->kind) ||
         arena_text(&client->arena, debug_string, &memory->debug_string) ||
         arena_text(&client->arena, string, &memory->string);
}

int read_description(Arena *arena, PJRT_DeviceDescription *description, PyObject *tuple) {
  PyObject *kind, *debug_string, *string, *attributes;
  if (!PyArg_ParseTuple(tuple, "iiOOOO", &description->id, &description->process_index, &kind,
                        &debug_string, &string, &attributes))
    return -1;
  return arena_text(arena, kind, &description->kind) ||
         arena_text(arena, debug_string, &description->debug_string) ||
         arena_text(arena, string, &description->string) ||
         arena_named_values(arena, attributes, &description->attributes,
                            &description->num_attributes);
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
  PyObject *object, *described, *memories;
  int is_addressable;
  Py_ssize_t first;
  if (!PyArg_ParseTuple(tuple, "OOipOn", &object, &described, &device->local_hardware_id,
                        &is_addressable, &memories, &first))
    return -1;
  device->object = Py_NewRef(object);
  device->client = client;
  device->is_addressable = (uint8_t)is_addressable;
  if (read_description(&client->arena, &device->description, described))
    return -1;
  device->memories = (PJRT_Memory **)select_items(client, memories, (void *const *)client->memories,
                                                  client->num_memories, &device->num_memories);
  if (device->memories == NULL)
    return -1;
  if (first < 0 || (size_t)first >= device->num_memories) {
    PyErr_Format(PyExc_ValueError, "device %d has no default memory", device->description.id);
    return -1;
  }
  device->default_memory = device->memories[first];
  return describe_memories(client, device);
}

/* Allocates handles for a list of descriptions; NULL with an exception on failure. */
static void **allocate_handles(PJRT_Client *client, PyObject *list, size_t size, size_t *count) {
  Py_ssize_t number = PyList_Size(list);
  void **handles = number < 0 ? NULL
                              : arena_allocate(&client->arena, (size_t)number * sizeof *handles);
  for (Py_ssize_t i = 0; handles != NULL && i < number; i++)
    if ((handles[i] = arena_allocate(&client->arena, size)) == NULL)
      return NULL;
  *count = handles == NULL ? 0 : (size_t)number;
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

/* Bridge numbers the kinds from 0, in the order of their first memories. */
static int list_kinds(PJRT_Client *client) {
  PJRT_TopologyDescription *topology = &client->topology;
  topology->memory_kinds = arena_allocate(&client->arena, client->num_memories * sizeof(int));
  for (size_t i = 0; topology->memory_kinds != NULL && i < client->num_memories; i++)
    if ((size_t)client->memories[i]->kind_id == topology->num_memory_kinds)
      topology->memory_kinds[topology->num_memory_kinds++] = client->memories[i]->kind_id;
  return topology->memory_kinds == NULL ? -1 : 0;
}

static int read_devices(PJRT_Client *client, PyObject *list) {
  client->devices = (PJRT_Device **)allocate_handles(client, list, sizeof(PJRT_Device),
                                                     &client->num_devices);
  size_t count = client->num_devices;
  client->addressable_devices = arena_allocate(&client->arena, count * sizeof(PJRT_Device *));
  client->topology.devices = arena_allocate(&client->arena, count * sizeof(void *));
  client->topology.num_devices = count;
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
  int takes_handlers;
  if (!PyArg_ParseTuple(tuple, "OOOi(ppppppp)OOOO", &object, &name, &version,
                        &client->process_index, &client->is_asynchronous, &client->donates,
                        &client->has_processes, &client->is_on_host, &client->takes_views,
                        &client->takes_layouts, &takes_handlers, &memories, &devices, &links,
                        &attributes))
    return -1;
  client->table->refuses_handlers = !takes_handlers;
  client->object = Py_NewRef(object);
  client->topology.client = client;
  client->topology.table = client->table;
  client->topology.object = client->object;
  return arena_text(&client->arena, name, &client->topology.platform_name) ||
                 arena_text(&client->arena, version, &client->topology.platform_version) ||
                 read_memories(client, memories) || list_kinds(client) ||
                 read_devices(client, devices) ||
                 read_links(client, links) ||
                 arena_named_values(&client->arena, attributes, &client->topology.attributes,
                                    &client->topology.num_attributes)
             ? -1
             : 0;
}
