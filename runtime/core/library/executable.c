/* Executable: a program that a library has loaded on its devices, and its launches. XLA's CPU
   client runs a launch on several devices with a thread for each part. If the parts exchange no
   data and run faster than a thread starts, they are launched one after the other instead. */
#include <string.h>

#include "library/internal.h"

PyTypeObject *Executable_Type;

static int executable_init(Executable *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"client", "address", "pointer", "parts", "specs", NULL};
  PyObject *client, *pointer, *specs;
  unsigned long long address;
  Py_ssize_t parts;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!KOnO!", names, Client_Type, &client, &address,
                                   &pointer, &parts, &PyTuple_Type, &specs))
    return -1;
  if (parts < 1 || PyTuple_Size(specs) % parts) {
    PyErr_SetString(PyExc_ValueError, "an executable has the same results on each of its devices");
    return -1;
  }
  if (self->client || !((Client *)client)->pointer) {
    PyErr_SetString(PyExc_TypeError, "an executable is made once, of a client that is made");
    return -1;
  }
  self->client = (Client *)Py_NewRef(client);
  self->address = (PJRT_LoadedExecutable *)(uintptr_t)address;
  self->pointer = Py_NewRef(pointer);
  self->specs = Py_NewRef(specs);
  self->parts = parts;
  self->arity = -1;
  return 0;
}

static int executable_traverse(Executable *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->client);
  Py_VISIT(self->pointer);
  Py_VISIT(self->specs);
  Py_VISIT(self->ids);
  return 0;
}

static void executable_dealloc(PyObject *object) {
  Executable *self = (Executable *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF((PyObject *)self->client);
  Py_XDECREF(self->pointer);
  Py_XDECREF(self->specs);
  Py_XDECREF(self->ids);
  PyMem_Free(self->devices);
  Py_XDECREF(self->donated);
  Py_XDECREF(self->reason);
  free_object(object);
}

/* (numbers, reason): records which arguments launches donate. */
static PyObject *know_donated(Executable *self, PyObject *args) {
  PyObject *donated, *reason;
  if (!PyArg_ParseTuple(args, "O!U", &PyTuple_Type, &donated, &reason)) return NULL;
  for (Py_ssize_t i = 0; i < PyTuple_Size(donated); i++) {
    if (PyLong_AsSsize_t(PyTuple_GetItem(donated, i)) < 0) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "arguments are numbered from 0");
      return NULL;
    }
  }
  if (!self->donated) { /* only once: a launch may be reading it */
    self->reason = Py_NewRef(reason);
    self->donated = Py_NewRef(donated);
  }
  Py_RETURN_NONE;
}

static PyObject *know_ids(Executable *self, PyObject *ids) {
  if (!PyIter_Check(ids)) {
    PyErr_SetString(PyExc_TypeError, "the ids of launches are an iterator");
    return NULL;
  }
  if (!self->ids) self->ids = Py_NewRef(ids);
  Py_RETURN_NONE;
}

static PyObject *launch_one_by_one(Executable *self, PyObject *addresses) {
  if (!PyTuple_Check(addresses) || PyTuple_Size(addresses) != self->parts || self->devices) {
    PyErr_SetString(PyExc_TypeError, "the addresses of all devices are given once, in a tuple");
    return NULL;
  }
  PJRT_Device **devices = PyMem_Calloc(self->parts, sizeof *devices);
  if (!devices) return PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < self->parts && !PyErr_Occurred(); i++)
    devices[i] =
        (PJRT_Device *)(uintptr_t)PyLong_AsUnsignedLongLong(PyTuple_GetItem(addresses, i));
  if (PyErr_Occurred()) {
    PyMem_Free(devices);
    return NULL;
  }
  self->devices = devices;
  self->order = UNTRIED;
  Py_RETURN_NONE;
}

