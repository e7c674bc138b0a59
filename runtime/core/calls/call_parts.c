/* CallParts: the arguments of a call, to compare with those of the next call.

   The comparison walks through the containers. It compares their classes and lengths, and requires
   that a dict has the same key objects in the same order. This is stricter than comparing the keys
   of two calls.

   A call is not kept if a comparison could run Python code each time: for containers that a
   function opens, and for attributes that are computed. CallParts are made from the structure that
   was read of the call, so that the call is not read twice.

   Without them a call on xla-cpu-pjrt runs 3 % more instructions with two arrays, 12 % with a dict
   of three, 2.6 times as many with a tree of 40 (benchmarks/instructions.py,
   benchmarks/callgrind.py). */
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

typedef struct {
  const CallPart *parts;
  PyObject *token, **values;
  int owned; /* whether the leaves are new references */
} Walk;

static int is_alike_within(Walk *walk, const CallPart *part, PyObject *value);

static inline int take(Walk *walk, const CallPart *part, PyObject *value) {
  walk->values[part->first] = value;
  if (walk->owned) Py_INCREF(value);
  return 1;
}

/* Whether a value matches its part. The most common case is handled here: an array. */
static inline int is_alike(Walk *walk, const CallPart *part, PyObject *value) {
  if (part->kind != LEAF || Py_TYPE(value) != array_class) return is_alike_within(walk, part, value);
  return ((Array *)value)->aval == part->what && take(walk, part, value);
}

static int dict_is_alike(Walk *walk, Py_ssize_t next, PyObject *dict, Py_ssize_t count) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  if (PyDict_Size(dict) != count) return 0;
  while (count--) {
    const CallPart *part = &walk->parts[next];
    if (!PyDict_Next(dict, &at, &key, &value) || key != part->name || !is_alike(walk, part, value))
      return 0;
    next = part->next;
  }
  return 1;
}

static int items_are_alike(Walk *walk, Py_ssize_t next, PyObject *x, Py_ssize_t count) {
  int is_list = PyList_Check(x);
  if ((is_list ? PyList_Size(x) : PyTuple_Size(x)) != count) return 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    const CallPart *part = &walk->parts[next];
    PyObject *value = is_list ? PyList_GetItem(x, i) : PyTuple_GetItem(x, i);
    if (!value || !is_alike(walk, part, value)) return 0;
    next = part->next;
  }
  return 1;
}

static int attributes_are_alike(Walk *walk, Py_ssize_t next, PyObject *x, Py_ssize_t count) {
  while (count--) {
    const CallPart *part = &walk->parts[next];
    PyObject *value = PyObject_GetAttr(x, part->name);
    int alike = value && is_alike(walk, part, value);
    Py_XDECREF(value);
    if (!alike) return 0;
    next = part->next;
  }
  return 1;
}

static int container_is_alike(Walk *walk, const CallPart *part, PyObject *x) {
  if ((PyObject *)Py_TYPE(x) != part->what) return 0;
  /* a class may be changed so that reading an attribute runs code that drops the last reference */
  Py_INCREF(x);
  int alike = part->kind == DICT     ? dict_is_alike(walk, part->first, x, part->count)
              : part->kind == OBJECT ? attributes_are_alike(walk, part->first, x, part->count)
                                     : items_are_alike(walk, part->first, x, part->count);
  Py_DECREF(x);
  return alike;
}

static int is_alike_within(Walk *walk, const CallPart *part, PyObject *value) {
  if (part->kind == FIXED) return is_same_lasting(part->what, value);
  if (part->kind != LEAF) return container_is_alike(walk, part, value);
  return known_host_aval(value, walk->token) == part->what && take(walk, part, value);
}

static int arguments_are_alike(const CallParts *self, Walk *walk, const Call *call) {
  return items_are_alike(walk, self->first, call->args, self->positional) &&
         (!self->named || dict_is_alike(walk, self->first_named, call->kwargs, self->named));
}

