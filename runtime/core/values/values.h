/* Host values: their dtypes, avals and memory. */
#ifndef PLUGRT_VALUES_H
#define PLUGRT_VALUES_H
#include "base/base.h"

enum { MAX_RANK = 6 }; /* host values of a higher rank are left to Python */

/* dtypes.c: the dtypes of NumPy's values. */
int number_of_dtype(PyObject *dtype); /* the same number for equal dtypes; 0 for unknown ones */
int is_known_dtype(PyObject *object);  /* whether it is one of the known, immutable dtype objects */
/* The number of a value's dtype, and a view of its elements. 0 and no view for anything else. */
int view_host(PyObject *value, Py_buffer *view);

/* host_avals.c: host values in the key of a call. */
/* The aval, a new reference; NULL if Python has to make the call, perhaps with an exception that is
   not derived from Exception. */
PyObject *host_aval(PyObject *value, PyObject *token);
int is_host_value(PyObject *value); /* whether it may have an aval */
/* borrowed; NULL if Python has to find it */
PyObject *known_host_aval(PyObject *value, PyObject *token);

/* numbers.c: Python's numbers as elements of arrays. */
typedef union {
  char as_bool;
  int32_t as_int32;
  int64_t as_int64;
  float as_float[2];
  double as_double[2];
} Number;
/* Writes a number as an element of that type. 0 if the type is not the number's own, or if NumPy
   has to handle the number. A Python float is rounded to float32 as in NumPy, which warns if it
   overflows. */
int write_number(int type, PyObject *value, Number *out);
/* The element type for numbers of a NumPy kind and size; 0 if the core has none. */
int type_of_numbers(const char *kind, Py_ssize_t size);

/* host_form.c: NumPy arrays over existing memory. */
typedef struct {
  PyObject *dtype;
  Py_ssize_t *dims; /* followed by the strides, in bytes */
  Py_ssize_t size, itemsize; /* in bytes */
  int rank;
} HostForm;
int host_form_init(HostForm *self, PyObject *shape, PyObject *dtype); /* 0, or -1 with an exception */
/* A read-only row-major array over that memory, which `owner` keeps alive. */
PyObject *host_form_over(const HostForm *self, void *data, PyObject *owner);
/* whether a view of it satisfies these flags */
int host_form_suits(const HostForm *self, int flags);
/* Sets all fields of a view of that memory except its owner. The form and the format have to
   outlive it. */
void host_form_fill(const HostForm *self, void *data, const char *format, Py_buffer *view, int flags);
void host_form_clear(HostForm *self);
int find_numpy(void); /* 0, or -1 with an exception */

/* host_buffer.c: buffers of arrays' contents. */
/* A new `HostBuffer`. It asks for bytes alone: the holder has row-major memory and need not make a
   shape and strides. NULL with an exception. */
PyObject *make_host_buffer(PyObject *holder);
const Py_buffer *host_buffer_view(PyObject *host_buffer);
/* Keeps the first object for its lifetime; returns the one that is kept. */
PyObject *host_buffer_keep(PyObject *host_buffer, PyObject *other);
int is_host_buffer(PyObject *object);
/* Whether `extra`, kept by an array beside `held`, is a `HostBuffer` of `held` or a NumPy array
   over one. */
int is_host_buffer_of(PyObject *extra, PyObject *held);

/* What module.c adds to the Python module. */
int add_host_buffer(PyObject *module);
PyObject *set_dtypes(PyObject *module, PyObject *args);
PyObject *set_host_hooks(PyObject *module, PyObject *finding);

#endif
