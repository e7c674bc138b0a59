/* Errors of launches: Python makes the exceptions and their messages. */
#include "launches/internal.h"
#include "library/library.h"

/* Frees an error that cannot be reported because memory ran out. */
static void drop_error(Launcher *self, PJRT_Error *error) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  client_log_failure(self->executable->client, "LoadedExecutable_Execute", error);
  PyErr_Restore(type, value, traceback);
}

void raise_launch_error(Launcher *self, PJRT_Error *error, PyObject *const *arguments,
                        Py_ssize_t count) {
  PyObject *given = tuple_of(arguments, count);
  if (!given) {
    drop_error(self, error);
    return;
  }
  PyObject *found = PyObject_CallMethod(self->owner, "_launch_error", "KO",
                                        (unsigned long long)(uintptr_t)error, given);
  Py_DECREF(given);
  if (found) raise_exception(found);
}

void raise_missing_result(Launcher *self, PJRT_Buffer *const *made, Py_ssize_t count) {
  PyObject *addresses = PyList_New(count);
  for (Py_ssize_t i = 0; addresses && i < count; i++) {
    PyObject *address = PyLong_FromUnsignedLongLong((uintptr_t)made[i]);
    if (!address) Py_CLEAR(addresses);
    else PyList_SetItem(addresses, i, address);
  }
  if (!addresses) {
    for (Py_ssize_t i = 0; i < count; i++)
      if (made[i]) client_destroy_buffer(self->executable->client, made[i]);
    return;
  }
  PyObject *found = PyObject_CallMethod(self->owner, "_missing_result", "(O)", addresses);
  Py_DECREF(addresses);
  if (found) raise_exception(found);
}

void raise_missing_event(Launcher *self) {
  PyObject *found = PyObject_CallMethod(self->owner, "_missing_event", NULL);
  if (found) raise_exception(found);
}
