/* ShardsWait: waits for shards of a backend that launches through functions, all by one call.

   Shards that were made by one launch on each device by itself have what tells the ends of these,
   `_ends`, one tuple for all results: that is waited for once instead of each of their arrays. What
   was deleted, and what failed, is Python's to find again and to raise. */
#include "core.h"

static PyTypeObject *ShardsWait_Type;
static PyObject *raw_name, *parts_name, *ends_name;

typedef struct {
  PyObject_HEAD
  PyTypeObject *cls;    /* of shards */
  PyTypeObject *raw;    /* of the backend's arrays, which may stand in their place */
  PyObject *is_deleted; /* is_deleted(array) */
  PyObject *wait;       /* wait(list of arrays) */
  PyObject *wait_end;   /* wait_end(what tells the end of a launch) */
} ShardsWait;

/* What is waited for, lists: arrays, and tuples of ends. */
typedef struct {
  PyObject *arrays, *ends;
} Waited;

/* Whether all parts are there: DONE. */
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

/* Appends it unless it is the last one, as that of the result before is. */
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

static PyObject *shards_wait_call(ShardsWait *self, PyObject *args, PyObject *kwargs) {
  PyObject *sequence;
  if (!self->cls || (kwargs && PyDict_Size(kwargs))) {
    PyErr_SetString(PyExc_TypeError, "a wait that is made takes the shards alone");
    return NULL;
  }
  if (!PyArg_ParseTuple(args, "O", &sequence)) return NULL;
  PyObject *given = PySequence_Tuple(sequence); /* holds them while others may change a list */
  Waited waited = {given ? PyList_New(0) : NULL, given ? PyList_New(0) : NULL};
  int state = waited.arrays && waited.ends ? DONE : FAILED;
  for (Py_ssize_t i = 0; state == DONE && i < PyTuple_Size(given); i++)
    state = take_shards(self, PyTuple_GetItem(given, i), &waited);
  if (state == DONE) state = await(self, &waited);
  Py_XDECREF(waited.arrays);
  Py_XDECREF(waited.ends);
  Py_XDECREF(given);
  if (state == FAILED) { /* an interrupt, or the error that the wait for one of them raises */
    PyObject *error = take_exception();
    if (!error) return NULL;
    Py_DECREF(error);
  }
  return PyBool_FromLong(state == DONE);
}

static int shards_wait_init(ShardsWait *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"cls", "raw", "is_deleted", "wait", "wait_end", NULL};
  PyObject *cls, *raw, *is_deleted, *wait, *wait_end;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!OOO", names, &PyType_Type, &cls, &PyType_Type,
                                   &raw, &is_deleted, &wait, &wait_end))
    return -1;
  if (self->cls) {
    PyErr_SetString(PyExc_TypeError, "a wait is made once");
    return -1;
  }
  self->raw = (PyTypeObject *)Py_NewRef(raw);
  self->is_deleted = Py_NewRef(is_deleted);
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
  Py_VISIT(self->wait);
  Py_VISIT(self->wait_end);
  return 0;
}

/* No tp_clear: a wait of a finaliser must work. */
static void shards_wait_dealloc(PyObject *object) {
  ShardsWait *self = (ShardsWait *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF((PyObject *)self->cls);
  Py_XDECREF((PyObject *)self->raw);
  Py_XDECREF(self->is_deleted);
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
