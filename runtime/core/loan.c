/* Loan: memory of one argument of a program, which its launches read host values from.

   For backends that launch with memory of the host at less cost than they put it. The memory is written
   again once the results of the launch that had it are there. Where they are not when it returns, the
   results are kept and asked again at a later call, if they are small; if not, the memory is left to
   that launch, as it is where a launch takes one of the results. If that happens repeatedly, the values
   are put for a while, each time to memory of their own, as they are where the backend lends none, and
   while launches have all memory that is kept. */
#include "core.h"

enum { MOST_ASKED = 8 }; /* results of a launch that are kept */
enum { LEAST_KEPT = 4 }; /* as many threads launch the program at once at no more cost than one */
enum { MOST_KEPT = 64 }; /* a backend has fewer launches under way at once; see `late` */
enum { MOST_LOST = 8, FIRST_PAUSE = 32, LONGEST_PAUSE = 4096 };

PyTypeObject *Loan_Type;

typedef struct Loan Loan;
typedef struct Slot {
  PyObject *argument; /* what a launch takes, NULL where there is none yet */
  Py_buffer memory;   /* what is written to */
  char lent;
  PyObject *results;      /* of a launch that had not ended when it returned, a tuple; lent is set */
  unsigned long launched; /* which is older, of two with results */
  Loan *loan;
  struct Slot *next, **link; /* the next one with results, and what refers to this one */
} Slot;

struct Loan {
  PyObject_HEAD
  PyObject *make;     /* make(): an argument and its memory, or None; NULL where nothing is lent */
  PyObject *is_ready; /* is_ready(result of a launch) */
  PyObject *put;      /* put(value): an argument; NULL where Python puts values that are not lent to */
  int dtype;
  int number;         /* the element type of Python's numbers; 0 for arrays */
  HostForm form;
  int late;               /* launches whose results are kept: 0 where these are large */
  Slot *slots[MOST_KEPT]; /* made when they are first needed */
  int count, most;        /* of these */
  unsigned long launches; /* that had not ended when they returned */
  PyObject *seen;            /* the last number; the next one may be the same object, a literal */
  PyObject *last, *last_made; /* one that was the same twice, and what has it for good */
  unsigned lost, waiting, pause; /* launches in a row that had not ended; those until the next try */
};

static Slot *with_results; /* of the process: all slots that have results, of each loan */

static void lose(Loan *self) {
  if (!self->lost) self->pause = FIRST_PAUSE;
  if (++self->lost < MOST_LOST) return;
  self->waiting = self->pause;
  if (self->pause < LONGEST_PAUSE) self->pause *= 2;
}

static void keep_results(Slot *slot, PyObject *results) { /* steals the reference */
  slot->results = results;
  slot->link = &with_results;
  if ((slot->next = with_results)) slot->next->link = &slot->next;
  with_results = slot;
}

static PyObject *take_results(Slot *slot) {
  PyObject *results = slot->results;
  if (!results) return NULL;
  slot->results = NULL;
  if ((*slot->link = slot->next)) slot->next->link = slot->link;
  return results;
}

static void drop(Slot *slot) {
  PyObject *argument = slot->argument, *results = take_results(slot);
  Py_buffer memory = slot->memory;
  slot->argument = NULL;
  slot->lent = 0;
  if (argument) {
    PyBuffer_Release(&memory);
    Py_DECREF(argument);
  }
  Py_XDECREF(results);
}

static int are_ready(Loan *self, PyObject *const *results, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *answer = PyObject_CallFunctionObjArgs(self->is_ready, results[i], NULL);
    int ready = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (ready <= 0) return ready;
  }
  return 1;
}

/* Whether the launch that has a slot has ended: DONE, and the slot is this thread's; NOT_HERE; FAILED.
   Of results that were deleted nobody can tell, so that their launch keeps the memory. */
static int take_back(Loan *self, Slot *slot) {
  PyObject *results = take_results(slot), *found[MOST_ASKED]; /* other threads leave it alone meanwhile */
  Py_ssize_t count = PyTuple_Size(results);
  for (Py_ssize_t i = 0; i < count; i++) found[i] = PyTuple_GetItem(results, i);
  int ready = are_ready(self, found, count);
  if (ready > 0) {
    self->lost = 0;
    Py_DECREF(results);
    return DONE;
  }
  keep_results(slot, results);
  if (!ready) return NOT_HERE;
  if (is_interrupted()) return FAILED;
  PyErr_Clear();
  lose(self);
  drop(slot);
  return NOT_HERE;
}

/* Asks the backend for new memory; the slot is this thread's. */
static int fill(Loan *self, Slot *slot) {
  PyObject *found = PyObject_CallNoArgs(self->make), *argument, *memory;
  if (!found) return leave_to_python() ? NOT_HERE : FAILED;
  int state = NOT_HERE;
  if (found != Py_None) {
    state = FAILED;
    if (!PyTuple_Check(found)) PyErr_SetString(PyExc_TypeError, "what is lent is no pair");
    else if (PyArg_ParseTuple(found, "OO", &argument, &memory) &&
             !PyObject_GetBuffer(memory, &slot->memory, PyBUF_WRITABLE)) {
      slot->argument = Py_NewRef(argument);
      state = DONE;
    }
  }
  Py_DECREF(found);
  if (state != DONE || slot->memory.len == self->form.size) return state;
  PyErr_Format(PyExc_ValueError, "%zd bytes were lent to an argument of %zd", slot->memory.len, self->form.size);
  return FAILED;
}

