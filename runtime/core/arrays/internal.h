/* Declarations for the files of this folder alone; arrays.h has the ones for other folders. */
#ifndef PLUGRT_ARRAYS_INTERNAL_H
#define PLUGRT_ARRAYS_INTERNAL_H
#include "arrays/arrays.h"

/* aval.c: the reader and waiter of an aval. */
/* New references; NULL, without an exception, if it is not an aval or has none. */
PyObject *aval_reader(PyObject *aval);
PyObject *aval_waiter(PyObject *aval);
PyObject *aval_sharding(PyObject *aval);

/* array_host.c: the host copies of arrays. */
PyObject *array_host(PyObject *array, PyObject *unused);
PyObject *array_to_numpy(PyObject *array, PyObject *const *args, Py_ssize_t count, PyObject *names);
/* Returns the result of a read in Python that followed a failed read in C; steals both references.
   `made` is that result or NULL, `before` the exception of the failed read or NULL. If the read in
   Python failed, its exception stays set. If it succeeded, `before` is raised, unless it is a
   MemoryError: it did not occur again, as an exception of a signal handler does not. */
PyObject *after_python(PyObject *made, PyObject *before);
/* Sets a view of the memory without making a NumPy array: DONE; NOT_HERE, perhaps with an
   exception. */
int array_fill_view(PyObject *array, Py_buffer *view, int flags);

/* shards_wait.c: waits with functions of a backend. */
extern PyTypeObject *ShardsWait_Type;
int shards_wait_for(PyObject *wait, PyObject *held);  /* as `wait_for_held`; FAILED if interrupted */
int shards_are_ready(PyObject *wait, PyObject *held); /* as `held_is_ready`, perhaps with an exception */

/* array_wait.c: waiting for arrays. */
PyObject *array_block_until_ready(PyObject *array, PyObject *const *args, Py_ssize_t count,
                                  PyObject *names);
PyObject *array_is_ready(PyObject *array, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* array_buffer.c: the buffers of arrays for Python's protocol. */
int array_getbuffer(PyObject *array, Py_buffer *view, int flags);
void set_buffer_method(PyObject *method);

/* function_reader.c: reads with functions of a backend. */
extern PyTypeObject *FunctionReader_Type;
/* The contents of an array, after waiting unless `is_there`. NULL if Python has to read, perhaps
   with an exception. */
PyObject *function_reader_read(PyObject *reader, PyObject *held, int is_there);
/* The two steps of a read: a `HostBuffer` of the contents, NULL if Python has to read; and the
   NumPy array over it. */
PyObject *function_reader_acquire(PyObject *reader, PyObject *held, int is_there);
PyObject *function_reader_over(PyObject *reader, PyObject *host_buffer);
/* Sets a view of a `HostBuffer`: DONE; NOT_HERE if it cannot satisfy the flags. */
int function_reader_fill(PyObject *reader, PyObject *host_buffer, Py_buffer *view, int flags);

#endif
