/* What the environment says: `plugrt trace` sets it, and anybody else may (docs/trace.md). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

Settings settings;

typedef struct {
  int function, code;
  uint64_t nth; /* 0: every call */
} Failure;

enum { MOST_FAILURES = 32 };
static Failure failures[MOST_FAILURES];
static int num_failures;

static bool is_set(const char *name) {
  const char *value = getenv(name);
  return value != NULL && *value != '\0' && strcmp(value, "0") != 0;
}

static int function_number(const char *name, size_t size) {
  for (int i = 0; i < FUNCTION_COUNT; i++)
    if (strlen(functions[i].name) == size && strncmp(functions[i].name, name, size) == 0)
      return i;
  return -1;
}

/* FUNCTION:NTH=CODE, with numbers for NTH and CODE. `plugrt trace` checks what users write. */
static void read_failure(const char *text, size_t size) {
  const char *colon = memchr(text, ':', size), *equals = memchr(text, '=', size);
  if (colon == NULL || equals == NULL || num_failures == MOST_FAILURES)
    return;
  Failure made = {function_number(text, (size_t)(colon - text)), atoi(equals + 1),
                  strtoull(colon + 1, NULL, 10)};
  if (made.function >= 0 && functions[made.function].returns_error)
    failures[num_failures++] = made;
}

void read_settings(void) {
  const char *minor = getenv("PLUGRT_TRACE_REPORT_MINOR"),
             *delay = getenv("PLUGRT_TRACE_DELAY_EVENTS"), *calls = getenv("PLUGRT_TRACE_CALLS"),
             *text = getenv("PLUGRT_TRACE_FAIL");
  settings.folder = getenv("PLUGRT_TRACE_FOLDER");
  settings.library = getenv("PLUGRT_TRACE_LIBRARY");
  settings.hidden_extensions = getenv("PLUGRT_TRACE_HIDE_EXTENSIONS");
  settings.check = is_set("PLUGRT_TRACE_CHECK");
  settings.forward_double_destroys = is_set("PLUGRT_TRACE_FORWARD_DOUBLE_DESTROYS");
  settings.calls = calls == NULL || is_set("PLUGRT_TRACE_CALLS");
  settings.report_minor = minor != NULL && *minor != '\0' ? atoi(minor) : -1;
  settings.event_delay = delay == NULL ? 0 : (int64_t)(atof(delay) * 1e6);
  while (text != NULL && *text != '\0') {
    size_t size = strcspn(text, ",");
    read_failure(text, size);
    text += size + (text[size] == ',');
  }
}

bool is_hidden(const char *extension) {
  const char *list = settings.hidden_extensions;
  while (list != NULL && *list != '\0') {
    size_t size = strcspn(list, ",");
    if (strlen(extension) == size && strncmp(list, extension, size) == 0)
      return true;
    list += size + (list[size] == ',');
  }
  return false;
}

int code_to_fail_with(int function, uint64_t nth) {
  for (int i = 0; i < num_failures; i++)
    if (failures[i].function == function && (failures[i].nth == 0 || failures[i].nth == nth))
      return failures[i].code;
  return 0;
}
