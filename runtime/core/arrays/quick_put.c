/* put_quickly: device_put of one value, like another that Python has put there before. */
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

/* Whether it is an array that was neither deleted nor donated. */
static int is_alive(PyObject *value) {
  if (Py_TYPE(value) != array_class) return 0;
  PyObject *shards = ((Array *)value)->shards;
  return shards && shards != Py_None;
}

/* What was found of such a value, a new reference; NULL, perhaps with an exception, if nothing was. */
static PyObject *look_up(PyObject *known, PyObject *value, PyObject *target) {
  PyObject *token = settings_token(), *aval = NULL, *key = NULL, *found = NULL;
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

/* (known, value, target): the array of a value put on a device, committed if `target` names it; None
   where Python has to. `known` is a dict: the settings, the value's aval and the target, to what puts
   or copies it (a function of the value gives the buffers, None stands for what stays as it is), and
   the aval of what is made. */
PyObject *put_quickly(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *known, *value, *target;
  if (!PyArg_ParseTuple(args, "OOO", &known, &value, &target)) return NULL;
  PyObject *found = look_up(known, value, target);
  if (!found) {
    if (PyErr_Occurred() && !leave_to_python()) return NULL; /* no hash is left to it */
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
