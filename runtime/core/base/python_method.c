/* call_method: calls the Python function that a method falls back to, with the same arguments. */
#include "base/base.h"

PyObject *call_method(PyObject *function, PyObject *self, PyObject *const *args, Py_ssize_t count,
                      PyObject *names) {
  PyObject *all = PyTuple_New(count + 1), *named = names ? PyDict_New() : NULL;
  int failed = !all || (names && !named);
  for (Py_ssize_t i = names && !failed ? PyTuple_Size(names) : 0; i-- && !failed;)
    failed = PyDict_SetItem(named, PyTuple_GetItem(names, i), args[count + i]);
  if (!failed) PyTuple_SetItem(all, 0, Py_NewRef(self));
  for (Py_ssize_t i = failed ? 0 : count; i--;) PyTuple_SetItem(all, i + 1, Py_NewRef(args[i]));
  PyObject *made = failed ? NULL : PyObject_Call(function, all, named);
  Py_XDECREF(all);
  Py_XDECREF(named);
  return made;
}
