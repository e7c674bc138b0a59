/* Arrays: what they hold, how they are copied, read and waited for. */
#ifndef PLUGRT_ARRAYS_H
#define PLUGRT_ARRAYS_H
#include "base/base.h"

/* ---- array.c: the base of plugrt.execution.arrays.array.Array ---- */
typedef struct {
  PyObject_HEAD
  PyObject *shards, *aval, *extra; /* NULL is None; a `HostBuffer` is None to Python */
  char is_there; /* whether the contents were waited for */
} Array;
extern PyTypeObject *array_class;
PyObject *array_holding(PyObject *shards, PyObject *aval); /* takes the reference to shards */
/* Whether an object of that class is referred to weakly, as arrays are that share buffers. */
int array_is_observed(PyObject *array);

/* ---- deletion.c: the base of plugrt.execution.arrays.array_deletion.Deletion ---- */
PyObject *deletion_for(PyObject *taker); /* a donation to it, in the call of the user that runs */

/* ---- copy.c: arrays to buffers on another device of the same library ---- */
extern PyTypeObject *Copy_Type;
/* Sets a new reference to the copy of an array's buffer: DONE. FAILED, or NOT_HERE, as a launch. */
int copy_array(PyObject *self, PyObject *array, PyObject **made);
int is_copy_made(PyObject *self);

/* ---- quick_put.c: device_put ---- */
PyObject *put_quickly(PyObject *module, PyObject *args);

/* ---- collect_held.c: what the arrays of a pytree hold ---- */
/* collect_held(tree): lists of what its arrays hold, and of their avals; None where Python has to
   look. */
PyObject *collect_held(PyObject *module, PyObject *tree);

/* ---- function_reader.c: reads through functions that a backend gives ---- */
/* Whether one of the objects in a tuple is not empty; -1 with an exception. */
int any_is_filled(PyObject *gates);

/* ---- for the module ---- */
int add_array(PyObject *module);
int add_deletion(PyObject *module);
int add_copy(PyObject *module);
int add_shards_wait(PyObject *module);
int add_aval(PyObject *module);
int add_function_reader(PyObject *module);
PyObject *make_array(PyObject *module, PyObject *const *args, Py_ssize_t count);
/* replace_held(array, held): replaces the buffers of an array, and forgets its host copy. */
PyObject *replace_held(PyObject *module, PyObject *args);
PyObject *set_array_class(PyObject *module, PyObject *cls);
PyObject *set_aval_class(PyObject *module, PyObject *cls);
PyObject *set_deletion_class(PyObject *module, PyObject *args);
PyObject *set_read_hooks(PyObject *module, PyObject *args);
PyObject *set_wait_hooks(PyObject *module, PyObject *args);

#endif
