/* PJRT_Executable and PJRT_LoadedExecutable: compiled in Python; what is known of them is kept. */
#include "core.h"

#include <string.h>

/* --- made from what Python describes ------------------------------------------------------------ */

void executable_release(PJRT_Executable *executable) {
  if (atomic_fetch_sub(&executable->references, 1) != 1)
    return;
  release_object(executable->object);
  if (executable->client != NULL)
    client_release(executable->client);
  arena_free(&executable->arena);
  free(executable);
}

static int read_dims(Arena *arena, PyObject *dims, Output *output) {
  output->num_dims = (size_t)PyTuple_Size(dims);
  int64_t *copy = PyErr_Occurred() ? NULL : arena_allocate(arena, output->num_dims * sizeof *copy);
  for (size_t i = 0; copy != NULL && i < output->num_dims; i++)
    copy[i] = PyLong_AsLongLong(PyTuple_GetItem(dims, (Py_ssize_t)i));
  output->dims = copy;
  return copy == NULL || PyErr_Occurred() ? -1 : 0;
}

/* The forms in which hosts ask for the results' types: flat lists. */
static int flatten_outputs(PJRT_Executable *made) {
  size_t rank = 0, count = made->num_outputs;
  for (size_t i = 0; i < count; i++)
    rank += made->outputs[i].num_dims;
  made->output_types = arena_allocate(&made->arena, count * sizeof *made->output_types);
  made->output_dims = arena_allocate(&made->arena, rank * sizeof *made->output_dims);
  made->output_dim_sizes = arena_allocate(&made->arena, count * sizeof(size_t));
  made->output_memory_kinds = arena_allocate(&made->arena, count * sizeof(char *));
  made->output_memory_kind_sizes = arena_allocate(&made->arena, count * sizeof(size_t));
  if (PyErr_Occurred())
    return -1;
  int64_t *dims = made->output_dims;
  for (size_t i = 0; i < count; i++) {
    const Output *output = &made->outputs[i];
    made->output_types[i] = output->type;
    made->output_dim_sizes[i] = output->num_dims;
    made->output_memory_kinds[i] = output->memory_kind.data;
    made->output_memory_kind_sizes[i] = output->memory_kind.size;
    for (size_t j = 0; j < output->num_dims; j++)
      *dims++ = output->dims[j];
  }
  return 0;
}

static int read_outputs(PJRT_Executable *made, PyObject *outputs) {
  made->num_outputs = (size_t)PyTuple_Size(outputs);
  if (PyErr_Occurred())
    return -1;
  made->outputs = arena_allocate(&made->arena, made->num_outputs * sizeof *made->outputs);
  for (size_t i = 0; made->outputs != NULL && i < made->num_outputs; i++) {
    PyObject *dims, *kind;
    Output *output = &made->outputs[i];
    if (!PyArg_ParseTuple(PyTuple_GetItem(outputs, (Py_ssize_t)i), "iOO", &output->type, &dims,
                          &kind) ||
        read_dims(&made->arena, dims, output) ||
        arena_text(&made->arena, kind, &output->memory_kind))
      return -1;
  }
  return made->outputs == NULL ? -1 : flatten_outputs(made);
}

/* Reads a tuple of bytes, or None for what the backend does not say. */
static int read_blobs(Arena *arena, PyObject *blobs, const char ***data, size_t **sizes,
                      size_t *count) {
  if (blobs == Py_None)
    return 0;
  size_t number = (size_t)PyTuple_Size(blobs);
  if (PyErr_Occurred())
    return -1;
  *data = arena_allocate(arena, number * sizeof(char *));
  *sizes = arena_allocate(arena, number * sizeof(size_t));
  *count = number;
  for (size_t i = 0; !PyErr_Occurred() && i < number; i++) {
    Text text;
    if (arena_text(arena, PyTuple_GetItem(blobs, (Py_ssize_t)i), &text))
      return -1;
    (*data)[i] = text.data;
    (*sizes)[i] = text.size;
  }
  return PyErr_Occurred() ? -1 : 0;
}

static int read_executable(PJRT_Executable *made, PyObject *tuple) {
  PyObject *object, *name, *outputs, *assignment, *options, *output_shardings, *parameter_shardings;
  size_t count = 0;
  if (!PyArg_ParseTuple(tuple, "OOnnOOOOO", &object, &name, &made->num_replicas,
                        &made->num_partitions, &outputs, &assignment, &options, &output_shardings,
                        &parameter_shardings))
    return -1;
  made->object = Py_NewRef(object);
  return arena_text(&made->arena, name, &made->name) || read_outputs(made, outputs) ||
                 arena_text(&made->arena, assignment, &made->device_assignment) ||
                 arena_text(&made->arena, options, &made->compile_options) ||
                 read_blobs(&made->arena, output_shardings, &made->output_shardings,
                            &made->output_sharding_sizes, &count) ||
                 read_blobs(&made->arena, parameter_shardings, &made->parameter_shardings,
                            &made->parameter_sharding_sizes, &made->num_parameters)
             ? -1
             : 0;
}

