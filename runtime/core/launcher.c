/* Launcher: launches one program of a library on one device, with buffers of that library. */
#include <string.h>

#include "core.h"

PyTypeObject *Launcher_Type;

/* Frees an error that nobody can be told of, for want of memory. */
static void drop_error(Launcher *self, PJRT_Error *error) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  client_log_failure(self->executable->client, "LoadedExecutable_Execute", error);
  PyErr_Restore(type, value, traceback);
}

/* Raises what a method of the owner returns for the address of an error and the arguments. */
static void raise_launch_error(Launcher *self, PJRT_Error *error, PyObject *const *arguments,
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

static void raise_missing_result(Launcher *self, PJRT_Buffer *const *made, Py_ssize_t count) {
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

static void raise_error(Launcher *self, PJRT_Error *error) {
  PyObject *found = PyObject_CallMethod(self->owner, "_take_error", "K",
                                        (unsigned long long)(uintptr_t)error);
  if (found) raise_exception(found);
}

/* Makes the donated arguments of a launch unusable: DONE, or FAILED. */
static int mark_donated(Launcher *self, PyObject *const *arguments, Py_ssize_t count) {
  PyObject *donated = self->executable->donated;
  Py_ssize_t known = donated ? PyTuple_Size(donated) : 0;
  int state = donated ? DONE : NOT_HERE;
  for (Py_ssize_t i = 0; i < known && state == DONE; i++) {
    Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GetItem(donated, i));
    PJRT_Error *error = NULL;
    if (number < count)
      state = buffer_donate((Buffer *)arguments[number], self->executable->reason, &error);
    if (error) raise_error(self, error);
  }
  if (state != NOT_HERE) return state;
  PyObject *given = tuple_of(arguments, count);
  PyObject *done = given ? PyObject_CallFunctionObjArgs(self->mark, given, NULL) : NULL;
  Py_XDECREF(given);
  Py_XDECREF(done);
  return done ? DONE : FAILED;
}

/* Makes the objects of the results; all or none. */
static int take_results(Executable *program, PJRT_Buffer *const *made, Py_ssize_t count,
                        PyObject **results) {
  for (Py_ssize_t i = 0; i < count; i++) {
    results[i] = buffer_holding(program->client, made[i], PyTuple_GetItem(program->specs, i));
    if (!results[i]) {
      for (Py_ssize_t j = i + 1; j < count; j++) client_destroy_buffer(program->client, made[j]);
      while (i) Py_DECREF(results[--i]);
      return FAILED;
    }
  }
  return DONE;
}

static int launch(Launcher *self, PyObject *const *arguments, Py_ssize_t count,
                  PJRT_Buffer **taken, PJRT_Buffer **made, PyObject **results) {
  Executable *program = self->executable;
  Client *client = program->client;
  for (Py_ssize_t i = 0; i < count; i++) {
    Buffer *buffer = (Buffer *)arguments[i];
    if (!PyType_IsSubtype(Py_TYPE(arguments[i]), Buffer_Type) || buffer->client != client ||
        !buffer->usable)
      return NOT_HERE;
    taken[i] = buffer->address;
  }
  Py_ssize_t produced = PyTuple_Size(program->specs);
  memset(made, 0, produced * sizeof *made);
  PJRT_ExecuteOptions options;
  memset(&options, 0, sizeof options);
  options.struct_size = SIZE_OF_ExecuteOptions;
  struct PJRT_LoadedExecutable_Execute_Args args;
  memset(&args, 0, sizeof args);
  args.struct_size = SIZE_OF_LoadedExecutable_Execute;
  PJRT_Buffer *const *inputs = taken;
  PJRT_Buffer **outputs = made;
  args.executable = program->address;
  args.options = &options;
  args.argument_lists = &inputs;
  args.num_devices = 1;
  args.num_args = count;
  args.output_lists = &outputs;
  PJRT_Error *error;
  BEGIN_LIBRARY_CALL
  error = client->execute(&args);
  END_LIBRARY_CALL
  if (error) {
    raise_launch_error(self, error, arguments, count);
    return FAILED;
  }
  for (Py_ssize_t i = 0; i < produced; i++) {
    if (!made[i]) {
      raise_missing_result(self, made, produced);
      return FAILED;
    }
  }
  if (take_results(program, made, produced, results) == FAILED) {
    PyObject *type, *value, *traceback; /* the launch took what is donated all the same */
    PyErr_Fetch(&type, &value, &traceback);
    if (self->mark && mark_donated(self, arguments, count) == FAILED) PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return FAILED;
  }
  if (self->mark && mark_donated(self, arguments, count) == FAILED) {
    for (Py_ssize_t i = 0; i < produced; i++) Py_DECREF(results[i]);
    return FAILED;
  }
  return DONE;
}

static int launcher_is_ready(PyObject *object, Py_ssize_t count) {
  Executable *program = ((Launcher *)object)->executable;
  return count == program->arity && !program->client->refused;
}

static int launcher_launch(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                           PyObject **results) {
  Launcher *self = (Launcher *)object;
  if (!launcher_is_ready(object, count)) return NOT_HERE;
  Py_ssize_t produced = self->head.produced;
  PJRT_Buffer *taken[ON_STACK], *made[ON_STACK];
  if (count <= ON_STACK && produced <= ON_STACK)
    return launch(self, arguments, count, taken, made, results);
  PJRT_Buffer **heap = PyMem_Malloc((count + produced) * sizeof *heap);
  if (!heap) {
    PyErr_NoMemory();
    return FAILED;
  }
  int state = launch(self, arguments, count, heap, heap + count, results);
  PyMem_Free(heap);
  return state;
}

static PyObject *launch_in_python(Launcher *self, PyObject *arguments) {
  return PyObject_CallMethod(self->owner, "_launch_unchecked", "(O)", arguments);
}

static PyObject *launch_tuple(Launcher *self, PyObject *given, PyObject **arguments,
                              PyObject **results) {
  Py_ssize_t count = PyTuple_Size(given), produced = self->head.produced;
  for (Py_ssize_t i = 0; i < count; i++) arguments[i] = PyTuple_GetItem(given, i);
  int state = launcher_launch((PyObject *)self, arguments, count, results);
  if (state == NOT_HERE) return launch_in_python(self, given);
  if (state == FAILED) return NULL;
  PyObject *made = PyList_New(produced);
  for (Py_ssize_t i = 0; i < produced; i++) {
    if (made) PyList_SetItem(made, i, results[i]);
    else Py_DECREF(results[i]);
  }
  return made;
}

static PyObject *launcher_call(Launcher *self, PyObject *args, PyObject *kwargs) {
  PyObject *sequence;
  if (kwargs && PyDict_Size(kwargs)) {
    PyErr_SetString(PyExc_TypeError, "a launcher takes the arguments of the launch alone");
    return NULL;
  }
  if (!self->executable) {
    PyErr_SetString(PyExc_TypeError, "this launcher was not made by its class");
    return NULL;
  }
  if (!PyArg_ParseTuple(args, "O", &sequence)) return NULL;
  PyObject *given = PySequence_Tuple(sequence);
  if (!given) return NULL;
  PyObject **room = PyMem_Malloc((PyTuple_Size(given) + self->head.produced + 1) * sizeof *room);
  PyObject *made = NULL;
  if (room) made = launch_tuple(self, given, room, room + PyTuple_Size(given));
  else PyErr_NoMemory();
  PyMem_Free(room);
  Py_DECREF(given);
  return made;
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
  self->executable = (Executable *)Py_NewRef(executable);
  self->owner = Py_NewRef(owner);
  self->mark = mark == Py_None ? NULL : Py_NewRef(mark);
  self->head.produced = PyTuple_Size(self->executable->specs);
  self->head.launch = launcher_launch;
  self->head.is_ready = launcher_is_ready;
  return 0;
}

static int launcher_traverse(Launcher *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->executable);
  Py_VISIT(self->owner);
  Py_VISIT(self->mark);
  return 0;
}

static void launcher_dealloc(PyObject *object) {
  Launcher *self = (Launcher *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF((PyObject *)self->executable);
  Py_XDECREF(self->owner);
  Py_XDECREF(self->mark);
  free_object(object);
}

static PyType_Slot launcher_slots[] = {
    {Py_tp_doc, "Launches a program: launcher(shards of each argument) -> shards of each result."},
    {Py_tp_init, launcher_init},
    {Py_tp_call, launcher_call},
    {Py_tp_traverse, launcher_traverse},
    {Py_tp_dealloc, launcher_dealloc},
    {0, NULL},
};
static PyType_Spec launcher_spec = {"plugrt._core.Launcher", sizeof(Launcher), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, launcher_slots};

int add_launcher(PyObject *module) {
  Launcher_Type = type_of(module, &launcher_spec);
  return Launcher_Type ? 0 : -1;
}
