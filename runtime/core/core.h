/* What the files of the core share; the types of each subject are in a header of their own.

   All of it is CPython's limited API, so that one build serves Python 3.11 and later. What an
   object of the core cannot do at once it leaves to the Python function that does the same. */
#ifndef PLUGRT_CORE_H
#define PLUGRT_CORE_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>
#include <structmember.h>
#include "library/sizes.h"

/* Calls with more arguments or results than this take memory from the heap. */
#define ON_STACK 32

/* The arguments of a function of a library, all 0 but for their size. */
#define NEW_ARGS(name, args)          \
  struct PJRT_##name##_Args args;     \
  memset(&args, 0, sizeof args);      \
  args.struct_size = SIZE_OF_##name

/* A function of a library or of NumPy, whose address is a number or a pointer. */
#define SET_FUNCTION(field, address) ((field) = (__typeof__(field))(uintptr_t)(address))

enum { FAILED = -1, NOT_HERE = 0, DONE = 1 }; /* of what Python does where it is NOT_HERE */

enum { KNOWN_PAGES = 1024, PAGE_BITS = 12 };
enum { MAX_RANK = 6 }; /* of what the core looks at more closely; host values of more are Python's */

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
/* The same, but an interrupt is reported as well, where nobody could take it from here. */
void put_back_alone(Raised raised, PyObject *where);
PyObject *catching(PyObject *module, PyObject *pair);

/* ---- python_method.c ---- */
PyObject *call_method(PyObject *function, PyObject *self, PyObject *const *args, Py_ssize_t count,
                      PyObject *names);

/* ---- lock.c: locks, the core's own and others ---- */
int acquire_lock(PyObject *lock); /* DONE */
int release_lock(PyObject *lock); /* DONE; needs no memory, for want of which it would stay locked */

/* The head of what launches one program: a Launcher or a FunctionLauncher. `launch` takes arguments
   that the caller holds, and sets one new reference for each of the `produced` results: DONE.
   FAILED with an exception; NOT_HERE if Python has to do it, as `is_ready` (unless NULL) foresees. */
typedef struct {
  PyObject_HEAD
  int (*launch)(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject **results);
  /* As `launch`, and sets what waits, when it is called, until the launch has ended; NULL: none. */
  int (*launch_with_wait)(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                          PyObject **results, PyObject **wait);
  int (*is_ready)(PyObject *self, Py_ssize_t count);
  Py_ssize_t produced;
  int waits_for_uses; /* a launch waits for others that use what it takes, which may wait for it */
} Launching;
int is_launching(PyObject *object); /* whether it is one of the classes that begin with this */

/* ---- objects.c ---- */
PyObject *tuple_of(PyObject *const *items, Py_ssize_t count); /* of new references */
PyTypeObject *type_of(PyObject *module, PyType_Spec *spec); /* adds it to the module */
void free_object(PyObject *object); /* ends the tp_dealloc of a collected type */

/* ---- module.c ---- */
int add_client(PyObject *module);
int add_buffer(PyObject *module);
int add_array(PyObject *module);
int add_deletion(PyObject *module);
int add_put(PyObject *module);
int add_copy(PyObject *module);
int add_scratch_put(PyObject *module);
int add_references(PyObject *module);
int add_view(PyObject *module);
int add_reader(PyObject *module);
int add_executable(PyObject *module);
int add_launcher(PyObject *module);
int add_events(PyObject *module);
int add_lock(PyObject *module);
int add_bounded_launcher(PyObject *module);
int add_shards_wait(PyObject *module);
int add_shards_launcher(PyObject *module);
int add_function_launcher(PyObject *module);
int add_signature(PyObject *module);
int add_host_buffer(PyObject *module);
int add_function_reader(PyObject *module);
int add_tree(PyObject *module);
int add_outputs(PyObject *module);
int add_runner(PyObject *module);
int add_reordered(PyObject *module);
int add_calls(PyObject *module);
PyObject *guard(PyObject *module, PyObject *args);
PyObject *take_caught(PyObject *module, PyObject *address);
PyObject *set_buffer_class(PyObject *module, PyObject *args);
PyObject *make_array(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *set_array_class(PyObject *module, PyObject *cls);
PyObject *set_signature_class(PyObject *module, PyObject *cls);
PyObject *set_deletion_class(PyObject *module, PyObject *args);
PyObject *set_call_hooks(PyObject *module, PyObject *args);
PyObject *set_dtypes(PyObject *module, PyObject *args);
PyObject *set_read_hooks(PyObject *module, PyObject *args);
PyObject *set_host_hooks(PyObject *module, PyObject *finding);
PyObject *set_wait_hooks(PyObject *module, PyObject *args);
PyObject *set_settings_hooks(PyObject *module, PyObject *args);
PyObject *forget_runners(PyObject *module, PyObject *runners);

#include "library/library.h"
#include "arrays/arrays.h"
#include "launches/launches.h"
#include "calls/calls.h"

#endif
