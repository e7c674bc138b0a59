/* Arrays: their fields, copies, reads and waits. */
#ifndef PLUGRT_ARRAYS_H
#define PLUGRT_ARRAYS_H
#include "base/base.h"

/* array.c: the base of plugrt.execution.arrays.array.Array. */
typedef struct {
  PyObject_HEAD
  PyObject *shards, *aval, *extra; /* NULL is None; Python sees a `HostBuffer` as None */
  char is_there; /* whether the contents were waited for */
} Array;
extern PyTypeObject *array_class;
PyObject *array_holding(PyObject *shards, PyObject *aval); /* steals the reference to shards */
/* Whether there are weak references to an array, as there are if arrays share buffers. */
int array_is_observed(PyObject *array);

/* deletion.c: the base of plugrt.execution.arrays.array_deletion.Deletion. */
/* records a donation to `taker` by the user's current call */
PyObject *deletion_for(PyObject *taker);

/* copy.c: copies of arrays on another device of the same library. */
extern PyTypeObject *Copy_Type;
/* Sets a new reference to the copy of an array's buffer: DONE. FAILED or NOT_HERE, as for a
   launch. */
int copy_array(PyObject *self, PyObject *array, PyObject **made);
int is_copy_made(PyObject *self);

/* quick_put.c: device_put. */
PyObject *put_quickly(PyObject *module, PyObject *args);

/* collect_held.c: the buffers of the arrays in a pytree. */
/* collect_held(tree): lists of its arrays' buffers and of their avals; None if Python has to
   collect them. */
PyObject *collect_held(PyObject *module, PyObject *tree);

/* function_reader.c: reads with functions of a backend. */
/* Whether one of the objects in a tuple is not empty; -1 with an exception. */
int any_is_filled(PyObject *gates);

/* What module.c adds to the Python module. */
int add_array(PyObject *module);
int add_deletion(PyObject *module);
int add_copy(PyObject *module);
int add_shards_wait(PyObject *module);
int add_aval(PyObject *module);
int add_function_reader(PyObject *module);
PyObject *make_array(PyObject *module, PyObject *const *args, Py_ssize_t count);
/* replace_held(array, held): replaces the buffers of an array and drops its host copy. */
PyObject *replace_held(PyObject *module, PyObject *args);
PyObject *set_array_class(PyObject *module, PyObject *cls);
PyObject *set_aval_class(PyObject *module, PyObject *cls);
PyObject *set_deletion_class(PyObject *module, PyObject *args);
PyObject *set_read_hooks(PyObject *module, PyObject *args);
PyObject *set_wait_hooks(PyObject *module, PyObject *args);

#endif
