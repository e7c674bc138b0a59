/* Launcher: launches one program of a library on its devices, with buffers of that library. On one
   device each argument and result is a buffer; on several devices it is a tuple of buffers. */
#include <string.h>

#include "launches/internal.h"
#include "library/library.h"

/* Reads the addresses of the arguments on each device: DONE, or NOT_HERE. */
static int take_arguments(Launcher *self, PyObject *const *arguments, const Execution *execution) {
  Executable *program = self->executable;
  for (size_t i = 0; i < execution->count; i++) {
    PyObject *shards = arguments[i];
    if (program->parts > 1 && (!PyTuple_CheckExact(shards) || PyTuple_Size(shards) != program->parts))
      return NOT_HERE;
    for (Py_ssize_t part = 0; part < program->parts; part++) {
      PyObject *buffer = program->parts > 1 ? PyTuple_GetItem(shards, part) : shards;
      execution->arguments[part][i] = buffer_to_launch(buffer, program->client);
      if (!execution->arguments[part][i]) return NOT_HERE;
    }
  }
  return DONE;
}

/* Whether a program on several devices may donate a buffer that is passed twice. Python checks that
   and refuses. */
static int may_repeat(Launcher *self, const Execution *execution) {
  if (!self->mark || self->executable->parts == 1) return 0;
  for (Py_ssize_t part = 0; part < self->executable->parts; part++) {
    PJRT_Buffer **given = execution->arguments[part];
    for (size_t i = 1; i < execution->count; i++)
      for (size_t j = 0; j < i; j++)
        if (given[i] == given[j]) return 1;
  }
  return 0;
}

/* Launches with arguments that are held. */
static int launch_held(Launcher *self, PyObject *const *arguments, const Execution *execution,
                       PJRT_Buffer **made, void **room, PyObject **results) {
  Executable *program = self->executable;
  Py_ssize_t parts = program->parts, produced = self->head.produced, count = execution->count;
  PJRT_Error *error = NULL;
  int state = executable_run(program, execution, &error);
  if (state == DONE)
    return finish_launch(self, arguments, count, made, (PyObject **)room + 2 * parts, results);
  /* results of the parts before the one that failed */
  for (Py_ssize_t i = 0; i < parts * produced; i++)
    if (made[i]) client_destroy_buffer(program->client, made[i]);
  if (error) raise_launch_error(self, error, arguments, count);
  return FAILED;
}

/* Launches; `room` has `words_for` words. `events` is NULL if no events are requested. */
static int launch(Launcher *self, PyObject *const *arguments, Py_ssize_t count, void **room,
                  PJRT_Event **events, PyObject **results) {
  Executable *program = self->executable;
  Py_ssize_t parts = program->parts, produced = self->head.produced;
  PJRT_Buffer **taken = (PJRT_Buffer **)room + 3 * parts, **made = taken + parts * count;
  Execution execution = {(PJRT_Buffer ***)room, (PJRT_Buffer ***)room + parts, events, count};
  for (Py_ssize_t part = 0; part < parts; part++) {
    execution.arguments[part] = taken + part * count;
    execution.results[part] = made + part * produced;
  }
  if (take_arguments(self, arguments, &execution) == NOT_HERE || may_repeat(self, &execution))
    return NOT_HERE;
  HeldLaunch held = {arguments, count, parts, program->donated};
  if (hold_arguments(&held) == NOT_HERE) return NOT_HERE;
  memset(made, 0, parts * produced * sizeof *made);
  int state = launch_held(self, arguments, &execution, made, room, results);
  if (release_arguments(&held) == DONE || state == FAILED) return state;
  drop_results(self, results);
  return FAILED;
}

static int launcher_is_ready(PyObject *object, Py_ssize_t count) {
  Executable *program = ((Launcher *)object)->executable;
  return count == program->arity && !program->client->refused;
}

static int launch_in_room(Launcher *self, PyObject *const *arguments, Py_ssize_t count,
                          PJRT_Event **events, PyObject **results) {
  Py_ssize_t words = self->executable->parts * (3 + count + self->head.produced);
  void *on_stack[3 * ON_STACK], **room = ROOM(on_stack, words);
  int state = room ? launch(self, arguments, count, room, events, results) : FAILED;
  if (room != on_stack) PyMem_Free(room);
  return state;
}

static int launcher_launch(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                           PyObject **results, PyObject **wait) {
  Launcher *self = (Launcher *)object;
  if (!launcher_is_ready(object, count)) return NOT_HERE;
  if (!wait) return launch_in_room(self, arguments, count, NULL, results);
  PyObject *events = events_for(self->executable->client, self->executable->parts);
  if (!events) return FAILED;
  int state = launch_in_room(self, arguments, count, events_of(events), results);
  if (state == DONE && !events_are_set(events)) {
    drop_results(self, results);
    raise_missing_event(self);
    state = FAILED;
  }
  if (state == DONE) *wait = events;
  else Py_DECREF(events);
  return state;
}

static PyObject *launch_in_python(PyObject *object, PyObject *arguments) {
  Launcher *self = (Launcher *)object;
  const char *method = self->executable->parts == 1 ? "_launch_unchecked" : "execute";
  return PyObject_CallMethod(self->owner, method, "(O)", arguments);
}

static int launcher_init(Launcher *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"executable", "owner", "mark", NULL};
  PyObject *executable, *owner, *mark;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO", names, Executable_Type, &executable,
                                   &owner, &mark))
    return -1;
  if (self->executable || !((Executable *)executable)->specs) {
    PyErr_SetString(PyExc_TypeError, "a launcher is made once, of an executable that is made");
    return -1;
  }
  PyObject *kept[] = {executable, owner, none_as_null(mark)};
  keep_objects(&self->head, kept, 3);
  self->head.produced = PyTuple_Size(self->executable->specs) / self->executable->parts;
  self->head.launch = launcher_launch;
  self->head.is_ready = launcher_is_ready;
  self->head.in_python = launch_in_python;
  self->head.gives_wait = 1;
  return 0;
}

int add_launcher(PyObject *module) {
  return add_launching(module, "plugrt._core.Launcher",
                       "Launches a program: launcher(shards of each argument) -> shards of each result.",
                       sizeof(Launcher), (initproc)launcher_init, 1);
}
