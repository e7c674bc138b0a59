/* ShardsWait: waits for shards of a backend that launches through functions, with one call for all.

   Shards of a program that was launched on each device separately have `_ends`: tokens of the
   launches, in one tuple for all results. The core waits for these once instead of for each array.

   After a failure, or for a deleted array, Python waits again and raises the exception. */
#include "arrays/internal.h"

PyTypeObject *ShardsWait_Type;
static PyObject *raw_name, *parts_name, *ends_name;

typedef struct {
  PyObject_HEAD
  PyTypeObject *cls;    /* the class of shards */
  /* the class of the backend's arrays, which may be given instead of shards */
  PyTypeObject *raw;
  PyObject *is_deleted; /* is_deleted(array) */
  PyObject *is_ready;   /* is_ready(array) */
  PyObject *wait_one;   /* wait_one(array) */
  PyObject *wait;       /* wait(list of arrays) */
  PyObject *wait_end;   /* wait_end(token of a launch) */
} ShardsWait;

/* Lists of objects to wait for: arrays, and tuples of tokens. */
typedef struct {
  PyObject *arrays, *ends;
} Waited;

/* Whether no part is deleted: DONE. */
static int are_alive(const ShardsWait *self, PyObject *parts) {
  Py_ssize_t count = PySequence_Size(parts);
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *part = PySequence_GetItem(parts, i);
    PyObject *answer = part ? PyObject_CallFunctionObjArgs(self->is_deleted, part, NULL) : NULL;
    int deleted = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(part);
    Py_XDECREF(answer);
    if (deleted) return deleted < 0 ? FAILED : NOT_HERE;
  }
  return count < 0 ? FAILED : DONE;
}

/* Appends the tokens unless they are the last ones: results of one launch share them. */
static int take_ends(Waited *waited, PyObject *ends) {
  Py_ssize_t count = PyList_Size(waited->ends);
  if (count && PyList_GetItem(waited->ends, count - 1) == ends) return DONE;
  return PyList_Append(waited->ends, ends) ? FAILED : DONE;
}

static int take_parts(const ShardsWait *self, PyObject *shards, PyObject *parts, Waited *waited) {
  PyObject *ends = PyObject_GetAttr(shards, ends_name);
  if (!ends) return FAILED;
  int state;
  if (PyTuple_CheckExact(ends)) {
    state = are_alive(self, parts);
    if (state == DONE) state = take_ends(waited, ends);
  } else {
    Py_ssize_t size = PyList_Size(waited->arrays);
    state = PyList_SetSlice(waited->arrays, size, size, parts) ? FAILED : DONE;
  }
  Py_DECREF(ends);
  return state;
}

static int take_shards(const ShardsWait *self, PyObject *shards, Waited *waited) {
  if (Py_TYPE(shards) == self->raw) return PyList_Append(waited->arrays, shards) ? FAILED : DONE;
  if (Py_TYPE(shards) != self->cls) return NOT_HERE;
  PyObject *parts = PyObject_GetAttr(shards, parts_name);
  if (!parts) return FAILED;
  int state = FAILED;
  if (parts != Py_None) {
    state = take_parts(self, shards, parts, waited);
  } else {
    PyObject *raw = PyObject_GetAttr(shards, raw_name);
    if (raw && !PyList_Append(waited->arrays, raw)) state = DONE;
    Py_XDECREF(raw);
  }
  Py_DECREF(parts);
  return state;
}

static int await(const ShardsWait *self, const Waited *waited) {
  for (Py_ssize_t i = 0; i < PyList_Size(waited->ends); i++) {
    PyObject *ends = PyList_GetItem(waited->ends, i);
    for (Py_ssize_t j = 0; j < PyTuple_Size(ends); j++) {
      PyObject *answer = PyObject_CallFunctionObjArgs(self->wait_end, PyTuple_GetItem(ends, j), NULL);
      if (!answer) return FAILED;
      Py_DECREF(answer);
    }
  }
  if (!PyList_Size(waited->arrays)) return DONE;
  PyObject *answer = PyObject_CallFunctionObjArgs(self->wait, waited->arrays, NULL);
  Py_XDECREF(answer);
  return answer ? DONE : FAILED;
}

/* Waits for these objects. NOT_HERE after a failure or for a deleted array: Python waits. FAILED
   with an exception that is not derived from Exception. */
static int wait_for_given(const ShardsWait *self, PyObject *const *given, Py_ssize_t count) {
  Waited waited = {PyList_New(0), PyList_New(0)};
  int state = waited.arrays && waited.ends ? DONE : FAILED;
  for (Py_ssize_t i = 0; state == DONE && i < count; i++) state = take_shards(self, given[i], &waited);
  if (state == DONE) state = await(self, &waited);
  Py_XDECREF(waited.arrays);
  Py_XDECREF(waited.ends);
  if (state == FAILED && drop_exception()) state = NOT_HERE; /* the wait for one array raises it */
  return state;
}

int shards_wait_for(PyObject *object, PyObject *held) {
  const ShardsWait *self = (ShardsWait *)object;
  if (Py_TYPE(held) != self->raw) return wait_for_given(self, &held, 1);
  PyObject *answer = PyObject_CallFunctionObjArgs(self->wait_one, held, NULL);
  Py_XDECREF(answer);
  return answer ? DONE : drop_exception() ? NOT_HERE : FAILED;
}

