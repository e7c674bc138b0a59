/* CallParts: the arguments of a call, to tell whether those of the next one are like them.

   Containers are compared as they are walked through: their classes, how many parts they have, and of
   a dict that its keys are the same objects in the same order. That is less than the key of a call
   says is the same, never more. What may run Python code each time is not kept: containers that a
   function opens, and attributes that are more than kept values. */
#include "calls/internal.h"
#include "arrays/arrays.h"
#include "values/values.h"

enum { LEAF, FIXED, DICT, LIST, TUPLE, OBJECT };

static void empty_part(CallPart *part) {
  Py_XDECREF(part->name);
  Py_XDECREF(part->what);
}

void call_parts_drop(CallParts *self) {
  if (!self || --self->uses) return;
  while (self->count) empty_part(&self->parts[--self->count]);
  PyMem_Free(self->parts);
  PyMem_Free(self);
}

int call_parts_visit(const CallParts *self, visitproc visit, void *arg) {
  for (Py_ssize_t i = 0; self && i < self->count; i++) {
    Py_VISIT(self->parts[i].name);
    Py_VISIT(self->parts[i].what);
  }
  return 0;
}

/* ---- comparing ---- */

typedef struct {
  const CallPart *next;
  PyObject *token, **values;
  Py_ssize_t count; /* of the values */
  int owned;        /* whether these are new references */
} Walk;

static int is_alike_within(Walk *walk, const CallPart *part, PyObject *value);

/* Whether a value is as the one was in its place. The usual case is here: an array. */
static inline int is_alike(Walk *walk, PyObject *value) {
  const CallPart *part = walk->next++;
  if (part->kind != LEAF || Py_TYPE(value) != array_class) return is_alike_within(walk, part, value);
  if (((Array *)value)->aval != part->what) return 0;
  walk->values[walk->count++] = value;
  if (walk->owned) Py_INCREF(value);
  return 1;
}

static int dict_is_alike(Walk *walk, PyObject *dict, Py_ssize_t count) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  if (PyDict_Size(dict) != count) return 0;
  while (count--)
    if (!PyDict_Next(dict, &at, &key, &value) || key != walk->next->name || !is_alike(walk, value))
      return 0;
  return 1;
}

static int items_are_alike(Walk *walk, PyObject *x, Py_ssize_t count) {
  int is_list = PyList_Check(x);
  if ((is_list ? PyList_Size(x) : PyTuple_Size(x)) != count) return 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *value = is_list ? PyList_GetItem(x, i) : PyTuple_GetItem(x, i);
    if (!value || !is_alike(walk, value)) return 0;
  }
  return 1;
}

static int attributes_are_alike(Walk *walk, PyObject *x, Py_ssize_t count) {
  while (count--) {
    PyObject *value = PyObject_GetAttr(x, walk->next->name);
    int alike = value && is_alike(walk, value);
    Py_XDECREF(value);
    if (!alike) return 0;
  }
  return 1;
}

static int container_is_alike(Walk *walk, const CallPart *part, PyObject *x) {
  if ((PyObject *)Py_TYPE(x) != part->what) return 0;
  Py_INCREF(x); /* it may be in one that an attribute's reading changes, whose class was changed */
  int alike = part->kind == DICT     ? dict_is_alike(walk, x, part->count)
              : part->kind == OBJECT ? attributes_are_alike(walk, x, part->count)
                                     : items_are_alike(walk, x, part->count);
  Py_DECREF(x);
  return alike;
}

static int is_alike_within(Walk *walk, const CallPart *part, PyObject *value) {
  if (part->kind == FIXED) return is_same_lasting(part->what, value);
  if (part->kind != LEAF) return container_is_alike(walk, part, value);
  PyObject *aval = value == Py_None ? (PyObject *)Py_TYPE(value) : known_host_aval(value, walk->token);
  if (aval != part->what) return 0;
  walk->values[walk->count++] = value;
  if (walk->owned) Py_INCREF(value);
  return 1;
}

static int arguments_are_alike(const CallParts *self, Walk *walk, const Call *call) {
  for (Py_ssize_t i = 0; i < self->positional; i++)
    if (!is_alike(walk, PyTuple_GetItem(call->args, i))) return 0;
  return !self->named || dict_is_alike(walk, call->kwargs, self->named);
}

int call_parts_match(CallParts *self, const Call *call, PyObject **values) {
  Py_ssize_t named = call->kwargs ? PyDict_Size(call->kwargs) : 0;
  if (PyTuple_Size(call->args) != self->positional || named != self->named) return NOT_HERE;
  if (self->classes && self->classes != node_classes()) return NOT_HERE;
  Walk walk = {self->parts, call->token, values, 0, self->owned};
  self->uses++;
  int state = arguments_are_alike(self, &walk, call) ? DONE : NOT_HERE;
  call_parts_drop(self);
  if (state == DONE) return DONE;
  while (walk.owned && walk.count) Py_DECREF(values[--walk.count]);
  return PyErr_Occurred() && !drop_exception() ? FAILED : NOT_HERE; /* which Python meets, too */
}

/* ---- reading ---- */

typedef struct {
  CallParts *made;
  Py_ssize_t room;
  PyObject *const *values, *const *avals;
  Py_ssize_t count, next; /* of the values */
} Reading;

