/* Declarations for the files of this folder alone; values.h has the ones for other folders. */
#ifndef PLUGRT_VALUES_INTERNAL_H
#define PLUGRT_VALUES_INTERNAL_H
#include "values/values.h"

/* dtypes.c: the dtypes of NumPy's values. */
int view_known(PyObject *value, Py_buffer *view); /* as `view_host`, but runs no Python code */
int is_host_data(PyObject *value); /* whether it may have a known dtype */

/* host_form.c: NumPy arrays over existing memory. */
/* base of a NumPy array, a new reference; NULL without an exception */
PyObject *base_of(PyObject *host);

#endif
