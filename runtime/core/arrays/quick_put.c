/* put_quickly: device_put of one value, if Python has put a value of the same type there before. */
#include "arrays/arrays.h"
#include "library/library.h"
#include "values/values.h"

static int place(PyObject *device_put, PyObject *value, PyObject **made) {
  if (Py_TYPE(device_put) == Copy_Type && is_copy_made(device_put))
    return copy_array(device_put, value, made);
  if (Py_TYPE(device_put) == Put_Type && ((Put *)device_put)->client)
    return put_anew((Put *)device_put, value, made);
  *made = PyObject_CallFunctionObjArgs(device_put, value, NULL);
  return *made ? DONE : FAILED;
}

/* Whether it is an array that is neither deleted nor donated. */
static int is_alive(PyObject *value) {
  if (Py_TYPE(value) != array_class) return 0;
  PyObject *shards = ((Array *)value)->shards;
  return shards && shards != Py_None;
}

/* The entry for a value in `known`, a new reference; NULL, perhaps with an exception, if there is
   none. */
static PyObject *look_up(PyObject *known, PyObject *value, PyObject *target) {
  PyObject *token = token_outside_traces(), *aval = NULL, *key = NULL, *found = NULL;
  if (token && Py_TYPE(value) == array_class) aval = Py_XNewRef(((Array *)value)->aval);
  else if (token && is_host_value(value)) aval = host_aval(value, token);
  if (aval) key = PyTuple_Pack(3, token, aval, target);
  Py_XDECREF(token);
  Py_XDECREF(aval);
  if (key) found = PyDict_GetItemWithError(known, key);
  Py_XINCREF(found); /* another thread may evict it */
  Py_XDECREF(key);
  return found;
}

/* (known, value, target): puts a value on a device and returns the array, committed if `target`
   names the device; None if Python has to put it.

   `known` is a dict. A key is the settings, the value's aval and the target. An entry is what makes
   the buffers (an object that puts or copies, a function of the value, or None to keep the value's
   buffers) and the aval of the result. */
PyObject *put_quickly(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *known, *value, *target;
  if (!PyArg_ParseTuple(args, "OOO", &known, &value, &target)) return NULL;
  PyObject *found = look_up(known, value, target);
  if (!found) {
    if (PyErr_Occurred() && !leave_to_python()) return NULL; /* an unhashable key, for example */
    Py_RETURN_NONE;
  }
  PyObject *device_put, *aval, *buffer, *made = NULL;
  int state = NOT_HERE;
  if (PyArg_ParseTuple(found, "OO", &device_put, &aval)) {
    if (device_put != Py_None) state = place(device_put, value, &buffer);
    else if (is_alive(value)) made = Py_NewRef(value);
  }
  if (state == DONE) made = array_holding(buffer, aval);
  if (state == NOT_HERE && !made && !PyErr_Occurred()) made = Py_NewRef(Py_None);
  Py_DECREF(found);
  return made;
}
