/* The lines of calls: their arguments and their results. */
#include <string.h>

#include "trace.h"

enum { MOST_ITEMS = 8, LONGEST_TEXT = 160 };

/* Writes Type#number@address with the number of the last handle of this type at the address. */
void record_handle(Line *line, void *pointer, int type) {
  Handle handle = {0};
  if (pointer == NULL) {
    line_text(line, "null");
    return;
  }
  line_text(line, "\"");
  line_text(line, type_names[type]);
  if (find_handle(pointer, type, &handle) != UNKNOWN) {
    line_text(line, "#");
    line_number(line, (int64_t)handle.number);
  }
  line_text(line, "@");
  line_pointer(line, pointer);
  line_text(line, "\"");
}

static void record_handles(Line *line, void *const *pointers, size_t count, int type) {
  line_text(line, "[");
  for (size_t i = 0; i < count && i < MOST_ITEMS; i++) {
    if (i > 0)
      line_text(line, ",");
    record_handle(line, pointers[i], type);
  }
  if (count > MOST_ITEMS) {
    line_text(line, ",\"and ");
    line_number(line, (int64_t)(count - MOST_ITEMS));
    line_text(line, " more\"");
  }
  line_text(line, "]");
}

static void record_lists(Line *line, void *const *const *lists, size_t count, size_t length,
                         int type) {
  line_text(line, "[");
  for (size_t i = 0; i < count && !line_is_long(line); i++) {
    if (i > 0)
      line_text(line, ",");
    record_handles(line, lists[i], lists[i] == NULL ? 0 : length, type);
  }
  line_text(line, "]");
}

static void record_size(Line *line, int64_t size) {
  line_text(line, "\"");
  line_number(line, size);
  line_text(line, " bytes\"");
}

static void record_text(Line *line, const char *text, size_t size) {
  line_quoted(line, text, size < LONGEST_TEXT ? size : LONGEST_TEXT);
}

static void record_program(Line *line, const PJRT_Program *program) {
  char text[64];
  size_t size = program->format == NULL ? 0 : program->format_size;
  if (size > sizeof text - 1)
    size = sizeof text - 1;
  memcpy(text, program->format, size);
  text[size] = '\0';
  line_text(line, "{");
  line_string(line, "format", text);
  line_integer(line, "size", (int64_t)program->code_size);
  line_text(line, "}");
}

static void record_value(Line *line, const PJRT_NamedValue *value) {
  switch (value->type) {
  case PJRT_NamedValue_Type_kString:
    record_text(line, value->string_value, value->value_size);
    break;
  case PJRT_NamedValue_Type_kInt64:
    line_number(line, value->int64_value);
    break;
  case PJRT_NamedValue_Type_kBool:
    line_text(line, value->bool_value ? "true" : "false");
    break;
  default: /* a float or a list: its type and length say enough */
    record_size(line, (int64_t)value->value_size);
  }
}

static void record_named_values(Line *line, const PJRT_NamedValue *values, size_t count) {
  char name[64];
  line_text(line, "{");
  for (size_t i = 0; i < count && i < MOST_ITEMS; i++) {
    size_t size = values[i].name_size < sizeof name - 1 ? values[i].name_size : sizeof name - 1;
    memcpy(name, values[i].name, size);
    name[size] = '\0';
    for (char *c = name; *c != '\0'; c++) /* the library's text becomes a JSON key */
      if (*c == '"' || *c == '\\' || (unsigned char)*c < 0x20)
        *c = '?';
    line_key(line, name);
    record_value(line, &values[i]);
  }
  line_text(line, "}");
}

static void record_dims(Line *line, const int64_t *dims, size_t count) {
  line_text(line, "[");
  for (size_t i = 0; i < count && i < 4 * MOST_ITEMS; i++) {
    line_text(line, i == 0 ? "" : ",");
    line_number(line, dims[i]);
  }
  line_text(line, "]");
}

static int64_t read_integer(const Call *call, const Field *field) {
  const char *at = (char *)call->args + field->offset;
  int32_t narrow;
  int64_t wide;
  if (field->size == 1)
    return *(uint8_t *)at;
  if (field->size == 4) {
    memcpy(&narrow, at, sizeof narrow);
    return narrow;
  }
  memcpy(&wide, at, sizeof wide);
  return wide;
}

