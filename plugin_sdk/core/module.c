/* The extension module plugrt_sdk.export._core. */
#include "core.h"
#include "sources.h"

static PyObject *configure(PyObject *module, PyObject *arguments) {
  PyObject *describe, *from_code;
  const char *sizes;
  Py_ssize_t count;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "OOy#", &describe, &from_code, &sizes, &count))
    return NULL;
  if (count > (Py_ssize_t)sizeof element_sizes) {
    PyErr_SetString(PyExc_ValueError, "more element types than the core has room for");
    return NULL;
  }
  for (Py_ssize_t i = 0; i < count; i++)
    element_sizes[i] = (unsigned char)sizes[i];
  Py_XDECREF(describe_exception);
  Py_XDECREF(error_from_code);
  describe_exception = Py_NewRef(describe);
  error_from_code = Py_NewRef(from_code);
  Py_RETURN_NONE;
}

static PyObject *create_table(PyObject *module, PyObject *arguments) {
  PyObject *bridge, *attributes, *hidden;
  int minor;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "OOiO", &bridge, &attributes, &minor, &hidden))
    return NULL;
  if (minor < PJRT_API_OLDEST_MINOR || minor > PJRT_API_MINOR)
    return PyErr_Format(PyExc_ValueError, "the minor version must be %d to %d; got %d",
                        PJRT_API_OLDEST_MINOR, PJRT_API_MINOR, minor);
  Table *table = make_table(bridge, attributes, minor, hidden);
  return table == NULL ? NULL : PyCapsule_New(&table->api, "pjrt_c_api", NULL);
}

static PyObject *count_handles(PyObject *module, PyObject *none) {
  (void)module;
  (void)none;
  static const char *const names[LIVE_KINDS] = {
      "errors",  "events",  "buffers",    "executables", "loaded_executables",
      "clients", "layouts", "topologies", "transfers",   "tracking_events"};
  PyObject *counts = PyDict_New();
  for (int i = 0; counts != NULL && i < LIVE_KINDS; i++) {
    PyObject *count = PyLong_FromLong(live_handles[i]);
    if (count == NULL || PyDict_SetItemString(counts, names[i], count))
      Py_CLEAR(counts);
    Py_XDECREF(count);
  }
  return counts;
}

static PyObject *close_core(PyObject *module, PyObject *none) {
  (void)module;
  (void)none;
  close_python();
  Py_RETURN_NONE;
}

#define SIZE(name, since, last)                                                                    \
  if (add_size(sizes, "PJRT_" #name "_Args", sizeof(struct PJRT_##name##_Args)))                   \
    goto failed;

static int add_size(PyObject *sizes, const char *name, size_t size) {
  PyObject *value = PyLong_FromSize_t(size);
  int failed = value == NULL || PyDict_SetItemString(sizes, name, value);
  Py_XDECREF(value);
  return failed;
}

static PyObject *struct_sizes(PyObject *module, PyObject *none) {
  PyObject *sizes = PyDict_New();
  (void)module;
  (void)none;
  if (sizes == NULL)
    return NULL;
  PJRT_SLOTS(SIZE)
  PJRT_SHARDINGS_SLOTS(SIZE)
  PJRT_LAYOUTS_SLOTS(SIZE)
  PJRT_MEMORYDESCRIPTIONS_SLOTS(SIZE)
  PJRT_ABIVERSION_SLOTS(SIZE)
  PJRT_FFI_SLOTS(SIZE)
  if (add_size(sizes, "PJRT_Api", sizeof(PJRT_Api)) ||
      add_size(sizes, "PJRT_ExecuteOptions", sizeof(PJRT_ExecuteOptions)) ||
      add_size(sizes, "PJRT_NamedValue", sizeof(PJRT_NamedValue)) ||
      add_size(sizes, "PJRT_Buffer_MemoryLayout", sizeof(PJRT_Buffer_MemoryLayout)))
    goto failed;
  return sizes;
failed:
  Py_DECREF(sizes);
  return NULL;
}

static PyObject *list_refused(PyObject *module, PyObject *none) {
  (void)module;
  (void)none;
  return refused_functions();
}

static PyMethodDef methods[] = {
    {"close", close_core, METH_NOARGS, NULL},
    {"configure", configure, METH_VARARGS, NULL},
    {"create_table", create_table, METH_VARARGS, NULL},
    {"count_handles", count_handles, METH_NOARGS, NULL},
    {"refused_functions", list_refused, METH_NOARGS, NULL},
    {"struct_sizes", struct_sizes, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "plugrt_sdk.export._core",
    "PJRT's table, handles, events and errors, for the plugins that plugrt_sdk exports.", -1,
    methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__core(void) {
  PyObject *module = PyModule_Create(&definition);
  if (module == NULL)
    return NULL;
  prepare_futures();
  prepare_python();
  if (PyModule_AddStringConstant(module, "SOURCES", core_sources) || add_object_types(module) ||
      add_key_value_type(module)) {
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
