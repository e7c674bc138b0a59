/* Tree: makes the pytree of a call's results from its leaves. It is read once from an example whose
   leaves are their indices: nested tuples, lists, dicts, named tuples and None. A Python function
   makes other containers. */
#include <string.h>

#include "launches/internal.h"

PyTypeObject *Tree_Type;
enum { DEEPEST = 50 };
enum { LEAF, NONE, LIST, TUPLE, NAMED, DICT };

typedef struct Node {
  int kind, in_order; /* in_order: all parts are leaves with consecutive indices */
  Py_ssize_t leaf;    /* index of the leaf, or of the first part if the parts are in order */
  Py_ssize_t count;
  struct Node *parts;
  PyObject *like; /* for a dict a dict with the same keys, for a named tuple its class */
  PyObject *keys; /* keys of a dict, in the order of its parts */
  PyObject *key;  /* key of a part of a dict, referenced by `keys` */
} Node;

typedef struct {
  PyObject_HEAD
  Node root;
  PyObject *unflatten; /* unflatten(list of leaves), used instead of the root; else NULL */
  Py_ssize_t leaves;
} Tree;

static PyObject *build(const Node *node, PyObject *const *leaves);

static PyObject *build_dict(const Node *node, PyObject *const *parts) {
  PyObject *made = PyDict_Copy(node->like);
  for (Py_ssize_t i = 0; made && i < node->count; i++)
    if (PyDict_SetItem(made, node->parts[i].key, parts[i])) Py_CLEAR(made);
  return made;
}

/* The caller keeps the parts. Nothing is allocated while a container is filled. */
static PyObject *put_together(const Node *node, PyObject *const *parts) {
  if (node->kind == DICT) return build_dict(node, parts);
  PyObject *made = node->kind == LIST ? PyList_New(node->count) : PyTuple_New(node->count);
  if (!made) return NULL;
  for (Py_ssize_t i = 0; i < node->count; i++) {
    if (node->kind == LIST) PyList_SetItem(made, i, Py_NewRef(parts[i]));
    else PyTuple_SetItem(made, i, Py_NewRef(parts[i]));
  }
  if (node->kind != NAMED) return made;
  PyObject *named = PyObject_CallObject(node->like, made);
  Py_DECREF(made);
  return named;
}

static PyObject *build_parts(const Node *node, PyObject *const *leaves, PyObject **parts) {
  Py_ssize_t done = 0;
  while (done < node->count && (parts[done] = build(&node->parts[done], leaves))) done++;
  PyObject *made = done == node->count ? put_together(node, parts) : NULL;
  while (done) Py_DECREF(parts[--done]);
  return made;
}

static PyObject *build(const Node *node, PyObject *const *leaves) {
  if (node->kind == LEAF) return Py_NewRef(leaves[node->leaf]);
  if (node->kind == NONE) return Py_NewRef(Py_None);
  if (node->in_order) return put_together(node, leaves + node->leaf);
  PyObject *on_stack[ON_STACK];
  if (node->count <= ON_STACK) return build_parts(node, leaves, on_stack);
  PyObject **parts = PyMem_Malloc(node->count * sizeof *parts);
  if (!parts) return PyErr_NoMemory();
  PyObject *made = build_parts(node, leaves, parts);
  PyMem_Free(parts);
  return made;
}

Py_ssize_t tree_leaves(PyObject *tree) { return ((Tree *)tree)->leaves; }

PyObject *tree_build(PyObject *object, PyObject *const *leaves) {
  Tree *self = (Tree *)object;
  if (!self->unflatten) return build(&self->root, leaves);
  PyObject *given = PyList_New(self->leaves);
  for (Py_ssize_t i = 0; given && i < self->leaves; i++)
    PyList_SetItem(given, i, Py_NewRef(leaves[i]));
  PyObject *made = given ? PyObject_CallFunctionObjArgs(self->unflatten, given, NULL) : NULL;
  Py_XDECREF(given);
  return made;
}

static int read_node(Node *node, PyObject *example, Py_ssize_t leaves, int depth);

static int refuse(const char *message) {
  PyErr_SetString(PyExc_ValueError, message);
  return -1;
}

static int has_leaves_in_order(const Node *node) {
  for (Py_ssize_t i = 0; i < node->count; i++)
    if (node->parts[i].kind != LEAF || node->parts[i].leaf != node->parts[0].leaf + i) return 0;
  return 1;
}

