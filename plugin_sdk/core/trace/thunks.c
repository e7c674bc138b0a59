/* An entry point of each function for each table. */
#define THUNKS
#include "trace.h"

#define FUNCTION(table, function)                                                                  \
  static PJRT_Error *call_##table##_##function(void *args) {                                       \
    return trace_call(table, function, args);                                                      \
  }
#define PROCEDURE(table, function)                                                                 \
  static void call_##table##_##function(void *args) { trace_call(table, function, args); }
#define ENTRY(table, function) (void *)call_##table##_##function,

EACH_FUNCTION(0, FUNCTION, PROCEDURE)
EACH_FUNCTION(1, FUNCTION, PROCEDURE)
EACH_FUNCTION(2, FUNCTION, PROCEDURE)
EACH_FUNCTION(3, FUNCTION, PROCEDURE)
EACH_FUNCTION(4, FUNCTION, PROCEDURE)
EACH_FUNCTION(5, FUNCTION, PROCEDURE)
EACH_FUNCTION(6, FUNCTION, PROCEDURE)
EACH_FUNCTION(7, FUNCTION, PROCEDURE)

void *const thunks[MOST_TABLES][FUNCTION_COUNT] = {
    {EACH_FUNCTION(0, ENTRY, ENTRY)}, {EACH_FUNCTION(1, ENTRY, ENTRY)},
    {EACH_FUNCTION(2, ENTRY, ENTRY)}, {EACH_FUNCTION(3, ENTRY, ENTRY)},
    {EACH_FUNCTION(4, ENTRY, ENTRY)}, {EACH_FUNCTION(5, ENTRY, ENTRY)},
    {EACH_FUNCTION(6, ENTRY, ENTRY)}, {EACH_FUNCTION(7, ENTRY, ENTRY)},
};
