/* Loan: what a launch takes of an argument that is a host value of one type.

   For backends that launch with memory of the host at less cost than they put it. A value is written to
   memory that is lent to the launch; it is put to memory of its own where the backend lends none, or
   launches have all memory that is kept. */
#include "core.h"

PyTypeObject *Loan_Type;

typedef struct {
  PyObject_HEAD
  Lending lending;
  PyObject *put; /* put(value): an argument; NULL where Python puts values that are not lent to */
  int dtype;
  int number; /* the element type of Python's numbers; 0 for arrays */
  HostForm form;
  PyObject *seen;             /* the last number; the next one may be the same object, a literal */
  PyObject *last, *last_made; /* one that was the same twice, and what has it for good */
} Loan;

static int write_array(Loan *self, PyObject *value, Slot *slot) {
  Py_buffer view;
  int dtype = view_host(value, &view);
  if (!dtype) return NOT_HERE;
  /* Another thread may have given the array another shape or dtype since the call's key was made. */
  int same = dtype == self->dtype && view.ndim == self->form.rank && view.len == self->form.size;
  for (int i = 0; same && i < view.ndim; i++) same = view.shape[i] == self->form.dims[i];
  if (same && PyBuffer_ToContiguous(slot->memory.buf, &view, view.len, 'C')) {
    PyErr_Clear(); /* for want of memory, which Python says in its own words */
    same = 0;
  }
  PyBuffer_Release(&view);
  return same ? DONE : NOT_HERE;
}

static int write_value(Loan *self, PyObject *value, Slot *slot) {
  Number data;
  if (!self->number) return write_array(self, value, slot);
  if (!write_number(self->number, value, &data)) return NOT_HERE;
  memcpy(slot->memory.buf, &data, self->form.size);
  return DONE;
}

/* Keeps a number that was lent to, and its memory, which is never written again. */
static void keep_number(Loan *self, PyObject *value, Slot *slot) {
  PyObject *old = self->last, *old_made = self->last_made;
  self->last = Py_NewRef(value);
  self->last_made = Py_NewRef(slot->argument);
  slot_drop(slot);
  Py_XDECREF(old);
  Py_XDECREF(old_made);
}

/* Puts a value to memory of its own; what fails Python tries again, and says what there is to say. */
static int put_by_function(Loan *self, PyObject *value, PyObject **made) {
  *made = self->put ? PyObject_CallFunctionObjArgs(self->put, value, NULL) : NULL;
  if (*made) return DONE;
  if (is_interrupted()) return FAILED;
  PyErr_Clear();
  return NOT_HERE;
}

int loan_take(PyObject *object, PyObject *value, PyObject **made) {
  Loan *self = (Loan *)object;
  Slot *slot;
  if (self->number && value == self->last) { /* a literal in the source code is the same each time */
    *made = Py_NewRef(self->last_made);
    return DONE;
  }
  int state = lending_borrow(&self->lending, &slot);
  if (state == NOT_HERE) return put_by_function(self, value, made);
  if (state != DONE) return state;
  state = write_value(self, value, slot);
  if (state != DONE) {
    slot->lent = 0;
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

int loan_is_made(PyObject *object) { return ((Loan *)object)->lending.is_ready != NULL; }

Lending *lending_of(PyObject *object) {
  Loan *self = (Loan *)object;
  return self->lending.make ? &self->lending : NULL;
}

static int loan_init(Loan *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"make", "is_ready", "dtype", "shape", "kind", "put", "late", NULL};
  PyObject *make, *is_ready, *dtype, *shape, *put = Py_None;
  const char *kind;
  int late = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO!z|Oi", names, &make, &is_ready, &dtype,
                                   &PyTuple_Type, &shape, &kind, &put, &late))
    return -1;
  if (self->lending.is_ready) {
    PyErr_SetString(PyExc_TypeError, "a loan is made once");
    return -1;
  }
  self->dtype = number_of_dtype(dtype);
  if (self->dtype) {
    host_form_clear(&self->form); /* that of an earlier attempt, which was refused */
    if (host_form_init(&self->form, shape, dtype)) return -1;
  }
  self->number = kind && self->dtype ? type_of_numbers(kind, self->form.size) : 0;
  if (!self->dtype || (kind && (!self->number || self->form.rank))) {
    PyErr_Format(PyExc_ValueError, "the core lends no memory to values of %R", dtype);
    return -1;
  }
  self->put = put == Py_None ? NULL : Py_NewRef(put);
  lending_init(&self->lending, make, is_ready, self->form.size, late);
  return 0;
}

static int loan_traverse(Loan *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->put);
  Py_VISIT(self->form.dtype);
  Py_VISIT(self->seen);
  Py_VISIT(self->last);
  Py_VISIT(self->last_made);
  return lending_traverse(&self->lending, visit, arg);
}

/* No tp_clear, as runners have none. */
static void loan_dealloc(PyObject *object) {
  Loan *self = (Loan *)object;
  PyObject_GC_UnTrack(object);
  lending_drop(&self->lending);
  Py_XDECREF(self->put);
  Py_XDECREF(self->seen);
  Py_XDECREF(self->last);
  Py_XDECREF(self->last_made);
  host_form_clear(&self->form);
  free_object(object);
}

static PyType_Slot loan_slots[] = {
    {Py_tp_doc, "Memory that a backend lends to launches, for host values of one type; runners write it."},
    {Py_tp_init, loan_init},
    {Py_tp_traverse, loan_traverse},
    {Py_tp_dealloc, loan_dealloc},
    {0, NULL},
};
static PyType_Spec loan_spec = {"plugrt._core.Loan", sizeof(Loan), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, loan_slots};

int add_loan(PyObject *module) {
  Loan_Type = type_of(module, &loan_spec);
  return Loan_Type ? 0 : -1;
}
