/* PJRT_Client. Python creates and closes it; C keeps its attributes. */
#include "core.h"

#include <limits.h>

static PyObject *read_value(PyObject *name, const PJRT_NamedValue *value) {
  PyObject *integers, *list;
  switch (value->type) {
  case PJRT_NamedValue_Type_kString:
    return PyUnicode_DecodeUTF8(value->string_value, (Py_ssize_t)value->value_size, "replace");
  case PJRT_NamedValue_Type_kInt64:
    return PyLong_FromLongLong(value->int64_value);
  case PJRT_NamedValue_Type_kInt64List:
    integers = integer_tuple(value->int64_array_value, value->value_size);
    list = integers == NULL ? NULL : PySequence_List(integers);
    Py_XDECREF(integers);
    return list;
  case PJRT_NamedValue_Type_kFloat:
    return PyFloat_FromDouble(value->float_value);
  case PJRT_NamedValue_Type_kBool:
    return PyBool_FromLong(value->bool_value);
  default:
    return PyErr_Format(PyExc_ValueError, "the option %R has the unknown type %d", name,
                        value->type);
  }
}

PyObject *read_named_values(const PJRT_NamedValue *values, size_t count) {
  PyObject *found = PyDict_New();
  for (size_t i = 0; found != NULL && i < count; i++) {
    const PJRT_NamedValue *value = &values[i];
    PyObject *name = PyUnicode_DecodeUTF8(value->name, (Py_ssize_t)value->name_size, "replace");
    PyObject *object = name == NULL ? NULL : read_value(name, value);
    if (object == NULL || PyDict_SetItem(found, name, object))
      Py_CLEAR(found);
    Py_XDECREF(name);
    Py_XDECREF(object);
  }
  return found;
}

PJRT_Client *client_share(PJRT_Client *client) {
  atomic_fetch_add(&client->references, 1);
  return client;
}

static void release_objects(PJRT_Client *client) {
  for (size_t i = 0; i < client->num_devices; i++)
    Py_XDECREF(client->devices[i]->object);
  for (size_t i = 0; i < client->num_memories; i++)
    Py_XDECREF(client->memories[i]->object);
  Py_XDECREF(client->object);
}

void client_release(PJRT_Client *client) {
  Entry entry;
  if (atomic_fetch_sub(&client->references, 1) != 1)
    return;
  if (try_python(&entry)) {
    release_objects(client);
    leave_python(&entry);
  }
  arena_free(&client->arena);
  free(client);
}

/* Returns NULL with an exception on failure; the GIL is held. */
static PJRT_Client *make_client(Table *table, const struct PJRT_Client_Create_Args *args) {
  PJRT_Client *client = NULL;
  PyObject *options = read_named_values(args->create_options, args->num_options);
  PyObject *store = options == NULL ? NULL : make_key_value_store(args), *made = NULL;
  if (store != NULL)
    made = PyObject_CallMethod(table->bridge, "create_client", "OO", options, store);
  if (made != NULL && (client = calloc(1, sizeof *client)) == NULL)
    PyErr_NoMemory();
  if (client != NULL) {
    client->references = 1;
    client->table = table;
    atomic_fetch_add(&live_handles[LIVE_CLIENTS], 1);
    if (client_describe(client, made)) {
      atomic_fetch_sub(&live_handles[LIVE_CLIENTS], 1);
      client_release(client);
      client = NULL;
    }
  }
  Py_XDECREF(made);
  Py_XDECREF(store);
  Py_XDECREF(options);
  return client;
}

PJRT_Error *client_create(Table *table, struct PJRT_Client_Create_Args *args) {
  Entry entry;
  PJRT_Error *error = enter_python(&entry, "Client_Create");
  if (error != NULL)
    return error;
  args->client = make_client(table, args);
  if (args->client == NULL)
    error = take_exception("Client_Create");
  leave_python(&entry);
  return error;
}

static PJRT_Error *client_destroy(struct PJRT_Client_Destroy_Args *args) {
  PJRT_Client *client = args->client;
  Entry entry;
  if (client == NULL)
    return NULL;
  if (try_python(&entry)) {
    PyObject *closed =
        PyObject_CallMethod(client->table->bridge, "close_client", "O", client->object);
    if (closed == NULL)
      log_exception("Client_Destroy");
    Py_XDECREF(closed);
    leave_python(&entry);
  }
  atomic_fetch_sub(&live_handles[LIVE_CLIENTS], 1);
  client_release(client);
  return NULL;
}

static PJRT_Error *client_platform_name(struct PJRT_Client_PlatformName_Args *args) {
  args->platform_name = args->client->topology.platform_name.data;
  args->platform_name_size = args->client->topology.platform_name.size;
  return NULL;
}

static PJRT_Error *client_platform_version(struct PJRT_Client_PlatformVersion_Args *args) {
  args->platform_version = args->client->topology.platform_version.data;
  args->platform_version_size = args->client->topology.platform_version.size;
  return NULL;
}

static PJRT_Error *client_process_index(struct PJRT_Client_ProcessIndex_Args *args) {
  args->process_index = args->client->process_index;
  return NULL;
}

