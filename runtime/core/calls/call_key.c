/* The key of a call in the dict of runners: its settings, its structure and its avals. */
#include "calls/internal.h"
#include "arrays/arrays.h"
#include "values/values.h"

PyObject *call_key(const Call *call, const FlatCall *flat, PyObject *const *values,
                   PyObject **avals, Py_ssize_t count) {
  Py_ssize_t ready = 0;
  for (; ready < count; ready++) {
    PyObject *value = values[ready];
    if (Py_TYPE(value) == array_class) avals[ready] = Py_NewRef(((Array *)value)->aval);
    else avals[ready] = host_aval(value, call->token);
    if (!avals[ready]) break;
  }
  /* Made after those calls: they run Python code, in which other threads or the garbage collector
     could see a tuple that is not filled yet. */
  PyObject *key = ready == count ? PyTuple_New(count + 2) : NULL;
  if (!key) {
    while (ready) Py_DECREF(avals[--ready]);
    return NULL;
  }
  PyTuple_SetItem(key, 0, Py_NewRef(call->token));
  PyTuple_SetItem(key, 1, Py_NewRef(flat ? flat->structure : Py_None));
  for (Py_ssize_t i = 0; i < count; i++) PyTuple_SetItem(key, i + 2, avals[i]);
  return key;
}
