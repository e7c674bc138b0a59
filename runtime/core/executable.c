/* Executable: a program that a library has loaded on one device. */
#include "core.h"

PyTypeObject *Executable_Type;

static int executable_init(Executable *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"client", "address", "pointer", "specs", NULL};
  PyObject *client, *pointer, *specs;
  unsigned long long address;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!KOO!", names, Client_Type, &client, &address,
                                   &pointer, &PyTuple_Type, &specs))
    return -1;
  if (self->client || !((Client *)client)->pointer) {
    PyErr_SetString(PyExc_TypeError, "an executable is made once, of a client that is made");
    return -1;
  }
  self->client = (Client *)Py_NewRef(client);
  self->address = (PJRT_LoadedExecutable *)(uintptr_t)address;
  self->pointer = Py_NewRef(pointer);
  self->specs = Py_NewRef(specs);
  self->arity = -1;
  return 0;
}

static int executable_traverse(Executable *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->client);
  Py_VISIT(self->pointer);
  Py_VISIT(self->specs);
  return 0;
}

static void executable_dealloc(PyObject *object) {
  Executable *self = (Executable *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF((PyObject *)self->client);
  Py_XDECREF(self->pointer);
  Py_XDECREF(self->specs);
  Py_XDECREF(self->donated);
  Py_XDECREF(self->reason);
  free_object(object);
}

/* (numbers, reason): what launches donate from now on is known. */
static PyObject *know_donated(Executable *self, PyObject *args) {
  PyObject *donated, *reason;
  if (!PyArg_ParseTuple(args, "O!U", &PyTuple_Type, &donated, &reason)) return NULL;
  for (Py_ssize_t i = 0; i < PyTuple_Size(donated); i++) {
    if (PyLong_AsSsize_t(PyTuple_GetItem(donated, i)) < 0) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "arguments are numbered from 0");
      return NULL;
    }
  }
  if (!self->donated) { /* once: a launch may be reading it */
    self->reason = Py_NewRef(reason);
    self->donated = Py_NewRef(donated);
  }
  Py_RETURN_NONE;
}

static PyMethodDef executable_methods[] = {
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
    {Py_tp_doc, "A program that is loaded on one device."},
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
