/* The arguments of a call, read by their descriptors, and how many results it has. */
#include <string.h>

#include "trace.h"

bool has_field(const Call *call, const Field *field) {
  return call->args != NULL && call->size >= (size_t)field->offset + field->size;
}

void *read_pointer(const Call *call, const Field *field) {
  void *pointer;
  memcpy(&pointer, (char *)call->args + field->offset, sizeof pointer);
  return pointer;
}

size_t read_count(const Call *call, const Field *field) {
  size_t count = 0;
  if (field->count != 0 && call->size >= field->count + sizeof count)
    memcpy(&count, (char *)call->args + field->count, sizeof count);
  return count;
}

/* Asks the library, once for each executable: hosts do not pass the number of results. */
static int64_t ask_outputs(const Table *table, PJRT_LoadedExecutable *loaded) {
  struct PJRT_LoadedExecutable_GetExecutable_Args get = {
      .struct_size = sizeof get, .loaded_executable = loaded};
  struct PJRT_Executable_NumOutputs_Args ask = {.struct_size = sizeof ask};
  struct PJRT_Executable_Destroy_Args destroy = {.struct_size = sizeof destroy};
  AnyFunction functions_asked[] = {table->slots[FUNCTION_LoadedExecutable_GetExecutable],
                                   table->slots[FUNCTION_Executable_NumOutputs],
                                   table->slots[FUNCTION_Executable_Destroy]};
  for (int i = 0; i < 3; i++)
    if (functions_asked[i] == NULL)
      return -1;
  PJRT_Error *error = functions_asked[0](&get);
  if (error != NULL) {
    read_error(table, error, NULL, 0);
    return -1;
  }
  ask.executable = destroy.executable = get.executable;
  error = functions_asked[1](&ask);
  if (error != NULL)
    read_error(table, error, NULL, 0);
  int64_t found = error == NULL ? (int64_t)ask.num_outputs : -1;
  error = functions_asked[2](&destroy);
  if (error != NULL)
    read_error(table, error, NULL, 0);
  return found;
}

int64_t count_outputs(const Call *call) {
  struct PJRT_LoadedExecutable_Execute_Args *args = call->args;
  Handle handle = {.num_outputs = -1};
  if (find_handle(args->executable, TYPE_LoadedExecutable, &handle) != ALIVE)
    return -1;
  if (handle.num_outputs < 0) {
    handle.num_outputs = ask_outputs(call->table, args->executable);
    handle_set_outputs(args->executable, handle.num_outputs);
  }
  return handle.num_outputs;
}
