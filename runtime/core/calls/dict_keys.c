/* The keys of dicts, as they stand for these in the key of a call. */
#include "calls/internal.h"

PyObject *dict_keys(PyObject *first, PyObject *dict, PyObject *values) {
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
    if (values && PyList_Append(values, value)) Py_CLEAR(made);
  }
  return made;
}

PyObject *dict_keys_without(PyObject *left_out, PyObject *first, PyObject *dict) {
  Py_ssize_t at = 0, most = PyDict_Size(dict) + 1, count = 0;
  PyObject *key, *value, *keys = PyList_New(0);
  if (keys && first && PyList_Append(keys, first)) Py_CLEAR(keys);
  while (keys && count++ < most && PyDict_Next(dict, &at, &key, &value)) {
    int skip = PySet_Contains(left_out, key);
    if (skip < 0 || (!skip && PyList_Append(keys, key))) Py_CLEAR(keys);
  }
  PyObject *made = keys ? PyList_AsTuple(keys) : NULL;
  Py_XDECREF(keys);
  return made;
}
