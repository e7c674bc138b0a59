/* Outputs: from the results of a launch to what the call returns.

   An output is a result, an argument as it is, or an array that the function closed over. */
#include "core.h"

PyTypeObject *Outputs_Type;
enum { FROM_LAUNCH = -1, FIRST_CONSTANT = -2 }; /* arguments are numbered from 0 */

typedef struct {
  PyObject_HEAD
  PyObject *signatures; /* of each output */
  PyObject *constants;  /* the arrays that the function closed over, a tuple */
  PyObject *share;      /* share(array, signature): another array of the same buffers */
  PyObject *tree;       /* the Tree of the outputs; NULL if there is one and nothing around it */
  Py_ssize_t count;
  Py_ssize_t *sources;   /* of each: FROM_LAUNCH, an argument, or FIRST_CONSTANT - a constant */
  Py_ssize_t *positions; /* of an argument: where it is among what the call holds */
} Outputs;

Py_ssize_t outputs_count(PyObject *self) { return ((Outputs *)self)->count; }

int outputs_include(PyObject *object, PyObject *const *values, PyObject *value) {
  Outputs *self = (Outputs *)object;
  for (Py_ssize_t i = 0; i < self->count; i++)
    if (self->sources[i] >= 0 && values[self->sources[i]] == value) return 1;
  return 0;
}

/* The array of an output that is no result; `arrays` are those before it. */
static PyObject *pass_on(Outputs *self, Py_ssize_t output, PyObject *const *values,
                         PyObject *const *held, PyObject *const *arrays) {
  Py_ssize_t source = self->sources[output];
  PyObject *signature = PyTuple_GetItem(self->signatures, output);
  PyObject *array;
  if (source <= FIRST_CONSTANT) {
    array = PyTuple_GetItem(self->constants, FIRST_CONSTANT - source);
  } else {
    PyObject *shards = held[self->positions[output]];
    array = values[source];
    if (((Array *)array)->shards != shards) { /* a thread deleted it: the data are here still */
      Py_ssize_t first = 0;
      while (self->sources[first] != source) first++;
      if (first == output) return array_holding(Py_NewRef(shards), signature);
      array = arrays[first];
    }
  }
  return PyObject_CallFunctionObjArgs(self->share, array, signature, NULL);
}

int outputs_wrap(PyObject *object, PyObject *const *values, PyObject *const *held,
                 PyObject **results, Py_ssize_t produced, PyObject **arrays) {
  Outputs *self = (Outputs *)object;
  Py_ssize_t next = 0, made = 0;
  for (; made < self->count; made++) {
    if (self->sources[made] == FROM_LAUNCH)
      arrays[made] = array_holding(results[next++], PyTuple_GetItem(self->signatures, made));
    else
      arrays[made] = pass_on(self, made, values, held, arrays);
    if (!arrays[made]) break;
  }
  if (made == self->count) return 0;
  while (next < produced) Py_DECREF(results[next++]);
  while (made) Py_DECREF(arrays[--made]);
  return -1;
}

PyObject *outputs_put_together(PyObject *object, PyObject **arrays) {
  Outputs *self = (Outputs *)object;
  if (!self->tree) return arrays[0];
  PyObject *made = tree_build(self->tree, arrays);
  for (Py_ssize_t i = 0; i < self->count; i++) Py_DECREF(arrays[i]);
  return made;
}

/* Reads where outputs are from: pairs of a source and a position; 0, or -1 with an exception. */
static int read_origins(Outputs *self, PyObject *origins) {
  Py_ssize_t constants = PyTuple_Size(self->constants);
  self->sources = PyMem_Calloc(2 * self->count + 1, sizeof *self->sources);
  if (!self->sources) {
    PyErr_NoMemory();
    return -1;
  }
  self->positions = self->sources + self->count;
  for (Py_ssize_t i = 0; i < self->count; i++) {
    if (!PyArg_ParseTuple(PyTuple_GetItem(origins, i), "nn", &self->sources[i],
                          &self->positions[i]))
      return -1;
    if (self->sources[i] <= FIRST_CONSTANT - constants || self->positions[i] < 0) {
      PyErr_SetString(PyExc_IndexError, "an output is of what the call does not have");
      return -1;
    }
  }
  return 0;
}

int outputs_fit(PyObject *object, Py_ssize_t arity, Py_ssize_t held, Py_ssize_t produced) {
  Outputs *self = (Outputs *)object;
  for (Py_ssize_t i = 0; i < self->count; i++) {
    if (self->sources[i] >= arity || (self->sources[i] >= 0 && self->positions[i] >= held))
      return 0;
    produced -= self->sources[i] == FROM_LAUNCH;
  }
  return produced == 0;
}

static int outputs_init(Outputs *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"signatures", "origins", "constants", "share", "tree", NULL};
  PyObject *signatures, *origins, *constants, *share, *tree;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!O!OO", names, &PyTuple_Type, &signatures,
                                   &PyTuple_Type, &origins, &PyTuple_Type, &constants, &share,
                                   &tree))
    return -1;
  if (self->signatures) {
    PyErr_SetString(PyExc_TypeError, "outputs are made once");
    return -1;
  }
  Py_ssize_t count = PyTuple_Size(signatures);
  if (PyTuple_Size(origins) != count ||
      (tree == Py_None ? count != 1 : Py_TYPE(tree) != Tree_Type || tree_leaves(tree) != count)) {
    PyErr_SetString(PyExc_ValueError, "the outputs are not in that form");
    return -1;
  }
  self->count = count;
  self->signatures = Py_NewRef(signatures);
  self->constants = Py_NewRef(constants);
  self->share = Py_NewRef(share);
  self->tree = tree == Py_None ? NULL : Py_NewRef(tree);
  return read_origins(self, origins);
}

static int outputs_traverse(Outputs *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->signatures);
  Py_VISIT(self->constants);
  Py_VISIT(self->share);
  Py_VISIT(self->tree);
  return 0;
}

/* No tp_clear, as of runners. */
static void outputs_dealloc(PyObject *object) {
  Outputs *self = (Outputs *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF(self->signatures);
  Py_XDECREF(self->constants);
  Py_XDECREF(self->share);
  Py_XDECREF(self->tree);
  PyMem_Free(self->sources);
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