static int read_places(PJRT_LoadedExecutable *loaded, PyObject *places) {
  PJRT_Executable *executable = loaded->executable;
  loaded->num_devices = (size_t)PyTuple_Size(places);
  if (PyErr_Occurred())
    return -1;
  loaded->devices = arena_allocate(&executable->arena, loaded->num_devices * sizeof(void *));
  loaded->logical_ids =
      arena_allocate(&executable->arena, loaded->num_devices * sizeof *loaded->logical_ids);
  for (size_t i = 0; !PyErr_Occurred() && i < loaded->num_devices; i++) {
    int id;
    PJRT_LogicalDeviceIds *logical = &loaded->logical_ids[i];
    if (!PyArg_ParseTuple(PyTuple_GetItem(places, (Py_ssize_t)i), "iii", &id, &logical->replica,
                          &logical->partition))
      return -1;
    loaded->devices[i] = client_find_device(executable->client, id);
    if (loaded->devices[i] == NULL)
      PyErr_Format(PyExc_ValueError, "the program runs on device %d, which the client lacks", id);
  }
  return PyErr_Occurred() ? -1 : 0;
}

static void destroy_loaded(PJRT_LoadedExecutable *loaded) {
  release_object(loaded->object);
  release_object(loaded->execute);
  executable_release(loaded->executable);
  free(loaded);
}

/* Returns a handle of what Bridge.compile or Bridge.deserialize answered; NULL with an exception. */
static PJRT_LoadedExecutable *make_loaded(PJRT_Client *client, PyObject *answer) {
  PyObject *object, *execute, *places, *described;
  PJRT_LoadedExecutable *loaded = calloc(1, sizeof *loaded);
  PJRT_Executable *executable = calloc(1, sizeof *executable);
  if (loaded == NULL || executable == NULL) {
    free(loaded);
    free(executable);
    PyErr_NoMemory();
    return NULL;
  }
  executable->references = 1;
  executable->client = client_share(client);
  loaded->executable = executable;
  if (!PyArg_ParseTuple(answer, "OOOO", &object, &execute, &places, &described) ||
      read_executable(executable, described) || read_places(loaded, places)) {
    destroy_loaded(loaded);
    return NULL;
  }
  loaded->object = Py_NewRef(object);
  loaded->execute = Py_NewRef(execute);
  atomic_fetch_add(&live_handles[LIVE_LOADED], 1);
  return loaded;
}

static PJRT_Error *client_compile(struct PJRT_Client_Compile_Args *args) {
  Entry entry;
  const PJRT_Program *program = args->program;
  PJRT_Error *error = enter_python(&entry, "Client_Compile");
  if (error != NULL)
    return error;
  PyObject *answer = PyObject_CallMethod(
      args->client->table->bridge, "compile", "Oy#s#y#", args->client->object, program->code,
      (Py_ssize_t)program->code_size, program->format, (Py_ssize_t)program->format_size,
      args->compile_options, (Py_ssize_t)args->compile_options_size);
  args->executable = answer == NULL ? NULL : make_loaded(args->client, answer);
  if (args->executable == NULL)
    error = take_exception("Client_Compile");
  Py_XDECREF(answer);
  leave_python(&entry);
  return error;
}

static PJRT_Error *deserialize(struct PJRT_Executable_DeserializeAndLoad_Args *args) {
  Entry entry;
  const char *options = NULL;
  Py_ssize_t size = 0;
  if (HAS_FIELD(args, overridden_serialized_compile_options_size) &&
      args->overridden_serialized_compile_options_size > 0) {
    options = args->overridden_serialized_compile_options;
    size = (Py_ssize_t)args->overridden_serialized_compile_options_size;
  }
  PJRT_Error *error = enter_python(&entry, "Executable_DeserializeAndLoad");
  if (error != NULL)
    return error;
  PyObject *answer = PyObject_CallMethod(
      args->client->table->bridge, "deserialize", "Oy#y#", args->client->object,
      args->serialized_executable, (Py_ssize_t)args->serialized_executable_size, options, size);
  args->loaded_executable = answer == NULL ? NULL : make_loaded(args->client, answer);
  if (args->loaded_executable == NULL)
    error = take_exception("Executable_DeserializeAndLoad");
  Py_XDECREF(answer);
  leave_python(&entry);
  return error;
}

