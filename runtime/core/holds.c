/* Holds: the buffers of a launch, kept from being deleted or donated while it is being made.

   The devices of a launch may wait for each other. Where one of them refuses its argument, because
   another thread has taken it since the launch began, the others wait for ever. So a launch on several
   devices holds its arguments on all of them before the first one launches: a deletion meanwhile is
   made when the last hold ends. A launch on any number of devices says which buffers it takes: one on
   several refuses these, and one that would take what is held leaves it, and has it copied.

   Counts change with the GIL held, and nothing here waits: a program's function of Python may delete
   its arguments. */
#include "core.h"

static PyObject *delete_name;

static Buffer *part_of(PyObject *argument, Py_ssize_t parts, Py_ssize_t part) {
  return (Buffer *)(parts > 1 ? PyTuple_GetItem(argument, part) : argument);
}

/* Makes the deletion that came while a buffer was held; what is raised stays. */
static void end_hold(Buffer *buffer) {
  if (buffer->holds || !buffer->doomed) return;
  buffer->doomed = 0;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject *answer = PyObject_CallMethodObjArgs((PyObject *)buffer, delete_name, NULL);
  if (!answer) PyErr_WriteUnraisable((PyObject *)buffer);
  Py_XDECREF(answer);
  PyErr_Restore(type, value, traceback);
}

int hold_arguments(const HeldLaunch *launch) {
  Py_ssize_t parts = launch->parts;
  Py_ssize_t taken = launch->donated ? PyTuple_Size(launch->donated) : 0;
  if (parts == 1 && !taken) return DONE;
  for (Py_ssize_t i = 0; parts > 1 && i < launch->count; i++)
    for (Py_ssize_t part = 0; part < parts; part++)
      if (part_of(launch->arguments[i], parts, part)->takers) return NOT_HERE;
  for (Py_ssize_t i = 0; i < taken; i++) {
    Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GetItem(launch->donated, i));
    for (Py_ssize_t part = 0; number < launch->count && part < parts; part++)
      if (part_of(launch->arguments[number], parts, part)->holds) return NOT_HERE;
  }
  for (Py_ssize_t i = 0; parts > 1 && i < launch->count; i++)
    for (Py_ssize_t part = 0; part < parts; part++)
      part_of(launch->arguments[i], parts, part)->holds++;
  for (Py_ssize_t i = 0; i < taken; i++) {
    Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GetItem(launch->donated, i));
    for (Py_ssize_t part = 0; number < launch->count && part < parts; part++)
      part_of(launch->arguments[number], parts, part)->takers++;
  }
  return DONE;
}

void release_arguments(const HeldLaunch *launch) {
  Py_ssize_t parts = launch->parts;
  Py_ssize_t taken = launch->donated ? PyTuple_Size(launch->donated) : 0;
  for (Py_ssize_t i = 0; i < taken; i++) {
    Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GetItem(launch->donated, i));
    for (Py_ssize_t part = 0; number < launch->count && part < parts; part++)
      part_of(launch->arguments[number], parts, part)->takers--;
  }
  for (Py_ssize_t i = 0; parts > 1 && i < launch->count; i++)
    for (Py_ssize_t part = 0; part < parts; part++)
      part_of(launch->arguments[i], parts, part)->holds--;
  for (Py_ssize_t i = 0; parts > 1 && i < launch->count; i++)
    for (Py_ssize_t part = 0; part < parts; part++)
      end_hold(part_of(launch->arguments[i], parts, part));
}

/* Sets two tuples of buffers; 0 with an exception. */
static int read_held(PyObject *args, PyObject **held, PyObject **taken) {
  if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, held, &PyTuple_Type, taken)) return 0;
  for (Py_ssize_t i = 0, most = PyTuple_Size(*held); i < most + PyTuple_Size(*taken); i++) {
    PyObject *buffer = i < most ? PyTuple_GetItem(*held, i) : PyTuple_GetItem(*taken, i - most);
    if (PyType_IsSubtype(Py_TYPE(buffer), Buffer_Type)) continue;
    PyErr_SetString(PyExc_TypeError, "what a launch holds are buffers");
    return 0;
  }
  return 1;
}

PyObject *hold_buffers(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *held, *taken;
  if (!read_held(args, &held, &taken)) return NULL;
  Py_ssize_t holds = PyTuple_Size(held), takes = PyTuple_Size(taken);
  for (Py_ssize_t i = 0; i < holds; i++)
    if (((Buffer *)PyTuple_GetItem(held, i))->takers) return PyLong_FromSsize_t(i);
  for (Py_ssize_t i = 0; i < takes; i++)
    if (((Buffer *)PyTuple_GetItem(taken, i))->holds) return PyLong_FromSsize_t(holds + i);
  for (Py_ssize_t i = 0; i < holds; i++) ((Buffer *)PyTuple_GetItem(held, i))->holds++;
  for (Py_ssize_t i = 0; i < takes; i++) ((Buffer *)PyTuple_GetItem(taken, i))->takers++;
  return PyLong_FromLong(-1);
}

PyObject *release_buffers(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *held, *taken;
  if (!read_held(args, &held, &taken)) return NULL;
  for (Py_ssize_t i = 0; i < PyTuple_Size(taken); i++) ((Buffer *)PyTuple_GetItem(taken, i))->takers--;
  for (Py_ssize_t i = 0; i < PyTuple_Size(held); i++) ((Buffer *)PyTuple_GetItem(held, i))->holds--;
  for (Py_ssize_t i = 0; i < PyTuple_Size(held); i++) end_hold((Buffer *)PyTuple_GetItem(held, i));
  Py_RETURN_NONE;
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

int add_holds(void) {
  delete_name = PyUnicode_InternFromString("_delete_now");
  return delete_name ? 0 : -1;
}
