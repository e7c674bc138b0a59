/* Donated: the donated arguments (`donate_argnums`) of a launch by functions, deleted after the
   launch. A runner uses `Donation` instead: its arrays give up their buffers before the launch. */
#include "launches/internal.h"

int donated_init(Donated *self, PyObject *donated, Py_ssize_t arity, PyObject *is_deleted,
               PyObject *delete) {
  if (PyTuple_Size(donated) && (is_deleted == Py_None || delete == Py_None)) {
    PyErr_SetString(PyExc_ValueError, "a launcher that takes arguments must know how they are deleted");
    return -1;
  }
  donated_drop(self); /* frees the numbers of an earlier call that failed */
  Py_ssize_t count = read_numbers(donated, arity, &self->numbers);
  if (count < 0) return -1;
  self->count = count;
  self->is_deleted = Py_NewRef(is_deleted);
  self->delete = Py_NewRef(delete);
  return 0;
}

int is_donated_once(const Donated *self, PyObject *const *arguments, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < self->count; i++)
    for (Py_ssize_t j = 0, number = self->numbers[i]; j < count; j++)
      if (j != number && arguments[j] == arguments[number]) return 0;
  return 1;
}

int donated_end(const Donated *self, PyObject *const *arguments, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < self->count && self->numbers[i] < count; i++) {
    PyObject *argument = arguments[self->numbers[i]];
    PyObject *answer = PyObject_CallFunctionObjArgs(self->is_deleted, argument, NULL);
    int gone = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (gone < 0) return FAILED;
    if (gone) continue;
    answer = PyObject_CallFunctionObjArgs(self->delete, argument, NULL);
    if (!answer) return FAILED;
    Py_DECREF(answer);
  }
  return DONE;
}

int donated_visit(const Donated *self, visitproc visit, void *arg) {
  Py_VISIT(self->is_deleted);
  Py_VISIT(self->delete);
  return 0;
}

void donated_drop(Donated *self) {
  PyMem_Free(self->numbers);
  self->numbers = NULL;
  self->count = 0;
  Py_CLEAR(self->is_deleted);
  Py_CLEAR(self->delete);
}