/* Whether an array is ready; -1 with an exception. */
static int ask(const ShardsWait *self, PyObject *array) {
  PyObject *answer = array ? PyObject_CallFunctionObjArgs(self->is_ready, array, NULL) : NULL;
  int ready = answer ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(answer);
  return ready;
}

/* Whether the array on each device is ready. */
static int ask_parts(const ShardsWait *self, PyObject *parts) {
  Py_ssize_t count = PySequence_Size(parts);
  int ready = count < 0 ? -1 : 1;
  for (Py_ssize_t i = 0; ready == 1 && i < count; i++) {
    PyObject *part = PySequence_GetItem(parts, i);
    ready = ask(self, part);
    Py_XDECREF(part);
  }
  return ready;
}

int shards_are_ready(PyObject *object, PyObject *held) {
  const ShardsWait *self = (ShardsWait *)object;
  if (Py_TYPE(held) == self->raw) return ask(self, held);
  if (Py_TYPE(held) != self->cls) return -1;
  PyObject *parts = PyObject_GetAttr(held, parts_name);
  if (!parts || parts != Py_None) {
    int ready = parts ? ask_parts(self, parts) : -1;
    Py_XDECREF(parts);
    return ready;
  }
  Py_DECREF(parts);
  PyObject *raw = PyObject_GetAttr(held, raw_name);
  int ready = ask(self, raw);
  Py_XDECREF(raw);
  return ready;
}

static PyObject *shards_wait_call(ShardsWait *self, PyObject *args, PyObject *kwargs) {
  const char *text = "a wait that is made takes the shards alone";
  PyObject *given = only_argument(args, kwargs, self->cls != NULL, text);
  if (!given) return NULL;
  Py_ssize_t count = PyTuple_Size(given);
  PyObject *on_stack[ON_STACK], **room = ROOM(on_stack, count);
  for (Py_ssize_t i = 0; room && i < count; i++) room[i] = PyTuple_GetItem(given, i);
  int state = room ? wait_for_given(self, room, count) : FAILED;
  if (room != on_stack) PyMem_Free(room);
  Py_DECREF(given);
  return state == FAILED ? NULL : PyBool_FromLong(state == DONE);
}

static int shards_wait_init(ShardsWait *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"cls", "raw", "is_deleted", "is_ready", "wait_one", "wait", "wait_end", NULL};
  PyObject *cls, *raw, *is_deleted, *is_ready, *wait_one, *wait, *wait_end;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!OOOOO", names, &PyType_Type, &cls, &PyType_Type,
                                   &raw, &is_deleted, &is_ready, &wait_one, &wait, &wait_end))
    return -1;
  if (self->cls) {
    PyErr_SetString(PyExc_TypeError, "a wait is made once");
    return -1;
  }
  self->raw = (PyTypeObject *)Py_NewRef(raw);
  self->is_deleted = Py_NewRef(is_deleted);
  self->is_ready = Py_NewRef(is_ready);
  self->wait_one = Py_NewRef(wait_one);
  self->wait = Py_NewRef(wait);
  self->wait_end = Py_NewRef(wait_end);
  self->cls = (PyTypeObject *)Py_NewRef(cls);
  return 0;
}

static int shards_wait_traverse(ShardsWait *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->cls);
  Py_VISIT(self->raw);
  Py_VISIT(self->is_deleted);
  Py_VISIT(self->is_ready);
  Py_VISIT(self->wait_one);
  Py_VISIT(self->wait);
  Py_VISIT(self->wait_end);
  return 0;
}

/* No tp_clear: a wait in a finalizer has to work. */
static void shards_wait_dealloc(PyObject *object) {
  ShardsWait *self = (ShardsWait *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF((PyObject *)self->cls);
  Py_XDECREF((PyObject *)self->raw);
  Py_XDECREF(self->is_deleted);
  Py_XDECREF(self->is_ready);
  Py_XDECREF(self->wait_one);
  Py_XDECREF(self->wait);
  Py_XDECREF(self->wait_end);
  free_object(object);
}

static PyType_Slot shards_wait_slots[] = {
    {Py_tp_doc, "Waits for shards: wait(shards) -> whether all are there."},
    {Py_tp_init, shards_wait_init},
    {Py_tp_call, shards_wait_call},
    {Py_tp_traverse, shards_wait_traverse},
    {Py_tp_dealloc, shards_wait_dealloc},
    {0, NULL},
};
static PyType_Spec shards_wait_spec = {"plugrt._core.ShardsWait", sizeof(ShardsWait), 0,
                                       Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, shards_wait_slots};

int add_shards_wait(PyObject *module) {
  raw_name = PyUnicode_InternFromString("raw");
  parts_name = PyUnicode_InternFromString("_parts");
  ends_name = PyUnicode_InternFromString("_ends");
  if (!raw_name || !parts_name || !ends_name) return -1;
  ShardsWait_Type = type_of(module, &shards_wait_spec);
  return ShardsWait_Type ? 0 : -1;
}
