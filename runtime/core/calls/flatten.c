/* FlatCall: a flattened call, as plugrt.execution.arrays.arguments.quick_leaves and nested_leaves make it:
   its leaves, and a key for the containers around them and for its static values.

   Built-in containers are opened, the leaves of a dict in its own order, and what nodes.c knows. */
#include <string.h>

#include "calls/internal.h"

static PyObject *nested, *stars;

enum { DEEPEST = 50 };

static int is_container(PyObject *x) {
  return PyDict_CheckExact(x) || PyTuple_CheckExact(x) || PyList_CheckExact(x);
}

/* Whether it is opened; -1 with an exception. */
static int has_parts(PyObject *x) { return is_container(x) ? 1 : is_node(x); }

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
  return DONE;
}

/* ---- containers ---- */

static int open_all(FlatCall *flat, PyObject *values, PyObject *marks, int depth);

static int open_one(FlatCall *flat, PyObject *x, PyObject *marks, int depth) {
  int found = has_parts(x), state = DONE;
  PyObject *values = NULL, *mark = NULL;
  if (!found) return append_new(marks, Py_NewRef(Py_None)) == DONE ? take_leaf(flat, x) : FAILED;
  if (found < 0) return FAILED;
  if (depth == DEEPEST) return NOT_HERE;
  if (!is_container(x)) {
    state = open_node(x, &values, &mark, &flat->raised);
  } else if (!(values = PyDict_CheckExact(x) ? PyList_New(0) : PySequence_List(x))) {
    return FAILED;
  } else if (PyDict_CheckExact(x)) {
    mark = dict_keys((PyObject *)&PyDict_Type, x, values);
  } else {
    mark = Py_BuildValue("(On)", Py_TYPE(x), PyList_Size(values));
  }
  if (state != DONE) return state;
  state = append_new(marks, mark);
  if (state == DONE) state = open_all(flat, values, marks, depth + 1);
  Py_DECREF(values);
  return state;
}

/* The values are a list that nobody else has. */
static int open_all(FlatCall *flat, PyObject *values, PyObject *marks, int depth) {
  int state = DONE;
  for (Py_ssize_t i = 0; state == DONE && i < PyList_Size(values); i++)
    state = open_one(flat, PyList_GetItem(values, i), marks, depth);
  return state;
}

/* Takes the leaves of a container of the first level, and appends what stands for it. */
static int open_quickly(FlatCall *flat, PyObject *x, PyObject *marks) {
  int state = DONE;
  Py_ssize_t at = 0;
  PyObject *key, *value, *mark;
  if (PyDict_CheckExact(x)) {
    mark = dict_keys(NULL, x, NULL);
    while (mark && state == DONE && PyDict_Next(x, &at, &key, &value)) state = take_leaf(flat, value);
  } else {
    int is_list = PyList_CheckExact(x);
    Py_ssize_t count = is_list ? PyList_Size(x) : PyTuple_Size(x);
    for (; state == DONE && at < count; at++)
      state = take_leaf(flat, is_list ? PyList_GetItem(x, at) : PyTuple_GetItem(x, at));
    mark = PyLong_FromSsize_t(is_list ? count : ~count);
  }
  if (state == DONE) return append_new(marks, mark);
  Py_XDECREF(mark);
  return state;
}

/* NESTED for what is opened within a container, ONE_LEVEL for a leaf there, FAILED with an exception. */
static int level_of_part(PyObject *x) {
  int found = has_parts(x);
  return found < 0 ? FAILED : found ? NESTED : ONE_LEVEL;
}

/* How deep the containers of an argument are, as far as it matters; FAILED with an exception. */
static int level_of(PyObject *x) {
  int level = ONE_LEVEL;
  Py_ssize_t at = 0;
  PyObject *key, *value;
  if (PyDict_CheckExact(x)) {
    while (level == ONE_LEVEL && PyDict_Next(x, &at, &key, &value)) level = level_of_part(value);
  } else if (PyList_CheckExact(x)) {
    for (; level == ONE_LEVEL && at < PyList_Size(x); at++)
      level = level_of_part(PyList_GetItem(x, at));
  } else if (PyTuple_CheckExact(x)) {
    for (; level == ONE_LEVEL && at < PyTuple_Size(x); at++)
      level = level_of_part(PyTuple_GetItem(x, at));
  } else {
    int found = is_node(x);
    return found < 0 ? FAILED : found ? NESTED : FLAT;
  }
  return level;
}

/* ---- the call ---- */

