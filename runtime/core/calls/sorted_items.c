/* The keys and values of a dict at one moment, in the order of pytrees, sorted by key. */
#include <stdlib.h>

#include "calls/internal.h"

static PyObject *order_keys; /* order_keys(keys): list of their positions in pytree order */

static int compare(const void *one, const void *other) {
  return PyUnicode_Compare(((const Entry *)one)->key, ((const Entry *)other)->key);
}

int entries_read(Entries *self, PyObject *dict) {
  PyObject *key, *value;
  Py_ssize_t at = 0, size = PyDict_Size(dict);
  self->count = 0;
  self->entries = self->on_stack;
  if (size > ON_STACK && !(self->entries = PyMem_Malloc(size * sizeof *self->entries))) {
    PyErr_NoMemory();
    return FAILED;
  }
  /* Creates no objects, so that the collector, and with it Python code, does not run. */
  while (self->count < size && PyDict_Next(dict, &at, &key, &value)) {
    self->entries[self->count] = (Entry){Py_NewRef(key), Py_NewRef(value), self->count};
    self->count++;
  }
  return DONE;
}

void entries_drop(Entries *self) {
  while (self->count--) {
    Py_DECREF(self->entries[self->count].key);
    Py_DECREF(self->entries[self->count].value);
  }
  if (self->entries != self->on_stack) PyMem_Free(self->entries);
}

PyObject *entries_keys(const Entries *self, PyObject *first) {
  Py_ssize_t skip = first != NULL;
  PyObject *made = PyTuple_New(skip + self->count);
  if (made && first) PyTuple_SetItem(made, 0, Py_NewRef(first));
  for (Py_ssize_t i = 0; made && i < self->count; i++)
    PyTuple_SetItem(made, skip + i, Py_NewRef(self->entries[i].key));
  return made;
}

/* Python sorts keys that are not all str. */
static int sort_in_python(Entries *self) {
  PyObject *keys = entries_keys(self, NULL);
  PyObject *order = keys ? PyObject_CallFunctionObjArgs(order_keys, keys, NULL) : NULL;
  Entry *old = order ? PyMem_Malloc((self->count + 1) * sizeof *old) : NULL;
  Py_XDECREF(keys);
  if (!old) {
    Py_XDECREF(order);
    if (!PyErr_Occurred()) PyErr_NoMemory();
    return FAILED;
  }
  memcpy(old, self->entries, self->count * sizeof *old);
  for (Py_ssize_t i = 0; i < self->count; i++)
    self->entries[i] = old[PyLong_AsSsize_t(PyList_GetItem(order, i))];
  PyMem_Free(old);
  Py_DECREF(order);
  return DONE;
}

int entries_sort(Entries *self) {
  Entry *entries = self->entries;
  for (Py_ssize_t i = 0; i < self->count; i++)
    if (!PyUnicode_CheckExact(entries[i].key)) return self->count < 2 ? DONE : sort_in_python(self);
  if (self->count > ON_STACK) qsort(entries, self->count, sizeof *entries, compare);
  for (Py_ssize_t i = 1; i < self->count; i++) {
    Entry entry = entries[i];
    Py_ssize_t at = i;
    for (; at && compare(&entries[at - 1], &entry) > 0; at--) entries[at] = entries[at - 1];
    entries[at] = entry;
  }
  return DONE;
}

void set_order_keys(PyObject *function) {
  order_keys = Py_NewRef(function); /* kept for ever, as the other hooks are */
}