/* --- loaded executables --------------------------------------------------------------------------- */

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
    log_exception("LoadedExecutable_Delete"); /* XLA's client ends the process when this fails */
  Py_XDECREF(answer);
  leave_python(&entry);
  return NULL;
}

static PJRT_Error *loaded_is_deleted(struct PJRT_LoadedExecutable_IsDeleted_Args *args) {
  args->is_deleted = (uint8_t)args->executable->is_deleted;
  return NULL;
}

/* --- what is asked for seldom: asked of Python once, and kept --------------------------------------- */

/* Writes what Bridge.<method>(executable) answers to a text, once. */
static PJRT_Error *keep_text(PJRT_Executable *executable, const char *method, const char *function,
                             atomic_int *is_kept, Text *text, Text *format) {
  Entry entry;
  PJRT_Error *error = NULL;
  if (*is_kept)
    return NULL;
  if ((error = enter_python(&entry, function)) != NULL)
    return error;
  PyObject *answer = PyObject_CallMethod(executable->client->table->bridge, method, "O",
                                         executable->object);
  PyObject *content = answer, *name = NULL;
  int failed = answer == NULL || *is_kept;
  if (!failed && format != NULL)
    failed = !PyArg_ParseTuple(answer, "OO", &content, &name) ||
             arena_text(&executable->arena, name, format);
  if (!failed && arena_text(&executable->arena, content, text) == 0)
    *is_kept = 1;
  if (PyErr_Occurred())
    error = take_exception(function);
  Py_XDECREF(answer);
  leave_python(&entry);
  return error;
}

static PJRT_Error *executable_fingerprint(struct PJRT_Executable_Fingerprint_Args *args) {
  PJRT_Executable *executable = args->executable;
  PJRT_Error *error = keep_text(executable, "fingerprint", "Executable_Fingerprint",
                                &executable->has_fingerprint, &executable->fingerprint, NULL);
  args->executable_fingerprint = executable->fingerprint.data;
  args->executable_fingerprint_size = executable->fingerprint.size;
  return error;
}

static PJRT_Error *loaded_fingerprint(struct PJRT_LoadedExecutable_Fingerprint_Args *args) {
  PJRT_Executable *executable = args->executable->executable;
  PJRT_Error *error = keep_text(executable, "fingerprint", "LoadedExecutable_Fingerprint",
                                &executable->has_fingerprint, &executable->fingerprint, NULL);
  args->executable_fingerprint = executable->fingerprint.data;
  args->executable_fingerprint_size = executable->fingerprint.size;
  return error;
}

static PJRT_Error *executable_program(struct PJRT_Executable_OptimizedProgram_Args *args) {
  PJRT_Executable *executable = args->executable;
  PJRT_Program *program = args->program;
  PJRT_Error *error =
      keep_text(executable, "optimized_program", "Executable_OptimizedProgram",
                &executable->has_program, &executable->program, &executable->program_format);
  if (error != NULL)
    return error;
  program->format = executable->program_format.data;
  program->format_size = executable->program_format.size;
  if (program->code == NULL)
    program->code_size = executable->program.size;
  else if (program->code_size < executable->program.size)
    return format_error(PJRT_Error_Code_INVALID_ARGUMENT,
                        "the program has %zu bytes; there is room for %zu",
                        executable->program.size, program->code_size);
  else
    memcpy(program->code, executable->program.data, executable->program.size);
  return NULL;
}

static PJRT_Error *executable_costs(struct PJRT_Executable_GetCostAnalysis_Args *args) {
  PJRT_Executable *executable = args->executable;
  Entry entry;
  PJRT_Error *error = NULL;
  if (!executable->has_costs) {
    if ((error = enter_python(&entry, "Executable_GetCostAnalysis")) != NULL)
      return error;
    PyObject *costs = PyObject_CallMethod(executable->object, "cost_analysis", NULL);
    const PJRT_NamedValue *values;
    size_t count;
    if (costs == NULL || arena_named_values(&executable->arena, costs, &values, &count)) {
      error = take_exception("Executable_GetCostAnalysis");
    } else if (!executable->has_costs) {
      executable->costs = values;
      executable->num_costs = count;
      executable->has_costs = 1;
    }
    Py_XDECREF(costs);
    leave_python(&entry);
  }
  args->properties = executable->costs;
  args->num_properties = executable->num_costs;
  return error;
}

static int64_t figure(PyObject *object, const char *name) {
  PyObject *value = PyObject_GetAttrString(object, name);
  int64_t found = value == NULL ? 0 : PyLong_AsLongLong(value);
  Py_XDECREF(value);
  return found;
}