int call_parts_match(CallParts *self, const Call *call, PyObject **values) {
  Py_ssize_t named = call->kwargs ? PyDict_Size(call->kwargs) : 0;
  if (PyTuple_Size(call->args) != self->positional || named != self->named) return NOT_HERE;
  if (self->classes && self->classes != node_classes()) return NOT_HERE;
  Walk walk = {self->parts, call->token, values, self->owned};
  Py_ssize_t count = self->values;
  if (walk.owned) memset(values, 0, count * sizeof *values);
  self->uses++;
  int state = arguments_are_alike(self, &walk, call) ? DONE : NOT_HERE;
  call_parts_drop(self);
  if (state == DONE) return DONE;
  while (walk.owned && count) Py_XDECREF(values[--count]);
  /* Python meets this error, too */
  return PyErr_Occurred() && !drop_exception() ? FAILED : NOT_HERE;
}

typedef struct {
  CallParts *made;
  Py_ssize_t room;
  const FlatCall *flat;
  const Statics *which;
  PyObject *const *avals;
  Py_ssize_t mark, leaf, fixed, order; /* the index of the next one of each */
  int failed;                          /* a part is not kept, or an exception is set */
} Making;

enum { NONE = -1 }; /* no part, or an error */

static Py_ssize_t add(Making *making, int kind, PyObject *name, PyObject *what, Py_ssize_t count) {
  CallParts *made = making->made;
  if (made->count == making->room) {
    Py_ssize_t room = 2 * making->room + 4;
    CallPart *grown = PyMem_Realloc(made->parts, room * sizeof *grown);
    if (!grown) {
      making->failed = 1;
      return NONE;
    }
    made->parts = grown;
    making->room = room;
  }
  made->parts[made->count] = (CallPart){Py_XNewRef(name), Py_NewRef(what), count, NONE, NONE, kind};
  return made->count++;
}

static Py_ssize_t add_fixed(Making *making, PyObject *name, PyObject *value) {
  if (is_lasting(value)) return add(making, FIXED, name, value, 0);
  making->failed = 1;
  return NONE;
}

static Py_ssize_t add_leaf(Making *making, PyObject *name) {
  Py_ssize_t number = making->leaf++, at = add(making, LEAF, name, making->avals[number], 0);
  if (at != NONE) making->made->parts[at].first = number;
  return at;
}

static Py_ssize_t add_next(Making *making, PyObject *name);

static Py_ssize_t add_argument(Making *making, PyObject *name, Py_ssize_t number) {
  int fixed = is_static(making->which, name, number);
  if (!fixed) return add_next(making, name);
  if (fixed < 0) {
    making->failed = 1;
    return NONE;
  }
  making->mark++;
  return add_fixed(making, name, PyList_GetItem(making->flat->statics, making->fixed++));
}

/* Links parts and returns the first; frees the array. */
static Py_ssize_t link_parts(Making *making, Py_ssize_t *parts, Py_ssize_t count) {
  for (Py_ssize_t i = 0; !making->failed && i + 1 < count; i++)
    making->made->parts[parts[i]].next = parts[i + 1];
  Py_ssize_t first = making->failed || !count ? NONE : parts[0];
  PyMem_Free(parts);
  return first;
}

static Py_ssize_t *make_room(Making *making, Py_ssize_t count) {
  Py_ssize_t *room = PyMem_Malloc((count + 1) * sizeof *room);
  making->failed |= !room;
  return room;
}

/* Adds parts, with their names if any, and links them in the order of their container; a dict has
   its own order. */
static Py_ssize_t add_all(Making *making, PyObject *names, Py_ssize_t skip, Py_ssize_t count,
                          int are_arguments) {
  const Py_ssize_t *order = names ? making->flat->order + making->order : NULL;
  Py_ssize_t *parts = make_room(making, count);
  if (names) making->order += count;
  for (Py_ssize_t i = 0; !making->failed && i < count; i++) {
    PyObject *name = names ? PyTuple_GetItem(names, i + skip) : NULL;
    making->failed = name && !is_lasting(name);
    if (making->failed) break;
    parts[order ? order[i] : i] =
        are_arguments ? add_argument(making, name, i) : add_next(making, name);
  }
  return link_parts(making, parts, count);
}

