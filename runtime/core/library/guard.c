/* Python's access to trampolines.cc, if there is a C++ compiler. */
#ifdef PLUGRT_CATCHES
#include "library/library.h"
#include "library/guard.h"
#include <stdlib.h>

void report_caught(const char *text) {
  if (!Py_IsInitialized()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  Raised raised = set_aside();
  PyErr_SetString(PyExc_RuntimeError, text);
  put_back_alone(raised, NULL);
  PyGILState_Release(state);
}

PyObject *guard(PyObject *module, PyObject *args) {
  (void)module;
  unsigned long long address;
  int kind;
  const char *label;
  if (!PyArg_ParseTuple(args, "Kis", &address, &kind, &label)) return NULL;
  char *kept = strdup(label); /* kept for ever, as the library is */
  if (!kept) return PyErr_NoMemory();
  void *found = guarded_function((void *)(uintptr_t)address, (enum guarded_kind)kind, kept);
  if (found) return PyLong_FromUnsignedLongLong((uintptr_t)found);
  free(kept);
  Py_RETURN_NONE;
}

PyObject *take_caught(PyObject *module, PyObject *address) {
  (void)module;
  unsigned long long error = PyLong_AsUnsignedLongLong(address);
  if (PyErr_Occurred()) return NULL;
  const char *text = caught_text((void *)(uintptr_t)error);
  if (!text) Py_RETURN_NONE;
  PyObject *made = PyUnicode_DecodeUTF8(text, strlen(text), "replace");
  forget_caught((void *)(uintptr_t)error);
  return made;
}
#endif
