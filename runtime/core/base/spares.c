/* Spares: memory of freed objects of a class, kept for the next ones. A call's result is often
   freed before the next call, and to free and allocate memory takes longer than all other work on
   such an object. */
#include <string.h>

#include "base/base.h"

int spares_init(Spares *self, PyTypeObject *type) {
  PyObject *size = PyObject_GetAttrString((PyObject *)type, "__basicsize__");
  Py_ssize_t bytes = size ? PyLong_AsSsize_t(size) : -1;
  Py_XDECREF(size);
  if (bytes < 0) return -1;
  while (self->count) self->free(self->kept[--self->count]); /* memory of an earlier class */
  self->size = (size_t)bytes;
  self->alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  self->free = (freefunc)PyType_GetSlot(type, Py_tp_free);
  self->type = type;
  return 0;
}

PyObject *spares_make(Spares *self) {
  if (!self->count) return self->alloc(self->type, 0);
  PyObject *made = self->kept[--self->count];
  memset((char *)made + sizeof(PyObject), 0, self->size - sizeof(PyObject));
  PyObject_Init(made, self->type);
  PyObject_GC_Track(made);
  return made;
}

void spares_free(Spares *self, PyObject *object) {
  PyTypeObject *type = self->type;
  /* a __del__, called once for each object */
  int finalized = PyType_GetSlot(type, Py_tp_finalize) != NULL;
  if (self->count < MOST_SPARES && !finalized) self->kept[self->count++] = object;
  else self->free(object);
  Py_DECREF((PyObject *)type);
}
