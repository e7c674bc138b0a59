/* Memory that is freed with its owner: strings, lists and attributes that hosts read. */
#include "core.h"

#include <string.h>

atomic_long live_handles[LIVE_KINDS];

struct ArenaBlock {
  ArenaBlock *next;
  max_align_t content[];
};

void *arena_allocate(Arena *arena, size_t size) {
  ArenaBlock *block = calloc(1, sizeof *block + size);
  if (block == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  block->next = arena->blocks;
  arena->blocks = block;
  return block->content;
}

void arena_free(Arena *arena) {
  while (arena->blocks != NULL) {
    ArenaBlock *next = arena->blocks->next;
    free(arena->blocks);
    arena->blocks = next;
  }
}

int arena_text(Arena *arena, PyObject *value, Text *text) {
  Py_ssize_t size;
  const char *data;
  if (PyBytes_Check(value)) {
    data = PyBytes_AsString(value);
    size = PyBytes_Size(value);
  } else {
    data = PyUnicode_AsUTF8AndSize(value, &size);
  }
  if (data == NULL)
    return -1;
  char *copy = arena_allocate(arena, (size_t)size + 1);
  if (copy == NULL)
    return -1;
  memcpy(copy, data, (size_t)size);
  text->data = copy;
  text->size = (size_t)size;
  return 0;
}

static int read_integers(Arena *arena, PyObject *list, PJRT_NamedValue *value) {
  Py_ssize_t count = PySequence_Size(list);
  int64_t *items = count < 0 ? NULL : arena_allocate(arena, (size_t)count * sizeof *items);
  if (items == NULL)
    return -1;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *item = PySequence_GetItem(list, i);
    items[i] = item == NULL ? -1 : PyLong_AsLongLong(item);
    Py_XDECREF(item);
    if (PyErr_Occurred())
      return -1;
  }
  value->type = PJRT_NamedValue_Type_kInt64List;
  value->int64_array_value = items;
  value->value_size = (size_t)count;
  return 0;
}

static int fill_value(Arena *arena, PyObject *object, PJRT_NamedValue *value) {
  value->value_size = 1;
  if (PyBool_Check(object)) {
    value->type = PJRT_NamedValue_Type_kBool;
    value->bool_value = object == Py_True;
  } else if (PyLong_Check(object)) {
    value->type = PJRT_NamedValue_Type_kInt64;
    value->int64_value = PyLong_AsLongLong(object);
  } else if (PyFloat_Check(object)) {
    value->type = PJRT_NamedValue_Type_kFloat;
    value->float_value = (float)PyFloat_AsDouble(object);
  } else if (PyUnicode_Check(object)) {
    Text text;
    if (arena_text(arena, object, &text))
      return -1;
    value->type = PJRT_NamedValue_Type_kString;
    value->string_value = text.data;
    value->value_size = text.size;
  } else {
    return read_integers(arena, object, value);
  }
  return PyErr_Occurred() ? -1 : 0;
}

int arena_named_values(Arena *arena, PyObject *mapping, const PJRT_NamedValue **values,
                       size_t *count) {
  PyObject *items = PyMapping_Items(mapping);
  if (items == NULL)
    return -1;
  Py_ssize_t size = PyList_Size(items);
  PJRT_NamedValue *made = arena_allocate(arena, (size_t)size * sizeof *made);
  int failed = made == NULL;
  for (Py_ssize_t i = 0; i < size && !failed; i++) {
    PyObject *item = PyList_GetItem(items, i), *name = PyTuple_GetItem(item, 0);
    Text text = {NULL, 0};
    failed = arena_text(arena, name, &text) ||
             fill_value(arena, PyTuple_GetItem(item, 1), &made[i]);
    made[i].struct_size = sizeof *made;
    made[i].name = text.data;
    made[i].name_size = text.size;
  }
  Py_DECREF(items);
  *values = made;
  *count = (size_t)size;
  return failed ? -1 : 0;
}

PyObject *integer_tuple(const int64_t *values, size_t count) {
  PyObject *tuple = PyTuple_New((Py_ssize_t)count);
  for (size_t i = 0; tuple != NULL && i < count; i++) {
    PyObject *value = PyLong_FromLongLong(values[i]);
    if (value == NULL)
      Py_CLEAR(tuple);
    else
      PyTuple_SetItem(tuple, (Py_ssize_t)i, value);
  }
  return tuple;
}
