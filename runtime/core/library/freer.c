/* Freer: calls a destructor of a library without Python. Watching: calls a Freer when a handle is
   freed. A handle is a pointer of cffi with a weak reference. CPython calls the weak reference's
   callback by vectorcall, which ignores the recursion limit. */
#include <string.h>

#include "library/internal.h"

enum { LARGEST = 8 }; /* size of a destructor's arguments, in words */

typedef struct {
  PyObject_HEAD
  PJRT_Error *(*function)(void *);
  Py_ssize_t size, offset; /* size of the arguments, and offset of the handle in them */
  PyObject *settle;        /* settle(error, handle): frees and logs the error */
  PyObject *unless;        /* list: nothing is freed while it is not empty */
  PyObject *lock;          /* lock held during the call; None for none */
  /* whether the destructor must not be called in a callback of the library */
  int waits;
} Freer;

typedef PyObject *(*Called)(PyObject *, PyObject *const *, size_t, PyObject *);
typedef struct {
  PyObject_HEAD
  Called called;
  PyObject *watches; /* dict: from addresses to the weak references that are alive */
} Watching;

static PyTypeObject *Freer_Type, *Watching_Type;
static PyObject *free_name, *raw_name, *group_name, *keep_name;

/* Acquires the lock, again if a signal handler raised. */
static int lock_surely(PyObject *lock) {
  if (lock == Py_None) return 0;
  for (int attempts = 100; attempts--;) {
    if (acquire_lock(lock) == DONE) return 1;
    deliver(lock);
  }
  return 0;
}

static void free_at(Freer *self, uintptr_t handle) {
  uint64_t arguments[LARGEST] = {(uint64_t)self->size};
  PJRT_Error *error = NULL;
  memcpy((char *)arguments + self->offset, &handle, sizeof handle);
  int locked = lock_surely(self->lock);
  if (!PyList_Size(self->unless)) { /* also checked after waiting for the lock */
    BEGIN_LIBRARY_CALL
    error = self->function(arguments);
    END_LIBRARY_CALL
  }
  if (locked && release_lock(self->lock) == FAILED) deliver(self->lock);
  if (!error) return;
  PyObject *answer = PyObject_CallFunction(self->settle, "KK", (unsigned long long)(uintptr_t)error,
                                           (unsigned long long)handle);
  if (!answer) deliver(self->settle);
  Py_XDECREF(answer);
}

static int freer_init(Freer *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"function", "size", "offset", "settle", "unless", "lock", "waits", NULL};
  unsigned long long function;
  Py_ssize_t size, offset;
  PyObject *settle, *unless, *lock = Py_None;
  int waits = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KnnOO!|Op", names, &function, &size, &offset, &settle,
                                   &PyList_Type, &unless, &lock, &waits))
    return -1;
  if (self->settle || offset < 8 || offset + 8 > size || size > 8 * LARGEST) {
    PyErr_SetString(PyExc_TypeError, "a freer is made once, of arguments with the handle in them");
    return -1;
  }
  SET_FUNCTION(self->function, function);
  self->size = size;
  self->offset = offset;
  self->settle = Py_NewRef(settle);
  self->unless = Py_NewRef(unless);
  self->lock = Py_NewRef(lock);
  self->waits = waits;
  return 0;
}

static PyObject *freer_call(Freer *self, PyObject *args, PyObject *kwargs) {
  (void)kwargs;
  unsigned long long handle =
      PyTuple_Size(args) == 1 ? PyLong_AsUnsignedLongLong(PyTuple_GetItem(args, 0)) : 0;
  if (PyErr_Occurred()) return NULL;
  if (self->settle) free_at(self, (uintptr_t)handle);
  Py_RETURN_NONE;
}

static int freer_traverse(Freer *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->settle);
  Py_VISIT(self->unless);
  Py_VISIT(self->lock);
  return 0;
}

