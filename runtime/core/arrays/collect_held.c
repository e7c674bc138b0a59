/* collect_held: the buffers of all arrays in a pytree of built-in containers, to wait for them
   together. */
#include "arrays/arrays.h"

enum { DEEPEST = 50 };

static int take_array(Array *array, PyObject *held, PyObject *avals) {
  if (!array->shards || !array->aval) return NOT_HERE;
  Py_ssize_t count = PyList_Size(avals);
  int known = count && PyList_GetItem(avals, count - 1) == array->aval;
  if (!known && PyList_Append(avals, array->aval)) return FAILED;
  return PyList_Append(held, array->shards) ? FAILED : DONE;
}

/* Appends the buffers of the arrays in `x`, and their avals, without immediate repeats: DONE. Runs
   no Python code, so that no container changes meanwhile. */
static int collect(PyObject *x, int depth, PyObject *held, PyObject *avals) {
  if (x == Py_None) return DONE;
  if (Py_TYPE(x) == array_class) return take_array((Array *)x, held, avals);
  int state = depth == DEEPEST ? NOT_HERE : DONE;
  Py_ssize_t at = 0;
  PyObject *key, *value;
  if (PyDict_CheckExact(x)) {
    while (state == DONE && PyDict_Next(x, &at, &key, &value))
      state = collect(value, depth + 1, held, avals);
  } else if (PyList_CheckExact(x)) {
    for (; state == DONE && at < PyList_Size(x); at++)
      state = collect(PyList_GetItem(x, at), depth + 1, held, avals);
  } else if (PyTuple_CheckExact(x)) {
    for (; state == DONE && at < PyTuple_Size(x); at++)
      state = collect(PyTuple_GetItem(x, at), depth + 1, held, avals);
  } else {
    return NOT_HERE;
  }
  return state;
}

PyObject *collect_held(PyObject *module, PyObject *x) {
  (void)module;
  PyObject *held = PyList_New(0), *avals = held ? PyList_New(0) : NULL, *made = NULL;
  int state = avals ? collect(x, 0, held, avals) : FAILED;
  if (state == DONE) made = PyTuple_Pack(2, held, avals);
  else if (state == NOT_HERE) made = Py_NewRef(Py_None);
  Py_XDECREF(held);
  Py_XDECREF(avals);
  return made;
}
