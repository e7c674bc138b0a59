/* Calls of jitted functions: finding the runner of a call. */
#ifndef PLUGRT_CALLS_H
#define PLUGRT_CALLS_H
#include "base/base.h"

/* What module.c adds to the Python module. */
int add_calls(PyObject *module);
PyObject *set_call_hooks(PyObject *module, PyObject *args);
PyObject *forget_runners(PyObject *module, PyObject *runners);

#endif
