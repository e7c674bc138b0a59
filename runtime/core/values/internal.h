/* Declarations for the files of this folder alone; values.h has the ones for other folders. */
#ifndef PLUGRT_VALUES_INTERNAL_H
#define PLUGRT_VALUES_INTERNAL_H
#include "values/values.h"

/* ---- dtypes.c: what NumPy's values hold ---- */
int view_known(PyObject *value, Py_buffer *view); /* the same, but runs nothing of Python */
int is_host_data(PyObject *value); /* whether it may have one */

/* ---- host_form.c: arrays of NumPy over memory of others ---- */
PyObject *base_of(PyObject *host); /* of a NumPy array, a new reference; NULL, without exception */

#endif