/* Reads the parts of a container from a sequence, in the order of their leaves. */
static int read_parts(Node *node, PyObject *parts, Py_ssize_t leaves, int depth) {
  Py_ssize_t count = PySequence_Size(parts);
  if (count < 0) return -1;
  node->parts = PyMem_Calloc(count + 1, sizeof *node->parts);
  if (!node->parts) {
    PyErr_NoMemory();
    return -1;
  }
  for (; node->count < count; node->count++) {
    PyObject *part = PySequence_GetItem(parts, node->count);
    int failed = !part || read_node(&node->parts[node->count], part, leaves, depth + 1);
    Py_XDECREF(part);
    if (failed) {
      node->count++; /* a failed part is freed, too */
      return -1;
    }
  }
  node->in_order = has_leaves_in_order(node);
  if (node->in_order && count) node->leaf = node->parts[0].leaf;
  return 0;
}

/* The parts of a dict are in the order of its keys. */
static int read_dict(Node *node, PyObject *example, Py_ssize_t leaves, int depth) {
  PyObject *keys = PyDict_Keys(example), *values = PyDict_Values(example);
  node->keys = keys ? PySequence_Tuple(keys) : NULL;
  int failed = !node->keys || !values || read_parts(node, values, leaves, depth);
  for (Py_ssize_t i = 0; !failed && i < node->count; i++)
    node->parts[i].key = PyTuple_GetItem(node->keys, i);
  Py_XDECREF(keys);
  Py_XDECREF(values);
  return failed ? -1 : 0;
}

static int read_node(Node *node, PyObject *example, Py_ssize_t leaves, int depth) {
  if (depth > DEEPEST) return refuse("a tree is deeper than the core makes them");
  if (example == Py_None) {
    node->kind = NONE;
    return 0;
  }
  if (PyLong_CheckExact(example)) {
    node->kind = LEAF;
    node->leaf = PyLong_AsSsize_t(example);
    if (PyErr_Occurred()) return -1;
    return node->leaf < 0 || node->leaf >= leaves ? refuse("a leaf has another number") : 0;
  }
  if (PyDict_CheckExact(example)) {
    node->kind = DICT;
    node->like = PyDict_Copy(example);
    return node->like ? read_dict(node, example, leaves, depth) : -1;
  }
  if (PyList_CheckExact(example)) node->kind = LIST;
  else if (PyTuple_CheckExact(example)) node->kind = TUPLE;
  else if (PyTuple_Check(example)) {
    node->kind = NAMED;
    node->like = Py_NewRef((PyObject *)Py_TYPE(example));
  } else {
    return refuse("the core does not make containers of this class");
  }
  return read_parts(node, example, leaves, depth);
}

static void empty(Node *node) {
  for (Py_ssize_t i = 0; i < node->count; i++) empty(&node->parts[i]);
  PyMem_Free(node->parts);
  Py_XDECREF(node->like);
  Py_XDECREF(node->keys);
  memset(node, 0, sizeof *node);
}

static int tree_init(Tree *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"leaves", "example", "unflatten", NULL};
  Py_ssize_t leaves;
  PyObject *example, *unflatten;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nOO", names, &leaves, &example, &unflatten))
    return -1;
  if (self->leaves || self->unflatten || self->root.kind != LEAF) {
    PyErr_SetString(PyExc_TypeError, "a tree is made once");
    return -1;
  }
  if (unflatten != Py_None) {
    self->unflatten = Py_NewRef(unflatten);
  } else if (read_node(&self->root, example, leaves, 0)) {
    empty(&self->root);
    return -1;
  }
  self->leaves = leaves;
  return 0;
}

static int visit_node(Node *node, visitproc visit, void *arg) {
  Py_VISIT(node->like);
  Py_VISIT(node->keys);
  for (Py_ssize_t i = 0; i < node->count; i++) {
    int answer = visit_node(&node->parts[i], visit, arg);
    if (answer) return answer;
  }
  return 0;
}

static int tree_traverse(Tree *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->unflatten);
  return visit_node(&self->root, visit, arg);
}

static void tree_dealloc(PyObject *object) {
  PyObject_GC_UnTrack(object);
  empty(&((Tree *)object)->root);
  Py_XDECREF(((Tree *)object)->unflatten);
  free_object(object);
}

static PyType_Slot tree_slots[] = {
    {Py_tp_doc, "Makes a pytree of the form of an example whose leaves are their numbers."},
    {Py_tp_init, tree_init},
    {Py_tp_traverse, tree_traverse},
    {Py_tp_dealloc, tree_dealloc},
    {0, NULL},
};
static PyType_Spec tree_spec = {"plugrt._core.Tree", sizeof(Tree), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, tree_slots};

int add_tree(PyObject *module) {
  Tree_Type = type_of(module, &tree_spec);
  return Tree_Type ? 0 : -1;
}
