/* Helpers for types and methods: types of the module, their deallocation, and tuples. */
#include "base/base.h"

PyTypeObject *type_of(PyObject *module, PyType_Spec *spec) {
  PyObject *made = PyType_FromSpec(spec);
  if (!made) return NULL;
  if (PyModule_AddType(module, (PyTypeObject *)made)) Py_CLEAR(made);
  return (PyTypeObject *)made; /* the reference is kept for ever */
}

void free_object(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF((PyObject *)type);
}

PyObject *only_argument(PyObject *args, PyObject *kwargs, int allowed, const char *text) {
  PyObject *sequence;
  if (!allowed || (kwargs && PyDict_Size(kwargs))) {
    PyErr_SetString(PyExc_TypeError, text);
    return NULL;
  }
  return PyArg_ParseTuple(args, "O", &sequence) ? PySequence_Tuple(sequence) : NULL;
}

PyObject *tuple_of(PyObject *const *items, Py_ssize_t count) {
  PyObject *made = PyTuple_New(count);
  for (Py_ssize_t i = 0; made && i < count; i++) PyTuple_SetItem(made, i, Py_NewRef(items[i]));
  return made;
}
