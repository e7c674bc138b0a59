/* The functions of libraries, called so that their C++ exceptions become errors; trampolines.cc. */
#ifndef PLUGRT_GUARD_H
#define PLUGRT_GUARD_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of functions: by result, or by use of an error, which may be one of an exception. */
enum guarded_kind { RETURNS_POINTER, RETURNS_NOTHING, DESTROYS_ERROR, READS_MESSAGE, READS_CODE, READS_PAYLOADS };
/* A function that calls that one, and returns an error for its exceptions; `label`, which is kept,
   names it in these. NULL if none is left. With the GIL held. */
void *guarded_function(void *function, enum guarded_kind kind, const char *label);
/* The text of an error that is one of an exception; else NULL. */
const char *caught_text(const void *error);
void forget_caught(const void *error); /* frees it, if it is one */
/* Reports the exception of a function that returns nothing; called without the GIL or with it. */
void report_caught(const char *text);

#ifdef __cplusplus
}
#endif
#endif
