/* The methods of `plugrt.lifetime.interruptions.Scope`: the begin and the end of a `with` block.

   Python runs signal handlers where a Python function begins, so that an interrupt could come at the
   begin of an `__exit__` in Python, and leave what the block had set. Before a function in C none does. */
#include "base/base.h"

static PyObject *surround_name, *close_name, *refuse_name;
static PyObject *open_scopes; /* Python's list of (scope, thread, generator), innermost last */

static PyObject *scope_enter(PyObject *self, PyObject *unused) {
  (void)unused;
  PyObject *generator = PyObject_CallMethodObjArgs(self, surround_name, NULL);
  if (!generator) return NULL;
  PyObject *value = PyIter_Next(generator);
  if (!value && !PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "a scope yields once");
  PyObject *entry = value ? Py_BuildValue("(OkO)", self, PyThread_get_thread_ident(), generator) : NULL;
  Py_DECREF(generator); /* which ends it where there is no entry */
  if (!entry || PyList_Append(open_scopes, entry)) Py_CLEAR(value);
  Py_XDECREF(entry);
  return value;
}

/* The generator of the innermost block of a scope in this thread, a new reference, no longer open; NULL
   without an exception where there is none. */
static PyObject *take_generator(PyObject *self) {
  unsigned long thread = PyThread_get_thread_ident();
  for (Py_ssize_t i = PyList_Size(open_scopes); i--;) {
    PyObject *entry = PyList_GetItem(open_scopes, i);
    if (PyTuple_GetItem(entry, 0) != self) continue;
    if (PyLong_AsUnsignedLong(PyTuple_GetItem(entry, 1)) != thread) continue;
    PyObject *generator = Py_NewRef(PyTuple_GetItem(entry, 2));
    if (PyList_SetSlice(open_scopes, i, i + 1, NULL)) Py_CLEAR(generator);
    return generator;
  }
  return NULL;
}

static PyObject *scope_exit(PyObject *self, PyObject *args) {
  (void)args; /* the block's exception, which goes on */
  PyObject *generator = take_generator(self);
  if (!generator) return PyErr_Occurred() ? NULL : PyObject_CallMethodObjArgs(self, refuse_name, NULL);
  PyObject *ended = PyObject_CallMethodObjArgs(generator, close_name, NULL);
  Py_DECREF(generator);
  return ended;
}

static PyMethodDef enter_method = {"__enter__", scope_enter, METH_NOARGS, "Begins the block."};
static PyMethodDef exit_method = {"__exit__", scope_exit, METH_VARARGS, "Ends the block."};

static int add_method(PyObject *cls, PyMethodDef *method) {
  PyObject *made = PyDescr_NewMethod((PyTypeObject *)cls, method);
  int failed = !made || PyObject_SetAttrString(cls, method->ml_name, made);
  Py_XDECREF(made);
  return failed;
}

PyObject *set_scope_class(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *cls, *list;
  if (!PyArg_ParseTuple(args, "O!O!", &PyType_Type, &cls, &PyList_Type, &list)) return NULL;
  surround_name = PyUnicode_InternFromString("_surround");
  close_name = PyUnicode_InternFromString("close");
  refuse_name = PyUnicode_InternFromString("_refuse_exit");
  if (!surround_name || !close_name || !refuse_name) return NULL;
  open_scopes = Py_NewRef(list); /* kept for ever, as the classes are */
  if (add_method(cls, &enter_method) || add_method(cls, &exit_method)) return NULL;
  Py_RETURN_NONE;
}
