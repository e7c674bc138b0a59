/* ScratchPut: places a host value of one type as an argument. It is for backends that can launch
   with host memory faster than they put a value. The value is written to scratch memory that the
   launch reads. It is put instead if the backend has no such memory, or if launches use all of
   it. */
#include "launches/internal.h"
#include "values/values.h"

PyTypeObject *ScratchPut_Type;

typedef struct {
  PyObject_HEAD
  ScratchPool pool;
  /* put(value): an argument; NULL if Python puts values that get no scratch memory */
  PyObject *put;
  int dtype;
  int number; /* element type for Python's numbers; 0 for arrays */
  HostForm form;
  /* the last number, compared by identity: a literal is the same object each time */
  PyObject *seen;
  PyObject *last, *last_made; /* a number that came twice, and its argument, kept */
} ScratchPut;

static int write_array(ScratchPut *self, PyObject *value, Slot *slot) {
  Py_buffer view;
  int dtype = view_host(value, &view);
  if (!dtype) return NOT_HERE;
  /* Another thread may have changed the array's shape or dtype since the key of the call was
     made. */
  int same = dtype == self->dtype && view.ndim == self->form.rank && view.len == self->form.size;
  for (int i = 0; same && i < view.ndim; i++) same = view.shape[i] == self->form.dims[i];
  if (same && PyBuffer_ToContiguous(slot->memory.buf, &view, view.len, 'C')) {
    PyErr_Clear(); /* out of memory, which Python raises in its own words */
    same = 0;
  }
  PyBuffer_Release(&view);
  return same ? DONE : NOT_HERE;
}

static int write_value(ScratchPut *self, PyObject *value, Slot *slot) {
  Number data;
  if (!self->number) return write_array(self, value, slot);
  if (!write_number(self->number, value, &data)) return NOT_HERE;
  memcpy(slot->memory.buf, &data, self->form.size);
  return DONE;
}

/* Keeps a number and the memory that it was written to, which is never written again. */
static void keep_number(ScratchPut *self, PyObject *value, Slot *slot) {
  PyObject *old = self->last, *old_made = self->last_made;
  self->last = Py_NewRef(value);
  self->last_made = Py_NewRef(slot->argument);
  slot_drop(slot);
  Py_XDECREF(old);
  Py_XDECREF(old_made);
}

/* Puts a value with `put`; after a failure Python tries again and raises the exception. */
static int put_by_function(ScratchPut *self, PyObject *value, PyObject **made) {
  *made = self->put ? PyObject_CallFunctionObjArgs(self->put, value, NULL) : NULL;
  if (*made) return DONE;
  if (is_interrupted()) return FAILED;
  PyErr_Clear();
  return NOT_HERE;
}

int scratch_put_value(PyObject *object, PyObject *value, PyObject **made) {
  ScratchPut *self = (ScratchPut *)object;
  Slot *slot;
  /* a literal in source code is the same object each time */
  if (self->number && value == self->last) {
    *made = Py_NewRef(self->last_made);
    return DONE;
  }
  int state = scratch_pool_acquire(&self->pool, &slot);
  if (state == NOT_HERE) return put_by_function(self, value, made);
  if (state != DONE) return state;
  state = write_value(self, value, slot);
  if (state != DONE) {
    slot->in_use = 0;
    return state;
  }
  *made = Py_NewRef(slot->argument);
  if (!self->number) return DONE;
  PyObject *old = self->seen;
  if (value == old) keep_number(self, value, slot);
  else {
    self->seen = Py_NewRef(value);
    Py_XDECREF(old);
  }
  return DONE;
}

int is_scratch_put_made(PyObject *object) { return ((ScratchPut *)object)->pool.is_ready != NULL; }

ScratchPool *get_scratch_pool(PyObject *object) {
  ScratchPut *self = (ScratchPut *)object;
  return self->pool.make ? &self->pool : NULL;
}

static int scratch_put_init(ScratchPut *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"make", "is_ready", "dtype", "shape", "kind", "put", "late", NULL};
  PyObject *make, *is_ready, *dtype, *shape, *put = Py_None;
  const char *kind;
  int late = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO!z|Oi", names, &make, &is_ready, &dtype,
                                   &PyTuple_Type, &shape, &kind, &put, &late))
    return -1;
  if (self->pool.is_ready) {
    PyErr_SetString(PyExc_TypeError, "a ScratchPut is made once");
    return -1;
  }
  self->dtype = number_of_dtype(dtype);
  if (self->dtype) {
    host_form_clear(&self->form); /* the form from an earlier call that failed */
    if (host_form_init(&self->form, shape, dtype)) return -1;
  }
  self->number = kind && self->dtype ? type_of_numbers(kind, self->form.size) : 0;
  if (!self->dtype || (kind && (!self->number || self->form.rank))) {
    PyErr_Format(PyExc_ValueError, "the core has no scratch memory for values of %R", dtype);
    return -1;
  }
  self->put = put == Py_None ? NULL : Py_NewRef(put);
  scratch_pool_init(&self->pool, make, is_ready, self->form.size, late);
  return 0;
}

static int scratch_put_traverse(ScratchPut *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->put);
  Py_VISIT(self->form.dtype);
  Py_VISIT(self->seen);
  Py_VISIT(self->last);
  Py_VISIT(self->last_made);
  return scratch_pool_traverse(&self->pool, visit, arg);
}

/* No tp_clear, as for runners. */
static void scratch_put_dealloc(PyObject *object) {
  ScratchPut *self = (ScratchPut *)object;
  PyObject_GC_UnTrack(object);
  scratch_pool_drop(&self->pool);
  Py_XDECREF(self->put);
  Py_XDECREF(self->seen);
  Py_XDECREF(self->last);
  Py_XDECREF(self->last_made);
  host_form_clear(&self->form);
  free_object(object);
}

static PyType_Slot scratch_put_slots[] = {
    {Py_tp_doc, "Scratch memory of launches, for host values of one type; runners write it."},
    {Py_tp_init, scratch_put_init},
    {Py_tp_traverse, scratch_put_traverse},
    {Py_tp_dealloc, scratch_put_dealloc},
    {0, NULL},
};
static PyType_Spec scratch_put_spec = {"plugrt._core.ScratchPut", sizeof(ScratchPut), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, scratch_put_slots};

int add_scratch_put(PyObject *module) {
  ScratchPut_Type = type_of(module, &scratch_put_spec);
  return ScratchPut_Type ? 0 : -1;
}
