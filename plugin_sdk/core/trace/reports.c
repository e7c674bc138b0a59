/* `report` for faults, `note` for remarks. */
#include <stdarg.h>
#include <stdio.h>

#include "trace.h"

enum { MOST_REPORTS = 20 };
static atomic_int reports[FUNCTION_COUNT + 1];

static void write_remark(const char *sort, const char *kind, const Call *call, const char *whose,
                         const char *text) {
  Line line;
  line_begin(&line);
  line_string(&line, sort, kind);
  if (whose != NULL)
    line_string(&line, "whose", whose);
  if (call != NULL) {
    line_integer(&line, "call", (int64_t)call->id);
    line_string(&line, "function", call->function->name);
    line_integer(&line, "thread", thread_id());
  }
  line_integer(&line, "time", now());
  line_string(&line, "text", text);
  journal_write(&line);
}

void report(int whose, const char *kind, const Call *call, const char *format, ...) {
  char text[700];
  int number = call == NULL ? FUNCTION_COUNT : call->number;
  va_list arguments;
  if (!settings.check)
    return;
  if (call != NULL && atomic_fetch_add(&reports[number], 1) >= MOST_REPORTS)
    return;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  write_remark("finding", kind, call, whose == HOST ? "host" : "library", text);
}

void note(const char *format, ...) {
  char text[700];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  write_remark("note", "note", NULL, NULL, text);
}
