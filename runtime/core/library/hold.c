/* Workaround for xla-launch-holds */
/* Hold: protects the buffers of a launch from deletion and donation while the launch is being made.

   The devices of a launch may wait for each other. If one device refuses its argument because
   another thread donated it after the launch began, the other devices wait for ever. On one device,
   too, a launch that uses a buffer and one that donates it may both wait for ever (xla-cpu-pjrt
   0.0.1, jaxlib 0.10).

   So a launch holds its arguments on all devices before it launches on the first. A deletion
   meanwhile is done when the last hold ends. A launch also records which buffers it donates: other
   launches refuse these. A launch that would donate a held buffer is refused, and Python copies the
   buffer. A read holds its buffer in the same way.

   Counts change with the GIL held, and nothing here waits: a Python callback of a program may
   delete the program's arguments. */
#include "library/internal.h"

static PyObject *delete_name;

static Buffer *part_of(PyObject *argument, Py_ssize_t parts, Py_ssize_t part) {
  return (Buffer *)(parts > 1 ? PyTuple_GetItem(argument, part) : argument);
}

/* Does the deletion that was requested while the buffer was held. The current exception stays set,
   unless the deletion is interrupted: FAILED with the interrupt. */
static int delete_doomed(Buffer *buffer) {
  if (buffer->holds || !buffer->doomed) return DONE;
  buffer->doomed = 0;
  Raised raised = set_aside();
  PyObject *answer = PyObject_CallMethodObjArgs((PyObject *)buffer, delete_name, NULL);
  int state = is_interrupted() ? FAILED : DONE;
  Py_XDECREF(answer);
  put_back(raised, (PyObject *)buffer);
  return state;
}

int buffer_end_hold(Buffer *buffer) {
  buffer->holds--;
  return delete_doomed(buffer);
}

/* Counts the launch among the uses of its arguments, by 1 or -1. */
static void count_uses(const HeldLaunch *launch, int by) {
  Py_ssize_t parts = launch->parts;
  Py_ssize_t taken = launch->donated ? PyTuple_Size(launch->donated) : 0;
  for (Py_ssize_t i = 0; i < launch->count; i++)
    for (Py_ssize_t part = 0; part < parts; part++)
      part_of(launch->arguments[i], parts, part)->holds += by;
  for (Py_ssize_t i = 0; i < taken; i++) {
    Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GetItem(launch->donated, i));
    for (Py_ssize_t part = 0; number < launch->count && part < parts; part++)
      part_of(launch->arguments[number], parts, part)->takers += by;
  }
}

int hold_arguments(const HeldLaunch *launch) {
  Py_ssize_t parts = launch->parts;
  Py_ssize_t taken = launch->donated ? PyTuple_Size(launch->donated) : 0;
  for (Py_ssize_t i = 0; i < launch->count; i++)
    for (Py_ssize_t part = 0; part < parts; part++)
      if (part_of(launch->arguments[i], parts, part)->takers) return NOT_HERE;
  for (Py_ssize_t i = 0; i < taken; i++) {
    Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GetItem(launch->donated, i));
    for (Py_ssize_t part = 0; number < launch->count && part < parts; part++)
      if (part_of(launch->arguments[number], parts, part)->holds) return NOT_HERE;
  }
  count_uses(launch, 1);
  return DONE;
}

int release_arguments(const HeldLaunch *launch) {
  Py_ssize_t parts = launch->parts;
  count_uses(launch, -1);
  int state = DONE;
  for (Py_ssize_t i = 0; i < launch->count; i++)
    for (Py_ssize_t part = 0; part < parts; part++)
      if (delete_doomed(part_of(launch->arguments[i], parts, part)) == FAILED) state = FAILED;
  return state;
}

static Buffer *buffer_in(PyObject *buffers, Py_ssize_t i) {
  return (Buffer *)PyTuple_GetItem(buffers, i);
}

static int are_buffers(PyObject *given) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(given); i++) {
    if (PyType_IsSubtype(Py_TYPE(PyTuple_GetItem(given, i)), Buffer_Type)) continue;
    PyErr_SetString(PyExc_TypeError, "what a launch holds are buffers");
    return 0;
  }
  return 1;
}

/* The index in both of the buffer that refuses; -1 if all are held and marked as donated now. */
static Py_ssize_t hold(PyObject *held, PyObject *taken) {
  Py_ssize_t holds = PyTuple_Size(held), takes = PyTuple_Size(taken);
  for (Py_ssize_t i = 0; i < holds; i++)
    if (buffer_in(held, i)->takers) return i;
  for (Py_ssize_t i = 0; i < takes; i++)
    if (buffer_in(taken, i)->holds) return holds + i;
  for (Py_ssize_t i = 0; i < holds; i++) buffer_in(held, i)->holds++;
  for (Py_ssize_t i = 0; i < takes; i++) buffer_in(taken, i)->takers++;
  return -1;
}

static int release(PyObject *held, PyObject *taken) {
  int state = DONE;
  for (Py_ssize_t i = 0; i < PyTuple_Size(taken); i++) buffer_in(taken, i)->takers--;
  for (Py_ssize_t i = 0; i < PyTuple_Size(held); i++) buffer_in(held, i)->holds--;
  for (Py_ssize_t i = 0; i < PyTuple_Size(held); i++)
    if (delete_doomed(buffer_in(held, i)) == FAILED) state = FAILED;
  return state;
}

/* One function of C does all: an interrupt comes before it, in the function that it calls, or after
   it. */
PyObject *call_holding(PyObject *module, PyObject *args) {
  (void)module;
  Py_ssize_t given = PyTuple_Size(args);
  PyObject *held, *taken, *function, *own = PyTuple_GetSlice(args, 0, 3);
  int read = own && PyArg_ParseTuple(own, "O!O!O", &PyTuple_Type, &held, &PyTuple_Type, &taken, &function);
  Py_XDECREF(own); /* the arguments have references to these as well */
  if (!read || !are_buffers(held) || !are_buffers(taken)) return NULL;
  PyObject *rest = PyTuple_GetSlice(args, 3, given);
  if (!rest) return NULL;
  Py_ssize_t refused = hold(held, taken);
  PyObject *made = refused < 0 ? PyObject_CallObject(function, rest) : Py_NewRef(Py_None);
  Py_DECREF(rest);
  if (refused < 0 && release(held, taken) == FAILED) Py_CLEAR(made);
  return made ? Py_BuildValue("(nN)", refused, made) : NULL;
}

PyObject *delete_later(PyObject *module, PyObject *object) {
  (void)module;
  if (!PyType_IsSubtype(Py_TYPE(object), Buffer_Type)) {
    PyErr_SetString(PyExc_TypeError, "what is deleted is a buffer");
    return NULL;
  }
  Buffer *buffer = (Buffer *)object;
  if (!buffer->holds) Py_RETURN_FALSE;
  buffer->doomed = 1;
  Py_RETURN_TRUE;
}

int add_hold(void) {
  delete_name = PyUnicode_InternFromString("_delete_now");
  return delete_name ? 0 : -1;
}
