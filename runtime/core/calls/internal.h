/* Declarations for the files of this folder alone; calls.h has the ones for other folders. */
#ifndef PLUGRT_CALLS_INTERNAL_H
#define PLUGRT_CALLS_INTERNAL_H
#include "calls/calls.h"

/* ---- static_arguments.c ---- */
typedef struct {
  PyObject *nums, *names; /* sets of those arguments; NULL for none */
} Statics;
/* Whether the argument of that name, or without one of that number, is static; -1 with an exception. */
int is_static(const Statics *which, PyObject *name, Py_ssize_t number);
PyObject *static_key_of(PyObject *value); /* what stands for it in the key of a call, a new reference */
/* Appends, and takes the reference; NULL has an exception set. */
int append_new(PyObject *list, PyObject *item);
/* Whether the same object stands for the same static value each time. */
int is_lasting(PyObject *value);
/* Whether it is that object, or an equal one of a built-in class. They run nothing of Python. */
int is_same_lasting(PyObject *lasting, PyObject *value);
void set_static_key(PyObject *function);

/* ---- sorted_items.c: what a dict has at one moment ---- */
typedef struct {
  PyObject *key, *value; /* new references */
  Py_ssize_t number;     /* in the dict */
} Entry;
typedef struct {
  Entry *entries;
  Py_ssize_t count;
  Entry on_stack[ON_STACK];
} Entries;
int entries_read(Entries *self, PyObject *dict); /* DONE, or FAILED: then there is nothing to drop */
int entries_sort(Entries *self);                 /* in the order of pytrees */
/* A new tuple of the keys after `first`, if there is one. */
PyObject *entries_keys(const Entries *self, PyObject *first);
void entries_drop(Entries *self);
void set_order_keys(PyObject *function);

/* ---- flatten.c: the leaves of a call and its structure ---- */
typedef struct {
  PyObject **items; /* new references */
  Py_ssize_t count, room;
  PyObject *on_stack[ON_STACK];
} Vector;
typedef struct {
  Vector leaves, marks; /* the marks of the structure */
  Vector nodes;         /* of each container that nodes.c opened: it, its mark, names of its parts */
  PyObject *structure;  /* of the call; None of leaves by position alone */
  PyObject *statics;    /* the static values, a list; NULL without any */
  Py_ssize_t *order, orders, order_room; /* of each dict, the numbers its sorted entries had */
  int has_structure;
  int raised; /* whether what opens a container raised what is set: no other is asked */
  Py_ssize_t order_on_stack[ON_STACK];
} FlatCall;
/* Flattens a call: DONE, FAILED with an exception, or NOT_HERE. What it took is the caller's to
   drop. */
int flatten_call(FlatCall *flat, PyObject *args, PyObject *kwargs, const Statics *which);
PyObject *vector_list(const Vector *self); /* a new list */
void flat_call_drop(FlatCall *flat);

/* ---- nodes.c: named tuples, and objects of the classes that are registered as containers ---- */
int is_node(PyObject *x); /* whether it may be one; -1 with an exception */
/* Whether objects of a class are opened each time without Python code: DONE, and sets a new reference
   to the names of their parts and of their metadata, or leaves it NULL for a tuple. Else NOT_HERE,
   perhaps with an exception. */
int plain_class(PyTypeObject *cls, PyObject **names);
Py_ssize_t node_classes(void); /* how many are registered: none is forgotten or changed */
/* Sets a new list of its parts, what stands for it in the key of a call, and the names that its function
   gave its parts, or None. FAILED with an exception, and whether that is what opens it raised; NOT_HERE
   for one that is opened otherwise. */
int open_node(PyObject *x, PyObject **parts, PyObject **mark, PyObject **names, int *raised);
void set_node_classes(PyObject *classes);

/* ---- call_key.c ---- */
typedef struct {
  PyObject *token, *args, *kwargs; /* kwargs may be NULL */
} Call;
/* A new reference to (settings, structure, *avals), by which a dict has the runner; NULL, perhaps with
   an exception, for what Python has to call. `flat` is NULL where the values are all there is of the call. Sets the avals of the
   values, which live as long as the key. */
PyObject *call_key(const Call *call, const FlatCall *flat, PyObject *const *values,
                   PyObject **avals, Py_ssize_t count);

/* ---- call_parts.c: what the arguments of a call were ---- */
typedef struct {
  PyObject *name;   /* of a keyword, of an attribute, the key in a dict; else NULL */
  PyObject *what;   /* a leaf's aval, a static value, or the class of a container */
  Py_ssize_t count; /* of the parts in a container */
  Py_ssize_t first; /* which part is the first of these; of a leaf, which of the leaves it is */
  Py_ssize_t next;  /* which part is the next one in the same container */
  int kind;
} CallPart;
typedef struct {
  Py_ssize_t uses;
  CallPart *parts;
  Py_ssize_t count, positional, named;
  Py_ssize_t first, first_named; /* which parts are the first arguments */
  Py_ssize_t values;  /* the number of the leaves */
  Py_ssize_t classes; /* those that were registered as containers, if that matters; else 0 */
  int owned;          /* whether leaves are new references, as not the call but a container has them */
} CallParts;
/* Whether the arguments of a call are like these: DONE, and sets its leaves. NOT_HERE if not, FAILED
   with an exception that is not derived from Exception. */
int call_parts_match(CallParts *self, const Call *call, PyObject **values);
/* Makes those of a call with these avals; NULL, perhaps with an exception, if one is not kept. `flat` as
   of `call_key`. */
CallParts *call_parts_make(const Call *call, const FlatCall *flat, const Statics *which,
                           PyObject *const *avals, Py_ssize_t count);
int call_parts_visit(const CallParts *self, visitproc visit, void *arg);
void call_parts_drop(CallParts *self); /* NULL is none */

/* ---- last_call.c: the runner of a function's last call ---- */
typedef struct LastCall {
  PyObject *token, *runner; /* NULL where none is kept */
  CallParts *parts;
  PyObject *runners;               /* the dict that has the runner, to compare with */
  PyObject *candidate;             /* the runner that is kept if it is found again, to compare with */
  struct LastCall *before, *after; /* of all that are kept */
} LastCall;
/* Whether a call is like the last one: DONE, with a new reference to the runner, and its values. These
   are new references, too, where `owned` is set; `values` has room for `parts->values`. NOT_HERE, or
   FAILED, as `call_parts_match`. */
int last_call_find(const LastCall *self, const Call *call, PyObject **values, PyObject **runner);
/* Whether the call before had this runner, too, which is noted. */
int last_call_is_repeated(LastCall *self, PyObject *runner);
/* Keeps it, at once after it was found in that dict; takes the parts. */
void last_call_keep(LastCall *self, PyObject *token, CallParts *parts, PyObject *runners,
                    PyObject *runner);
void last_call_forget(LastCall *self);
int last_call_visit(LastCall *self, visitproc visit, void *arg);

#endif
