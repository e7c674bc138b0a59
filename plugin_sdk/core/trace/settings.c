/* The settings in the environment: `plugrt trace` sets them, and any other program may
   (docs/trace.md). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

Settings settings;

typedef struct {
  int function, code;
  uint64_t nth; /* 0: every call */
} Failure;

enum { MOST_FAILURES = 32, LAST_CODE = 16, LONGEST_DELAY = 3600000 /* ms */ };
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

/* `plugrt trace` checks its users' settings; each process reports other errors here. */
static void refuse(const char *name, const char *text, size_t size, const char *expected) {
  fprintf(stderr, "plugrt trace: %s: %.*s is not %s; it is left out\n", name, (int)size, text,
          expected);
}

/* Reads a whole number that is followed by `end`; -1 for any other text and beyond `most`. */
static int64_t read_number(const char *text, const char *end, int64_t most) {
  char *after;
  if (*text < '0' || *text > '9')
    return -1;
  long long number = strtoll(text, &after, 10);
  return after == end && number <= most ? number : -1;
}

/* Reads FUNCTION:NTH=CODE, where NTH and CODE are numbers. */
static void read_failure(const char *text, size_t size) {
  static const char expected[] = "FUNCTION:N=CODE, with a function that returns an error, a number "
                                 "of its call (0: each) and a code from 1 to 16";
  const char *colon = memchr(text, ':', size), *equals = memchr(text, '=', size);
  int function = colon == NULL ? -1 : function_number(text, (size_t)(colon - text));
  int64_t nth = function < 0 || equals == NULL ? -1 : read_number(colon + 1, equals, INT64_MAX);
  int64_t code = nth < 0 ? -1 : read_number(equals + 1, text + size, LAST_CODE);
  if (code < 1 || !functions[function].returns_error)
    refuse("PLUGRT_TRACE_FAIL", text, size, expected);
  else if (num_failures == MOST_FAILURES)
    refuse("PLUGRT_TRACE_FAIL", text, size, "among the first 32");
  else
    failures[num_failures++] = (Failure){function, (int)code, (uint64_t)nth};
}

static int read_minor(const char *text) {
  int64_t minor = text == NULL || *text == '\0' ? -1 : read_number(text, text + strlen(text), INT_MAX);
  if (text != NULL && *text != '\0' && minor < 0)
    refuse("PLUGRT_TRACE_REPORT_MINOR", text, strlen(text), "a minor version");
  return (int)minor;
}

/* Returns milliseconds as nanoseconds. The comparison is false for NaN. */
static int64_t read_delay(const char *text) {
  char *end;
  double milliseconds = text == NULL ? 0 : strtod(text, &end);
  if (text == NULL || *text == '\0')
    return 0;
  if (*end == '\0' && milliseconds >= 0 && milliseconds <= LONGEST_DELAY)
    return (int64_t)(milliseconds * 1e6);
  refuse("PLUGRT_TRACE_DELAY_EVENTS", text, strlen(text), "a number of milliseconds, at most an hour");
  return 0;
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
  settings.report_minor = read_minor(minor);
  settings.event_delay = read_delay(delay);
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