static void record_scalar(Line *line, const Call *call, const Field *field) {
  int64_t value = read_integer(call, field);
  const Enumeration *names = &enumerations[field->detail];
  if (field->kind == BOOL)
    line_text(line, value ? "true" : "false");
  else if (field->kind == ENUM && value >= 0 && value < names->count)
    line_quoted(line, names->names[value], strlen(names->names[value]));
  else
    line_number(line, value);
}

static void record_result_lists(Line *line, const Call *call, const Field *field) {
  struct PJRT_LoadedExecutable_Execute_Args *args = call->args;
  int64_t length = count_outputs(call);
  record_lists(line, read_pointer(call, field), args->num_devices, length < 0 ? 0 : (size_t)length,
               field->detail);
}

static void record_pointer(Line *line, const Call *call, const Field *field, void *pointer) {
  struct PJRT_LoadedExecutable_Execute_Args *execute = call->args;
  size_t count = read_count(call, field);
  switch (field->kind) {
  case HANDLE:
    record_handle(line, pointer, field->detail);
    break;
  case HANDLES:
    record_handles(line, pointer, count, field->detail);
    break;
  case LISTS:
    record_lists(line, pointer, execute->num_devices, execute->num_args, field->detail);
    break;
  case RESULT_LISTS:
    record_result_lists(line, call, field);
    break;
  case STRING:
    record_text(line, pointer, count);
    break;
  case BYTES:
    record_size(line, (int64_t)count);
    break;
  case DIMS:
    record_dims(line, pointer, count);
    break;
  case PROGRAM:
    record_program(line, pointer);
    break;
  default:
    record_named_values(line, pointer, count);
  }
}

/* Whether a field is the length of another, which is shown. */
static bool is_count(const Function *function, const Field *field) {
  for (int i = 0; i < function->num_fields; i++)
    if (function->fields[i].count == field->offset)
      return true;
  return false;
}

static void record_field(Line *line, const Call *call, const Field *field) {
  void *pointer;
  if (field->kind == OPAQUE || !has_field(call, field) || line_is_long(line) ||
      (field->kind == SIZE && is_count(call->function, field)))
    return;
  if (field->kind < STRING) {
    line_key(line, field->name);
    record_scalar(line, call, field);
  } else if ((pointer = read_pointer(call, field)) != NULL) {
    line_key(line, field->name);
    record_pointer(line, call, field, pointer);
  }
}

static void record_fields(Line *line, const Call *call, int flags) {
  for (int i = 0; i < call->function->num_fields; i++)
    if ((call->function->fields[i].flags & OUT) == flags)
      record_field(line, call, &call->function->fields[i]);
  line_text(line, "}");
}

/* Writes the call before it runs: if it kills the process, the journal names it. */
void record_begin(const Call *call) {
  Line line;
  if (!settings.calls)
    return;
  line_begin(&line);
  line_integer(&line, "begin", (int64_t)call->id);
  line_string(&line, "function", call->function->name);
  line_integer(&line, "thread", thread_id());
  line_integer(&line, "time", now());
  journal_write(&line);
}

void record_inputs(Line *line, const Call *call) {
  if (!settings.calls)
    return;
  line_begin(line);
  line_integer(line, "call", (int64_t)call->id);
  line_string(line, "function", call->function->name);
  line_integer(line, "thread", thread_id());
  line_key(line, "in");
  line_text(line, "{");
  if (call->args == NULL)
    line_text(line, "}");
  else
    record_fields(line, call, 0);
}

void record_duration(Line *line, int64_t begin, int64_t duration) {
  if (!settings.calls)
    return;
  line_integer(line, "time", begin);
  line_integer(line, "ns", duration);
}

void record_outputs(Line *line, const Call *call) {
  if (!settings.calls || call->args == NULL)
    return;
  line_key(line, "out");
  line_text(line, "{");
  record_fields(line, call, OUT);
}

void record_error(Line *line, PJRT_Error *error, int code, const char *message) {
  if (!settings.calls)
    return;
  line_key(line, "error");
  record_handle(line, error, TYPE_Error);
  line_integer(line, "code", code);
  line_string(line, "message", message);
}