static Py_ssize_t add_container(Making *making, int kind, PyObject *name, PyObject *cls,
                                PyObject *names, Py_ssize_t count) {
  Py_ssize_t at = add(making, kind, name, cls, count);
  Py_ssize_t first = making->failed ? NONE : add_all(making, names, 1, count, 0);
  making->made->owned = 1;
  if (at != NONE) making->made->parts[at].first = first;
  return at;
}

/* Adds an object whose attributes are its parts and metadata. */
static Py_ssize_t add_object(Making *making, PyObject *name, PyObject *mark, PyObject *names) {
  PyObject *data = PyTuple_GetItem(names, 0), *metadata = PyTuple_GetItem(names, 1);
  Py_ssize_t count = PyTuple_Size(data), all = count + PyTuple_Size(metadata);
  Py_ssize_t at = add(making, OBJECT, name, PyTuple_GetItem(mark, 0), all);
  Py_ssize_t *parts = make_room(making, all);
  for (Py_ssize_t i = 0; !making->failed && i < count; i++)
    parts[i] = add_next(making, PyTuple_GetItem(data, i));
  for (Py_ssize_t i = count; !making->failed && i < all; i++)
    parts[i] = add_fixed(making, PyTuple_GetItem(metadata, i - count),
                         PyTuple_GetItem(PyTuple_GetItem(mark, 2), i - count));
  Py_ssize_t first = link_parts(making, parts, all);
  making->made->owned = 1;
  if (at != NONE) making->made->parts[at].first = first;
  return at;
}

static Py_ssize_t add_node(Making *making, PyObject *name, PyObject *mark) {
  PyObject *names = NULL, *cls = PyTuple_GetItem(mark, 0);
  Py_ssize_t at = NONE;
  making->made->classes = node_classes();
  if (plain_class((PyTypeObject *)cls, &names) != DONE) making->failed = 1;
  else if (names) at = add_object(making, name, mark, names);
  else at = add_container(making, TUPLE, name, cls, NULL, PyLong_AsSsize_t(PyTuple_GetItem(mark, 1)));
  Py_XDECREF(names);
  return at;
}

static Py_ssize_t add_next(Making *making, PyObject *name) {
  if (!making->flat) return add_leaf(making, name);
  PyObject *mark = making->flat->marks.items[making->mark++];
  if (mark == Py_None) return add_leaf(making, name);
  if (mark == (PyObject *)Py_TYPE(Py_None)) return add_fixed(making, name, Py_None);
  if (PyLong_Check(mark)) {
    Py_ssize_t count = PyLong_AsSsize_t(mark);
    PyTypeObject *cls = count < 0 ? &PyTuple_Type : &PyList_Type;
    return add_container(making, count < 0 ? TUPLE : LIST, name, (PyObject *)cls, NULL,
                         count < 0 ? ~count : count);
  }
  PyObject *cls = PyTuple_GetItem(mark, 0);
  if (cls != (PyObject *)&PyDict_Type) return add_node(making, name, mark);
  return add_container(making, DICT, name, cls, mark, PyTuple_Size(mark) - 1);
}

CallParts *call_parts_make(const Call *call, const FlatCall *flat, const Statics *which,
                           PyObject *const *avals, Py_ssize_t count) {
  CallParts *made = PyMem_Calloc(1, sizeof *made);
  if (!made) return NULL;
  made->uses = 1;
  made->values = count;
  made->positional = PyTuple_Size(call->args);
  made->first_named = NONE;
  Making making = {made, 0, flat, which, avals, 0, 0, 0, 0, 0};
  made->first = add_all(&making, NULL, 0, made->positional, 1);
  if (!making.failed && flat && PyTuple_Check(flat->structure)) {
    PyObject *names = PyTuple_GetItem(flat->structure, 1);
    made->named = PyTuple_Size(names);
    made->owned |= made->named > 0;
    if (made->named) made->first_named = add_all(&making, names, 0, made->named, 1);
  }
  if (!making.failed) return made;
  call_parts_drop(made);
  return NULL;
}
