/* Host values as arguments: what they are, and the abstract value of each in the key of a call.

   These are NumPy's arrays, of which the buffer protocol tells shape and type, and Python's numbers.
   What has no such type (bfloat16, another byte order, a subclass) is left to Python. */
#include <string.h>

#include "core.h"

static PyTypeObject *ndarray;  /* numpy.ndarray */
static PyObject *find_avals;   /* find_avals([value]) -> [aval], None for what is not known */

enum { PLACES = 256, MAX_RANK = 6 };
static struct {
  PyObject *token, *aval; /* both kept, NULL where there is none yet */
  int type, rank;
  Py_ssize_t shape[MAX_RANK];
} known[PLACES]; /* what `find_avals` gave; each in the place that its type and shape hash to */

int element_type_of(const char *format, Py_ssize_t size) {
  if (!format) return 0;
  char code = format[0], kind = 0;
  if (code == 'Z' && (format[1] == 'f' || format[1] == 'd') && !format[2]) return ELEMENT('c', size);
  if (!code || format[1]) return 0;
  if (code == '?') kind = 'b';
  else if (strchr("bhilq", code)) kind = 'i';
  else if (strchr("BHILQ", code)) kind = 'u';
  else if (strchr("efd", code)) kind = 'f';
  return kind ? ELEMENT(kind, size) : 0;
}

int view_host(PyObject *value, Py_buffer *view) {
  if (Py_TYPE(value) != ndarray) return 0;
  if (PyObject_GetBuffer(value, view, PyBUF_FORMAT | PyBUF_STRIDES)) {
    PyErr_Clear(); /* a dtype that the protocol does not know */
    return 0;
  }
  int type = element_type_of(view->format, view->itemsize);
  if (!type) PyBuffer_Release(view);
  return type;
}

/* The type of a Python number, as an element type of 0 bytes or, of an integer, of the least bytes
   that hold it; 0 for anything else. */
static int type_of_number(PyObject *value) {
  if (PyFloat_CheckExact(value)) return ELEMENT('f', 0);
  if (PyBool_Check(value)) return ELEMENT('b', 0);
  if (PyComplex_CheckExact(value)) return ELEMENT('c', 0);
  if (!PyLong_CheckExact(value)) return 0;
  int overflow;
  long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow) return 0;
  return number >= INT32_MIN && number <= INT32_MAX ? ELEMENT('i', 4) : ELEMENT('i', 8);
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

static PyObject *look_up(PyObject *value, PyObject *token, int type, int rank,
                         const Py_ssize_t *shape) {
  if (rank > MAX_RANK) return NULL;
  size_t bytes = rank > 0 ? rank * sizeof *shape : 0; /* of a number the rank is -1 */
  size_t hash = (size_t)type * 31 + rank + ((uintptr_t)token >> 4);
  for (int i = 0; i < rank; i++) hash = hash * 1000003 + (size_t)shape[i];
  hash = (hash ^ hash >> 17) % PLACES;
  if (known[hash].token == token && known[hash].type == type && known[hash].rank == rank &&
      !memcmp(known[hash].shape, shape, bytes))
    return Py_NewRef(known[hash].aval);
  PyObject *aval = ask(value);
  if (!aval) return NULL;
  if (!is_unchanged(value, token, type, rank, shape)) {
    Py_DECREF(aval);
    return NULL;
  }
  PyObject *old_token = known[hash].token, *old_aval = known[hash].aval;
  known[hash].token = Py_NewRef(token);
  known[hash].aval = Py_NewRef(aval);
  known[hash].type = type;
  known[hash].rank = rank;
  memcpy(known[hash].shape, shape, bytes);
  Py_XDECREF(old_token);
  Py_XDECREF(old_aval);
  return aval;
}

PyObject *host_aval(PyObject *value, PyObject *token) {
  static const Py_ssize_t none[1];
  PyObject *aval = NULL;
  Py_buffer view;
  int type = type_of_number(value);
  if (type) {
    aval = look_up(value, token, type, -1, none);
  } else if ((type = view_host(value, &view))) {
    aval = look_up(value, token, type, view.ndim, view.shape ? view.shape : none);
    PyBuffer_Release(&view);
  }
  if (!aval && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
  return aval;
}

int is_host_array(PyObject *value) { return Py_TYPE(value) == ndarray; }

int is_host_value(PyObject *value) {
  return Py_TYPE(value) == ndarray || type_of_number(value) != 0;
}

PyObject *set_host_hooks(PyObject *module, PyObject *args) {
  (void)module;
  PyTypeObject *cls;
  PyObject *finding;
  if (!PyArg_ParseTuple(args, "O!O", &PyType_Type, &cls, &finding)) return NULL;
  ndarray = (PyTypeObject *)Py_NewRef((PyObject *)cls); /* kept for ever, as the classes are */
  find_avals = Py_NewRef(finding);
  Py_RETURN_NONE;
}
