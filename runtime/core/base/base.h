/* What all parts of the core use: CPython, results of functions, exceptions, locks, types.

   All of it is CPython's limited API, so that one build serves Python 3.11 and later. What an
   object of the core cannot do at once it leaves to the Python function that does the same.

   Each folder has a header of its name, with its declarations for other folders, and most have an
   internal.h, with the declarations for their own files. The order of folders is base, values,
   library, arrays, launches, calls: a file includes headers of its own folder and of folders before
   it. tests/nothing/test_core_layout.py checks that. */
#ifndef PLUGRT_BASE_H
#define PLUGRT_BASE_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>
#include <structmember.h>

/* Calls with more arguments or results than this take memory from the heap. */
#define ON_STACK 32

/* A function of a library or of NumPy, whose address is a number or a pointer. */
#define SET_FUNCTION(field, address) ((field) = (__typeof__(field))(uintptr_t)(address))

enum { FAILED = -1, NOT_HERE = 0, DONE = 1 }; /* of what Python does where it is NOT_HERE */

/* ---- exceptions.c ---- */
/* The exception that is set, with its traceback, taken; NULL if it is none derived from Exception,
   which stays set. */
PyObject *take_exception(void);
void raise_exception(PyObject *exception); /* takes the reference */
/* Drops what Python refuses in its own words, or does not meet: whether it is left to it. */
int leave_to_python(void);
int is_interrupted(void); /* whether one is set that is not derived from Exception */
int drop_exception(void); /* drops what is set, but for such a one; whether none is left */
/* What is set, if anything, while something is done that may raise as well. */
typedef struct {
  PyObject *type, *value, *traceback;
} Raised;
Raised set_aside(void);
/* Sets it again. What was raised meanwhile is reported, as of that object; an interrupt stays raised
   instead, and has the other as its context. */
void put_back(Raised raised, PyObject *where);
/* The same in a finalizer, where `deliver` has an interrupt raised later. */
void put_back_alone(Raised raised, PyObject *where);
PyObject *catching(PyObject *module, PyObject *pair);

/* ---- finalizers.c: the ends of objects ---- */
/* Takes the exception that is set, in a finalizer: one of a signal handler is raised in the main thread
   after it, any other is reported as of that object. Whether it is one of a signal handler. */
int deliver(PyObject *where);
int is_main(void); /* whether this is the main thread, where signal handlers run */
/* Calls a function that may be called again, as it is where a signal handler raised in it. In a garbage
   collection or a callback of a library, or without room for calls, it is put off, and `keep` kept until
   then. Arguments and `keep` may be NULL. */
void finish(PyObject *function, PyObject *arguments, PyObject *keep);
int is_in_callback(void); /* whether a library is calling this thread */

/* ---- python_method.c ---- */
PyObject *call_method(PyObject *function, PyObject *self, PyObject *const *args, Py_ssize_t count,
                      PyObject *names);

/* ---- lock.c: locks, the core's own and others ---- */
int acquire_lock(PyObject *lock); /* DONE */
int release_lock(PyObject *lock); /* DONE; needs no memory, for want of which it would stay locked */

/* ---- objects.c ---- */
PyObject *tuple_of(PyObject *const *items, Py_ssize_t count); /* of new references */
PyTypeObject *type_of(PyObject *module, PyType_Spec *spec); /* adds it to the module */
void free_object(PyObject *object); /* ends the tp_dealloc of a collected type */

/* ---- spares.c: memory of freed objects of a class ---- */
#ifdef __SANITIZE_ADDRESS__ /* which finds the use of what was freed */
enum { MOST_SPARES = 0 };
#else
enum { MOST_SPARES = 64 };
#endif
typedef struct {
  PyTypeObject *type; /* kept for ever; collected */
  allocfunc alloc;
  freefunc free;
  size_t size; /* of an object, in bytes */
  int count;
  PyObject *kept[MOST_SPARES + 1];
} Spares;
int spares_init(Spares *self, PyTypeObject *type); /* 0, or -1 with an exception */
PyObject *spares_make(Spares *self);               /* as tp_alloc */
void spares_free(Spares *self, PyObject *object);  /* the end of tp_dealloc, of exactly that class */

/* ---- thread_state.c: what surrounds the calls of a thread ---- */
PyObject *settings_token(void); /* its settings, a new reference */
/* The same where the thread traces no function, else NULL, perhaps with an exception. */
PyObject *token_outside_traces(void);
int is_guarded(void); /* whether its settings have transfers looked at; -1 with an exception */
/* change_surroundings(object, name, value): sets an attribute on which these depend. */
PyObject *change_surroundings(PyObject *module, PyObject *args);

/* ---- for the module ---- */
int add_lock(PyObject *module);
int add_finalizers(PyObject *module);
PyObject *set_finalizer_hooks(PyObject *module, PyObject *args);
PyObject *call_pending(PyObject *module, PyObject *unused);
PyObject *stop_finalizers(PyObject *module, PyObject *unused);
PyObject *set_trace_state(PyObject *module, PyObject *state);
PyObject *set_settings_hooks(PyObject *module, PyObject *args);

#endif
