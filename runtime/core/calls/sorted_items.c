/* The keys and values of a dict at one moment, in the order of pytrees, sorted by key. */
#include <stdlib.h>

#include "calls/internal.h"

static PyObject *order_keys; /* order_keys(keys): their numbers in that order, a list */

typedef struct {
  PyObject *key;
  Py_ssize_t number;
} Entry;

static int compare(const void *one, const void *other) {
  return PyUnicode_Compare(((const Entry *)one)->key, ((const Entry *)other)->key);
}

/* A tuple of the keys after `first`, if there is one; the values are appended to a list. Both are of one
   moment: no object is made there, so that the collector does not run, and in that Python code. */
static PyObject *read_items(PyObject *first, PyObject *dict, PyObject *values) {
  Py_ssize_t at = 0, next = first != NULL, count;
  PyObject *key, *value, *made = NULL;
  do { /* where a tuple is made, up to Python 3.11, the collector may run, and change the dict */
    Py_XDECREF(made);
    count = PyDict_Size(dict);
    made = PyTuple_New(next + count);
  } while (made && PyDict_Size(dict) != count);
  if (made && first) PyTuple_SetItem(made, 0, Py_NewRef(first));
  while (made && count-- && PyDict_Next(dict, &at, &key, &value)) {
    PyTuple_SetItem(made, next++, Py_NewRef(key));
    if (PyList_Append(values, value)) Py_CLEAR(made);
  }
  return made;
}

/* Whether keys are str, and in order: 2. Or str alone: 1. */
static int are_sorted(PyObject *keys, Py_ssize_t skip) {
  int answer = 2;
  for (Py_ssize_t i = skip; i < PyTuple_Size(keys); i++) {
    PyObject *key = PyTuple_GetItem(keys, i);
    if (!PyUnicode_CheckExact(key)) return 0;
    if (i > skip && PyUnicode_Compare(PyTuple_GetItem(keys, i - 1), key) > 0) answer = 1;
  }
  return answer;
}

static int ask_for_order(PyObject *keys, Py_ssize_t skip, Py_ssize_t *numbers) {
  Py_ssize_t count = PyTuple_Size(keys) - skip;
  PyObject *alone = PyTuple_GetSlice(keys, skip, skip + count);
  PyObject *order = alone ? PyObject_CallFunctionObjArgs(order_keys, alone, NULL) : NULL;
  Py_XDECREF(alone);
  for (Py_ssize_t i = 0; order && i < count; i++)
    numbers[i] = PyLong_AsSsize_t(PyList_GetItem(order, i));
  Py_XDECREF(order);
  return PyErr_Occurred() ? FAILED : DONE;
}

/* Sets the numbers of the keys, in the order of pytrees. */
static int find_order(PyObject *keys, Py_ssize_t skip, int are_str, Py_ssize_t *numbers) {
  Py_ssize_t count = PyTuple_Size(keys) - skip;
  if (!are_str) return ask_for_order(keys, skip, numbers);
  Entry *entries = PyMem_Malloc((count + 1) * sizeof *entries);
  if (!entries) {
    PyErr_NoMemory();
    return FAILED;
  }
  for (Py_ssize_t i = 0; i < count; i++) entries[i] = (Entry){PyTuple_GetItem(keys, i + skip), i};
  qsort(entries, count, sizeof *entries, compare);
  for (Py_ssize_t i = 0; i < count; i++) numbers[i] = entries[i].number;
  PyMem_Free(entries);
  return DONE;
}

/* Room for more numbers. */
static Py_ssize_t *more_numbers(Order *order, Py_ssize_t count) {
  Py_ssize_t room = order->room;
  if (order->count + count >= room) { /* so that there always are some */
    room = 2 * room + count + 8;
    Py_ssize_t *grown = PyMem_Realloc(order->numbers, room * sizeof *grown);
    if (!grown) {
      PyErr_NoMemory();
      return NULL;
    }
    order->numbers = grown;
    order->room = room;
  }
  order->count += count;
  return order->numbers + order->count - count;
}

static int sort_items(PyObject **keys, PyObject **values, Py_ssize_t skip, const Py_ssize_t *numbers) {
  Py_ssize_t count = PyTuple_Size(*keys) - skip;
  PyObject *list = PyList_New(0);
  for (Py_ssize_t i = 0; list && i < count; i++)
    if (append(list, PyList_GetItem(*values, numbers[i])) != DONE) Py_CLEAR(list);
  PyObject *sorted = list ? PyTuple_New(skip + count) : NULL;
  if (!sorted) {
    Py_XDECREF(list);
    return FAILED;
  }
  if (skip) PyTuple_SetItem(sorted, 0, Py_NewRef(PyTuple_GetItem(*keys, 0)));
  for (Py_ssize_t i = 0; i < count; i++)
    PyTuple_SetItem(sorted, i + skip, Py_NewRef(PyTuple_GetItem(*keys, numbers[i] + skip)));
  Py_DECREF(*keys);
  Py_DECREF(*values);
  *keys = sorted;
  *values = list;
  return DONE;
}

PyObject *sorted_items(PyObject *first, PyObject *dict, PyObject **values, Order *order) {
  *values = PyList_New(0);
  PyObject *keys = *values ? read_items(first, dict, *values) : NULL;
  Py_ssize_t skip = first != NULL, count = keys ? PyTuple_Size(keys) - skip : 0;
  Py_ssize_t *numbers = keys ? more_numbers(order, count) : NULL;
  int sorted = keys ? are_sorted(keys, skip) : 0, state = numbers ? DONE : FAILED;
  if (sorted == 2 || count < 2) {
    for (Py_ssize_t i = 0; numbers && i < count; i++) numbers[i] = i;
  } else if (state == DONE) {
    state = find_order(keys, skip, sorted, numbers);
    if (state == DONE) state = sort_items(&keys, values, skip, numbers);
  }
  if (state != DONE) Py_CLEAR(keys);
  return keys;
}

void set_order_keys(PyObject *function) {
  order_keys = Py_NewRef(function); /* kept for ever, as the other hooks are */
}
