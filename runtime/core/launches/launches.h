/* From the arrays of a call to what it returns: launches of programs. */
#ifndef PLUGRT_LAUNCHES_H
#define PLUGRT_LAUNCHES_H
#include "base/base.h"

/* ---- scratch_pool.c: memory that launches of a program read an argument from ---- */
PyObject *forget_result(PyObject *module, PyObject *result);

/* ---- runner.c: runs a program with the arguments of a call ---- */
/* Calls a runner of the core, or a function of the arguments as a tuple. `given` is
   the same sequence of arguments as an object, for Python; or NULL. */
PyObject *run_any(PyObject *runner, PyObject *given, PyObject *const *values, Py_ssize_t count);

/* ---- for the module ---- */
int add_scratch_put(PyObject *module);
int add_launcher(PyObject *module);
int add_bounded_launcher(PyObject *module);
int add_shards_launcher(PyObject *module);
int add_function_launcher(PyObject *module);
int add_tree(PyObject *module);
int add_outputs(PyObject *module);
int add_runner(PyObject *module);

#endif