static PJRT_Error *client_devices(struct PJRT_Client_Devices_Args *args) {
  args->devices = args->client->devices;
  args->num_devices = args->client->num_devices;
  return NULL;
}

static PJRT_Error *client_addressable_devices(struct PJRT_Client_AddressableDevices_Args *args) {
  args->addressable_devices = args->client->addressable_devices;
  args->num_addressable_devices = args->client->num_addressable_devices;
  return NULL;
}

static PJRT_Error *client_addressable_memories(struct PJRT_Client_AddressableMemories_Args *args) {
  args->addressable_memories = args->client->memories;
  args->num_addressable_memories = args->client->num_memories;
  return NULL;
}

PJRT_Device *client_find_device(PJRT_Client *client, long id) {
  for (size_t i = 0; i < client->num_devices; i++)
    if (client->devices[i]->description.id == id)
      return client->devices[i];
  return NULL;
}

static PJRT_Error *client_lookup_device(struct PJRT_Client_LookupDevice_Args *args) {
  args->device = client_find_device(args->client, args->id);
  return args->device ? NULL
                      : format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                                     "there is no device %d among the %zu of %s", args->id,
                                     args->client->num_devices, args->client->topology.platform_name.data);
}

static PJRT_Error *
client_lookup_addressable_device(struct PJRT_Client_LookupAddressableDevice_Args *args) {
  PJRT_Client *client = args->client;
  for (size_t i = 0; i < client->num_addressable_devices; i++)
    if (client->addressable_devices[i]->local_hardware_id == args->local_hardware_id) {
      args->addressable_device = client->addressable_devices[i];
      return NULL;
    }
  return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                      "no device of this process has the local hardware id %d",
                      args->local_hardware_id);
}

static PJRT_Error *read_assignment(struct PJRT_Client_DefaultDeviceAssignment_Args *args, PyObject *ids) {
  Py_ssize_t count = PySequence_Size(ids);
  if (count < 0)
    return take_exception("Client_DefaultDeviceAssignment");
  if ((size_t)count > args->default_assignment_size)
    return format_error(PJRT_Error_Code_FAILED_PRECONDITION,
                        "default_assignment has room for %zu devices; %zd are needed",
                        args->default_assignment_size, count);
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *id = PySequence_GetItem(ids, i);
    long value = id == NULL ? -1 : PyLong_AsLong(id);
    Py_XDECREF(id);
    if (PyErr_Occurred() == NULL && (value < INT_MIN || value > INT_MAX))
      PyErr_Format(PyExc_OverflowError, "the device id %ld does not fit 32 bits", value);
    if (PyErr_Occurred())
      return take_exception("Client_DefaultDeviceAssignment");
    args->default_assignment[i] = (int)value;
  }
  return NULL;
}

static PJRT_Error *
client_default_device_assignment(struct PJRT_Client_DefaultDeviceAssignment_Args *args) {
  Entry entry;
  long long needed = (long long)args->num_replicas * args->num_partitions;
  if (args->num_replicas < 1 || args->num_partitions < 1 || needed > INT_MAX)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "num_replicas and num_partitions must be at least 1; got %d and %d",
                        args->num_replicas, args->num_partitions);
  if ((size_t)needed > args->default_assignment_size)
    return format_error(PJRT_Error_Code_FAILED_PRECONDITION,
                        "default_assignment has room for %zu devices; %lld are needed",
                        args->default_assignment_size, needed);
  PJRT_Error *error = enter_python(&entry, "Client_DefaultDeviceAssignment");
  if (error != NULL)
    return error;
  PyObject *ids = PyObject_CallMethod(args->client->table->bridge, "default_assignment", "Oii",
                                      args->client->object, args->num_replicas,
                                      args->num_partitions);
  error = ids == NULL ? take_exception("Client_DefaultDeviceAssignment")
                      : read_assignment(args, ids);
  Py_XDECREF(ids);
  leave_python(&entry);
  return error;
}

static PJRT_Error *client_topology(struct PJRT_Client_TopologyDescription_Args *args) {
  args->topology = &args->client->topology;
  return NULL;
}

/* Hosts report which processes are alive. A backend of one process does not use this. */
static PJRT_Error *update_processes(struct PJRT_Client_UpdateGlobalProcessInfo_Args *args) {
  (void)args;
  return NULL;
}

void fill_client(PJRT_Api *api) {
  api->Client_Destroy = client_destroy;
  api->Client_PlatformName = client_platform_name;
  api->Client_PlatformVersion = client_platform_version;
  api->Client_ProcessIndex = client_process_index;
  api->Client_Devices = client_devices;
  api->Client_AddressableDevices = client_addressable_devices;
  api->Client_AddressableMemories = client_addressable_memories;
  api->Client_LookupDevice = client_lookup_device;
  api->Client_LookupAddressableDevice = client_lookup_addressable_device;
  api->Client_DefaultDeviceAssignment = client_default_device_assignment;
  api->Client_TopologyDescription = client_topology;
  api->Client_UpdateGlobalProcessInfo = update_processes;
}
