/* FlatCall: a flattened call, read as by plugrt.execution.launches.flat_calls.FlatCall. It has the
   leaves in pytree order, the structure and the static values, all read once. This file opens
   built-in containers, nodes.c opens others. */
#include <string.h>

#include "calls/internal.h"
#include "arrays/arrays.h"

enum { DEEPEST = 50 };

/* Makes room for more items; NULL with an exception. */
static void *grow(void *items, void *on_stack, Py_ssize_t size, Py_ssize_t *room) {
  void *grown = PyMem_Realloc(items == on_stack ? NULL : items, 2 * *room * size);
  if (!grown) return PyErr_NoMemory();
  if (items == on_stack) memcpy(grown, on_stack, *room * size);
  *room *= 2;
  return grown;
}

static void vector_init(Vector *self) {
  self->items = self->on_stack;
  self->room = ON_STACK;
  self->count = 0;
}

/* Appends and steals a reference; NULL has an exception set. */
static int push(Vector *self, PyObject *item) {
  if (item && self->count == self->room) {
    PyObject **grown = grow(self->items, self->on_stack, sizeof *grown, &self->room);
    if (grown) self->items = grown;
    else Py_CLEAR(item);
  }
  if (!item) return FAILED;
  self->items[self->count++] = item;
  return DONE;
}

static void vector_drop(Vector *self) {
  while (self->count) Py_DECREF(self->items[--self->count]);
  if (self->items != self->on_stack) PyMem_Free(self->items);
  self->items = self->on_stack;
}

PyObject *vector_list(const Vector *self) {
  PyObject *made = PyList_New(self->count);
  for (Py_ssize_t i = 0; made && i < self->count; i++)
    PyList_SetItem(made, i, Py_NewRef(self->items[i]));
  return made;
}

static int take_leaf(FlatCall *flat, PyObject *leaf) {
  int state = push(&flat->leaves, Py_NewRef(leaf));
  return state == DONE ? push(&flat->marks, Py_NewRef(Py_None)) : state;
}

/* Appends a new mark that is not of a leaf; NULL has an exception set. */
static int take_mark(FlatCall *flat, PyObject *mark) {
  flat->has_structure = 1;
  return push(&flat->marks, mark);
}

/* Appends the dict's own positions of the sorted entries. */
static int take_order(FlatCall *flat, const Entries *entries) {
  while (flat->orders + entries->count > flat->order_room) {
    Py_ssize_t *grown = grow(flat->order, flat->order_on_stack, sizeof *grown, &flat->order_room);
    if (!grown) return FAILED;
    flat->order = grown;
  }
  for (Py_ssize_t i = 0; i < entries->count; i++)
    flat->order[flat->orders++] = entries->entries[i].number;
  return DONE;
}

static int open_one(FlatCall *flat, PyObject *x, int depth);

static int open_dict(FlatCall *flat, PyObject *x, int depth) {
  Entries found;
  if (entries_read(&found, x) != DONE) return FAILED;
  int state = entries_sort(&found);
  if (state == DONE) state = take_order(flat, &found);
  if (state == DONE) state = take_mark(flat, entries_keys(&found, (PyObject *)&PyDict_Type));
  for (Py_ssize_t i = 0; state == DONE && i < found.count; i++)
    state = open_one(flat, found.entries[i].value, depth + 1);
  entries_drop(&found);
  return state;
}

/* Opens a new list that has no other reference, and frees it. */
static int open_all(FlatCall *flat, PyObject *values, int depth) {
  int state = DONE;
  for (Py_ssize_t i = 0; state == DONE && i < PyList_Size(values); i++)
    state = open_one(flat, PyList_GetItem(values, i), depth);
  Py_DECREF(values);
  return state;
}

static int open_items(FlatCall *flat, PyObject *x, int depth) {
  PyObject *values = PySequence_List(x);
  if (!values) return FAILED;
  Py_ssize_t count = PyList_Size(values);
  int state = take_mark(flat, PyLong_FromSsize_t(PyList_CheckExact(x) ? count : ~count));
  if (state == DONE) return open_all(flat, values, depth + 1);
  Py_DECREF(values);
  return state;
}