/* Launches one part on a device, or all parts if the device is NULL. Needs no GIL. */
static PJRT_Error *execute(const Executable *self, int id, const Execution *execution,
                           Py_ssize_t first, size_t parts, PJRT_Device *device) {
  PJRT_ExecuteOptions options;
  memset(&options, 0, sizeof options);
  options.struct_size = self->client->size_of_options;
  options.launch_id = id;
  struct PJRT_LoadedExecutable_Execute_Args args;
  memset(&args, 0, sizeof args);
  args.struct_size = SIZE_OF_LoadedExecutable_Execute;
  args.executable = self->address;
  args.options = &options;
  args.argument_lists = (PJRT_Buffer *const *const *)execution->arguments + first;
  args.num_devices = parts;
  args.num_args = execution->count;
  args.output_lists = execution->results + first;
  args.device_complete_events = execution->events ? execution->events + first : NULL;
  args.execute_device = device;
  return self->client->execute(&args);
}

/* As `executable_run`, one part after the other; NOT_HERE if the library does not support it. */
static int run_one_by_one(Executable *self, int id, const Execution *execution,
                          PJRT_Error **error) {
  Py_ssize_t done = 0;
  int refused;
  BEGIN_LIBRARY_CALL
  do *error = execute(self, id, execution, done, 1, self->devices[done]);
  while (!*error && ++done < self->parts);
  refused = *error && !done && self->order == UNTRIED;
  if (refused) client_forget_error(self->client, *error);
  END_LIBRARY_CALL
  if (refused) {
    *error = NULL;
    self->order = TOGETHER;
    return NOT_HERE;
  }
  if (done && self->order == UNTRIED) self->order = ONE_BY_ONE;
  return *error ? FAILED : DONE;
}

int executable_run(Executable *self, const Execution *execution, PJRT_Error **error) {
  int id = 0;
  if (self->ids) {
    PyObject *number = PyIter_Next(self->ids);
    id = number ? (int)PyLong_AsLong(number) : 0;
    Py_XDECREF(number);
    if (PyErr_Occurred()) return FAILED;
  }
  int state = self->order == TOGETHER ? NOT_HERE : run_one_by_one(self, id, execution, error);
  if (state != NOT_HERE) return state;
  BEGIN_LIBRARY_CALL
  *error = execute(self, id, execution, 0, self->parts, NULL);
  END_LIBRARY_CALL
  return *error ? FAILED : DONE;
}

int executable_mark_donated(Executable *self, PyObject *const *arguments, Py_ssize_t count) {
  if (!self->donated) return NOT_HERE;
  for (Py_ssize_t i = 0; i < PyTuple_Size(self->donated); i++) {
    Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GetItem(self->donated, i));
    for (Py_ssize_t part = 0; number < count && part < self->parts; part++) {
      PyObject *buffer = arguments[number];
      if (self->parts > 1) buffer = PyTuple_GetItem(buffer, part);
      if (buffer_donate((Buffer *)buffer, self->reason) == NOT_HERE) return NOT_HERE;
    }
  }
  return DONE;
}

static PyMethodDef executable_methods[] = {
    {"know_ids", (PyCFunction)know_ids, METH_O, "know_ids(iterator): numbers the launches."},
    {"launch_one_by_one", (PyCFunction)launch_one_by_one, METH_O,
     "launch_one_by_one(addresses of the devices): launches one part after the other."},
    {"know_donated", (PyCFunction)know_donated, METH_VARARGS,
     "know_donated(numbers, reason): says which arguments launches take, and why they are gone."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef executable_members[] = {
    {"arity", T_INT, offsetof(Executable, arity), 0,
     "The number of arguments that launches take without a check; -1: Python launches."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot executable_slots[] = {
    {Py_tp_doc, "A program that is loaded on its devices."},
    {Py_tp_init, executable_init},
    {Py_tp_traverse, executable_traverse},
    {Py_tp_dealloc, executable_dealloc},
    {Py_tp_members, executable_members},
    {Py_tp_methods, executable_methods},
    {0, NULL},
};
static PyType_Spec executable_spec = {"plugrt._core.Executable", sizeof(Executable), 0,
                                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, executable_slots};

int add_executable(PyObject *module) {
  Executable_Type = type_of(module, &executable_spec);
  return Executable_Type ? 0 : -1;
}
