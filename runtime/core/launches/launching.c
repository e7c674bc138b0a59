/* Launching: the base of all launchers: their references, calls and classes. */
#include "launches/internal.h"

PyObject *none_as_null(PyObject *object) { return object == Py_None ? NULL : object; }

/* A field of any pointer type that a launcher declares. */
typedef PyObject *Kept __attribute__((may_alias));

static Kept *kept_by(Launching *self) { return (Kept *)(self + 1); }

void keep_objects(Launching *self, PyObject *const *objects, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) kept_by(self)[i] = Py_XNewRef(objects[i]);
  self->kept = count;
}

/* Launches with the items of a tuple and returns a new list; `room` is for the items and the
   results. */
static PyObject *launch_tuple(Launching *self, PyObject *given, PyObject **room) {
  Py_ssize_t count = PyTuple_Size(given), produced = self->produced;
  PyObject **results = room + count;
  for (Py_ssize_t i = 0; i < count; i++) room[i] = PyTuple_GetItem(given, i);
  int state = self->launch((PyObject *)self, room, count, results, NULL);
  if (state == NOT_HERE) return self->in_python((PyObject *)self, given);
  if (state == FAILED) return NULL;
  PyObject *made = PyList_New(produced);
  for (Py_ssize_t i = 0; i < produced; i++) {
    if (made) PyList_SetItem(made, i, results[i]);
    else Py_DECREF(results[i]);
  }
  return made;
}

static PyObject *launching_call(Launching *self, PyObject *args, PyObject *kwargs) {
  const char *text = self->launch ? "a launcher takes the arguments of the launch alone"
                                  : "this launcher was not made by its class";
  PyObject *given = only_argument(args, kwargs, self->launch != NULL, text);
  if (!given) return NULL;
  PyObject **room = PyMem_Malloc((PyTuple_Size(given) + self->produced + 1) * sizeof *room);
  PyObject *made = room ? launch_tuple(self, given, room) : PyErr_NoMemory();
  PyMem_Free(room);
  Py_DECREF(given);
  return made;
}

static int launching_traverse(Launching *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  for (Py_ssize_t i = 0; i < self->kept; i++) Py_VISIT(kept_by(self)[i]);
  return donated_visit(&self->donated, visit, arg);
}

/* No tp_clear: a call in a finalizer has to work. Each cycle leads through the functions, which can
   be cleared. */
static void launching_dealloc(PyObject *object) {
  Launching *self = (Launching *)object;
  PyObject_GC_UnTrack(object);
  for (Py_ssize_t i = 0; i < self->kept; i++) Py_XDECREF(kept_by(self)[i]);
  donated_drop(&self->donated);
  free_object(object);
}

int add_launching(PyObject *module, const char *name, const char *doc, size_t size, initproc init,
                  int is_called) {
  PyType_Slot slots[] = {
      {Py_tp_doc, (void *)doc},
      {Py_tp_init, init},
      {Py_tp_traverse, launching_traverse},
      {Py_tp_dealloc, launching_dealloc},
      {is_called ? Py_tp_call : 0, launching_call},
      {0, NULL},
  };
  PyType_Spec spec = {name, (int)size, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
  return type_of(module, &spec) ? 0 : -1;
}

int is_launching(PyObject *object) {
  return PyType_GetSlot(Py_TYPE(object), Py_tp_dealloc) == (void *)launching_dealloc;
}
