/* Host values as arguments: the abstract value of each in the key of a call.

   These are NumPy's arrays and scalars, and Python's numbers. */
#include <string.h>

#include "values/internal.h"

static PyObject *find_avals; /* find_avals([value]) -> [aval], None for what is not known */

enum { PLACES = 256 };
typedef struct {
  PyObject *token, *aval; /* both kept, NULL where there is none yet */
  int type, rank; /* the rank of a number is -1 */
  Py_ssize_t shape[MAX_RANK];
} Known;
static Known known[PLACES]; /* what `find_avals` gave; each in the place that its type and shape hash to */

/* What a Python number is, as no number of a dtype is; of integers that of the least dtype that holds
   it. 0 for anything else. */
static int type_of_number(PyObject *value) {
  if (PyFloat_CheckExact(value)) return -1;
  if (PyBool_Check(value)) return -2;
  if (PyComplex_CheckExact(value)) return -3;
  if (!PyLong_CheckExact(value)) return 0;
  int overflow;
  long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow) return 0;
  return number >= INT32_MIN && number <= INT32_MAX ? -4 : -5;
}

/* Asks Python for the aval, a new reference; NULL where Python has to take the call. */
static PyObject *ask(PyObject *value) {
  PyObject *values = PyList_New(1);
  if (!values) return NULL;
  PyList_SetItem(values, 0, Py_NewRef(value));
  PyObject *found = PyObject_CallFunctionObjArgs(find_avals, values, NULL), *aval = NULL;
  Py_DECREF(values);
  if (found && PyList_Check(found) && PyList_Size(found) == 1)
    aval = Py_NewRef(PyList_GetItem(found, 0));
  Py_XDECREF(found);
  return aval;
}

/* Whether a value is of that type and shape, under those settings, still after Python ran, with other
   threads: what was found of it would else be taken for the aval of others. */
static int is_unchanged(PyObject *value, PyObject *token, int type, int rank,
                        const Py_ssize_t *shape) {
  PyObject *now = settings_token();
  Py_XDECREF(now);
  if (now != token) return 0;
  if (rank < 0) return 1;
  Py_buffer view;
  int found = view_host(value, &view);
  if (!found) return 0;
  int same = found == type && view.ndim == rank;
  for (int i = 0; same && i < rank; i++) same = view.shape[i] == shape[i];
  PyBuffer_Release(&view);
  return same;
}

static size_t size_of_shape(int rank) { return rank > 0 ? rank * sizeof(Py_ssize_t) : 0; }

static Known *place_of(PyObject *token, int type, int rank, const Py_ssize_t *shape) {
  size_t hash = (size_t)type * 31 + rank + ((uintptr_t)token >> 4);
  for (int i = 0; i < rank; i++) hash = hash * 1000003 + (size_t)shape[i];
  return &known[(hash ^ hash >> 17) % PLACES];
}

/* The aval that is known, borrowed, or NULL; and its place. */
static PyObject *look_up(PyObject *token, int type, int rank, const Py_ssize_t *shape,
                         Known **place) {
  *place = place_of(token, type, rank, shape);
  int found = (*place)->token == token && (*place)->type == type && (*place)->rank == rank &&
              !memcmp((*place)->shape, shape, size_of_shape(rank));
  return found ? (*place)->aval : NULL;
}

/* A new reference; NULL where Python has to take the call. */
static PyObject *find(PyObject *value, PyObject *token, int type, int rank,
                      const Py_ssize_t *shape) {
  Known *place;
  if (rank > MAX_RANK) return NULL;
  PyObject *aval = look_up(token, type, rank, shape, &place);
  if (aval) return Py_NewRef(aval);
  aval = ask(value);
  if (!aval) return NULL;
  if (!is_unchanged(value, token, type, rank, shape)) {
    Py_DECREF(aval);
    return NULL;
  }
  PyObject *old_token = place->token, *old_aval = place->aval;
  place->token = Py_NewRef(token);
  place->aval = Py_NewRef(aval);
  place->type = type;
  place->rank = rank;
  memcpy(place->shape, shape, size_of_shape(rank));
  Py_XDECREF(old_token);
  Py_XDECREF(old_aval);
  return aval;
}

static const Py_ssize_t none[1]; /* the shape of what has none */

PyObject *known_host_aval(PyObject *value, PyObject *token) {
  PyObject *aval = NULL;
  Known *place;
  Py_buffer view;
  int type = type_of_number(value);
  if (type) {
    aval = look_up(token, type, -1, none, &place);
  } else if ((type = view_known(value, &view))) {
    if (view.ndim <= MAX_RANK)
      aval = look_up(token, type, view.ndim, view.shape ? view.shape : none, &place);
    PyBuffer_Release(&view);
  }
  return aval;
}

PyObject *host_aval(PyObject *value, PyObject *token) {
  PyObject *aval = NULL;
  Py_buffer view;
  int type = type_of_number(value);
  if (type) {
    aval = find(value, token, type, -1, none);
  } else if ((type = view_host(value, &view))) {
    aval = find(value, token, type, view.ndim, view.shape ? view.shape : none);
    PyBuffer_Release(&view);
  }
  if (!aval && PyErr_Occurred()) leave_to_python();
  return aval;
}

int is_host_value(PyObject *value) { return is_host_data(value) || type_of_number(value) != 0; }

PyObject *set_host_hooks(PyObject *module, PyObject *finding) {
  (void)module;
  find_avals = Py_NewRef(finding); /* kept for ever, as the classes are */
  Py_RETURN_NONE;
}