static PJRT_Error *
executable_memory_stats(struct PJRT_Executable_GetCompiledMemoryStats_Args *args) {
  static const char *const names[] = {
      "generated_code_size_in_bytes", "argument_size_in_bytes",
      "output_size_in_bytes",         "alias_size_in_bytes",
      "temp_size_in_bytes",           "host_generated_code_size_in_bytes",
      "host_argument_size_in_bytes",  "host_output_size_in_bytes",
      "host_alias_size_in_bytes",     "host_temp_size_in_bytes",
      "peak_memory_in_bytes"};
  Entry entry;
  PJRT_Error *error = enter_python(&entry, "Executable_GetCompiledMemoryStats");
  if (error != NULL)
    return error;
  int64_t *figures = &args->generated_code_size_in_bytes;
  size_t room = (args->struct_size - (size_t)((char *)figures - (char *)args)) / sizeof *figures;
  PyObject *analysis = PyObject_CallMethod(args->executable->object, "memory_analysis", NULL);
  for (size_t i = 0; !PyErr_Occurred() && i < room; i++)
    figures[i] = i < sizeof names / sizeof *names ? figure(analysis, names[i]) : 0;
  if (PyErr_Occurred())
    error = take_exception("Executable_GetCompiledMemoryStats");
  Py_XDECREF(analysis);
  leave_python(&entry);
  return error;
}

static PJRT_Error *
executable_code_size(struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args *args) {
  Entry entry;
  PJRT_Error *error = enter_python(&entry, "Executable_SizeOfGeneratedCodeInBytes");
  if (error != NULL)
    return error;
  PyObject *size =
      PyObject_CallMethod(args->executable->object, "generated_code_size_in_bytes", NULL);
  args->size_in_bytes = size == NULL ? 0 : PyLong_AsLongLong(size);
  if (PyErr_Occurred())
    error = take_exception("Executable_SizeOfGeneratedCodeInBytes");
  Py_XDECREF(size);
  leave_python(&entry);
  return error;
}

static void free_serialized(PJRT_SerializedExecutable *serialized) {
  release_object((PyObject *)serialized);
}

static PJRT_Error *executable_serialize(struct PJRT_Executable_Serialize_Args *args) {
  Entry entry;
  PJRT_Error *error = enter_python(&entry, "Executable_Serialize");
  if (error != NULL)
    return error;
  PyObject *content = PyObject_CallMethod(args->executable->object, "serialize", NULL);
  char *data;
  Py_ssize_t size;
  if (content == NULL || PyBytes_AsStringAndSize(content, &data, &size)) {
    error = take_exception("Executable_Serialize");
    Py_XDECREF(content);
  } else {
    args->serialized_bytes = data;
    args->serialized_bytes_size = (size_t)size;
    args->serialized_executable = (PJRT_SerializedExecutable *)content;
    args->serialized_executable_deleter = free_serialized;
  }
  leave_python(&entry);
  return error;
}

/* --- what is known without asking --------------------------------------------------------------------- */

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
  args->num_outputs = args->executable->num_outputs;
  args->memory_kinds = args->executable->output_memory_kinds;
  args->memory_kind_sizes = args->executable->output_memory_kind_sizes;
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
  api->Client_Compile = client_compile;
  api->Executable_DeserializeAndLoad = deserialize;
  api->LoadedExecutable_Destroy = loaded_destroy;
  api->LoadedExecutable_GetExecutable = loaded_get_executable;
  api->LoadedExecutable_AddressableDevices = loaded_devices;
  api->LoadedExecutable_AddressableDeviceLogicalIds = loaded_logical_ids;
  api->LoadedExecutable_GetDeviceAssignment = loaded_assignment;
  api->LoadedExecutable_Delete = loaded_delete;
  api->LoadedExecutable_IsDeleted = loaded_is_deleted;
  api->LoadedExecutable_Fingerprint = loaded_fingerprint;
  api->Executable_Fingerprint = executable_fingerprint;
  api->Executable_OptimizedProgram = executable_program;
  api->Executable_GetCostAnalysis = executable_costs;
  api->Executable_GetCompiledMemoryStats = executable_memory_stats;
  api->Executable_SizeOfGeneratedCodeInBytes = executable_code_size;
  api->Executable_Serialize = executable_serialize;
  api->Executable_Destroy = executable_destroy;
  api->Executable_Name = executable_name;
  api->Executable_NumReplicas = executable_replicas;
  api->Executable_NumPartitions = executable_partitions;
  api->Executable_NumOutputs = executable_outputs;
  api->Executable_OutputMemoryKinds = executable_memory_kinds;
  api->Executable_OutputElementTypes = executable_types;
  api->Executable_OutputDimensions = executable_dimensions;
  api->Executable_GetCompileOptions = executable_options;
}