static int open_object(FlatCall *flat, PyObject *x, int depth) {
  PyObject *values, *mark, *names;
  int state = open_node(x, &values, &mark, &names, &flat->raised);
  if (state != DONE) return state;
  state = push(&flat->nodes, Py_NewRef(x));
  if (state == DONE) state = push(&flat->nodes, Py_NewRef(mark));
  if (state == DONE) state = push(&flat->nodes, Py_NewRef(names));
  Py_DECREF(names);
  if (state == DONE) state = take_mark(flat, mark);
  else Py_DECREF(mark);
  if (state == DONE) return open_all(flat, values, depth + 1);
  Py_DECREF(values);
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

static int take_static(FlatCall *flat, PyObject *value) {
  if (!flat->statics && !(flat->statics = PyList_New(0))) return FAILED;
  if (PyList_Append(flat->statics, value)) return FAILED;
  return take_mark(flat, static_key_of(value));
}

/* Reads an argument; `name` is NULL for a positional one. */
static int take_argument(FlatCall *flat, const Statics *which, PyObject *name, Py_ssize_t number,
                         PyObject *value) {
  int found = is_static(which, name, number);
  return found < 0 ? FAILED : found ? take_static(flat, value) : open_one(flat, value, 0);
}

static int take_named(FlatCall *flat, PyObject *kwargs, const Statics *which, PyObject **names) {
  Entries found;
  if (entries_read(&found, kwargs) != DONE) return FAILED;
  int state = entries_sort(&found);
  if (state == DONE) state = take_order(flat, &found);
  if (state == DONE && !(*names = entries_keys(&found, NULL))) state = FAILED;
  for (Py_ssize_t i = 0; state == DONE && i < found.count; i++)
    state = PyUnicode_CheckExact(found.entries[i].key) /* Python may handle subclasses of str */
                ? take_argument(flat, which, found.entries[i].key, 0, found.entries[i].value)
                : NOT_HERE;
  entries_drop(&found);
  return state;
}

/* Makes the structure from the marks. */
static PyObject *structure_of(const FlatCall *flat, Py_ssize_t positional, PyObject *names) {
  if (!flat->has_structure && !names) return Py_NewRef(Py_None);
  Py_ssize_t count = flat->marks.count;
  PyObject *first = PyLong_FromSsize_t(positional), *made = first ? PyTuple_New(count + 2) : NULL;
  if (!made) {
    Py_XDECREF(first);
    return NULL;
  }
  PyTuple_SetItem(made, 0, first);
  /* always the same for one function */
  PyTuple_SetItem(made, 1, names ? Py_NewRef(names) : PyTuple_New(0));
  for (Py_ssize_t i = 0; i < count; i++)
    PyTuple_SetItem(made, i + 2, Py_NewRef(flat->marks.items[i]));
  return made;
}

int flatten_call(FlatCall *flat, PyObject *args, PyObject *kwargs, const Statics *which) {
  Py_ssize_t positional = PyTuple_Size(args);
  PyObject *names = NULL;
  vector_init(&flat->leaves);
  vector_init(&flat->marks);
  vector_init(&flat->nodes);
  flat->has_structure = flat->raised = 0;
  flat->structure = flat->statics = NULL;
  flat->order = flat->order_on_stack;
  flat->orders = 0;
  flat->order_room = ON_STACK;
  int state = DONE;
  for (Py_ssize_t i = 0; state == DONE && i < positional; i++)
    state = take_argument(flat, which, NULL, i, PyTuple_GetItem(args, i));
  if (state == DONE && kwargs && PyDict_Size(kwargs)) state = take_named(flat, kwargs, which, &names);
  if (state == DONE && !(flat->structure = structure_of(flat, positional, names))) state = FAILED;
  Py_XDECREF(names);
  if (state != DONE) flat_call_drop(flat);
  return state;
}

void flat_call_drop(FlatCall *flat) {
  vector_drop(&flat->leaves);
  vector_drop(&flat->marks);
  vector_drop(&flat->nodes);
  if (flat->order != flat->order_on_stack) PyMem_Free(flat->order);
  flat->order = flat->order_on_stack;
  Py_CLEAR(flat->structure);
  Py_CLEAR(flat->statics);
}
