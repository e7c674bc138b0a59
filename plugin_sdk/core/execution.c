/* PJRT_LoadedExecutable_Execute: the hot path. One call into Python launches on all devices. */
#include "core.h"

#include <string.h>

typedef struct PJRT_LoadedExecutable_Execute_Args Execute;

/* Returns an error for an argument that was deleted or has no contents yet; else NULL. */
static PJRT_Error *check_argument(PJRT_Buffer *buffer, size_t i, const PJRT_Executable *program) {
  if (!buffer->is_deleted)
    return require_contents(buffer, "LoadedExecutable_Execute");
  return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                      "argument %zu of the program %s was deleted or donated before", i,
                      program->name.data);
}

/* Returns an error for callbacks in the options, which no backend supports; else NULL. */
static PJRT_Error *check_options(const PJRT_ExecuteOptions *options) {
  if (options == NULL)
    return NULL;
  if (options->num_send_ops || options->num_recv_ops)
    return format_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "PJRT_LoadedExecutable_Execute: %zu send and %zu receive callbacks: plugins "
                        "that plugrt_sdk exports exchange nothing with the host while they run",
                        options->num_send_ops, options->num_recv_ops);
  if (HAS_FIELD(options, num_hlo_output_callbacks) && options->num_hlo_output_callbacks)
    return format_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "PJRT_LoadedExecutable_Execute: callbacks of HLO outputs are not "
                        "implemented by plugins that plugrt_sdk exports");
  return NULL;
}

static PJRT_Error *check(const Execute *args) {
  const PJRT_LoadedExecutable *loaded = args->executable;
  PJRT_Error *error;
  if (loaded->is_deleted)
    return format_error(PJRT_Error_Code_FAILED_PRECONDITION, "the program %s was deleted",
                        loaded->executable->name.data);
  if (args->num_devices != loaded->num_devices)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "the program %s runs on %zu devices; arguments for %zu were given",
                        loaded->executable->name.data, loaded->num_devices, args->num_devices);
  if (args->execute_device != NULL &&
      (loaded->num_devices != 1 || loaded->devices[0] != args->execute_device))
    return format_error(PJRT_Error_Code_UNIMPLEMENTED,
                        "the program %s was not compiled for execute_device %d",
                        loaded->executable->name.data, args->execute_device->description.id);
  for (size_t d = 0; d < args->num_devices; d++)
    for (size_t i = 0; i < args->num_args; i++)
      if (args->argument_lists[d][i]->is_deleted || args->argument_lists[d][i]->is_promised)
        if ((error = check_argument(args->argument_lists[d][i], i, loaded->executable)) != NULL)
          return error;
  return check_options(args->options);
}

/* Returns the arguments in the interface's form: a tuple of buffers for each parameter. */
static PyObject *make_arguments(const Execute *args) {
  PyObject *arguments = PyList_New((Py_ssize_t)args->num_args);
  for (size_t i = 0; arguments != NULL && i < args->num_args; i++) {
    PyObject *shards = PyTuple_New((Py_ssize_t)args->num_devices);
    if (shards == NULL)
      Py_CLEAR(arguments);
    for (size_t d = 0; shards != NULL && d < args->num_devices; d++)
      PyTuple_SetItem(shards, (Py_ssize_t)d, Py_NewRef(args->argument_lists[d][i]->object));
    if (shards != NULL)
      PyList_SetItem(arguments, (Py_ssize_t)i, shards);
  }
  return arguments;
}

/* Returns the interface's ExecuteOptions, or None for the defaults. */
static PyObject *make_options(const Execute *args) {
  const PJRT_ExecuteOptions *options = args->options;
  const PJRT_Client *client = args->executable->client;
  size_t count = options == NULL || !client->donates ? 0 : options->num_non_donatable_input_indices;
  int launch_id = options == NULL || !client->has_processes ? 0 : options->launch_id;
  if (count == 0 && launch_id == 0)
    return Py_NewRef(Py_None);
  PyObject *kept = PyTuple_New((Py_ssize_t)count);
  for (size_t i = 0; kept != NULL && i < count; i++)
    PyTuple_SetItem(kept, (Py_ssize_t)i, PyLong_FromLongLong(options->non_donatable_input_indices[i]));
  return PyObject_CallMethod(client->table->bridge, "execute_options", "iN", launch_id, kept);
}

/* Returns the user data that the launch's context has for handlers: a dict, or None. */
static PyObject *data_of_launch(const PJRT_ExecuteOptions *options) {
  if (options == NULL || !HAS_FIELD(options, context) || options->context == NULL)
    return Py_NewRef(Py_None);
  return context_data(options->context);
}

static PyObject *launch(const Execute *args) {
  PyObject *arguments = make_arguments(args), *results = NULL;
  PyObject *given = arguments == NULL ? NULL : make_options(args);
  PyObject *data = given == NULL ? NULL : data_of_launch(args->options);
  if (data == Py_None)
    results = PyObject_CallFunctionObjArgs(args->executable->execute, arguments, given, NULL);
  else if (data != NULL)
    results = PyObject_CallMethod(args->executable->client->table->bridge, "execute_with", "OOOO",
                                  data, args->executable->execute, arguments, given);
  Py_XDECREF(data);
  Py_XDECREF(given);
  Py_XDECREF(arguments);
  return results;
}

