/* The buffer protocol of arrays: exposes the array's own memory if the host can address it, else
   its host copy.

   A Python method (PEP 688, from 3.12 on) would run at each read by NumPy, which first asks for a
   buffer.

   NumPy discards the error of a failed request and then calls `__array__`. This would lose an
   interruption of the main thread, so that it is raised when the next Python code runs. In another
   thread, `__array__` raises the exception again. */
#include "arrays/internal.h"

static PyObject *buffer_in_python; /* method of the class derived from Array */

static int fill_from_host(PyObject *self, Py_buffer *view, int flags) {
  if (array_fill_view(self, view, flags) == DONE) return 0;
  PyObject *before = take_exception();
  if (PyErr_Occurred()) return -1;
  PyObject *host = after_python(array_host(self, NULL), before);
  if (!host) return -1;
  /* fails for a dtype without a format */
  int failed = PyObject_GetBuffer(host, view, flags | PyBUF_FORMAT);
  Py_DECREF(host);
  if (!failed && !(flags & PyBUF_FORMAT)) view->format = NULL;
  if (!failed || is_interrupted()) return failed;
  PyErr_Clear(); /* Python raises it in its own words */
  PyObject *number = PyLong_FromLong(flags);
  PyObject *made = number ? PyObject_CallFunctionObjArgs(buffer_in_python, self, number, NULL) : NULL;
  failed = made ? PyObject_GetBuffer(made, view, flags) : -1;
  Py_XDECREF(number);
  Py_XDECREF(made);
  return failed;
}

int array_getbuffer(PyObject *self, Py_buffer *view, int flags) {
  view->obj = NULL;
  int failed = fill_from_host(self, view, flags);
  if (failed && is_main() && is_interrupted()) {
    deliver(self);
    PyErr_SetString(PyExc_BufferError, "the read of an array was interrupted");
  }
  return failed;
}

void set_buffer_method(PyObject *method) { buffer_in_python = Py_NewRef(method); }
