/* Host values: their dtypes, avals and memory. */
#ifndef PLUGRT_VALUES_H
#define PLUGRT_VALUES_H
#include "base/base.h"

enum { MAX_RANK = 6 }; /* of what the core looks at more closely; host values of more are Python's */

/* ---- dtypes.c: what NumPy's values hold ---- */
int number_of_dtype(PyObject *dtype); /* the same for equal ones; 0 for those that are not known */
int is_known_dtype(PyObject *object);  /* whether it is one of those themselves, which do not change */
/* The number of a value's dtype, with a view of its elements; 0, and no view, for anything else. */
int view_host(PyObject *value, Py_buffer *view);

/* ---- host_avals.c: host values in the key of a call ---- */
/* The aval, a new reference; NULL where Python has to take the call, perhaps with an exception that
   is not derived from Exception. */
PyObject *host_aval(PyObject *value, PyObject *token);
int is_host_value(PyObject *value); /* whether it may have an aval */
PyObject *known_host_aval(PyObject *value, PyObject *token); /* borrowed; NULL if Python has to look */

/* ---- numbers.c: Python's numbers as elements of arrays ---- */
typedef union {
  char as_bool;
  int32_t as_int32;
  int64_t as_int64;
  float as_float[2];
  double as_double[2];
} Number;
/* Writes a number in an element type; 0 if that is not one of its own or needs NumPy's care.
   A float that is no float32 becomes the nearest, as in NumPy, which warns of those beyond. */
int write_number(int type, PyObject *value, Number *out);
/* The element type of numbers of a kind of NumPy's, and of that size; 0 where the core has none. */
int type_of_numbers(const char *kind, Py_ssize_t size);

/* ---- host_form.c: arrays of NumPy over memory of others ---- */
typedef struct {
  PyObject *dtype;
  Py_ssize_t *dims; /* and after them the strides, in bytes */
  Py_ssize_t size, itemsize; /* in bytes */
  int rank;
} HostForm;
int host_form_init(HostForm *self, PyObject *shape, PyObject *dtype); /* 0, or -1 with an exception */
/* A read-only array over that memory, in row-major order, which `owner` keeps. */
PyObject *host_form_over(const HostForm *self, void *data, PyObject *owner);
int host_form_suits(const HostForm *self, int flags); /* a view of it what these ask for */
/* Sets all of a view of that memory but its owner; the form, and the format, are to outlast it. */
void host_form_fill(const HostForm *self, void *data, const char *format, Py_buffer *view, int flags);
void host_form_clear(HostForm *self);
int find_numpy(void); /* 0, or -1 with an exception */

/* ---- host_buffer.c: buffers of what arrays hold ---- */
/* A new `HostBuffer`. It asks for bytes alone: a holder need not make dimensions and strides, and gives
   row-major memory. NULL with an exception. */
PyObject *make_host_buffer(PyObject *holder);
const Py_buffer *host_buffer_view(PyObject *host_buffer);
/* Keeps the first one, as long as it is there; returns which. */
PyObject *host_buffer_keep(PyObject *host_buffer, PyObject *other);
int is_host_buffer(PyObject *object);
/* Whether what an array keeps beside `held` is a `HostBuffer` of that, or an array of NumPy over one. */
int is_host_buffer_of(PyObject *extra, PyObject *held);

/* ---- for the module ---- */
int add_host_buffer(PyObject *module);
PyObject *set_dtypes(PyObject *module, PyObject *args);
PyObject *set_host_hooks(PyObject *module, PyObject *finding);

#endif
