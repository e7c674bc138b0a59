/* Nodes: named tuples, and objects of registered container classes. They are opened as by
   plugrt.execution.trees.pytrees.open_node. A tuple of any other class is opened as a named tuple;
   that is safe, as Python makes no runner for a call with one that is not a named tuple. */
#include "calls/internal.h"
#include "arrays/arrays.h"

/* dict: from a class to the names of its parts and of its metadata, two tuples, or to its
   function */
static PyObject *classes;

/* Returns the entry of a class in `classes`, a new reference; NULL, perhaps with an exception, as a
   metaclass may define a hash. */
static PyObject *opener_of(PyTypeObject *type) {
  PyObject *cls = Py_NewRef((PyObject *)type);
  PyObject *found = classes ? Py_XNewRef(PyDict_GetItemWithError(classes, cls)) : NULL;
  Py_DECREF(cls);
  return found;
}

int is_node(PyObject *x) {
  if (Py_TYPE(x) == array_class) return 0;
  if (PyTuple_Check(x)) return !PyTuple_CheckExact(x);
  PyObject *opener = opener_of(Py_TYPE(x));
  if (!opener) return PyErr_Occurred() ? -1 : 0;
  Py_DECREF(opener);
  return 1;
}

Py_ssize_t node_classes(void) { return classes ? PyDict_Size(classes) : 0; }

/* Whether an attribute, if the class defines it, is a plain value or a slot: 1; -1 with an
   exception. */
static int is_plain_in(PyObject *base, PyObject *name) {
  PyObject *own = PyObject_GetAttrString(base, "__dict__");
  PyObject *found = own ? PyObject_GetItem(own, name) : NULL;
  int plain = found ? Py_IS_TYPE(found, &PyMemberDescr_Type) ||
                          (!PyType_GetSlot(Py_TYPE(found), Py_tp_descr_get) &&
                           !PyType_GetSlot(Py_TYPE(found), Py_tp_descr_set))
                    : -1;
  if (!found && own && PyErr_ExceptionMatches(PyExc_KeyError)) {
    PyErr_Clear();
    plain = 1;
  }
  Py_XDECREF(own);
  Py_XDECREF(found);
  return plain;
}

/* Whether reading these attributes of a class's objects runs no Python code; 0 perhaps with an
   exception. */
static int are_plain(PyTypeObject *cls, PyObject *names) {
  PyObject *bases = PyObject_GetAttrString((PyObject *)cls, "__mro__");
  int plain = bases && PyTuple_Check(bases) &&
              PyType_GetSlot(cls, Py_tp_getattro) == PyType_GetSlot(&PyBaseObject_Type, Py_tp_getattro);
  for (Py_ssize_t i = 0; plain == 1 && i < PyTuple_Size(bases); i++)
    for (Py_ssize_t j = 0; plain == 1 && j < PyTuple_Size(names); j++)
      plain = is_plain_in(PyTuple_GetItem(bases, i), PyTuple_GetItem(names, j));
  Py_XDECREF(bases);
  return plain == 1;
}

int plain_class(PyTypeObject *cls, PyObject **names) {
  PyObject *opener = opener_of(cls);
  if (!opener) return PyErr_Occurred() ? NOT_HERE : DONE;
  int plain = PyTuple_Check(opener) && are_plain(cls, PyTuple_GetItem(opener, 0)) &&
              are_plain(cls, PyTuple_GetItem(opener, 1));
  if (plain) *names = opener;
  else Py_DECREF(opener);
  return plain ? DONE : NOT_HERE;
}

/* A list of a tuple's items, without calling the class's __iter__. */
static PyObject *list_of_tuple(PyObject *tuple) {
  Py_ssize_t count = PyTuple_Size(tuple);
  PyObject *made = PyList_New(count);
  for (Py_ssize_t i = 0; made && i < count; i++)
    PyList_SetItem(made, i, Py_NewRef(PyTuple_GetItem(tuple, i)));
  return made;
}

/* A list of attributes. */
static PyObject *read_attributes(PyObject *x, PyObject *names) {
  PyObject *made = PyList_New(0);
  for (Py_ssize_t i = 0; made && i < PyTuple_Size(names); i++)
    if (append_new(made, PyObject_GetAttr(x, PyTuple_GetItem(names, i))) != DONE) Py_CLEAR(made);
  return made;
}

static int read_fields(PyObject *x, PyObject *names, PyObject **parts, PyObject **metadata) {
  *parts = read_attributes(x, PyTuple_GetItem(names, 0));
  PyObject *found = *parts ? read_attributes(x, PyTuple_GetItem(names, 1)) : NULL;
  *metadata = found ? PyList_AsTuple(found) : NULL;
  Py_XDECREF(found);
  return *metadata ? DONE : FAILED;
}

/* The function may return its parts as any iterable or iterator, and their names as a third
   result. */
static int call_opener(PyObject *x, PyObject *function, PyObject **parts, PyObject **metadata,
                       PyObject **names) {
  PyObject *opened = PyObject_CallFunctionObjArgs(function, x, NULL);
  if (!opened) return FAILED;
  Py_ssize_t count = PyTuple_CheckExact(opened) ? PyTuple_Size(opened) : 0;
  int state = NOT_HERE;
  if (count == 2 || count == 3) {
    *parts = PySequence_List(PyTuple_GetItem(opened, 0));
    *metadata = Py_NewRef(PyTuple_GetItem(opened, 1));
    if (count == 3) *names = Py_NewRef(PyTuple_GetItem(opened, 2));
    state = *parts ? DONE : FAILED;
  }
  Py_DECREF(opened);
  return state;
}

static int open_registered(PyObject *x, PyObject *opener, PyObject **parts, PyObject **mark,
                           PyObject **names) {
  PyObject *metadata = NULL;
  int state = PyTuple_Check(opener) ? read_fields(x, opener, parts, &metadata)
                                    : call_opener(x, opener, parts, &metadata, names);
  if (state == DONE &&
      !(*mark = Py_BuildValue("(OnO)", Py_TYPE(x), PyList_Size(*parts), metadata)))
    state = FAILED;
  Py_XDECREF(metadata);
  return state;
}

int open_node(PyObject *x, PyObject **parts, PyObject **mark, PyObject **names, int *raised) {
  int state = NOT_HERE;
  *parts = *mark = *names = NULL;
  Py_INCREF(x); /* Python code runs, which may drop the last reference */
  PyObject *opener = opener_of(Py_TYPE(x));
  if (opener) {
    state = open_registered(x, opener, parts, mark, names);
    *raised = state == FAILED;
    Py_DECREF(opener);
  } else if (PyErr_Occurred()) {
    state = FAILED;
  } else if (PyTuple_Check(x)) {
    *parts = list_of_tuple(x);
    *mark = *parts ? Py_BuildValue("(On)", Py_TYPE(x), PyList_Size(*parts)) : NULL;
    state = *mark ? DONE : FAILED;
  }
  Py_DECREF(x);
  if (state == DONE && !*names) *names = Py_NewRef(Py_None);
  if (state == DONE) return state;
  Py_CLEAR(*parts);
  Py_CLEAR(*names);
  return state;
}

void set_node_classes(PyObject *registered) {
  classes = Py_NewRef(registered); /* kept for ever, as the other hooks are */
}
