/* FlatCall: a flattened call, as plugrt.execution.launches.flat_calls.FlatCall reads it: its leaves in the
   order of pytrees, its structure, and its static values, all of one reading.

   Built-in containers are opened here, others are by nodes.c. */
#include <stdlib.h>
#include <string.h>

#include "calls/internal.h"
#include "arrays/arrays.h"

enum { DEEPEST = 50 };

static int take_leaf(FlatCall *flat, PyObject *leaf) {
  if (flat->count == flat->room) {
    Py_ssize_t room = 2 * flat->room;
    PyObject **old = flat->leaves == flat->on_stack ? NULL : flat->leaves;
    PyObject **grown = PyMem_Realloc(old, room * sizeof *grown);
    if (!grown) {
      PyErr_NoMemory();
      return FAILED;
    }
    if (!old) memcpy(grown, flat->on_stack, sizeof flat->on_stack);
    flat->leaves = grown;
    flat->room = room;
  }
  flat->leaves[flat->count++] = Py_NewRef(leaf);
  return append(flat->marks, Py_None);
}

/* Appends a mark of what is no leaf, and takes the reference; NULL has an exception set. */
static int take_mark(FlatCall *flat, PyObject *mark) {
  flat->has_structure = 1;
  return append_new(flat->marks, mark);
}

/* ---- containers ---- */

static int open_one(FlatCall *flat, PyObject *x, int depth);

/* The values are a list that nobody else has. */
static int open_all(FlatCall *flat, PyObject *values, int depth) {
  int state = DONE;
  for (Py_ssize_t i = 0; state == DONE && i < PyList_Size(values); i++)
    state = open_one(flat, PyList_GetItem(values, i), depth);
  return state;
}

static int open_dict(FlatCall *flat, PyObject *x, int depth) {
  PyObject *values = NULL;
  PyObject *keys = sorted_items((PyObject *)&PyDict_Type, x, &values, &flat->order);
  int state = take_mark(flat, keys);
  if (state == DONE) state = open_all(flat, values, depth + 1);
  Py_XDECREF(values);
  return state;
}

static int open_items(FlatCall *flat, PyObject *x, int depth) {
  PyObject *values = PySequence_List(x);
  Py_ssize_t count = values ? PyList_Size(values) : 0;
  int state = values ? take_mark(flat, PyLong_FromSsize_t(PyList_CheckExact(x) ? count : ~count)) : FAILED;
  if (state == DONE) state = open_all(flat, values, depth + 1);
  Py_XDECREF(values);
  return state;
}

static int open_object(FlatCall *flat, PyObject *x, int depth) {
  PyObject *values = NULL, *mark = NULL;
  int state = open_node(x, &values, &mark, &flat->raised);
  if (state == DONE) state = take_mark(flat, mark);
  if (state == DONE) state = open_all(flat, values, depth + 1);
  Py_XDECREF(values);
  return state;
}

static int open_one(FlatCall *flat, PyObject *x, int depth) {
  if (Py_TYPE(x) == array_class) return take_leaf(flat, x);
  if (x == Py_None) return take_mark(flat, Py_NewRef((PyObject *)Py_TYPE(x)));
  int is_dict = PyDict_CheckExact(x), has_items = PyTuple_CheckExact(x) || PyList_CheckExact(x);
  int found = is_dict || has_items ? 1 : is_node(x);
  if (found < 0) return FAILED;
  if (!found) return take_leaf(flat, x);
  if (depth == DEEPEST) return NOT_HERE;
  return is_dict     ? open_dict(flat, x, depth)
         : has_items ? open_items(flat, x, depth)
                     : open_object(flat, x, depth);
}

/* ---- the call ---- */

static int take_static(FlatCall *flat, PyObject *value) {
  if (!flat->statics && !(flat->statics = PyList_New(0))) return FAILED;
  if (append(flat->statics, value) != DONE) return FAILED;
  return take_mark(flat, static_key_of(value));
}

/* An argument; `name` is NULL of one by position. */
static int take_argument(FlatCall *flat, const Statics *which, PyObject *name, Py_ssize_t number,
                         PyObject *value) {
  int found = is_static(which, name, number);
  return found < 0 ? FAILED : found ? take_static(flat, value) : open_one(flat, value, 0);
}

static int take_named(FlatCall *flat, PyObject *kwargs, const Statics *which, PyObject **names) {
  PyObject *values = NULL;
  *names = sorted_items(NULL, kwargs, &values, &flat->order);
  int state = *names ? DONE : FAILED;
  for (Py_ssize_t i = 0; state == DONE && i < PyTuple_Size(*names); i++) {
    PyObject *name = PyTuple_GetItem(*names, i);
    state = PyUnicode_CheckExact(name) /* another class may be Python's */
                ? take_argument(flat, which, name, 0, PyList_GetItem(values, i))
                : NOT_HERE;
  }
  Py_XDECREF(values);
  return state;
}

/* The structure of the marks that were taken. */
static PyObject *structure_of(FlatCall *flat, Py_ssize_t positional, PyObject *names) {
  if (!flat->has_structure && !names) return Py_NewRef(Py_None);
  Py_ssize_t count = PyList_Size(flat->marks);
  PyObject *first = PyLong_FromSsize_t(positional), *made = first ? PyTuple_New(count + 2) : NULL;
  if (!made) {
    Py_XDECREF(first);
    return NULL;
  }
  PyTuple_SetItem(made, 0, first);
  PyTuple_SetItem(made, 1, names ? Py_NewRef(names) : PyTuple_New(0)); /* which always is the same */
  for (Py_ssize_t i = 0; i < count; i++)
    PyTuple_SetItem(made, i + 2, Py_NewRef(PyList_GetItem(flat->marks, i)));
  return made;
}

int flatten_call(FlatCall *flat, PyObject *args, PyObject *kwargs, const Statics *which) {
  Py_ssize_t positional = PyTuple_Size(args);
  PyObject *names = NULL;
  flat->leaves = flat->on_stack;
  flat->room = ON_STACK;
  flat->count = 0;
  flat->has_structure = flat->raised = 0;
  flat->structure = flat->statics = NULL;
  flat->order = (Order){NULL, 0, 0};
  flat->marks = PyList_New(0);
  int state = flat->marks ? DONE : FAILED;
  for (Py_ssize_t i = 0; state == DONE && i < positional; i++)
    state = take_argument(flat, which, NULL, i, PyTuple_GetItem(args, i));
  if (state == DONE && kwargs && PyDict_Size(kwargs)) state = take_named(flat, kwargs, which, &names);
  if (state == DONE && !(flat->structure = structure_of(flat, positional, names))) state = FAILED;
  Py_XDECREF(names);
  if (state != DONE) flat_call_drop(flat);
  return state;
}

void flat_call_drop(FlatCall *flat) {
  while (flat->count) Py_DECREF(flat->leaves[--flat->count]);
  if (flat->leaves != flat->on_stack) PyMem_Free(flat->leaves);
  flat->leaves = flat->on_stack;
  PyMem_Free(flat->order.numbers);
  flat->order.numbers = NULL;
  Py_CLEAR(flat->marks);
  Py_CLEAR(flat->structure);
  Py_CLEAR(flat->statics);
}
