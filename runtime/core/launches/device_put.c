/* device_put: puts a host value or copies an array to a launch's device, by a Put, a ScratchPut or
   a Copy. */
#include "launches/internal.h"
#include "arrays/arrays.h"
#include "library/library.h"

static int is_device_put(PyObject *object) {
  if (Py_TYPE(object) == Put_Type) return ((Put *)object)->client != NULL;
  if (Py_TYPE(object) == ScratchPut_Type) return is_scratch_put_made(object);
  return Py_TYPE(object) == Copy_Type && is_copy_made(object);
}

int read_device_puts(PyObject *given, Py_ssize_t count, PyObject ***device_puts) {
  if (PyTuple_Size(given) != count) {
    PyErr_SetString(PyExc_ValueError, "a runner has a put, or None, for each argument kept");
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *device_put = PyTuple_GetItem(given, i);
    if (device_put == Py_None || is_device_put(device_put)) continue;
    PyErr_SetString(PyExc_TypeError,
                    "what puts an argument is a Put, ScratchPut or Copy of the core, or None");
    return -1;
  }
  PyObject **made = PyMem_Calloc(count + 1, sizeof *made);
  if (!made) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *device_put = PyTuple_GetItem(given, i);
    if (device_put != Py_None) made[i] = Py_NewRef(device_put);
  }
  *device_puts = made;
  return 0;
}

int device_put_value(PyObject *device_put, PyObject *value, PyObject **made) {
  if (Py_TYPE(device_put) == ScratchPut_Type) return scratch_put_value(device_put, value, made);
  if (Py_TYPE(device_put) == Copy_Type) return copy_array(device_put, value, made);
  return put_value((Put *)device_put, value, made);
}

/* The pool of scratch memory for its values; NULL if there is none. */
static ScratchPool *find_pool(PyObject *device_put) {
  return device_put && Py_TYPE(device_put) == ScratchPut_Type ? get_scratch_pool(device_put) : NULL;
}

int end_device_puts(PyObject *const *device_puts, PyObject *const *held, Py_ssize_t count, int state,
                 PyObject **results, Py_ssize_t produced) {
  int use = state == NOT_HERE ? NOT_USED : NOT_READ;
  Py_ssize_t first = 0;
  while (first < count && !find_pool(device_puts[first])) first++;
  if (first == count) return state;
  PyObject *late = NULL;
  if (state == DONE) {
    ScratchPool *pool = find_pool(device_puts[first]);
    int ready = has_ready_results(pool, results, produced);
    if (ready < 0) {
      while (produced) Py_DECREF(results[--produced]);
      state = FAILED;
    }
    if (ready > 0) use = READ;
    if (!ready) late = scratch_pool_keep(pool, results, produced);
  }
  for (Py_ssize_t i = first; i < count; i++) {
    ScratchPool *pool = find_pool(device_puts[i]);
    if (pool && held[i]) scratch_pool_release(pool, held[i], use, late);
  }
  Py_XDECREF(late);
  return state;
}
