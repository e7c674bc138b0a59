/* Static arguments: which of a call's arguments these are, and what stands for their values. */
#include "core.h"

static PyObject *get_static_key; /* static_key(value): what is equal for equal static values */

int append_new(PyObject *list, PyObject *item) {
  int failed = !item || PyList_Append(list, item);
  Py_XDECREF(item);
  return failed ? FAILED : DONE;
}

int is_static(const Statics *which, PyObject *name, Py_ssize_t number) {
  if (name) return which->names ? PySet_Contains(which->names, name) : 0;
  if (!which->nums) return 0;
  PyObject *key = PyLong_FromSsize_t(number);
  int answer = key ? PySet_Contains(which->nums, key) : -1;
  Py_XDECREF(key);
  return answer;
}

int take_static(PyObject **statics, PyObject *where, PyObject *value) {
  PyObject *key = NULL;
  if (!*statics && !(*statics = PyList_New(0))) {
    Py_XDECREF(where);
    return FAILED;
  }
  if (PyTuple_Check(value) || PyFloat_Check(value) || PyComplex_Check(value))
    key = PyObject_CallFunctionObjArgs(get_static_key, value, NULL);
  else
    key = PyTuple_Pack(2, (PyObject *)Py_TYPE(value), value);
  PyObject *pair = where && key ? PyTuple_Pack(2, where, key) : NULL;
  Py_XDECREF(where);
  Py_XDECREF(key);
  return append_new(*statics, pair);
}

void set_static_key(PyObject *function) {
  get_static_key = Py_NewRef(function); /* kept for ever, as the other hooks are */
}