/* No tp_clear: it frees handles in the same garbage. */
static void freer_dealloc(PyObject *object) {
  Freer *self = (Freer *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF(self->settle);
  Py_XDECREF(self->unless);
  Py_XDECREF(self->lock);
  free_object(object);
}

/* Frees the library's object whose handle was freed; called by the weak reference. */
static int free_watched(PyObject *watch) {
  PyObject *group = PyObject_GetAttr(watch, group_name), *free = PyObject_GetAttr(watch, free_name);
  PyObject *raw = PyObject_GetAttr(watch, raw_name), *keep = PyObject_GetAttr(watch, keep_name);
  int failed = !group || !free || !raw || !keep;
  int is_due = !failed && free != Py_None && !(PyList_Check(group) && PyList_Size(group));
  if (is_due && Py_TYPE(free) != Freer_Type) {
    finish(free, NULL, keep);
  } else if (is_due && ((Freer *)free)->waits && is_in_callback()) {
    PyObject *arguments = PyTuple_Pack(1, raw);
    if (arguments) finish(free, arguments, keep);
    Py_XDECREF(arguments);
    failed = !arguments;
  } else if (is_due) {
    unsigned long long handle = PyLong_AsUnsignedLongLong(raw);
    failed = PyErr_Occurred() != NULL;
    if (!failed) free_at((Freer *)free, (uintptr_t)handle);
  }
  Py_XDECREF(group);
  Py_XDECREF(free);
  Py_XDECREF(raw);
  Py_XDECREF(keep);
  return failed;
}

static PyObject *watch_ended(PyObject *object, PyObject *const *args, size_t count, PyObject *names) {
  (void)count;
  (void)names;
  PyObject *watch = Py_NewRef(args[0]); /* the table has the only reference to it */
  Raised before = set_aside();
  PyObject *key = PyLong_FromVoidPtr(watch);
  if (!key || PyDict_DelItem(((Watching *)object)->watches, key)) PyErr_Clear();
  Py_XDECREF(key);
  if (free_watched(watch)) PyErr_WriteUnraisable(watch);
  Py_DECREF(watch);
  PyErr_Restore(before.type, before.value, before.traceback);
  Py_RETURN_NONE;
}

static PyObject *watching_call(PyObject *self, PyObject *args, PyObject *kwargs) {
  (void)kwargs;
  if (PyTuple_Size(args) != 1) return PyErr_SetString(PyExc_TypeError, "one weak reference"), NULL;
  PyObject *watch = PyTuple_GetItem(args, 0);
  return watch_ended(self, &watch, 1, NULL);
}

static int watching_init(Watching *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"watches", NULL};
  PyObject *watches;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!", names, &PyDict_Type, &watches)) return -1;
  PyObject *old = self->watches;
  self->watches = Py_NewRef(watches);
  self->called = watch_ended;
  Py_XDECREF(old);
  return 0;
}

static void watching_dealloc(PyObject *object) {
  Py_XDECREF(((Watching *)object)->watches);
  free_object(object);
}

static PyType_Slot freer_slots[] = {
    {Py_tp_doc, "A destructor of a library: Freer(function, size, offset, settle, unless, lock, waits)."},
    {Py_tp_init, freer_init},
    {Py_tp_call, freer_call},
    {Py_tp_traverse, freer_traverse},
    {Py_tp_dealloc, freer_dealloc},
    {0, NULL},
};
static PyType_Spec freer_spec = {"plugrt._core.Freer", sizeof(Freer), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, freer_slots};
static PyMemberDef watching_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Watching, called), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot watching_slots[] = {
    {Py_tp_doc, "Watching(watches): the callback of weak references, which frees what they watched."},
    {Py_tp_init, watching_init},
    {Py_tp_call, watching_call},
    {Py_tp_members, watching_members},
    {Py_tp_dealloc, watching_dealloc},
    {0, NULL},
};
static PyType_Spec watching_spec = {
    "plugrt._core.Watching", sizeof(Watching), 0,
    Py_TPFLAGS_DEFAULT | 1UL << 11 /* Py_TPFLAGS_HAVE_VECTORCALL, named since 3.12 */, watching_slots};

int add_freer(PyObject *module) {
  free_name = PyUnicode_InternFromString("free");
  raw_name = PyUnicode_InternFromString("raw");
  group_name = PyUnicode_InternFromString("group");
  keep_name = PyUnicode_InternFromString("keep");
  if (!free_name || !raw_name || !group_name || !keep_name) return -1;
  Freer_Type = type_of(module, &freer_spec);
  Watching_Type = Freer_Type ? type_of(module, &watching_spec) : NULL;
  return Watching_Type ? 0 : -1;
}
