/* Declarations that the tracer's files share. The tracer is a table of functions around another
 * library's.
 *
 * Only descriptors.h depends on the API's functions, and no file depends on Python: each call goes
 * through `trace_call`, which reads the arguments' fields from the descriptors. The library's
 * handles are passed on unchanged; a table beside them keeps the type of each. */
#ifndef PLUGRT_TRACE_H
#define PLUGRT_TRACE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../pjrt.h"

enum Kind { OPAQUE, INT32, INT64, SIZE, BOOL, ENUM, STRING, BYTES, DIMS, PROGRAM, NAMED_VALUES,
            HANDLE, HANDLES, LISTS, RESULT_LISTS };
enum { OUT = 1, OWNED = 2, DESTROYED = 4, MAY_BE_NULL = 8 };

typedef struct {
  const char *name;
  uint8_t kind, flags, detail; /* detail: the type of handle, or the enumeration */
  uint16_t offset, size, count; /* count: the offset of the field with the length, 0: none */
} Field;

typedef struct {
  const char *name;
  const Field *fields;
  uint16_t num_fields, header, size, since;
  bool returns_error;
} Function;

typedef struct {
  const char *const *names;
  int count;
} Enumeration;

typedef struct {
  const char *name;
  int type, first, count; /* first: the number of its first function */
} Extension;

#include "descriptors.h"

extern const Function functions[];
extern const Enumeration enumerations[];
extern const Extension extensions[];
extern const size_t num_extensions;
extern const char *const type_names[];

typedef PJRT_Error *(*AnyFunction)(void *args);
typedef void (*AnyProcedure)(void *args);

typedef struct Table {
  const PJRT_Api *real;
  PJRT_Api *traced;
  char path[512];
  void *slots[FUNCTION_COUNT]; /* the library's functions */
  bool is_complete;            /* no function of the library is untraced */
} Table;
extern Table tables[MOST_TABLES];

/* settings.c: settings from the environment.
   */

typedef struct {
  bool check, calls, forward_double_destroys;
  int report_minor; /* -1: the library's own */
  int64_t event_delay; /* ns */
  const char *folder, *library, *hidden_extensions;
} Settings;
extern Settings settings;
void read_settings(void); /* once */
bool is_hidden(const char *extension);
/* Returns the error code that this call of a function must fail with; 0: none. */
int code_to_fail_with(int function, uint64_t nth);

/* journal.c: a file of JSON lines that outlives a crash. */

typedef struct {
  size_t size;
  char text[4096];
} Line;

void line_begin(Line *line);
void line_text(Line *line, const char *text); /* not escaped */
void line_number(Line *line, int64_t number);
void line_pointer(Line *line, const void *pointer);
void line_quoted(Line *line, const char *text, size_t size);
void line_key(Line *line, const char *name); /* a comma if needed, and "name": */
void line_string(Line *line, const char *name, const char *text);
void line_integer(Line *line, const char *name, int64_t number);
bool line_is_long(const Line *line); /* true: omit further details */
void journal_write(Line *line); /* closes the braces and writes the line */
void journal_close(void);
void journal_forget(void); /* in a forked child: the parent keeps the file */

/* clock.c: time, threads, and counts of calls. */

int64_t now(void); /* ns */
int64_t thread_id(void);
void forget_thread(void); /* in a forked child: its thread has another id */
uint64_t next_call(void);

typedef struct {
  atomic_ullong calls, errors;
  atomic_llong total, longest; /* ns */
} Count;
extern Count counts[FUNCTION_COUNT];
void count_call(int function, int64_t duration, bool failed);

/* process.c: the beginning and the end. */

void prepare_process(void); /* once a process, and again in a forked child */

/* handles.c: the type of each pointer.
   */

typedef struct Handle {
  struct Handle *next;
  void *pointer;
  uint64_t number; /* counts the handles of a type from 1 */
  uint64_t born_call, died_call;
  int64_t born_at;
  int owned; /* how many times the host has to destroy it */
  int16_t born_in, died_in;
  uint8_t type;
  bool is_borrowed, was_asked, is_inherited;
  int64_t num_outputs; /* of an executable; -1: unknown */
} Handle;

enum { UNKNOWN, ALIVE, DEAD };
/* Returns the state of a handle: UNKNOWN, ALIVE or DEAD; copies its record to `found`. */
int find_handle(void *pointer, int type, Handle *found);
/* The type of a pointer that is alive as another type; -1: none. */
int find_other_type(void *pointer, int type, Handle *found);
/* Records a handle that the library returned. */
void handle_born(void *pointer, int type, bool owned, int function, uint64_t call, Handle *made);
/* Records a destruction; returns the handle's state before it, and its record in `found`. */
int handle_dies(void *pointer, int type, int function, uint64_t call, Handle *found);
void handle_revive(void *pointer, int type, uint64_t call); /* the library refused to destroy it */
void handle_was_asked(void *pointer, int type);
void handle_set_outputs(void *pointer, int64_t num_outputs);
void write_handle_counts(Line *line);
void report_leaks(void);
void inherit_handles(void); /* in a forked child */

/* call.c */

typedef struct {
  const Table *table;
  const Function *function;
  int number; /* of the function */
  uint64_t id;
  void *args;
  size_t size; /* the size that the host states */
} Call;

PJRT_Error *trace_call(int table, int function, void *args);

/* fields.c: the arguments of a call. */

/* Whether the host's struct is long enough to have a field. */
bool has_field(const Call *call, const Field *field);
void *read_pointer(const Call *call, const Field *field);
size_t read_count(const Call *call, const Field *field);
int64_t count_outputs(const Call *call); /* of the executable of Execute; -1: unknown */

/* record.c: the lines of a call. */

void record_begin(const Call *call);
void record_inputs(Line *line, const Call *call);
void record_duration(Line *line, int64_t begin, int64_t duration);
void record_outputs(Line *line, const Call *call);
void record_error(Line *line, PJRT_Error *error, int code, const char *message);
void record_handle(Line *line, void *pointer, int type);

/* reports.c: faults, and remarks. */

enum { HOST, LIBRARY };
void report(int whose, const char *kind, const Call *call, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* checks.c */

/* Checks a call first; false: do not forward it. Marks the handles that it destroys. */
bool check_inputs(const Call *call);
/* After a successful call: records the handles that the library returned. */
void check_outputs(const Call *call);
void undo_destruction(const Call *call); /* after a failed call */
void check_error(const Call *call, int code);

/* errors.c: errors, the library's and our own. */

PJRT_Error *make_error(int code, const char *message);
/* Answers a call about an error of the tracer; false for the library's. */
bool answer_error(const Call *call, PJRT_Error **result);
/* The code and the message of an error of the library. */
int read_error(const Table *table, PJRT_Error *error, char *message, size_t size);

/* events.c: callbacks, and delays. */

/* Forwards Event_OnReady with a callback that records the host's. */
PJRT_Error *forward_on_ready(const Call *call);
void await_delayed_event(const Call *call); /* before Event_Await */
void hide_delayed_event(const Call *call);  /* after Event_IsReady */

/* table.c, thunks.c */

const PJRT_Api *plugrt_trace_wrap(const PJRT_Api *real, const char *path);
extern void *const thunks[MOST_TABLES][FUNCTION_COUNT];

#endif
