/* Static arguments: which arguments of a call are static, their keys, and which values keep their
   key. */
#include "calls/internal.h"
#include "values/values.h"

/* static_key(value): an object that is equal for equal static values */
static PyObject *get_static_key;

enum { DEEPEST = 20 }; /* nesting depth of tuples that is handled here */

int append_new(PyObject *list, PyObject *item) {
  int failed = !item || PyList_Append(list, item);
  Py_XDECREF(item);
  return failed ? FAILED : DONE;
}

int is_static(const Statics *which, PyObject *name, Py_ssize_t number) {
  if (name) return which->names ? PySet_Contains(which->names, name) : 0;
  if (!which->nums) return 0;
  PyObject *key = PyLong_FromSsize_t(number);
  int answer = key ? PySet_Contains(which->nums, key) : -1;
  Py_XDECREF(key);
  return answer;
}

/* Returns what `get_static_key` returns. It is called only for derived classes and for tuples that
   are nested too deeply. */
static PyObject *key_of(PyObject *value, int depth) {
  PyObject *cls = (PyObject *)Py_TYPE(value);
  if (PyFloat_CheckExact(value) || PyComplex_CheckExact(value)) {
    PyObject *text = PyObject_Repr(value);
    PyObject *key = text ? PyTuple_Pack(2, cls, text) : NULL;
    Py_XDECREF(text);
    return key;
  }
  if (!PyTuple_Check(value) && !PyFloat_Check(value) && !PyComplex_Check(value))
    return PyTuple_Pack(2, cls, value);
  if (!PyTuple_CheckExact(value) || depth == DEEPEST) /* a derived class may iterate differently */
    return PyObject_CallFunctionObjArgs(get_static_key, value, NULL);
  PyObject *on_stack[ON_STACK]; /* not a tuple: Python functions could see it half filled */
  Py_ssize_t count = PyTuple_Size(value), ready = 1;
  PyObject **keys = count < ON_STACK ? on_stack : PyMem_Malloc((count + 1) * sizeof *keys);
  if (!keys) return PyErr_NoMemory();
  keys[0] = Py_NewRef(cls);
  for (; ready <= count; ready++)
    if (!(keys[ready] = key_of(PyTuple_GetItem(value, ready - 1), depth + 1))) break;
  PyObject *key = ready > count ? tuple_of(keys, ready) : NULL;
  while (ready) Py_DECREF(keys[--ready]);
  if (keys != on_stack) PyMem_Free(keys);
  return key;
}

PyObject *static_key_of(PyObject *value) { return key_of(value, 0); }

/* Whether an object of the class equals only itself, for the life of the class: functions, classes
   and others. False for classes that Python code may change, and for objects whose class may be
   replaced. */
static int is_by_identity(PyTypeObject *cls) {
  return (PyType_GetFlags(cls) & Py_TPFLAGS_IMMUTABLETYPE) && !PyType_IsSubtype(cls, &PyModule_Type) &&
         PyType_GetSlot(cls, Py_tp_hash) == PyType_GetSlot(&PyBaseObject_Type, Py_tp_hash) &&
         PyType_GetSlot(cls, Py_tp_richcompare) ==
             PyType_GetSlot(&PyBaseObject_Type, Py_tp_richcompare);
}

static int is_lasting_within(PyObject *value, int depth) {
  if (!PyTuple_CheckExact(value))
    return value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) ||
           PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) || PyFloat_CheckExact(value) ||
           PyComplex_CheckExact(value) || Py_IS_TYPE(value, &PyCFunction_Type) ||
           is_known_dtype(value) || is_by_identity(Py_TYPE(value));
  if (depth == DEEPEST) return 0;
  for (Py_ssize_t i = 0; i < PyTuple_Size(value); i++)
    if (!is_lasting_within(PyTuple_GetItem(value, i), depth + 1)) return 0;
  return 1;
}

int is_lasting(PyObject *value) { return is_lasting_within(value, 0); }

static int is_same_tuple(PyObject *lasting, PyObject *value) {
  Py_ssize_t count = PyTuple_Size(lasting);
  if (PyTuple_Size(value) != count) return 0;
  for (Py_ssize_t i = 0; i < count; i++)
    if (!is_same_lasting(PyTuple_GetItem(lasting, i), PyTuple_GetItem(value, i))) return 0;
  return 1;
}

int is_same_lasting(PyObject *lasting, PyObject *value) {
  if (lasting == value) return 1;
  if (Py_TYPE(lasting) != Py_TYPE(value)) return 0;
  if (PyTuple_CheckExact(value)) return is_same_tuple(lasting, value);
  if (PyLong_CheckExact(value) || PyUnicode_CheckExact(value))
    return PyObject_RichCompareBool(lasting, value, Py_EQ) == 1;
  if (!PyFloat_CheckExact(value)) return 0;
  double one = PyFloat_AsDouble(lasting), other = PyFloat_AsDouble(value);
  return !memcmp(&one, &other, sizeof one); /* 0.0 and -0.0 differ, and NaN equals NaN */
}

void set_static_key(PyObject *function) {
  get_static_key = Py_NewRef(function); /* kept for ever, as the other hooks are */
}
