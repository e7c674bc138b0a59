/* The lines that are written when a process begins and ends. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trace.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void write_command(Line *line) {
  char text[2048];
  FILE *file = fopen("/proc/self/cmdline", "rb");
  size_t size = file == NULL ? 0 : fread(text, 1, sizeof text, file), begin = 0;
  if (file != NULL)
    fclose(file);
  line_key(line, "command");
  line_text(line, "[");
  for (size_t i = 0; i < size && !line_is_long(line); i++) {
    if (text[i] != '\0')
      continue;
    line_text(line, begin == 0 ? "" : ",");
    line_quoted(line, text + begin, i - begin);
    begin = i + 1;
  }
  line_text(line, "]");
}

static void write_beginning(void) {
  Line line;
  line_begin(&line);
  line_integer(&line, "process", getpid());
  line_integer(&line, "parent", getppid());
  line_integer(&line, "time", now());
  write_command(&line);
  journal_write(&line);
}

static void in_forked_child(void) {
  forget_thread();
  journal_forget();
  memset(counts, 0, sizeof counts);
  inherit_handles();
  write_beginning();
}

static void prepare(void) {
  read_settings();
  write_beginning();
  pthread_atfork(NULL, NULL, in_forked_child);
}

void prepare_process(void) { pthread_once(&once, prepare); }

static void write_function(Line *line, int number) {
  Count *count = &counts[number];
  if (count->calls == 0)
    return;
  line_key(line, functions[number].name);
  line_text(line, "[");
  line_number(line, (int64_t)count->calls);
  line_text(line, ",");
  line_number(line, (int64_t)count->errors);
  line_text(line, ",");
  line_number(line, count->total);
  line_text(line, ",");
  line_number(line, count->longest);
  line_text(line, "]");
}

/* Writes several lines: a line has room for some of the functions only. */
static void write_counts(void) {
  enum { PART = 16 };
  for (int begin = 0; begin < FUNCTION_COUNT; begin += PART) {
    Line line;
    line_begin(&line);
    line_key(&line, "counts");
    line_text(&line, "{");
    for (int i = begin; i < begin + PART && i < FUNCTION_COUNT; i++)
      write_function(&line, i);
    line_text(&line, "}");
    journal_write(&line);
  }
}

/* Hosts never unload a plugin, so this runs when the process ends, after their exit handlers. */
__attribute__((destructor)) static void write_end(void) {
  Line line;
  if (tables[0].real == NULL)
    return;
  if (settings.check)
    report_leaks();
  write_counts();
  line_begin(&line);
  line_integer(&line, "end", now());
  write_handle_counts(&line);
  journal_write(&line);
  journal_close();
}
