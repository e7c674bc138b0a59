/* `trace_call`: every call of every function goes through here. */
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

/* Asks the library itself, once for each executable: hosts know it, and do not say it. */
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

static PJRT_Error *forward(const Call *call) {
  void *slot = call->table->slots[call->number];
  if (call->number == FUNCTION_Event_OnReady && call->size >= call->function->size)
    return forward_on_ready(call);
  if (call->function->returns_error)
    return ((AnyFunction)slot)(call->args);
  ((AnyProcedure)slot)(call->args);
  return NULL;
}

/* What happens instead of a call, or the call itself. */
static PJRT_Error *perform(const Call *call, uint64_t nth, bool may_forward) {
  PJRT_Error *error = NULL;
  int code = code_to_fail_with(call->number, nth);
  if (code != 0)
    return make_error(code, "this call failed because plugrt trace was told so (--fail)");
  if (!may_forward || answer_error(call, &error))
    return error;
  await_delayed_event(call);
  return forward(call);
}

static void finish(const Call *call, PJRT_Error *error, Line *line) {
  char message[600] = "";
  Handle made = {0};
  if (error == NULL) {
    hide_delayed_event(call);
    check_outputs(call);
    record_outputs(line, call);
    return;
  }
  undo_destruction(call);
  handle_born(error, TYPE_Error, true, call->number, call->id, &made);
  int code = read_error(call->table, error, message, sizeof message);
  check_error(call, code);
  record_error(line, error, code, message);
}

PJRT_Error *trace_call(int table, int number, void *args) {
  Call call = {&tables[table], &functions[number], number, next_call(), args,
               args == NULL ? 0 : *(size_t *)args};
  uint64_t nth = atomic_fetch_add(&counts[number].calls, 1) + 1;
  Line line;
  if (args != NULL && call.size == 0)
    call.size = call.function->size; /* the fault of the host, which check_inputs reports */
  record_begin(&call);
  record_inputs(&line, &call);
  bool may_forward = check_inputs(&call);
  int64_t begin = now();
  PJRT_Error *error = perform(&call, nth, may_forward);
  int64_t duration = now() - begin;
  count_call(number, duration, error != NULL);
  record_duration(&line, begin, duration);
  finish(&call, error, &line);
  if (settings.calls)
    journal_write(&line);
  return error;
}
