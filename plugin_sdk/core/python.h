/* python.c: entering and leaving Python; objects.c, key_values.c: the Python types of the core. */
#ifndef PLUGRT_PYTHON_H
#define PLUGRT_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h> /* before the headers of C, which it sets up */

#include "futures.h"
#include "pjrt.h"

typedef struct {
  PyGILState_STATE state;
  PyObject *type, *value, *traceback;
} Entry;

/* Takes the GIL and saves the thread's pending exception; returns an error if there is no Python,
 * or it is being finalised. Each success is followed by leave_python. */
PJRT_Error *enter_python(Entry *entry, const char *function);
/* The same, for hosts that may hold the GIL on another thread until this call returns: UNAVAILABLE
 * if no other thread gets it for ten seconds. */
PJRT_Error *enter_python_in_time(Entry *entry, const char *function);
int try_python(Entry *entry); /* the same for functions that must not fail; 0: Python could not be
                                 entered */
void leave_python(Entry *entry);
void prepare_python(void);
void close_python(void); /* by an exit handler: from now on only its thread enters */
/* Turns the exception that is set into an error, and clears it. An interrupt is raised again when
 * the main thread next runs Python, unless the host raises it. */
PJRT_Error *take_exception(const char *function);
/* Returns (code, message, exception to raise again or None) for an exception and steals the
 * reference to it. NULL stands for an exception that is not set. */
PyObject *describe(const char *function, PyObject *exception);
/* For a function that must not fail: raises an interrupt later, and writes others to stderr. */
void log_exception(const char *function);
void release_object(PyObject *object); /* drops a reference from any state */
extern PyObject *describe_exception;   /* see describe */

/* objects.c, key_values.c: the Python types of the core. */

/* A block of the host's memory with Python's buffer protocol; `done` (may be NULL) is completed
 * when nothing in Python refers to it any more. Takes the reference to `done` in any case. */
PyObject *make_host_memory(const void *base, Py_ssize_t size, int writable, Future *done);
/* A callable that completes a future: f() or f(error). Takes no reference. */
PyObject *make_completion(Future *future);
/* The key-value store that a host passes to create a client, or None; a new reference. */
PyObject *make_key_value_store(const struct PJRT_Client_Create_Args *args);
extern PyObject *error_from_code; /* (code, message) -> exception */
int add_object_types(PyObject *module);
int add_key_value_type(PyObject *module);

#endif
