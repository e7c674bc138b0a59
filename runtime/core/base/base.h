/* Declarations for all parts of the core: CPython, result codes, exceptions, locks, types.

   The core uses CPython's limited API only, so that one build serves Python 3.11 and later. Where
   the core cannot handle a case, it calls the Python function that does the same.

   Each folder has a header of its own name with its declarations for other folders. Most also have
   an internal.h with declarations for their own files. The order of folders is base, values,
   library, arrays, launches, calls: a file includes headers of its own folder and of folders before
   it. tests/nothing/test_core_layout.py checks that. */
#ifndef PLUGRT_BASE_H
#define PLUGRT_BASE_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>
#include <structmember.h>

/* Calls with more arguments or results than this use heap memory. */
#define ON_STACK 32
/* Room for `count` items: an array on the stack if it suffices, else heap memory; NULL with an
   exception. */
#define ROOM(on_stack, count) room_for(on_stack, sizeof(on_stack), (count) * sizeof *(on_stack))
static inline void *room_for(void *on_stack, size_t has, size_t size) {
  void *room = size <= has ? on_stack : PyMem_Malloc(size);
  if (!room) PyErr_NoMemory();
  return room;
}

/* Sets a pointer to a function of a library or of NumPy from its address, a number or a pointer. */
#define SET_FUNCTION(field, address) ((field) = (__typeof__(field))(uintptr_t)(address))

enum { FAILED = -1, NOT_HERE = 0, DONE = 1 }; /* result codes; NOT_HERE: Python does it */

/* exceptions.c */
/* Clears the current exception and returns it with its traceback. Returns NULL and leaves it set if
   it is not derived from Exception. */
PyObject *take_exception(void);
void raise_exception(PyObject *exception); /* steals the reference */
/* Clears a TypeError, MemoryError or RecursionError and returns 1: Python repeats the work, and
   raises an error with its own message if it fails, too. Returns 0 for other exceptions. */
int leave_to_python(void);
int is_interrupted(void); /* whether the exception that is set is not derived from Exception */
int drop_exception(void); /* clears exceptions derived from Exception; whether none is left */
/* The exception that is set, if any, kept while other code runs that may raise as well. */
typedef struct {
  PyObject *type, *value, *traceback;
} Raised;
Raised set_aside(void);
/* Restores the exception. One that was raised meanwhile is reported as unraisable in `where`. An
   interrupt that was raised meanwhile stays raised instead, with the restored one as its
   context. */
void put_back(Raised raised, PyObject *where);
/* The same in a finalizer, where `deliver` raises an interrupt later. */
void put_back_alone(Raised raised, PyObject *where);
PyObject *catching(PyObject *module, PyObject *pair);

/* finalizers.c: finalizers. */
/* Handles the exception that is set in a finalizer. One of a signal handler is raised in the main
   thread after the finalizer; any other is reported as unraisable in `where`. Returns whether it is
   one of a signal handler. */
int deliver(PyObject *where);
int is_main(void); /* whether this is the main thread, where signal handlers run */
/* Calls a function that may be called more than once, and calls it again if a signal handler raised
   in it. During a garbage collection, in a callback of a library, or near the recursion limit, the
   call is deferred, and `keep` is referenced until then. Arguments and `keep` may be NULL. */
void finish(PyObject *function, PyObject *arguments, PyObject *keep);
int is_in_callback(void); /* whether a library is calling this thread */

/* python_method.c */
PyObject *call_method(PyObject *function, PyObject *self, PyObject *const *args, Py_ssize_t count,
                      PyObject *names);

/* lock.c: the core's locks and other locks. */
int acquire_lock(PyObject *lock); /* DONE */
int release_lock(PyObject *lock); /* DONE; allocates no memory: a failure would leave it locked */

/* objects.c */
PyObject *tuple_of(PyObject *const *items, Py_ssize_t count); /* steals the references */
PyTypeObject *type_of(PyObject *module, PyType_Spec *spec); /* adds the type to the module */
/* The items of the only argument of a call, a new tuple, which keeps them alive if other threads
   change a list. NULL with an exception: a TypeError with that text if the call is not `allowed` or
   has keywords. */
PyObject *only_argument(PyObject *args, PyObject *kwargs, int allowed, const char *text);
/* the last step of tp_dealloc of a type with garbage collection */
void free_object(PyObject *object);

/* spares.c: memory of freed objects of a class. */
#ifdef __SANITIZE_ADDRESS__ /* which detects the use of freed memory */
enum { MOST_SPARES = 0 };
#else
enum { MOST_SPARES = 64 };
#endif
typedef struct {
  PyTypeObject *type; /* kept for ever; a type with garbage collection */
  allocfunc alloc;
  freefunc free;
  size_t size; /* size of an object in bytes */
  int count;
  PyObject *kept[MOST_SPARES + 1];
} Spares;
int spares_init(Spares *self, PyTypeObject *type); /* 0, or -1 with an exception */
PyObject *spares_make(Spares *self);               /* a tp_alloc */
/* the last step of tp_dealloc, for exactly that class */
void spares_free(Spares *self, PyObject *object);

/* thread_state.c: the thread's trace and settings. */
PyObject *settings_token(void); /* token of the thread's settings, a new reference */
/* The same if the thread traces no function, else NULL, perhaps with an exception. */
PyObject *token_outside_traces(void);
int is_tracing(void); /* whether the thread is tracing a function; -1 with an exception */
/* whether the thread's settings have a transfer guard; -1 with an exception */
int is_guarded(void);
/* change_surroundings(object, name, value): sets an attribute that the trace or the settings depend
   on. */
PyObject *change_surroundings(PyObject *module, PyObject *args);

/* What module.c adds to the Python module. */
int add_lock(PyObject *module);
int add_finalizers(PyObject *module);
PyObject *set_finalizer_hooks(PyObject *module, PyObject *args);
PyObject *call_pending(PyObject *module, PyObject *unused);
PyObject *stop_finalizers(PyObject *module, PyObject *unused);
PyObject *set_trace_state(PyObject *module, PyObject *state);
PyObject *set_settings_hooks(PyObject *module, PyObject *args);

#endif
