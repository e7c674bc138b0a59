/* ScratchPool: reusable memory for one argument of a program.

   The memory is written again once the results of the launch that used it are ready. If they are
   not ready when the launch returns, they are kept, if small, and checked at a later call. If they
   are large, or if a launch donates one of them, the memory is left to that launch. If that happens
   repeatedly, the pool provides no memory for a while. */
#include "launches/internal.h"

enum { MOST_ASKED = 8 }; /* maximum number of results kept per launch */
enum { LEAST_KEPT = 4 }; /* up to this many threads launch the program at once without extra cost */
enum { MOST_LOST = 8, FIRST_PAUSE = 32, LONGEST_PAUSE = 4096 };

static Slot *with_results; /* all slots of the process that have results */

static void lose(ScratchPool *self) {
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

void slot_drop(Slot *slot) {
  PyObject *argument = slot->argument, *results = take_results(slot);
  Py_buffer memory = slot->memory;
  slot->argument = NULL;
  slot->in_use = 0;
  if (argument) {
    PyBuffer_Release(&memory);
    Py_DECREF(argument);
  }
  Py_XDECREF(results);
}

int has_ready_results(ScratchPool *self, PyObject *const *results, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *answer = PyObject_CallFunctionObjArgs(self->is_ready, results[i], NULL);
    int ready = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (ready <= 0) return ready;
  }
  return 1;
}

/* Whether the launch that used a slot has ended: DONE, and this thread owns the slot; NOT_HERE;
   FAILED. If its results were deleted, that is unknown, and the launch keeps the memory. */
static int take_back(ScratchPool *self, Slot *slot) {
  /* other threads do not use it meanwhile */
  PyObject *results = take_results(slot), *found[MOST_ASKED];
  Py_ssize_t count = PyTuple_Size(results);
  for (Py_ssize_t i = 0; i < count; i++) found[i] = PyTuple_GetItem(results, i);
  int ready = has_ready_results(self, found, count);
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
  slot_drop(slot);
  return NOT_HERE;
}

/* Asks the backend for new memory for a slot that this thread owns. */
static int fill(ScratchPool *self, Slot *slot) {
  PyObject *found = PyObject_CallNoArgs(self->make), *argument, *memory;
  if (!found) return leave_to_python() ? NOT_HERE : FAILED;
  int state = NOT_HERE;
  if (found != Py_None) {
    state = FAILED;
    if (!PyTuple_Check(found)) PyErr_SetString(PyExc_TypeError, "scratch memory is no pair");
    else if (PyArg_ParseTuple(found, "OO", &argument, &memory) &&
             !PyObject_GetBuffer(memory, &slot->memory, PyBUF_WRITABLE)) {
      slot->argument = Py_NewRef(argument);
      state = DONE;
    }
  }
  Py_DECREF(found);
  if (state != DONE || slot->memory.len == self->size) return state;
  PyErr_Format(PyExc_ValueError, "%zd bytes of scratch memory were given for an argument of %zd", slot->memory.len, self->size);
  return FAILED;
}

/* Returns a new slot; NULL, without an exception, if the maximum is reached. */
static Slot *add_slot(ScratchPool *self) {
  Slot *made = self->count < self->most ? PyMem_Calloc(1, sizeof *made) : NULL;
  if (!made) return NULL;
  made->pool = self;
  return self->slots[self->count++] = made;
}

/* Sets a slot that no launch uses, and marks it as in use: DONE. */
int scratch_pool_acquire(ScratchPool *self, Slot **found) {
  Slot *empty = NULL, *oldest = NULL;
  for (int i = 0; i < self->count; i++) {
    Slot *slot = self->slots[i];
    if (slot->results) {
      if (!oldest || slot->launched < oldest->launched) oldest = slot;
    } else if (slot->in_use) continue;
    else if (!slot->argument) empty = slot;
    else {
      slot->in_use = 1;
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
  if (empty && (empty->in_use || empty->argument)) empty = NULL; /* other threads may have run */
  if (!self->make || (!empty && self->count == self->most)) return NOT_HERE;
  if (self->waiting) {
    self->waiting--;
    return NOT_HERE;
  }
  if (!empty && !(empty = add_slot(self))) return NOT_HERE;
  empty->in_use = 1; /* other threads may run */
  int state = fill(self, empty);
  if (state == NOT_HERE) lose(self);
  if (state != DONE) slot_drop(empty);
  *found = empty;
  return state;
}

void scratch_pool_release(ScratchPool *self, PyObject *argument, int use, PyObject *results) {
  Slot *slot = NULL;
  for (int i = 0; i < self->count && !slot; i++)
    if (self->slots[i]->in_use && self->slots[i]->argument == argument) slot = self->slots[i];
  if (!slot) return; /* a number that is kept, or a value that was put */
  if (use == NOT_READ && results) {
    keep_results(slot, Py_NewRef(results));
    slot->launched = self->launches++;
    return;
  }
  if (use == NOT_READ) {
    lose(self);
    slot_drop(slot);
    return;
  }
  slot->in_use = 0;
  if (use == READ) self->lost = 0;
}

PyObject *scratch_pool_keep(ScratchPool *self, PyObject *const *results, Py_ssize_t count) {
  if (!self->late || count > MOST_ASKED) return NULL;
  PyObject *kept = PyTuple_New(count);
  if (!kept) {
    PyErr_Clear(); /* the memory is left to the launch */
    return NULL;
  }
  for (Py_ssize_t i = 0; i < count; i++) PyTuple_SetItem(kept, i, Py_NewRef(results[i]));
  return kept;
}

void forget_late_result(PyObject *result) {
  Slot *slot = with_results;
  while (slot) {
    Py_ssize_t i = PyTuple_Size(slot->results);
    while (i-- && PyTuple_GetItem(slot->results, i) != result) continue;
    if (i < 0) {
      slot = slot->next;
      continue;
    }
    lose(slot->pool);
    slot_drop(slot);
    slot = with_results; /* a destructor may have changed the list */
  }
}

PyObject *forget_result(PyObject *module, PyObject *result) {
  (void)module;
  forget_late_result(result);
  Py_RETURN_NONE;
}

void scratch_pool_init(ScratchPool *self, PyObject *make, PyObject *is_ready, Py_ssize_t size, int late) {
  self->make = make == Py_None ? NULL : Py_NewRef(make);
  self->is_ready = Py_NewRef(is_ready);
  self->size = size;
  self->late = late < 0 ? 0 : late > MOST_SLOTS ? MOST_SLOTS : late;
  self->most = self->late < LEAST_KEPT ? LEAST_KEPT : self->late;
}

int scratch_pool_traverse(ScratchPool *self, visitproc visit, void *arg) {
  Py_VISIT(self->make);
  Py_VISIT(self->is_ready);
  for (int i = 0; i < self->count; i++) {
    Py_VISIT(self->slots[i]->argument);
    Py_VISIT(self->slots[i]->results);
  }
  return 0;
}

void scratch_pool_drop(ScratchPool *self) {
  while (self->count) {
    Slot *slot = self->slots[--self->count];
    slot_drop(slot);
    PyMem_Free(slot);
  }
  Py_XDECREF(self->make);
  Py_XDECREF(self->is_ready);
}
