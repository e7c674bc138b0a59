/* Declarations for the files of this folder alone; calls.h has the ones for other folders. */
#ifndef PLUGRT_CALLS_INTERNAL_H
#define PLUGRT_CALLS_INTERNAL_H
#include "calls/calls.h"

/* static_arguments.c */
typedef struct {
  PyObject *nums, *names; /* sets of the static arguments; NULL for none */
} Statics;
/* Whether the argument is static, by `name`, or by `number` if `name` is NULL; -1 with an
   exception. */
int is_static(const Statics *which, PyObject *name, Py_ssize_t number);
/* its key, equal for equal static values; a new reference */
PyObject *static_key_of(PyObject *value);
/* Appends and steals the reference; NULL has an exception set. */
int append_new(PyObject *list, PyObject *item);
/* Whether the object is always the same static value. */
int is_lasting(PyObject *value);
/* Whether it is the same object, or an equal one of a built-in class. Runs no Python code. */
int is_same_lasting(PyObject *lasting, PyObject *value);
void set_static_key(PyObject *function);

/* sorted_items.c: a snapshot of a dict. */
typedef struct {
  PyObject *key, *value; /* new references */
  Py_ssize_t number;     /* position in the dict */
} Entry;
typedef struct {
  Entry *entries;
  Py_ssize_t count;
  Entry on_stack[ON_STACK];
} Entries;
/* DONE, or FAILED: then there is nothing to free */
int entries_read(Entries *self, PyObject *dict);
int entries_sort(Entries *self);                 /* in pytree order */
/* A new tuple of the keys, with `first` before them if it is not NULL. */
PyObject *entries_keys(const Entries *self, PyObject *first);
void entries_drop(Entries *self);
void set_order_keys(PyObject *function);

/* flatten.c: the leaves of a call and its structure. */
typedef struct {
  PyObject **items; /* new references */
  Py_ssize_t count, room;
  PyObject *on_stack[ON_STACK];
} Vector;
typedef struct {
  Vector leaves, marks; /* `marks` describe the structure */
  /* for each container that nodes.c opened: the container, its mark, the names of its parts */
  Vector nodes;
  PyObject *structure;  /* structure of the call; None if it has only positional leaves */
  PyObject *statics;    /* list of the static values; NULL if there are none */
  Py_ssize_t *order, orders, order_room; /* for each dict the positions of its sorted entries */
  int has_structure;
  /* whether a container's own function raised the exception: then Python does not call it again */
  int raised;
  Py_ssize_t order_on_stack[ON_STACK];
} FlatCall;
/* Flattens a call: DONE, FAILED with an exception, or NOT_HERE. The caller frees `flat`. */
int flatten_call(FlatCall *flat, PyObject *args, PyObject *kwargs, const Statics *which);
PyObject *vector_list(const Vector *self); /* a new list */
void flat_call_drop(FlatCall *flat);

/* nodes.c: named tuples, and objects of registered container classes. */
int is_node(PyObject *x); /* whether it may be such a container; -1 with an exception */
/* Whether objects of a class are always opened without Python code: DONE. Sets a new reference to
   the names of their parts and metadata, or NULL for a tuple. Else NOT_HERE, perhaps with an
   exception. */
int plain_class(PyTypeObject *cls, PyObject **names);
/* number of registered classes; a class is never removed or replaced */
Py_ssize_t node_classes(void);
/* Sets a new list of its parts, its mark for the key of a call, and the names of the parts that its
   function returned, or None. FAILED with an exception; `raised` is set if the class's own function
   raised it. NOT_HERE for a container that is opened otherwise. */
int open_node(PyObject *x, PyObject **parts, PyObject **mark, PyObject **names, int *raised);
void set_node_classes(PyObject *classes);

/* call_key.c */
typedef struct {
  PyObject *token, *args, *kwargs; /* kwargs may be NULL */
} Call;
/* A new reference to (settings, structure, *avals), the key of the runner. NULL, perhaps with an
   exception, if Python has to make the call. `flat` is NULL for a call with only positional leaves.
   Sets the avals of the values, which the key holds. */
PyObject *call_key(const Call *call, const FlatCall *flat, PyObject *const *values,
                   PyObject **avals, Py_ssize_t count);

/* call_parts.c: the arguments of a call. */
typedef struct {
  PyObject *name;   /* name of a keyword or attribute, or key in a dict; else NULL */
  PyObject *what;   /* aval of a leaf, static value, or class of a container */
  Py_ssize_t count; /* number of parts of a container */
  /* index of the first part of a container; for a leaf, its index among the leaves */
  Py_ssize_t first;
  Py_ssize_t next;  /* index of the next part in the same container */
  int kind;
} CallPart;
typedef struct {
  Py_ssize_t uses;
  CallPart *parts;
  Py_ssize_t count, positional, named;
  Py_ssize_t first, first_named; /* indices of the first positional and first keyword argument */
  Py_ssize_t values;  /* number of leaves */
  Py_ssize_t classes; /* number of classes registered as containers, if it matters; else 0 */
  /* whether the leaves are new references, because a container holds them instead of the call */
  int owned;
} CallParts;
/* Whether the arguments of a call match these parts: DONE, and sets the leaves. NOT_HERE if not,
   FAILED with an exception that is not derived from Exception. */
int call_parts_match(CallParts *self, const Call *call, PyObject **values);
/* Makes the parts of a call with these avals; NULL, perhaps with an exception, if one cannot be
   kept. `flat` is as for `call_key`. */
CallParts *call_parts_make(const Call *call, const FlatCall *flat, const Statics *which,
                           PyObject *const *avals, Py_ssize_t count);
int call_parts_visit(const CallParts *self, visitproc visit, void *arg);
void call_parts_drop(CallParts *self); /* accepts NULL */

/* last_call.c: the runner of a function's last call. */
typedef struct LastCall {
  PyObject *token, *runner; /* NULL where none is kept */
  CallParts *parts;
  PyObject *runners;               /* the dict of runners that has it, compared by identity */
  /* the runner to keep if it is found again, compared by identity */
  PyObject *candidate;
  struct LastCall *before, *after; /* list of all objects that keep a runner */
} LastCall;
/* Whether a call matches the last one: DONE, with a new reference to the runner, and the values.
   The values are new references, too, if `owned` is set. `values` has room for `parts->values`.
   NOT_HERE or FAILED, as for `call_parts_match`. */
int last_call_find(const LastCall *self, const Call *call, PyObject **values, PyObject **runner);
/* Whether the previous call had this runner, too; records this one. */
int last_call_is_repeated(LastCall *self, PyObject *runner);
/* Keeps the runner directly after it was found in that dict; steals the parts. */
void last_call_keep(LastCall *self, PyObject *token, CallParts *parts, PyObject *runners,
                    PyObject *runner);
void last_call_forget(LastCall *self);
int last_call_visit(LastCall *self, visitproc visit, void *arg);

#endif