static int take_statics(FlatCall *flat, PyObject *args, PyObject *kwargs, const Statics *which,
                        PyObject **statics, Py_ssize_t *dynamic) {
  int state = DONE, found = 0;
  Py_ssize_t at = 0;
  PyObject *key, *value;
  for (Py_ssize_t i = 0; state == DONE && i < PyTuple_Size(args); i++) {
    value = PyTuple_GetItem(args, i);
    found = is_static(which, NULL, i);
    if (found < 0) return FAILED;
    int level = found ? FLAT : level_of(value);
    if (level == FAILED) return FAILED;
    if (level > flat->level) flat->level = level;
    if (found) state = take_static(statics, PyLong_FromSsize_t(i), value);
  }
  while (state == DONE && kwargs && PyDict_Next(kwargs, &at, &key, &value)) {
    found = is_static(which, key, 0);
    if (found < 0) return FAILED;
    if (found) {
      state = take_static(statics, Py_NewRef(key), value);
      continue;
    }
    found = has_parts(value);
    if (found < 0) return FAILED;
    if (found) flat->level = NESTED;
    ++*dynamic;
  }
  return state;
}

static int take_leaves(FlatCall *flat, PyObject *args, PyObject *kwargs, const Statics *which,
                       PyObject *marks) {
  int state = DONE;
  Py_ssize_t at = 0;
  PyObject *key, *value;
  for (Py_ssize_t i = 0; state == DONE && i < PyTuple_Size(args); i++) {
    value = PyTuple_GetItem(args, i);
    int skip = is_static(which, NULL, i);
    if (skip < 0) return FAILED;
    if (skip) continue;
    if (flat->level == NESTED) state = open_one(flat, value, marks, 0);
    else if (is_container(value)) state = open_quickly(flat, value, marks);
    else state = take_leaf(flat, value);
    if (flat->level == ONE_LEVEL && state == DONE && !is_container(value))
      state = append_new(marks, Py_NewRef(Py_None));
  }
  if (!kwargs) return state;
  PyObject *first = flat->level == FLAT ? NULL : stars;
  PyObject *named = which->names ? dict_keys_without(which->names, first, kwargs)
                                 : dict_keys(first, kwargs, NULL);
  if (!named) return FAILED;
  if (flat->level != FLAT && PyTuple_Size(named) > 1) state = append_new(marks, Py_NewRef(named));
  if (flat->level == FLAT && PyTuple_Size(named)) flat->structure = Py_NewRef(named);
  Py_DECREF(named);
  while (state == DONE && PyDict_Next(kwargs, &at, &key, &value)) {
    int skip = is_static(which, key, 0);
    if (skip < 0) return FAILED;
    if (skip) continue;
    state = flat->level == NESTED ? open_one(flat, value, marks, 0) : take_leaf(flat, value);
  }
  return state;
}

int flatten_call(FlatCall *flat, PyObject *args, PyObject *kwargs, const Statics *which) {
  Py_ssize_t dynamic = 0;
  flat->leaves = flat->on_stack;
  flat->room = ON_STACK;
  flat->count = 0;
  flat->level = FLAT;
  flat->raised = 0;
  flat->structure = flat->statics = NULL;
  PyObject *statics = NULL, *marks = NULL; /* lists, where there is something for them */
  PyObject *named = NULL;
  int state = take_statics(flat, args, kwargs, which, &statics, &dynamic);
  if (state == DONE && flat->level != FLAT && !(marks = PyList_New(0))) state = FAILED;
  if (state == DONE && flat->level == NESTED) state = append_new(marks, Py_NewRef(nested));
  if (state == DONE && dynamic && flat->level == NESTED) /* Python code may change what it is of */
    state = (kwargs = named = PyDict_Copy(kwargs)) ? DONE : FAILED;
  if (state == DONE) state = take_leaves(flat, args, dynamic ? kwargs : NULL, which, marks);
  if (state == DONE && !flat->structure)
    flat->structure = flat->level == FLAT ? Py_NewRef(Py_None) : PyList_AsTuple(marks);
  if (state == DONE) flat->statics = statics ? PyList_AsTuple(statics) : PyTuple_New(0);
  Py_XDECREF(statics);
  Py_XDECREF(marks);
  Py_XDECREF(named);
  if (state == DONE && !(flat->structure && flat->statics)) state = FAILED;
  if (state != DONE) flat_call_drop(flat);
  return state;
}

void flat_call_drop(FlatCall *flat) {
  while (flat->count) Py_DECREF(flat->leaves[--flat->count]);
  if (flat->leaves != flat->on_stack) PyMem_Free(flat->leaves);
  flat->leaves = flat->on_stack;
  Py_CLEAR(flat->structure);
  Py_CLEAR(flat->statics);
}

int is_same_flat_call(const FlatCall *flat, PyObject *args, PyObject *kwargs, const Statics *which) {
  FlatCall now;
  if (flatten_call(&now, args, kwargs, which) != DONE) return 0;
  int same = now.count == flat->count &&
             PyObject_RichCompareBool(now.structure, flat->structure, Py_EQ) == 1 &&
             PyObject_RichCompareBool(now.statics, flat->statics, Py_EQ) == 1;
  flat_call_drop(&now);
  return same;
}

int set_flatten_names(void) {
  nested = PyUnicode_InternFromString("nested");
  stars = PyUnicode_InternFromString("**");
  return nested && stars ? 0 : -1;
}
