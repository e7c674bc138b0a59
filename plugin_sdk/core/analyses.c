/* Properties of executables that hosts seldom query: Python computes them on request. */
#include "core.h"

#include <string.h>

/* Calls Bridge.<method>(executable) once, and keeps the result in a text. */
static PJRT_Error *keep_text(PJRT_Executable *executable, const char *method, const char *function,
                             atomic_int *is_kept, Text *text, Text *format) {
  Entry entry;
  PJRT_Error *error = NULL;
  if (*is_kept)
    return NULL;
  if ((error = enter_python(&entry, function)) != NULL)
    return error;
  PyObject *answer = PyObject_CallMethod(executable->topology->table->bridge, method, "O",
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
  for (size_t i = 0; !PyErr_Occurred() && i < room && i < sizeof names / sizeof *names; i++)
    figures[i] = figure(analysis, names[i]);
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

void fill_analyses(PJRT_Api *api) {
  api->LoadedExecutable_Fingerprint = loaded_fingerprint;
  api->Executable_Fingerprint = executable_fingerprint;
  api->Executable_OptimizedProgram = executable_program;
  api->Executable_GetCostAnalysis = executable_costs;
  api->Executable_GetCompiledMemoryStats = executable_memory_stats;
  api->Executable_SizeOfGeneratedCodeInBytes = executable_code_size;
  api->Executable_Serialize = executable_serialize;
}
