/* Checks of the arguments and the results of a call, and the handles that it makes and destroys. */
#include "trace.h"

/* Whether a version's struct has this size. Compilers may round a size up to the alignment. */
static bool is_boundary(const Function *function, size_t size) {
  if (size == function->header)
    return true;
  for (int i = 0; i < function->num_fields; i++) {
    size_t end = (size_t)function->fields[i].offset + function->fields[i].size;
    if (size == end || size == ((end + 7) & ~(size_t)7))
      return true;
  }
  return false;
}

/* Notes it only once, not as a fault: newer hosts have larger structs. */
static void note_larger(const Function *function, size_t stated) {
  static atomic_bool is_noted;
  if (!atomic_exchange(&is_noted, true))
    note("the host's structs are larger than those that plugrt-sdk knows (%s: %zu bytes; %u are "
         "declared): the fields behind are not checked",
         function->name, stated, function->size);
}

static void check_size(const Call *call) {
  const Function *function = call->function;
  size_t stated = call->args == NULL ? 0 : *(size_t *)call->args;
  if (call->args == NULL)
    report(HOST, "struct size", call, "no argument struct (NULL)");
  else if (stated == 0)
    report(HOST, "struct size", call, "struct_size is 0; %u bytes are declared", function->size);
  else if (stated > function->size)
    note_larger(function, stated);
  else if (stated < function->size && !is_boundary(function, stated))
    report(HOST, "struct size", call,
           "struct_size is %zu: no field ends there; %u bytes are declared", stated,
           function->size);
  else if (function->num_fields > 0 &&
           stated < (size_t)function->fields[0].offset + function->fields[0].size)
    report(HOST, "struct size", call,
           "struct_size is %zu: without the field %s; %u bytes are declared", stated,
           function->fields[0].name, function->size);
}

static void report_dead(const Call *call, const Field *field, void *pointer, const Handle *handle) {
  bool again = (field->flags & DESTROYED) != 0;
  report(HOST, again ? "double destroy" : "use after destroy", call,
         "%s is %s#%llu (%p), which %s destroyed in call %llu%s", field->name,
         type_names[field->detail], (unsigned long long)handle->number, pointer,
         functions[handle->died_in].name, (unsigned long long)handle->died_call,
         again && !settings.forward_double_destroys ? "; the library was not called" : "");
}

static void report_unknown(const Call *call, const Field *field, void *pointer) {
  Handle other;
  if (find_other_type(pointer, field->detail, &other) >= 0)
    report(HOST, "wrong type", call, "%s is a %s: %s#%llu (%p); a %s was expected", field->name,
           type_names[other.type], type_names[other.type], (unsigned long long)other.number,
           pointer, type_names[field->detail]);
  else if (call->table->is_complete)
    report(HOST, "unknown handle", call, "%s is %p, which no call returned as a %s", field->name,
           pointer, type_names[field->detail]);
}

/* Returns false if the library must not see the call. */
static bool check_handle(const Call *call, const Field *field, void *pointer) {
  Handle handle = {0};
  int state;
  if (pointer == NULL) {
    if ((field->flags & MAY_BE_NULL) == 0)
      report(HOST, "NULL handle", call, "%s is NULL; a %s was expected", field->name,
             type_names[field->detail]);
    return true;
  }
  if (field->flags & DESTROYED)
    state = handle_dies(pointer, field->detail, call->number, call->id, &handle);
  else
    state = find_handle(pointer, field->detail, &handle);
  if (state == DEAD)
    report_dead(call, field, pointer, &handle);
  if (state == UNKNOWN)
    report_unknown(call, field, pointer);
  return state != DEAD || (field->flags & DESTROYED) == 0 || !settings.check ||
         settings.forward_double_destroys;
}

static void check_handles(const Call *call, const Field *field, void *const *pointers,
                          size_t count) {
  for (size_t i = 0; pointers != NULL && i < count; i++)
    check_handle(call, field, pointers[i]);
}

