/* `trace_call`: every call of every function goes through here. */
#include "trace.h"

static PJRT_Error *forward(const Call *call) {
  void *slot = call->table->slots[call->number];
  if (call->number == FUNCTION_Event_OnReady && call->size >= call->function->size)
    return forward_on_ready(call);
  if (call->function->returns_error)
    return ((AnyFunction)slot)(call->args);
  ((AnyProcedure)slot)(call->args);
  return NULL;
}

/* Fails or answers a call in the tracer, or forwards it. */
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
    call.size = call.function->size; /* an error of the host, which check_inputs reports */
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
