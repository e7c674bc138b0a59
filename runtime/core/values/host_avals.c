/* Host values as arguments: the abstract value (aval) of each for the key of a call. Host values
   are NumPy's arrays and scalars, and Python's numbers. */
#include <string.h>

#include "values/internal.h"

static PyObject *find_avals; /* find_avals([value]) -> [aval], or [None] for an unknown type */

/* two ways, since two arguments of one call may have the same hash */
enum { SETS = 128, WAYS = 2 };
typedef struct {
  PyObject *token, *aval; /* references; NULL if the entry is empty */
  int type, rank; /* a number has rank -1 */
  Py_ssize_t shape[MAX_RANK];
} Known;
static Known known[SETS][WAYS]; /* Results of `find_avals`, for each hash the newest first. */

/* The type code of a Python number, different from all dtype numbers. An integer has the code of
   the smallest dtype that holds it. 0 for anything else. */
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

/* Asks Python for the aval, a new reference; NULL if Python has to make the call. */
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

/* Whether a value still has that type and shape under those settings, after Python code ran.
   Another thread may have changed it, and its aval would be stored for another type. */
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

/* The WAYS entries for values of that type and shape. */
static Known *set_of(PyObject *token, int type, int rank, const Py_ssize_t *shape) {
  size_t hash = (size_t)type * 31 + rank + ((uintptr_t)token >> 4);
  for (int i = 0; i < rank; i++) hash = hash * 1000003 + (size_t)shape[i];
  return known[(hash ^ hash >> 17) % SETS];
}

/* The stored aval, borrowed, or NULL. */
static PyObject *look_up(PyObject *token, int type, int rank, const Py_ssize_t *shape) {
  Known *set = set_of(token, type, rank, shape);
  for (Known *place = set; place < set + WAYS; place++)
    if (place->token == token && place->type == type && place->rank == rank &&
        !memcmp(place->shape, shape, size_of_shape(rank)))
      return place->aval;
  return NULL;
}

static void keep(PyObject *aval, PyObject *token, int type, int rank, const Py_ssize_t *shape) {
  Known *set = set_of(token, type, rank, shape), oldest = set[WAYS - 1];
  memmove(set + 1, set, (WAYS - 1) * sizeof(Known));
  *set = (Known){.token = Py_NewRef(token), .aval = Py_NewRef(aval), .type = type, .rank = rank};
  memcpy(set->shape, shape, size_of_shape(rank));
  Py_XDECREF(oldest.token);
  Py_XDECREF(oldest.aval);
}

/* A new reference; NULL if Python has to make the call. */
static PyObject *find(PyObject *value, PyObject *token, int type, int rank,
                      const Py_ssize_t *shape) {
  if (rank > MAX_RANK) return NULL;
  PyObject *aval = look_up(token, type, rank, shape);
  if (aval) return Py_NewRef(aval);
  aval = ask(value);
  if (!aval) return NULL;
  if (!is_unchanged(value, token, type, rank, shape)) {
    Py_DECREF(aval);
    return NULL;
  }
  keep(aval, token, type, rank, shape);
  return aval;
}

static const Py_ssize_t none[1]; /* the shape of a number */

PyObject *known_host_aval(PyObject *value, PyObject *token) {
  PyObject *aval = NULL;
  Py_buffer view;
  int type = type_of_number(value);
  if (type) {
    aval = look_up(token, type, -1, none);
  } else if ((type = view_known(value, &view))) {
    if (view.ndim <= MAX_RANK)
      aval = look_up(token, type, view.ndim, view.shape ? view.shape : none);
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
