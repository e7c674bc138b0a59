/* Outputs: makes a call's result from the results of a launch. An output is a result, an unchanged
   argument, or an array that the function closed over. */
#include "launches/internal.h"
#include "arrays/arrays.h"

PyTypeObject *Outputs_Type;
enum { FROM_LAUNCH = -1, FIRST_CONSTANT = -2 }; /* sources from 0 up are arguments */

typedef struct {
  PyObject_HEAD
  PyObject *avals; /* avals of the outputs; NULL if __init__ was not called */
  PyObject *constants;  /* captured constants, a tuple of arrays */
  PyObject *share;      /* share(array, aval): another array with the same buffers */
  PyObject *tree;       /* Tree of the outputs; NULL for a single output without a container */
  PyObject **types;     /* the same avals as an array, for faster access */
  Py_ssize_t count;
  Py_ssize_t passed;   /* number of outputs that are not results */
  /* source of each output: FROM_LAUNCH, the number of an argument, or FIRST_CONSTANT - n */
  Py_ssize_t *sources;
} Outputs;

Py_ssize_t outputs_count(PyObject *self) { return ((Outputs *)self)->count; }

/* Makes an output that is not a result: another array with the same buffers. */
static int pass_on(Outputs *self, Py_ssize_t output, PyObject *const *values, PyObject **made) {
  Py_ssize_t source = self->sources[output];
  PyObject *array = source >= 0 ? values[source]
                                : PyTuple_GetItem(self->constants, FIRST_CONSTANT - source);
  if (Py_TYPE(array) != array_class) return NOT_HERE;
  *made = PyObject_CallFunctionObjArgs(self->share, array, self->types[output], NULL);
  return *made ? DONE : FAILED;
}

int outputs_pass_on(PyObject *object, PyObject *const *values, PyObject **arrays) {
  Outputs *self = (Outputs *)object;
  int state = DONE;
  memset(arrays, 0, self->count * sizeof *arrays);
  for (Py_ssize_t i = 0; self->passed && state == DONE && i < self->count; i++)
    if (self->sources[i] != FROM_LAUNCH) state = pass_on(self, i, values, &arrays[i]);
  return state;
}

void outputs_drop(PyObject *object, PyObject **arrays) {
  for (Py_ssize_t i = ((Outputs *)object)->count; i--;) Py_XDECREF(arrays[i]);
}

int outputs_wrap(PyObject *object, PyObject **results, Py_ssize_t produced, PyObject **arrays) {
  Outputs *self = (Outputs *)object;
  Py_ssize_t next = 0;
  for (Py_ssize_t i = 0; i < self->count; i++) {
    if (self->passed && self->sources[i] != FROM_LAUNCH) continue;
    arrays[i] = array_holding(results[next++], self->types[i]);
    if (arrays[i]) continue;
    while (next < produced) Py_DECREF(results[next++]);
    return -1;
  }
  return 0;
}

PyObject *outputs_put_together(PyObject *object, PyObject **arrays) {
  Outputs *self = (Outputs *)object;
  if (!self->tree) return arrays[0];
  PyObject *made = tree_build(self->tree, arrays);
  for (Py_ssize_t i = 0; i < self->count; i++) Py_DECREF(arrays[i]);
  return made;
}

int outputs_fit(PyObject *object, Py_ssize_t arity, Py_ssize_t produced) {
  Outputs *self = (Outputs *)object;
  if (!self->avals) return 0;
  for (Py_ssize_t i = 0; i < self->count; i++) {
    if (self->sources[i] >= arity) return 0;
    produced -= self->sources[i] == FROM_LAUNCH;
  }
  return produced == 0;
}

/* Reads the source of each output: NULL with an exception. */
static Py_ssize_t *read_origins(PyObject *origins, Py_ssize_t constants) {
  Py_ssize_t count = PyTuple_Size(origins);
  Py_ssize_t *sources = PyMem_Malloc((count + 1) * sizeof *sources);
  if (!sources) PyErr_NoMemory();
  for (Py_ssize_t i = 0; sources && i < count; i++) {
    sources[i] = PyLong_AsSsize_t(PyTuple_GetItem(origins, i));
    if (sources[i] <= FIRST_CONSTANT - constants && !PyErr_Occurred())
      PyErr_SetString(PyExc_IndexError, "an output is of what the call does not have");
    if (!PyErr_Occurred()) continue;
    PyMem_Free(sources);
    return NULL;
  }
  return sources;
}

static int outputs_init(Outputs *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"avals", "origins", "constants", "share", "tree", NULL};
  PyObject *avals, *origins, *constants, *share, *tree;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!O!OO", names, &PyTuple_Type, &avals,
                                   &PyTuple_Type, &origins, &PyTuple_Type, &constants, &share,
                                   &tree))
    return -1;
  if (self->avals) {
    PyErr_SetString(PyExc_TypeError, "outputs are made once");
    return -1;
  }
  Py_ssize_t count = PyTuple_Size(avals);
  if (PyTuple_Size(origins) != count ||
      (tree == Py_None ? count != 1 : Py_TYPE(tree) != Tree_Type || tree_leaves(tree) != count)) {
    PyErr_SetString(PyExc_ValueError, "the outputs are not in that form");
    return -1;
  }
  Py_ssize_t *sources = read_origins(origins, PyTuple_Size(constants));
  PyObject **types = sources ? PyMem_Malloc((count + 1) * sizeof *types) : NULL;
  if (!types) {
    PyMem_Free(sources);
    return PyErr_Occurred() ? -1 : (PyErr_NoMemory(), -1);
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    types[i] = PyTuple_GetItem(avals, i);
    self->passed += sources[i] != FROM_LAUNCH;
  }
  self->sources = sources;
  self->types = types;
  self->count = count;
  self->constants = Py_NewRef(constants);
  self->share = Py_NewRef(share);
  self->tree = tree == Py_None ? NULL : Py_NewRef(tree);
  self->avals = Py_NewRef(avals);
  return 0;
}

static int outputs_traverse(Outputs *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->avals);
  Py_VISIT(self->constants);
  Py_VISIT(self->share);
  Py_VISIT(self->tree);
  return 0;
}

/* No tp_clear, as for runners. */
static void outputs_dealloc(PyObject *object) {
  Outputs *self = (Outputs *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF(self->avals);
  Py_XDECREF(self->constants);
  Py_XDECREF(self->share);
  Py_XDECREF(self->tree);
  PyMem_Free(self->sources);
  PyMem_Free(self->types);
  free_object(object);
}

static PyType_Slot outputs_slots[] = {
    {Py_tp_doc, "From the results of a launch to what the call returns."},
    {Py_tp_init, outputs_init},
    {Py_tp_traverse, outputs_traverse},
    {Py_tp_dealloc, outputs_dealloc},
    {0, NULL},
};
static PyType_Spec outputs_spec = {"plugrt._core.Outputs", sizeof(Outputs), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, outputs_slots};

int add_outputs(PyObject *module) {
  Outputs_Type = type_of(module, &outputs_spec);
  return Outputs_Type ? 0 : -1;
}
