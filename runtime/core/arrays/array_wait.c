/* Array.block_until_ready and Array.is_ready, for arrays of a library or of another backend. After
   a failure here, Python waits again and raises the exception with its message. */
#include "arrays/internal.h"
#include "library/library.h"

static PyObject *wait_in_python, *ask_in_python; /* methods of the class derived from Array */
static PyObject *gates; /* Python waits while one of these is not empty */

/* The waiter for an array that does not hold a buffer of a library; NULL if Python has to wait. */
static PyObject *waiter_of(const Array *array) {
  PyObject *waiter = aval_waiter(array->aval);
  if (waiter && Py_TYPE(waiter) != ShardsWait_Type) Py_CLEAR(waiter);
  return waiter;
}

/* Whether this file can wait for the array. */
static int is_looked_at(const Array *array) {
  return array->shards && array->shards != Py_None && array->aval && gates && !any_is_filled(gates);
}

/* DONE; any other result, perhaps with an exception, if Python has to wait. */
static int wait_here(Array *array) {
  if (!is_looked_at(array)) return NOT_HERE;
  PyObject *held = Py_NewRef(array->shards); /* another thread may delete it */
  Client *client = (Client *)Py_XNewRef((PyObject *)client_of_held(held));
  PyObject *waiter = client ? NULL : waiter_of(array);
  int state = NOT_HERE;
  if (client) state = wait_for_held(client, held);
  else if (waiter) state = shards_wait_for(waiter, held);
  if (state == DONE && array->shards == held) array->is_there = 1;
  Py_XDECREF(waiter);
  Py_XDECREF((PyObject *)client);
  Py_DECREF(held);
  return state;
}

/* Whether the array is ready; -1, perhaps with an exception, if Python has to check. */
static int ask_here(Array *array) {
  if (!is_looked_at(array)) return -1;
  PyObject *held = Py_NewRef(array->shards);
  Client *client = (Client *)Py_XNewRef((PyObject *)client_of_held(held));
  PyObject *waiter = client ? NULL : waiter_of(array);
  int ready = -1;
  if (client) ready = held_is_ready(client, held);
  else if (waiter) ready = shards_are_ready(waiter, held);
  Py_XDECREF(waiter);
  Py_XDECREF((PyObject *)client);
  Py_DECREF(held);
  return ready;
}

PyObject *array_block_until_ready(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                  PyObject *names) {
  int is_plain = !count && (!names || !PyTuple_Size(names));
  if (is_plain && wait_here((Array *)self) == DONE) return Py_NewRef(self);
  return drop_exception() ? call_method(wait_in_python, self, args, count, names) : NULL;
}

PyObject *array_is_ready(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
  int ready = !count && (!names || !PyTuple_Size(names)) ? ask_here((Array *)self) : -1;
  if (ready >= 0) return PyBool_FromLong(ready);
  return drop_exception() ? call_method(ask_in_python, self, args, count, names) : NULL;
}

PyObject *set_wait_hooks(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *wait, *ask, *unless;
  if (!PyArg_ParseTuple(args, "OOO!", &wait, &ask, &PyTuple_Type, &unless)) return NULL;
  wait_in_python = Py_NewRef(wait); /* kept for ever, as the classes are */
  ask_in_python = Py_NewRef(ask);
  gates = Py_NewRef(unless);
  Py_RETURN_NONE;
}
