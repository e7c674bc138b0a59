/* Donation: the donated arguments (`donate_argnums`) of a call. */
#include "launches/internal.h"
#include "arrays/arrays.h"
#include "values/values.h"

Py_ssize_t read_numbers(PyObject *given, Py_ssize_t limit, Py_ssize_t **numbers) {
  Py_ssize_t count = PyTuple_Size(given);
  PyMem_Free(*numbers); /* from an earlier call that failed */
  Py_ssize_t *read = *numbers = PyMem_Malloc((count + 1) * sizeof *read);
  if (!read) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    read[i] = PyLong_AsSsize_t(PyTuple_GetItem(given, i));
    if (PyErr_Occurred()) return -1;
    if (read[i] < 0 || read[i] >= limit) {
      PyErr_SetString(PyExc_IndexError, "an argument is named that the call does not have");
      return -1;
    }
  }
  return count;
}

int donation_read(Donation *self, PyObject *donated, Py_ssize_t arity, PyObject *taker) {
  Py_ssize_t count = read_numbers(donated, arity, &self->numbers);
  self->count = count < 0 ? 0 : count;
  Py_XDECREF(self->taker); /* from an earlier call that failed */
  self->taker = Py_NewRef(taker);
  return count < 0 ? -1 : 0;
}

int donation_is_among(const Donation *self, const Py_ssize_t *kept, Py_ssize_t count,
                      PyObject *puts) {
  for (Py_ssize_t i = 0; i < self->count; i++) {
    Py_ssize_t j = 0;
    while (j < count && kept[j] != self->numbers[i]) j++;
    if (j == count) {
      PyErr_SetString(PyExc_ValueError, "an argument is donated that is not kept");
      return 0;
    }
    if (j < PyTuple_Size(puts) && PyTuple_GetItem(puts, j) != Py_None) {
      PyErr_SetString(PyExc_ValueError, "an argument is donated that is put, and may be no array");
      return 0;
    }
  }
  return 1;
}

/* Whether a donated argument is given to the launch a second time, which backends refuse. */
static int is_given_twice(const Donation *self, PyObject *const *values, PyObject *const *held,
                          Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < self->count; i++) {
    PyObject *shards = ((Array *)values[self->numbers[i]])->shards;
    int times = 0;
    for (Py_ssize_t j = 0; shards && j < count; j++) times += held[j] == shards;
    if (times > 1) return 1;
  }
  return 0;
}

enum { OWN = 2 }; /* references to an array's buffers: the array's and the runner's */

/* Whether something else refers to an array's buffers, such as a launch by another thread. */
static int is_used(const Array *array) {
  Py_ssize_t others = Py_REFCNT(array->shards) - OWN;
  return others > 0 && others > is_host_buffer_of(array->extra, array->shards);
}

int donation_take(const Donation *self, PyObject *const *values, PyObject *const *held,
                  Py_ssize_t count, int alone, PyObject **taken) {
  if (!self->count) return DONE;
  /* before the buffers are removed */
  if (is_given_twice(self, values, held, count)) return NOT_HERE;
  for (Py_ssize_t i = 0; alone && i < self->count; i++) {
    PyObject *shards = ((Array *)values[self->numbers[i]])->shards;
    if (shards && Py_REFCNT(shards) > OWN) forget_late_result(shards);
  }
  PyObject *loss = deletion_for(self->taker);
  if (!loss) return FAILED;
  /* no Python code runs from here on, which could make other arrays share the buffers */
  Py_ssize_t i = 0;
  for (; i < self->count; i++) {
    Array *array = (Array *)values[self->numbers[i]];
    if (!array->shards || array->shards == Py_None || array_is_observed((PyObject *)array)) break;
    if (alone && is_used(array)) break;
    taken[2 * i] = array->shards;
    taken[2 * i + 1] = array->extra;
    array->shards = NULL;
    array->extra = Py_NewRef(loss);
  }
  int state = i == self->count ? DONE : NOT_HERE;
  if (state != DONE) {
    Donation those = {i, self->numbers, self->taker};
    donation_end(&those, values, taken, 0);
  }
  Py_DECREF(loss);
  return state;
}

void donation_end(const Donation *self, PyObject *const *values, PyObject **taken, int launched) {
  for (Py_ssize_t i = self->count; i--;) {
    Array *array = (Array *)values[self->numbers[i]];
    PyObject *shards = taken[2 * i], *extra = taken[2 * i + 1];
    if (!launched && !array->shards) { /* else Python has deleted it meanwhile */
      array->shards = shards;
      shards = NULL;
      taken[2 * i] = array->extra;
      array->extra = extra;
      extra = taken[2 * i];
    }
    Py_XDECREF(shards);
    Py_XDECREF(extra);
  }
}

void donation_drop(Donation *self) {
  PyMem_Free(self->numbers);
  Py_CLEAR(self->taker);
}
