/* Calls functions of libraries so that their C++ exceptions become errors; see trampolines.cc. */
#ifndef PLUGRT_GUARD_H
#define PLUGRT_GUARD_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of functions: by result, or by their use of an error, which may come from an
   exception. */
enum guarded_kind { RETURNS_POINTER, RETURNS_NOTHING, DESTROYS_ERROR, READS_MESSAGE, READS_CODE, READS_PAYLOADS };
/* Returns a function that calls the given one and returns an error for its exceptions. `label` is
   kept and names it in these errors. NULL if no more are available. Needs the GIL. */
void *guarded_function(void *function, enum guarded_kind kind, const char *label);
/* The text of an error that comes from an exception; else NULL. */
const char *caught_text(const void *error);
void forget_caught(const void *error); /* frees the error if it comes from an exception */
/* Reports an exception of a function that returns nothing; with or without the GIL. */
void report_caught(const char *text);

#ifdef __cplusplus
}
#endif
#endif
