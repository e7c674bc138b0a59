/* The outcome of a successful launch: makes its results and marks its donated arguments. */
#include "launches/internal.h"
#include "library/library.h"

static int mark_once(Launcher *self, PyObject *const *arguments, Py_ssize_t count) {
  if (!self->mark) return DONE;
  if (executable_mark_donated(self->executable, arguments, count) == DONE) return DONE;
  PyObject *given = tuple_of(arguments, count);
  PyObject *done = given ? PyObject_CallFunctionObjArgs(self->mark, given, NULL) : NULL;
  Py_XDECREF(given);
  Py_XDECREF(done);
  return done ? DONE : FAILED;
}

/* Marks the donated arguments of a launch unusable, even if interrupted: DONE, or FAILED. */
static int mark_donated(Launcher *self, PyObject *const *arguments, Py_ssize_t count) {
  int state = mark_once(self, arguments, count);
  if (state == DONE || !is_interrupted()) return state;
  Raised interrupt = set_aside();
  mark_once(self, arguments, count); /* arguments that are marked already stay marked */
  put_back(interrupt, (PyObject *)self);
  return FAILED;
}

/* Makes the objects of the results, all or none; `room` is for the parts of one result. */
static int take_results(Launcher *self, PJRT_Buffer **made, PyObject **room, PyObject **results) {
  Executable *program = self->executable;
  Py_ssize_t produced = self->head.produced, parts = program->parts, result = 0, part = 0;
  for (; result < produced; result++) {
    for (part = 0; part < parts; part++) {
      Py_ssize_t at = part * produced + result;
      room[part] = buffer_holding(program->client, made[at], PyTuple_GetItem(program->specs, at));
      made[at] = NULL;
      if (!room[part]) break;
    }
    if (part < parts) break;
    results[result] = parts == 1 ? room[0] : tuple_of(room, parts);
    if (!results[result]) break;
    for (Py_ssize_t i = 0; parts > 1 && i < parts; i++) Py_DECREF(room[i]);
  }
  if (result == produced) return DONE;
  while (part) Py_DECREF(room[--part]);
  while (result) Py_DECREF(results[--result]);
  for (Py_ssize_t i = 0; i < parts * produced; i++)
    if (made[i]) client_destroy_buffer(program->client, made[i]);
  return FAILED;
}

void drop_results(Launcher *self, PyObject **results) {
  for (Py_ssize_t i = 0; i < self->head.produced; i++) Py_DECREF(results[i]);
}

/* Marks the donated arguments while an exception is set. */
static void mark_donated_anyway(Launcher *self, PyObject *const *arguments, Py_ssize_t count) {
  Raised raised = set_aside();
  mark_donated(self, arguments, count);
  put_back(raised, (PyObject *)self);
}

int finish_launch(Launcher *self, PyObject *const *arguments, Py_ssize_t count, PJRT_Buffer **made,
                  PyObject **room, PyObject **results) {
  Py_ssize_t produced = self->head.produced, all = produced * self->executable->parts, i = 0;
  while (i < all && made[i]) i++;
  if (i < all) raise_missing_result(self, made, all);
  if (i < all || take_results(self, made, room, results) == FAILED) {
    mark_donated_anyway(self, arguments, count);
    return FAILED;
  }
  if (mark_donated(self, arguments, count) == DONE) return DONE;
  drop_results(self, results);
  return FAILED;
}