static PyObject *item(PyObject *sequence, size_t index) {
  if (PyTuple_CheckExact(sequence))
    return Py_XNewRef(PyTuple_GetItem(sequence, (Py_ssize_t)index));
  return PySequence_GetItem(sequence, (Py_ssize_t)index);
}

/* Returns the memory of a device for results of a memory kind. */
static PJRT_Memory *find_memory(PJRT_Device *device, const Text *kind) {
  for (size_t i = 0; i < device->num_memories; i++) {
    const Text *found = &device->memories[i]->kind;
    if (found->size == kind->size && memcmp(found->data, kind->data, kind->size) == 0)
      return device->memories[i];
  }
  return device->default_memory;
}

static int fill_result(const Execute *args, size_t i, PyObject *shards) {
  const Output *output = &args->executable->executable->outputs[i];
  Py_ssize_t found = PySequence_Size(shards);
  if (found >= 0 && (size_t)found != args->num_devices)
    PyErr_Format(PyExc_ValueError, "the backend returned %zd buffers of result %zu for %zu devices",
                 found, i, args->num_devices);
  if (PyErr_Occurred())
    return -1;
  for (size_t d = 0; d < args->num_devices; d++) {
    PJRT_Device *device = args->executable->devices[d];
    PyObject *object = item(shards, d);
    PJRT_Memory *memory = find_memory(device, &output->memory_kind);
    PJRT_Buffer *made =
        object == NULL ? NULL : make_buffer(memory, device, object, &output->shape);
    if (made == NULL)
      return -1;
    args->output_lists[d][i] = made;
  }
  return 0;
}

static int fill_results(const Execute *args, PyObject *results) {
  size_t count = args->executable->executable->num_outputs;
  Py_ssize_t found = PySequence_Size(results);
  if (found >= 0 && (size_t)found != count)
    PyErr_Format(PyExc_ValueError, "the backend returned %zd results of a program with %zd", found,
                 (Py_ssize_t)count);
  for (size_t i = 0; i < count && !PyErr_Occurred(); i++) {
    PyObject *shards = item(results, i);
    if (shards != NULL)
      fill_result(args, i, shards);
    Py_XDECREF(shards);
  }
  return PyErr_Occurred() ? -1 : 0;
}

/* Hosts may pass NULL lists for a program without results. */
static void clear_results(const Execute *args) {
  size_t count = args->executable->executable->num_outputs;
  for (size_t d = 0; count > 0 && d < args->num_devices; d++)
    memset((void *)args->output_lists[d], 0, count * sizeof(PJRT_Buffer *));
}

static void destroy_results(const Execute *args) {
  for (size_t d = 0; d < args->num_devices; d++)
    for (size_t i = 0; i < args->executable->executable->num_outputs; i++)
      if (args->output_lists[d][i] != NULL)
        buffer_release(args->output_lists[d][i]);
  clear_results(args);
}

/* A launch on a device is complete when its results are. */
static int make_events(const Execute *args) {
  size_t count = args->executable->executable->num_outputs, made = 0;
  Future **futures = calloc(count ? count : 1, sizeof *futures);
  for (size_t d = 0; d < args->num_devices && futures != NULL; d++) {
    for (size_t i = 0; i < count; i++)
      futures[i] = args->output_lists[d][i]->ready;
    args->device_complete_events[d] = make_event(future_join(futures, count));
    if (args->device_complete_events[d] == NULL)
      break;
    made++;
  }
  free(futures);
  if (made == args->num_devices)
    return 0;
  for (size_t d = 0; d < made; d++)
    free_event(args->device_complete_events[d]);
  PyErr_NoMemory();
  return -1;
}

/* Marks the arguments that the backend donated: those that are deleted now. */
static int mark_donated(const Execute *args) {
  if (!args->executable->client->donates)
    return 0;
  for (size_t d = 0; d < args->num_devices; d++)
    for (size_t i = 0; i < args->num_args; i++) {
      PJRT_Buffer *buffer = args->argument_lists[d][i];
      PyObject *answer = PyObject_CallMethod(buffer->object, "is_deleted", NULL);
      if (answer == NULL)
        return -1;
      int is_deleted = PyObject_IsTrue(answer);
      Py_DECREF(answer);
      if (is_deleted < 0)
        return -1;
      if (is_deleted)
        buffer->is_deleted = 1;
    }
  return 0;
}

static PJRT_Error *execute(Execute *args) {
  Entry entry;
  PJRT_Error *error = check(args);
  if (error != NULL || (error = enter_python(&entry, "LoadedExecutable_Execute")) != NULL)
    return error;
  clear_results(args);
  PyObject *results = launch(args);
  if (results == NULL || fill_results(args, results) || mark_donated(args) ||
      (args->device_complete_events != NULL && make_events(args))) {
    error = take_exception("LoadedExecutable_Execute");
    /* A failed launch may have donated arguments before it failed; report its error only. */
    if (mark_donated(args))
      PyErr_Clear();
    destroy_results(args);
  }
  Py_XDECREF(results);
  leave_python(&entry);
  return error;
}

void fill_execution(PJRT_Api *api) {
  api->LoadedExecutable_Execute = execute;
}