static void check_lists(const Call *call, const Field *field) {
  struct PJRT_LoadedExecutable_Execute_Args *args = call->args;
  void *const *const *lists = read_pointer(call, field);
  for (size_t i = 0; lists != NULL && i < args->num_devices; i++)
    check_handles(call, field, lists[i], args->num_args);
}

static bool is_asking(int number) {
  return number == FUNCTION_Event_IsReady || number == FUNCTION_Event_Error ||
         number == FUNCTION_Event_Await || number == FUNCTION_Event_OnReady;
}

bool check_inputs(const Call *call) {
  bool may_forward = true;
  if (settings.check)
    check_size(call);
  for (int i = 0; i < call->function->num_fields; i++) {
    const Field *field = &call->function->fields[i];
    if ((field->flags & OUT) != 0 || field->kind < HANDLE || !has_field(call, field))
      continue;
    if (field->kind == HANDLE && (settings.check || (field->flags & DESTROYED) != 0))
      may_forward = check_handle(call, field, read_pointer(call, field)) && may_forward;
    else if (field->kind == HANDLES && settings.check)
      check_handles(call, field, read_pointer(call, field), read_count(call, field));
    else if (field->kind == LISTS && settings.check)
      check_lists(call, field);
    if (field->detail == TYPE_Event && is_asking(call->number))
      handle_was_asked(read_pointer(call, field), TYPE_Event);
  }
  return may_forward;
}

void undo_destruction(const Call *call) {
  for (int i = 0; i < call->function->num_fields; i++) {
    const Field *field = &call->function->fields[i];
    if ((field->flags & DESTROYED) != 0 && has_field(call, field))
      handle_revive(read_pointer(call, field), field->detail, call->id);
  }
}

static void remember(const Call *call, const Field *field, void *pointer) {
  Handle made = {0};
  if (pointer != NULL)
    handle_born(pointer, field->detail, (field->flags & OWNED) != 0, call->number, call->id, &made);
  else if ((field->flags & MAY_BE_NULL) == 0)
    report(LIBRARY, "NULL result", call, "%s is NULL, without an error", field->name);
}

static void remember_all(const Call *call, const Field *field, void *const *pointers,
                         size_t count) {
  if (pointers == NULL && count > 0 && (field->flags & MAY_BE_NULL) == 0)
    report(LIBRARY, "NULL result", call, "%s is NULL, for %zu handles", field->name, count);
  for (size_t i = 0; pointers != NULL && i < count; i++)
    remember(call, field, pointers[i]);
}

static void remember_results(const Call *call, const Field *field) {
  struct PJRT_LoadedExecutable_Execute_Args *args = call->args;
  void *const *const *lists = read_pointer(call, field);
  int64_t count = count_outputs(call);
  for (size_t i = 0; lists != NULL && i < args->num_devices && count > 0; i++)
    remember_all(call, field, lists[i], (size_t)count);
}

static void check_data(const Call *call, const Field *field) {
  size_t count = read_count(call, field);
  if (read_pointer(call, field) == NULL && count > 0)
    report(LIBRARY, "NULL result", call, "%s is NULL, for %zu items", field->name, count);
}

void check_outputs(const Call *call) {
  if (call->args == NULL)
    return;
  for (int i = 0; i < call->function->num_fields; i++) {
    const Field *field = &call->function->fields[i];
    if ((field->flags & OUT) == 0 || !has_field(call, field))
      continue;
    if (field->kind == HANDLE)
      remember(call, field, read_pointer(call, field));
    else if (field->kind == HANDLES)
      remember_all(call, field, read_pointer(call, field), read_count(call, field));
    else if (field->kind == RESULT_LISTS)
      remember_results(call, field);
    else if (field->count != 0)
      check_data(call, field);
  }
  size_t left = *(size_t *)call->args;
  if (left != call->size && left != 0)
    report(LIBRARY, "struct size", call, "it changed the host's struct_size from %zu to %zu",
           call->size, left);
}

void check_error(const Call *call, int code) {
  if (code <= 0 || code >= enumerations[ENUM_Error_Code].count)
    report(LIBRARY, "error code", call, "the error has the code %d; PJRT has 1 to %d", code,
           enumerations[ENUM_Error_Code].count - 1);
}
