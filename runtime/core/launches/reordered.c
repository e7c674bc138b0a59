/* Reordered: a runner for the same arguments in another order, as a dict has its own, and for more of
   them than it takes: None is no leaf of a pytree. */
#include "launches/internal.h"

static PyTypeObject *Reordered_Type;

typedef struct {
  PyObject_HEAD
  PyObject *run;     /* takes them in the order of the pytree */
  Py_ssize_t given;  /* the number of arguments */
  Py_ssize_t count;  /* the number of those taken */
  Py_ssize_t *order; /* which of those given is each of those taken */
} Reordered;

static PyObject *reordered_run(PyObject *object, PyObject *const *values, Py_ssize_t count) {
  Reordered *self = (Reordered *)object;
  if (count != self->given) {
    PyErr_SetString(PyExc_ValueError, "a runner was called with another number of arguments");
    return NULL;
  }
  PyObject *on_stack[ON_STACK] = {NULL}, **taken = on_stack;
  if (self->count > ON_STACK && !(taken = PyMem_Malloc(self->count * sizeof *taken)))
    return PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < self->count; i++) taken[i] = values[self->order[i]];
  PyObject *made = run_any(self->run, NULL, taken, self->count);
  if (taken != on_stack) PyMem_Free(taken);
  return made;
}

PyObject *run_any(PyObject *runner, PyObject *given, PyObject *const *values, Py_ssize_t count) {
  if (Py_TYPE(runner) == Runner_Type) return runner_run(runner, given, values, count);
  if (Py_TYPE(runner) == Reordered_Type) return reordered_run(runner, values, count);
  PyObject *all = given ? Py_NewRef(given) : tuple_of(values, count);
  PyObject *made = all ? PyObject_CallFunctionObjArgs(runner, all, NULL) : NULL;
  Py_XDECREF(all);
  return made;
}

static PyObject *reordered_call(Reordered *self, PyObject *args, PyObject *kwargs) {
  PyObject *sequence;
  if (!self->run || (kwargs && PyDict_Size(kwargs))) {
    PyErr_SetString(PyExc_TypeError, "a runner is made, and takes the arguments of the call alone");
    return NULL;
  }
  if (!PyArg_ParseTuple(args, "O", &sequence)) return NULL;
  PyObject *given = PySequence_Tuple(sequence);
  if (!given) return NULL;
  Py_ssize_t count = PyTuple_Size(given);
  PyObject **values = PyMem_Malloc((count + 1) * sizeof *values);
  for (Py_ssize_t i = 0; values && i < count; i++) values[i] = PyTuple_GetItem(given, i);
  PyObject *made =
      values ? reordered_run((PyObject *)self, values, count) : PyErr_NoMemory();
  PyMem_Free(values);
  Py_DECREF(given);
  return made;
}

static int reordered_init(Reordered *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"order", "given", "run", NULL};
  PyObject *order, *run;
  Py_ssize_t given;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!nO", names, &PyTuple_Type, &order, &given, &run))
    return -1;
  if (self->order) {
    PyErr_SetString(PyExc_TypeError, "a runner is made once");
    return -1;
  }
  self->count = PyTuple_Size(order);
  self->order = PyMem_Malloc((self->count + 1) * sizeof *self->order);
  if (!self->order) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < self->count; i++) {
    self->order[i] = PyLong_AsSsize_t(PyTuple_GetItem(order, i));
    if (PyErr_Occurred()) return -1;
    if (self->order[i] < 0 || self->order[i] >= given) {
      PyErr_SetString(PyExc_IndexError, "an order names an argument that there is not");
      return -1;
    }
  }
  self->given = given;
  self->run = Py_NewRef(run);
  return 0;
}

static int reordered_traverse(Reordered *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->run);
  return 0;
}

static int reordered_clear(Reordered *self) {
  Py_CLEAR(self->run);
  return 0;
}

static void reordered_dealloc(PyObject *object) {
  PyObject_GC_UnTrack(object);
  reordered_clear((Reordered *)object);
  PyMem_Free(((Reordered *)object)->order);
  free_object(object);
}

static PyType_Slot reordered_slots[] = {
    {Py_tp_doc, "A runner for the same arguments in another order."},
    {Py_tp_init, reordered_init},
    {Py_tp_call, reordered_call},
    {Py_tp_traverse, reordered_traverse},
    {Py_tp_clear, reordered_clear},
    {Py_tp_dealloc, reordered_dealloc},
    {0, NULL},
};
static PyType_Spec reordered_spec = {"plugrt._core.Reordered", sizeof(Reordered), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, reordered_slots};

int add_reordered(PyObject *module) {
  Reordered_Type = type_of(module, &reordered_spec);
  return Reordered_Type ? 0 : -1;
}