/* Returns a new slot; NULL, without an exception, if there are as many as there may be. */
static Slot *add_slot(Loan *self) {
  Slot *made = self->count < self->most ? PyMem_Calloc(1, sizeof *made) : NULL;
  if (!made) return NULL;
  made->loan = self;
  return self->slots[self->count++] = made;
}

/* Sets a slot that no launch has, and which is lent from now on: DONE. */
static int borrow(Loan *self, Slot **found) {
  Slot *empty = NULL, *oldest = NULL;
  for (int i = 0; i < self->count; i++) {
    Slot *slot = self->slots[i];
    if (slot->results) {
      if (!oldest || slot->launched < oldest->launched) oldest = slot;
    } else if (slot->lent) continue;
    else if (!slot->argument) empty = slot;
    else {
      slot->lent = 1;
      *found = slot;
      return DONE;
    }
  }
  if (oldest) {
    int state = take_back(self, oldest);
    *found = oldest;
    if (state != NOT_HERE) return state;
    if (!oldest->argument) empty = oldest;
  }
  if (empty && (empty->lent || empty->argument)) empty = NULL; /* other threads ran meanwhile */
  if (!self->make || (!empty && self->count == self->most)) return NOT_HERE;
  if (self->waiting) {
    self->waiting--;
    return NOT_HERE;
  }
  if (!empty && !(empty = add_slot(self))) return NOT_HERE;
  empty->lent = 1; /* other threads run meanwhile */
  int state = fill(self, empty);
  if (state == NOT_HERE) lose(self);
  if (state != DONE) drop(empty);
  *found = empty;
  return state;
}

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
  drop(slot);
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
  int state = borrow(self, &slot);
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

void loan_end(PyObject *object, PyObject *argument, int use, PyObject *results) {
  Loan *self = (Loan *)object;
  Slot *slot = NULL;
  for (int i = 0; i < self->count && !slot; i++)
    if (self->slots[i]->lent && self->slots[i]->argument == argument) slot = self->slots[i];
  if (!slot) return; /* a number that is kept, or what was put */
  if (use == NOT_READ && results) {
    keep_results(slot, Py_NewRef(results));
    slot->launched = self->launches++;
    return;
  }
  if (use == NOT_READ) {
    lose(self);
    drop(slot);
    return;
  }
  slot->lent = 0;
  if (use == READ) self->lost = 0;
}

int loan_results_are_ready(PyObject *self, PyObject *const *results, Py_ssize_t count) {
  return are_ready((Loan *)self, results, count);
}

PyObject *loan_keep(PyObject *object, PyObject *const *results, Py_ssize_t count) {
  if (!((Loan *)object)->late || count > MOST_ASKED) return NULL;
  PyObject *kept = PyTuple_New(count);
  if (!kept) {
    PyErr_Clear(); /* the memory is left to the launch */
    return NULL;
  }
  for (Py_ssize_t i = 0; i < count; i++) PyTuple_SetItem(kept, i, Py_NewRef(results[i]));
  return kept;
}

void loans_forget(PyObject *result) {
  Slot *slot = with_results;
  while (slot) {
    Py_ssize_t i = PyTuple_Size(slot->results);
    while (i-- && PyTuple_GetItem(slot->results, i) != result) continue;
    if (i < 0) {
      slot = slot->next;
      continue;
    }
    lose(slot->loan);
    drop(slot);
    slot = with_results; /* a destructor may have changed what follows */
  }
}

PyObject *forget_result(PyObject *module, PyObject *result) {
  (void)module;
  loans_forget(result);
  Py_RETURN_NONE;
}

int loan_is_made(PyObject *object) { return ((Loan *)object)->is_ready != NULL; }

int loan_lends(PyObject *object) { return ((Loan *)object)->make != NULL; }

static int loan_init(Loan *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"make", "is_ready", "dtype", "shape", "kind", "put", "late", NULL};
  PyObject *make, *is_ready, *dtype, *shape, *put = Py_None;
  const char *kind;
  int late = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO!z|Oi", names, &make, &is_ready, &dtype,
                                   &PyTuple_Type, &shape, &kind, &put, &late))
    return -1;
  if (self->is_ready) {
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
  self->late = late < 0 ? 0 : late > MOST_KEPT ? MOST_KEPT : late;
  self->most = self->late < LEAST_KEPT ? LEAST_KEPT : self->late;
  self->make = make == Py_None ? NULL : Py_NewRef(make);
  self->put = put == Py_None ? NULL : Py_NewRef(put);
  self->is_ready = Py_NewRef(is_ready);
  return 0;
}

static int loan_traverse(Loan *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->make);
  Py_VISIT(self->is_ready);
  Py_VISIT(self->put);
  Py_VISIT(self->form.dtype);
  for (int i = 0; i < self->count; i++) {
    Py_VISIT(self->slots[i]->argument);
    Py_VISIT(self->slots[i]->results);
  }
  Py_VISIT(self->seen);
  Py_VISIT(self->last);
  Py_VISIT(self->last_made);
  return 0;
}

/* No tp_clear, as runners have none. */
static void loan_dealloc(PyObject *object) {
  Loan *self = (Loan *)object;
  PyObject_GC_UnTrack(object);
  while (self->count) {
    Slot *slot = self->slots[--self->count];
    drop(slot);
    PyMem_Free(slot);
  }
  Py_XDECREF(self->make);
  Py_XDECREF(self->is_ready);
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