/* Appends a part; whether it could. */
static int append(Reading *reading, int kind, PyObject *name, PyObject *what, Py_ssize_t count) {
  CallParts *made = reading->made;
  if (made->count == reading->room) {
    Py_ssize_t room = 2 * reading->room + 4;
    CallPart *grown = PyMem_Realloc(made->parts, room * sizeof *grown);
    if (!grown) return 0;
    made->parts = grown;
    reading->room = room;
  }
  made->parts[made->count++] = (CallPart){Py_XNewRef(name), Py_NewRef(what), count, kind};
  return 1;
}

static int read_value(Reading *reading, PyObject *name, PyObject *value);

/* As the call was flattened: what was a leaf of it is the next of its values. */
static int read_leaf(Reading *reading, PyObject *name, PyObject *value) {
  Py_ssize_t i = reading->next++;
  if (i >= reading->count || reading->values[i] != value) return 0;
  return append(reading, LEAF, name, reading->avals[i], 0);
}

static int read_fixed(Reading *reading, PyObject *name, PyObject *value) {
  return is_lasting(value) && append(reading, FIXED, name, value, 0);
}

static int read_dict(Reading *reading, PyObject *name, PyObject *dict) {
  PyObject *key, *value;
  Py_ssize_t at = 0, count = PyDict_Size(dict);
  if (!append(reading, DICT, name, (PyObject *)&PyDict_Type, count)) return 0;
  while (count-- && PyDict_Next(dict, &at, &key, &value))
    if (!is_lasting(key) || !read_value(reading, key, value)) return 0;
  return 1;
}

static int read_items(Reading *reading, PyObject *name, PyObject *x) {
  int is_list = PyList_Check(x), kind = is_list ? LIST : TUPLE;
  Py_ssize_t count = is_list ? PyList_Size(x) : PyTuple_Size(x);
  if (!append(reading, kind, name, (PyObject *)Py_TYPE(x), count)) return 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *value = is_list ? PyList_GetItem(x, i) : PyTuple_GetItem(x, i);
    if (!value || !read_value(reading, NULL, value)) return 0;
  }
  return 1;
}

static int read_attributes(Reading *reading, PyObject *x, PyObject *names, int fixed) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++) {
    PyObject *name = PyTuple_GetItem(names, i), *value = PyObject_GetAttr(x, name);
    int read = value && (fixed ? read_fixed : read_value)(reading, name, value);
    Py_XDECREF(value);
    if (!read) return 0;
  }
  return 1;
}

static int read_object(Reading *reading, PyObject *name, PyObject *x, PyObject *names) {
  PyObject *data = PyTuple_GetItem(names, 0), *metadata = PyTuple_GetItem(names, 1);
  Py_ssize_t count = PyTuple_Size(data) + PyTuple_Size(metadata);
  return append(reading, OBJECT, name, (PyObject *)Py_TYPE(x), count) &&
         read_attributes(reading, x, data, 0) && read_attributes(reading, x, metadata, 1);
}

static int read_node(Reading *reading, PyObject *name, PyObject *x) {
  PyObject *names = NULL;
  int state = plain_node(x, &names);
  if (state == DONE && names) state = read_object(reading, name, x, names) ? DONE : NOT_HERE;
  else if (state == DONE) state = read_items(reading, name, x) ? DONE : NOT_HERE;
  Py_XDECREF(names);
  reading->made->classes = node_classes();
  return state == DONE;
}

static int read_container(Reading *reading, PyObject *name, PyObject *x) {
  int is_dict = PyDict_CheckExact(x), has_items = PyTuple_CheckExact(x) || PyList_CheckExact(x);
  int found = is_dict || has_items ? 1 : is_node(x);
  if (found < 0) return 0;
  if (!found) return read_leaf(reading, name, x);
  reading->made->owned = 1;
  return is_dict     ? read_dict(reading, name, x)
         : has_items ? read_items(reading, name, x)
                     : read_node(reading, name, x);
}

static int read_value(Reading *reading, PyObject *name, PyObject *value) {
  Py_XINCREF(name);
  Py_INCREF(value); /* what it is in may drop both: Python may run, in the hash of a class */
  int read = read_container(reading, name, value);
  Py_DECREF(value);
  Py_XDECREF(name);
  return read;
}

static int read_argument(Reading *reading, const Statics *statics, PyObject *name, Py_ssize_t number,
                         PyObject *value) {
  int fixed = is_static(statics, name, number);
  return fixed >= 0 && (fixed ? read_fixed : read_value)(reading, name, value);
}

static int read_arguments(Reading *reading, const Call *call, const Statics *statics) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  for (Py_ssize_t i = 0; i < reading->made->positional; i++)
    if (!read_argument(reading, statics, NULL, i, PyTuple_GetItem(call->args, i))) return 0;
  for (Py_ssize_t i = 0; i < reading->made->named && PyDict_Next(call->kwargs, &at, &key, &value); i++)
    if (!PyUnicode_CheckExact(key) || !read_argument(reading, statics, key, 0, value))
      return 0; /* a key's class may be Python's */
  return reading->next == reading->count;
}

CallParts *call_parts_read(const Call *call, const Statics *statics, PyObject *const *values,
                           PyObject *const *avals, Py_ssize_t count) {
  CallParts *made = PyMem_Calloc(1, sizeof *made);
  if (!made) return NULL;
  made->uses = 1;
  made->values = count;
  made->positional = PyTuple_Size(call->args);
  made->named = call->kwargs ? PyDict_Size(call->kwargs) : 0;
  made->owned = made->named > 0;
  Reading reading = {made, 0, values, avals, count, 0};
  if (read_arguments(&reading, call, statics)) return made;
  call_parts_drop(made);
  return NULL;
}
