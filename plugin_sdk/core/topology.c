/* PJRT_TopologyDescription: the devices of a client, or absent devices for which programs are
   compiled. */
#include "core.h"

#include <string.h>

PJRT_TopologyDescription *topology_share(PJRT_TopologyDescription *topology) {
  if (topology->client != NULL)
    client_share(topology->client);
  else
    atomic_fetch_add(&topology->references, 1);
  return topology;
}

void topology_release(PJRT_TopologyDescription *topology) {
  if (topology->client != NULL) {
    client_release(topology->client);
    return;
  }
  if (atomic_fetch_sub(&topology->references, 1) != 1)
    return;
  release_object(topology->object);
  arena_free(&topology->arena);
  free(topology);
}

static int read_devices(PJRT_TopologyDescription *topology, PyObject *list) {
  Py_ssize_t count = PyList_Size(list);
  if (count < 0)
    return -1;
  topology->devices = arena_allocate(&topology->arena, (size_t)count * sizeof(void *));
  for (Py_ssize_t i = 0; topology->devices != NULL && i < count; i++) {
    PJRT_DeviceDescription *made = arena_allocate(&topology->arena, sizeof *made);
    if (made == NULL || read_description(&topology->arena, made, PyList_GetItem(list, i)))
      return -1;
    topology->devices[i] = made;
  }
  topology->num_devices = (size_t)count;
  return topology->devices == NULL ? -1 : 0;
}

/* Returns a handle for a description from Bridge; NULL with an exception on failure. */
static PJRT_TopologyDescription *make_topology(Table *table, PyObject *description) {
  PyObject *object, *name, *version, *devices, *attributes;
  if (!PyArg_ParseTuple(description, "OOOOO", &object, &name, &version, &devices, &attributes))
    return NULL;
  PJRT_TopologyDescription *made = calloc(1, sizeof *made);
  if (made == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  made->references = 1;
  made->table = table;
  made->object = Py_NewRef(object);
  if (arena_text(&made->arena, name, &made->platform_name) ||
      arena_text(&made->arena, version, &made->platform_version) || read_devices(made, devices) ||
      arena_named_values(&made->arena, attributes, &made->attributes, &made->num_attributes)) {
    topology_release(made);
    return NULL;
  }
  atomic_fetch_add(&live_handles[LIVE_TOPOLOGIES], 1);
  return made;
}

/* Needs no Python to refuse: hosts ask for each client that they start. */
static PJRT_Error *enter_for_topology(const Table *table, Entry *entry, const char *function) {
  if (!table->makes_topologies)
    return format_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "PJRT_%s: the exported plugin cannot compile for absent devices", function);
  return enter_python(entry, function);
}

PJRT_Error *topology_create(Table *table, struct PJRT_TopologyDescription_Create_Args *args) {
  Entry entry;
  PJRT_Error *error = enter_for_topology(table, &entry, "TopologyDescription_Create");
  if (error != NULL)
    return error;
  PyObject *options = read_named_values(args->create_options, args->num_options), *made = NULL;
  if (options != NULL)
    made = PyObject_CallMethod(table->bridge, "create_topology", "s#O",
                               args->topology_name == NULL ? "" : args->topology_name,
                               (Py_ssize_t)args->topology_name_size, options);
  args->topology = made == NULL ? NULL : make_topology(table, made);
  if (args->topology == NULL)
    error = take_exception("TopologyDescription_Create");
  Py_XDECREF(made);
  Py_XDECREF(options);
  leave_python(&entry);
  return error;
}

PJRT_Error *topology_read(Table *table, struct PJRT_TopologyDescription_Deserialize_Args *args) {
  Entry entry;
  PJRT_Error *error = enter_for_topology(table, &entry, "TopologyDescription_Deserialize");
  if (error != NULL)
    return error;
  PyObject *made = PyObject_CallMethod(
      table->bridge, "read_topology", "y#",
      args->serialized_topology == NULL ? "" : args->serialized_topology,
      (Py_ssize_t)args->serialized_topology_size);
  args->topology = made == NULL ? NULL : make_topology(table, made);
  if (args->topology == NULL)
    error = take_exception("TopologyDescription_Deserialize");
  Py_XDECREF(made);
  leave_python(&entry);
  return error;
}

/* The host destroys topologies that it created or deserialised; a client owns its own. */
static PJRT_Error *destroy(struct PJRT_TopologyDescription_Destroy_Args *args) {
  if (args->topology == NULL || args->topology->client != NULL)
    return NULL;
  atomic_fetch_sub(&live_handles[LIVE_TOPOLOGIES], 1);
  topology_release(args->topology);
  return NULL;
}

static void free_serialized(PJRT_SerializedTopology *serialized) {
  release_object((PyObject *)serialized);
}

