/* dtypes: finds the dtype of host values, and makes views of their memory.

   The core handles NumPy's arrays and scalars with NumPy's numeric dtypes and those of ml_dtypes.
   Values with another byte order, a structured dtype, or a derived class are left to Python. */
#include "values/internal.h"

enum { MOST = 64 };
static PyTypeObject *ndarray;    /* numpy.ndarray */
/* dict: from a dtype to the number of the first equal one, from 1 */
static PyObject *known;
/* the dtype objects themselves; nearly all values have one of these. Others come from unpickling,
   for example. */
static PyObject *dtypes[MOST];
static PyObject *scalars[MOST];  /* NumPy's classes of scalars */
static int numbers[MOST];        /* the number of each dtype */
static int count;
static PyObject *dtype_name, *type_name;

/* The number of a known dtype object. Runs no Python code, while the hash of a dtype may. */
static int number_of_known(PyObject *dtype) {
  for (int i = 0; i < count; i++)
    if (dtypes[i] == dtype) return numbers[i];
  return 0;
}

int is_known_dtype(PyObject *object) { return number_of_known(object) != 0; }

int number_of_dtype(PyObject *dtype) {
  int number = number_of_known(dtype);
  if (number) return number;
  PyObject *found = known ? PyDict_GetItemWithError(known, dtype) : NULL;
  if (found) return (int)PyLong_AsLong(found);
  PyErr_Clear();
  return 0;
}

static int number_of_scalar(PyObject *value) {
  PyObject *type = (PyObject *)Py_TYPE(value);
  for (int i = 0; i < count; i++)
    if (scalars[i] == type) return numbers[i];
  return 0;
}

static int view(PyObject *value, Py_buffer *view, int (*number_of)(PyObject *)) {
  int number = 0;
  if (Py_TYPE(value) == ndarray) {
    PyObject *dtype = PyObject_GetAttr(value, dtype_name);
    if (dtype) number = number_of(dtype);
    Py_XDECREF(dtype);
  } else {
    number = number_of_scalar(value);
  }
  /* Without the format: NumPy has none for dtypes of other projects. */
  if (number && !PyObject_GetBuffer(value, view, PyBUF_STRIDES)) return number;
  PyErr_Clear();
  return 0;
}

int view_host(PyObject *value, Py_buffer *into) { return view(value, into, number_of_dtype); }

int view_known(PyObject *value, Py_buffer *into) { return view(value, into, number_of_known); }

int is_host_data(PyObject *value) {
  return Py_TYPE(value) == ndarray || number_of_scalar(value) != 0;
}

static int add_dtype(PyObject *dtype) {
  PyObject *equal = PyDict_GetItemWithError(known, dtype);
  if (!equal) {
    PyObject *number = PyErr_Occurred() ? NULL : PyLong_FromSsize_t(PyDict_Size(known) + 1);
    int failed = !number || PyDict_SetItem(known, dtype, number);
    Py_XDECREF(number);
    if (failed || !(equal = PyDict_GetItemWithError(known, dtype))) return -1;
  }
  numbers[count] = (int)PyLong_AsLong(equal);
  scalars[count] = PyObject_GetAttr(dtype, type_name);
  if (!scalars[count]) return -1;
  dtypes[count++] = Py_NewRef(dtype);
  return 0;
}

PyObject *set_dtypes(PyObject *module, PyObject *args) {
  (void)module;
  PyTypeObject *cls;
  PyObject *given;
  if (!PyArg_ParseTuple(args, "O!O!", &PyType_Type, &cls, &PyTuple_Type, &given)) return NULL;
  if (ndarray) Py_RETURN_NONE; /* where an import failed after this, and was tried again */
  if (PyTuple_Size(given) > MOST) {
    PyErr_Format(PyExc_ValueError, "at most %d dtypes are set", MOST);
    return NULL;
  }
  dtype_name = PyUnicode_InternFromString("dtype");
  type_name = PyUnicode_InternFromString("type");
  known = PyDict_New();
  if (!dtype_name || !type_name || !known) return NULL;
  for (Py_ssize_t i = 0; i < PyTuple_Size(given); i++)
    if (add_dtype(PyTuple_GetItem(given, i))) return NULL;
  ndarray = (PyTypeObject *)Py_NewRef((PyObject *)cls); /* kept for ever, as the classes are */
  Py_RETURN_NONE;
}
