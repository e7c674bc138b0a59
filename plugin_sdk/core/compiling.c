/* Compiles, loads and deserialises programs. */
#include "core.h"

/* Arguments for the formats "y#" and "s#", which would turn NULL into None. */
#define BYTES(pointer) (pointer) == NULL ? "" : (pointer), (Py_ssize_t)(pointer##_size)

static PJRT_Error *client_compile(struct PJRT_Client_Compile_Args *args) {
  Entry entry;
  const PJRT_Program *program = args->program;
  PJRT_Error *error = enter_python(&entry, "Client_Compile");
  if (error != NULL)
    return error;
  PyObject *answer = PyObject_CallMethod(
      args->client->table->bridge, "compile", "Oy#s#y#", args->client->object, BYTES(program->code),
      BYTES(program->format), BYTES(args->compile_options));
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
  PyObject *answer = PyObject_CallMethod(args->client->table->bridge, "deserialize", "Oy#y#",
                                         args->client->object, BYTES(args->serialized_executable),
                                         options, size);
  args->loaded_executable = answer == NULL ? NULL : make_loaded(args->client, answer);
  if (args->loaded_executable == NULL)
    error = take_exception("Executable_DeserializeAndLoad");
  Py_XDECREF(answer);
  leave_python(&entry);
  return error;
}

/* Compiles for devices that may be absent; `client` is a hint that is not needed. JAX's clients
 * call it from a pool of threads and wait with the GIL held (PyClient::Compile). */
static PJRT_Error *compile(struct PJRT_Compile_Args *args) {
  Entry entry;
  const PJRT_Program *program = args->program;
  PJRT_TopologyDescription *topology = (PJRT_TopologyDescription *)args->topology;
  PJRT_Error *error = enter_python_in_time(&entry, "Compile");
  if (error != NULL)
    return error;
  PyObject *answer = PyObject_CallMethod(
      topology->table->bridge, "compile_for", "Oy#s#y#", topology->object, BYTES(program->code),
      BYTES(program->format), BYTES(args->compile_options));
  args->executable = answer == NULL ? NULL : make_executable(topology, answer);
  if (args->executable == NULL)
    error = take_exception("Compile");
  else
    atomic_fetch_add(&live_handles[LIVE_EXECUTABLES], 1);
  Py_XDECREF(answer);
  leave_python(&entry);
  return error;
}

/* Loads an executable that was compiled for a topology. */
static PJRT_Error *load(struct PJRT_Client_Load_Args *args) {
  Entry entry;
  PJRT_Error *error = enter_python(&entry, "Client_Load");
  if (error != NULL)
    return error;
  PyObject *answer = PyObject_CallMethod(args->client->table->bridge, "load", "OOy#",
                                         args->client->object, args->executable->object,
                                         BYTES(args->compile_options));
  args->loaded_executable = answer == NULL ? NULL : make_loaded(args->client, answer);
  if (args->loaded_executable == NULL)
    error = take_exception("Client_Load");
  Py_XDECREF(answer);
  leave_python(&entry);
  return error;
}

void fill_compiling(PJRT_Api *api) {
  api->Client_Compile = client_compile;
  api->Client_Load = load;
  api->Compile = compile;
  api->Executable_DeserializeAndLoad = deserialize;
}
