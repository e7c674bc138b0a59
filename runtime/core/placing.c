/* Placing: what puts a host value on a launch's device, or copies an array there: a Put, a Loan
   or a Copy. */
#include "core.h"

static int is_placing(PyObject *object) {
  if (Py_TYPE(object) == Put_Type) return ((Put *)object)->client != NULL;
  if (Py_TYPE(object) == Loan_Type) return loan_is_made(object);
  return Py_TYPE(object) == Copy_Type && copy_is_made(object);
}

int placings_read(PyObject *given, Py_ssize_t count, PyObject ***placings) {
  if (PyTuple_Size(given) != count) {
    PyErr_SetString(PyExc_ValueError, "a runner has a put, or None, for each argument kept");
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *placing = PyTuple_GetItem(given, i);
    if (placing == Py_None || is_placing(placing)) continue;
    PyErr_SetString(PyExc_TypeError, "what puts an argument is a Put, Loan or Copy of the core, or None");
    return -1;
  }
  PyObject **made = PyMem_Calloc(count + 1, sizeof *made);
  if (!made) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *placing = PyTuple_GetItem(given, i);
    if (placing != Py_None) made[i] = Py_NewRef(placing);
  }
  *placings = made;
  return 0;
}

int place_value(PyObject *placing, PyObject *value, PyObject **made) {
  if (Py_TYPE(placing) == Loan_Type) return loan_take(placing, value, made);
  if (Py_TYPE(placing) == Copy_Type) return copy_array(placing, value, made);
  return put_value((Put *)placing, value, made);
}

/* What lends memory to the values that it places; NULL where nothing does. */
static Lending *lending_by(PyObject *placing) {
  return placing && Py_TYPE(placing) == Loan_Type ? lending_of(placing) : NULL;
}

int placings_end(PyObject *const *placings, PyObject *const *held, Py_ssize_t count, int state,
                 PyObject **results, Py_ssize_t produced) {
  int use = state == NOT_HERE ? NOT_USED : NOT_READ;
  Py_ssize_t first = 0;
  while (first < count && !lending_by(placings[first])) first++;
  if (first == count) return state;
  PyObject *late = NULL;
  if (state == DONE) {
    Lending *lending = lending_by(placings[first]);
    int ready = lending_are_ready(lending, results, produced);
    if (ready < 0) {
      while (produced) Py_DECREF(results[--produced]);
      state = FAILED;
    }
    if (ready > 0) use = READ;
    if (!ready) late = lending_keep(lending, results, produced);
  }
  for (Py_ssize_t i = first; i < count; i++) {
    Lending *lending = lending_by(placings[i]);
    if (lending && held[i]) lending_end(lending, held[i], use, late);
  }
  Py_XDECREF(late);
  return state;
}