static PJRT_Error *serialize(struct PJRT_TopologyDescription_Serialize_Args *args) {
  Entry entry;
  PJRT_Error *error = enter_python(&entry, "TopologyDescription_Serialize");
  if (error != NULL)
    return error;
  PyObject *content = PyObject_CallMethod(args->topology->table->bridge, "serialize_topology", "O",
                                          args->topology->object);
  char *data;
  Py_ssize_t size;
  if (content == NULL || PyBytes_AsStringAndSize(content, &data, &size)) {
    error = take_exception("TopologyDescription_Serialize");
    Py_XDECREF(content);
  } else {
    args->serialized_bytes = data;
    args->serialized_bytes_size = (size_t)size;
    args->serialized_topology = (PJRT_SerializedTopology *)content;
    args->serialized_topology_deleter = free_serialized;
  }
  leave_python(&entry);
  return error;
}

static PJRT_Error *fingerprint(struct PJRT_TopologyDescription_Fingerprint_Args *args) {
  Entry entry;
  PJRT_Error *error = enter_python(&entry, "TopologyDescription_Fingerprint");
  if (error != NULL)
    return error;
  PyObject *answer = PyObject_CallMethod(args->topology->table->bridge, "topology_fingerprint", "O",
                                         args->topology->object);
  args->fingerprint = answer == NULL ? 0 : PyLong_AsUnsignedLongLong(answer);
  if (PyErr_Occurred())
    error = take_exception("TopologyDescription_Fingerprint");
  Py_XDECREF(answer);
  leave_python(&entry);
  return error;
}

static void free_shape(const char *shape) { free((char *)shape); }

/* The canonical shape of an array is its row-major shape in every memory. */
static PJRT_Error *
canonical_shape(struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args *args) {
  static const char function[] = "TopologyDescription_MakeCanonicalShapeForMemorySpace";
  Shape shape = {args->element_type, args->dims, args->num_dims, NULL};
  size_t size;
  Entry entry;
  PJRT_Error *error = measure(&shape, function, &size);
  if (error != NULL || (error = require_row_major(args->layout, &shape, function)) != NULL ||
      (error = enter_python(&entry, function)) != NULL)
    return error;
  PyObject *proto = PyObject_CallMethod(args->topology->table->bridge, "shape_proto", "iN",
                                        shape.type, integer_tuple(shape.dims, shape.num_dims));
  char *data, *copy = NULL;
  Py_ssize_t bytes;
  if (proto != NULL && PyBytes_AsStringAndSize(proto, &data, &bytes) == 0) {
    copy = malloc((size_t)bytes);
    if (copy == NULL)
      PyErr_NoMemory();
  }
  if (copy == NULL) {
    error = take_exception(function);
  } else {
    args->serialized_shape = memcpy(copy, data, (size_t)bytes);
    args->serialized_shape_size = (size_t)bytes;
    args->serialized_shape_deleter = free_shape;
  }
  Py_XDECREF(proto);
  leave_python(&entry);
  return error;
}

static PJRT_Error *platform_name(struct PJRT_TopologyDescription_PlatformName_Args *args) {
  args->platform_name = args->topology->platform_name.data;
  args->platform_name_size = args->topology->platform_name.size;
  return NULL;
}

static PJRT_Error *platform_version(struct PJRT_TopologyDescription_PlatformVersion_Args *args) {
  args->platform_version = args->topology->platform_version.data;
  args->platform_version_size = args->topology->platform_version.size;
  return NULL;
}

static PJRT_Error *devices(struct PJRT_TopologyDescription_GetDeviceDescriptions_Args *args) {
  args->descriptions = args->topology->devices;
  args->num_descriptions = args->topology->num_devices;
  return NULL;
}

static PJRT_Error *attributes(struct PJRT_TopologyDescription_Attributes_Args *args) {
  args->attributes = args->topology->attributes;
  args->num_attributes = args->topology->num_attributes;
  return NULL;
}

static PJRT_Error *
memory_kinds(struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args *args) {
  if (args->topology->memory_kinds == NULL)
    return format_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "PJRT_TopologyDescription_GetMemorySpaceKindIds: the memories of devices "
                        "that may not be there are not known");
  args->memory_space_kind_ids = args->topology->memory_kinds;
  args->num_memory_space_kind_ids = args->topology->num_memory_kinds;
  return NULL;
}

void fill_topology(PJRT_Api *api) {
  api->TopologyDescription_Destroy = destroy;
  api->TopologyDescription_Serialize = serialize;
  api->TopologyDescription_Fingerprint = fingerprint;
  api->TopologyDescription_PlatformName = platform_name;
  api->TopologyDescription_PlatformVersion = platform_version;
  api->TopologyDescription_GetDeviceDescriptions = devices;
  api->TopologyDescription_Attributes = attributes;
  api->TopologyDescription_GetMemorySpaceKindIds = memory_kinds;
  api->TopologyDescription_MakeCanonicalShapeForMemorySpace = canonical_shape;
}
