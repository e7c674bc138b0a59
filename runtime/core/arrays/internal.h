/* Declarations for the files of this folder alone; arrays.h has the ones for other folders. */
#ifndef PLUGRT_ARRAYS_INTERNAL_H
#define PLUGRT_ARRAYS_INTERNAL_H
#include "arrays/arrays.h"

/* ---- aval.c: what reads and waits ask the aval of an array for ---- */
/* New references; NULL, without exception, of what is no aval, or has none. */
PyObject *aval_reader(PyObject *aval);
PyObject *aval_waiter(PyObject *aval);
PyObject *aval_sharding(PyObject *aval);

/* ---- array_host.c: the host copies of arrays ---- */
PyObject *array_host(PyObject *array, PyObject *unused);
PyObject *array_to_numpy(PyObject *array, PyObject *const *args, Py_ssize_t count, PyObject *names);
/* What was read after an exception, NULL or taken here, of what reads in C: with its own exception if that
   failed, else that one, which was not met again: a signal's, say. */
PyObject *after_python(PyObject *made, PyObject *before);
/* Sets a view of the memory, without an array of NumPy: DONE; NOT_HERE, perhaps with an exception. */
int array_fill_view(PyObject *array, Py_buffer *view, int flags);

/* ---- shards_wait.c: waits for what arrays hold of a backend that gives functions ---- */
extern PyTypeObject *ShardsWait_Type;
int shards_wait_for(PyObject *wait, PyObject *held);  /* as `wait_for_held`; FAILED if interrupted */
int shards_are_ready(PyObject *wait, PyObject *held); /* as `held_is_ready`, perhaps with an exception */

/* ---- array_wait.c: waiting for arrays ---- */
PyObject *array_block_until_ready(PyObject *array, PyObject *const *args, Py_ssize_t count,
                                  PyObject *names);
PyObject *array_is_ready(PyObject *array, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* ---- array_buffer.c: the buffers of arrays for Python's protocol ---- */
int array_getbuffer(PyObject *array, Py_buffer *view, int flags);
void set_buffer_method(PyObject *method);

/* ---- function_reader.c: reads through functions that a backend gives ---- */
extern PyTypeObject *FunctionReader_Type;
/* The contents of what an array holds, which are waited for unless they are there; NULL where Python
   has to read, perhaps with an exception. */
PyObject *function_reader_read(PyObject *reader, PyObject *held, int is_there);
/* The two steps of that: a `HostBuffer` of the contents, NULL where Python reads; and the array over it. */
PyObject *function_reader_acquire(PyObject *reader, PyObject *held, int is_there);
PyObject *function_reader_over(PyObject *reader, PyObject *host_buffer);
/* Sets a view of a `HostBuffer`: DONE; NOT_HERE if it cannot be what the flags ask for. */
int function_reader_fill(PyObject *reader, PyObject *host_buffer, Py_buffer *view, int flags);

#endif
