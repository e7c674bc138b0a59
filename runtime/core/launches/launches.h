/* Launches of programs: from the arrays of a call to its result. */
#ifndef PLUGRT_LAUNCHES_H
#define PLUGRT_LAUNCHES_H
#include "base/base.h"

/* scratch_pool.c: reusable memory for an argument of launches. */
PyObject *forget_result(PyObject *module, PyObject *result);

/* runner.c: runs a program with the arguments of a call. */
/* Calls a runner of the core, or a Python function with the arguments as a tuple. `given` is a
   tuple of the same arguments, for Python, or NULL. */
PyObject *run_any(PyObject *runner, PyObject *given, PyObject *const *values, Py_ssize_t count);

/* What module.c adds to the Python module. */
int add_scratch_put(PyObject *module);
int add_launcher(PyObject *module);
int add_bounded_launcher(PyObject *module);
int add_shards_launcher(PyObject *module);
int add_function_launcher(PyObject *module);
int add_tree(PyObject *module);
int add_outputs(PyObject *module);
int add_runner(PyObject *module);

#endif
