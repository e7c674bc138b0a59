/* Arrays and host values: what they hold, how they are put, copied and read. */
#ifndef PLUGRT_ARRAYS_H
#define PLUGRT_ARRAYS_H

/* ---- spares.c: memory of freed objects of a class ---- */
#ifdef __SANITIZE_ADDRESS__ /* which finds the use of what was freed */
enum { MOST_SPARES = 0 };
#else
enum { MOST_SPARES = 64 };
#endif
typedef struct {
  PyTypeObject *type; /* kept for ever; collected */
  allocfunc alloc;
  freefunc free;
  size_t size; /* of an object, in bytes */
  int count;
  PyObject *kept[MOST_SPARES + 1];
} Spares;
int spares_init(Spares *self, PyTypeObject *type); /* 0, or -1 with an exception */
PyObject *spares_make(Spares *self);               /* as tp_alloc */
void spares_free(Spares *self, PyObject *object);  /* the end of tp_dealloc, of exactly that class */

/* ---- array.c: the base of plugrt.execution.arrays.array.Array ---- */
typedef struct {
  PyObject_HEAD
  PyObject *shards, *signature, *extra; /* NULL is None; a `HostBuffer` is None to Python */
  char is_there; /* whether the contents were waited for */
} Array;
extern PyTypeObject *Array_Type, *array_class;
PyObject *array_holding(PyObject *shards, PyObject *signature); /* takes the reference to shards */
/* Whether an object of that class is referred to weakly, as arrays are that share buffers. */
int array_is_observed(PyObject *array);

/* ---- deletion.c: the base of plugrt.execution.arrays.array_deletion.Deletion ---- */
PyObject *deletion_for(PyObject *taker); /* a donation to it, in the call of the user that runs */

/* ---- dtypes.c: what NumPy's values hold ---- */
int number_of_dtype(PyObject *dtype); /* the same for equal ones; 0 for those that are not known */
int is_known_dtype(PyObject *object);  /* whether it is one of those themselves, which do not change */
/* The number of a value's dtype, with a view of its elements; 0, and no view, for anything else. */
int view_host(PyObject *value, Py_buffer *view);
int view_known(PyObject *value, Py_buffer *view); /* the same, but runs nothing of Python */
int is_host_data(PyObject *value); /* whether it may have one */

/* ---- host_avals.c: host values in the key of a call ---- */
/* The aval, a new reference; NULL where Python has to take the call, perhaps with an exception that
   is not derived from Exception. */
PyObject *host_aval(PyObject *value, PyObject *token);
int is_host_value(PyObject *value); /* whether it may have an aval */
PyObject *known_host_aval(PyObject *value, PyObject *token); /* borrowed; NULL if Python has to look */

/* ---- put.c: host values to buffers ---- */
typedef struct {
  PyObject_HEAD
  Client *client;
  PyObject *spec, *owner; /* of the buffers; what explains errors */
  struct PJRT_Client_BufferFromHostBuffer_Args args; /* all but the data */
  PyObject *keep;                                    /* what the arguments point to */
  int dtype;                  /* its number */
  int number;                 /* whether the values are Python's numbers */
  PyObject *last, *last_made; /* the last number and its buffer */
} Put;
extern PyTypeObject *Put_Type;
/* Sets a new reference to the buffer: DONE. FAILED, or NOT_HERE, as a launch. */
int put_value(Put *self, PyObject *value, PyObject **made);
int put_anew(Put *self, PyObject *value, PyObject **made); /* nobody else has the buffer */

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

/* ---- copy.c: arrays to buffers on another device of the same library ---- */
extern PyTypeObject *Copy_Type;
/* Sets a new reference to the copy of an array's buffer: DONE. FAILED, or NOT_HERE, as a launch. */
int copy_array(PyObject *self, PyObject *array, PyObject **made);
int is_copy_made(PyObject *self);

/* ---- quick_put.c: device_put ---- */
PyObject *put_quickly(PyObject *module, PyObject *args);

/* ---- signature.c: what reads and waits ask the signature of an array for ---- */
typedef struct {
  PyObject_HEAD
  PyObject *sharding, *reader, *waiter;
} Signature;
/* New references; NULL, without exception, of what is no signature, or has none. */
PyObject *signature_reader(PyObject *signature);
PyObject *signature_waiter(PyObject *signature);
PyObject *signature_sharding(PyObject *signature);

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
PyObject *base_of(PyObject *host); /* of a NumPy array, a new reference; NULL, without exception */
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

/* ---- collect_held.c: what the arrays of a pytree hold ---- */
/* collect_held(tree): lists of what its arrays hold, and of their signatures; None where Python has to
   look. */
PyObject *collect_held(PyObject *module, PyObject *tree);

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
/* Whether one of the objects in a tuple is not empty; -1 with an exception. */
int any_is_filled(PyObject *gates);
/* The contents of what an array holds, which are waited for unless they are there; NULL where Python
   has to read, perhaps with an exception. */
PyObject *function_reader_read(PyObject *reader, PyObject *held, int is_there);
/* The two steps of that: a `HostBuffer` of the contents, NULL where Python reads; and the array over it. */
PyObject *function_reader_acquire(PyObject *reader, PyObject *held, int is_there);
PyObject *function_reader_over(PyObject *reader, PyObject *host_buffer);
/* Sets a view of a `HostBuffer`: DONE; NOT_HERE if it cannot be what the flags ask for. */
int function_reader_fill(PyObject *reader, PyObject *host_buffer, Py_buffer *view, int flags);

#endif
