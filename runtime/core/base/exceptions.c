/* Exceptions: set aside while other code runs, restored, and combined with exceptions that were
   raised meanwhile. */
#include "base/internal.h"

PyObject *take_exception(void) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (!value || !PyErr_GivenExceptionMatches(value, PyExc_Exception)) {
    PyErr_Restore(type, value, traceback);
    return NULL;
  }
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return value;
}

void raise_exception(PyObject *exception) {
  PyObject *traceback = PyException_GetTraceback(exception);
  PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(exception)), exception, traceback);
}

int is_interrupted(void) {
  return PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception);
}

int drop_exception(void) {
  PyObject *taken = take_exception();
  Py_XDECREF(taken);
  return !PyErr_Occurred();
}

int leave_to_python(void) {
  PyObject *left[] = {PyExc_TypeError, PyExc_MemoryError, PyExc_RecursionError};
  for (size_t i = 0; i < sizeof left / sizeof *left; i++)
    if (PyErr_ExceptionMatches(left[i])) {
      PyErr_Clear();
      return 1;
    }
  return 0;
}

Raised set_aside(void) {
  Raised raised;
  PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
  return raised;
}

PyObject *raised_value(Raised *raised) {
  PyErr_NormalizeException(&raised->type, &raised->value, &raised->traceback);
  if (raised->traceback && raised->value)
    PyException_SetTraceback(raised->value, raised->traceback);
  return Py_XNewRef(raised->value);
}

void drop_raised(Raised raised) {
  Py_XDECREF(raised.type);
  Py_XDECREF(raised.value);
  Py_XDECREF(raised.traceback);
}

void put_back_alone(Raised raised, PyObject *where) {
  if (PyErr_Occurred()) deliver(where);
  PyErr_Restore(raised.type, raised.value, raised.traceback);
}

void put_back(Raised raised, PyObject *where) {
  if (PyErr_Occurred() && !is_interrupted()) PyErr_WriteUnraisable(where);
  if (!PyErr_Occurred()) {
    PyErr_Restore(raised.type, raised.value, raised.traceback);
    return;
  }
  Raised interrupt = set_aside();
  PyObject *value = raised_value(&interrupt), *before = raised.type ? raised_value(&raised) : NULL;
  if (value && before && value != before) PyException_SetContext(value, Py_NewRef(before));
  Py_XDECREF(value);
  Py_XDECREF(before);
  drop_raised(raised);
  PyErr_Restore(interrupt.type, interrupt.value, interrupt.traceback);
}

/* Clears the exception and returns `settle(error, *arguments)`; NULL with an exception. */
static PyObject *settle_raised(PyObject *settle, PyObject *arguments) {
  Raised raised = set_aside();
  PyObject *error = raised_value(&raised), *first = error ? PyTuple_Pack(1, error) : NULL;
  PyObject *all = first ? PySequence_Concat(first, arguments) : NULL;
  PyObject *answer = all ? PyObject_CallObject(settle, all) : NULL;
  drop_raised(raised);
  Py_XDECREF(error);
  Py_XDECREF(first);
  Py_XDECREF(all);
  return answer;
}

/* One function of C calls both: an interrupt can only come within one of the two calls, and
   `settle` is called again if it comes within the second. */
static PyObject *call_catching(PyObject *pair, PyObject *arguments) {
  PyObject *answer = PyObject_CallObject(PyTuple_GetItem(pair, 0), arguments);
  for (int anew = !answer; anew; anew = !answer && is_interrupted())
    answer = settle_raised(PyTuple_GetItem(pair, 1), arguments);
  if (!answer || !PyExceptionInstance_Check(answer)) return answer;
  raise_exception(answer);
  return NULL;
}

PyObject *catching(PyObject *module, PyObject *pair) {
  static PyMethodDef method = {"catching", call_catching, METH_VARARGS, NULL};
  PyObject *function, *settle;
  (void)module;
  if (!PyArg_ParseTuple(pair, "OO", &function, &settle)) return NULL;
  return PyCFunction_New(&method, pair);
}
