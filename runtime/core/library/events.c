/* Events: the completion events of a launch, one per device. Calling the object waits for all. */
#include <string.h>

#include "library/internal.h"

static PyTypeObject *Events_Type;

typedef struct {
  PyObject_HEAD
  Client *client;
  Py_ssize_t count;
  PJRT_Event **events;
} Events;

PyObject *events_for(Client *client, Py_ssize_t count) {
  allocfunc alloc = (allocfunc)PyType_GetSlot(Events_Type, Py_tp_alloc);
  Events *made = (Events *)alloc(Events_Type, 0);
  if (!made) return NULL;
  made->client = (Client *)Py_NewRef((PyObject *)client);
  made->events = PyMem_Calloc(count, sizeof *made->events);
  if (!made->events) {
    Py_DECREF((PyObject *)made);
    return PyErr_NoMemory();
  }
  made->count = count;
  return (PyObject *)made;
}

PJRT_Event **events_of(PyObject *object) { return ((Events *)object)->events; }

int events_are_set(PyObject *object) {
  Events *self = (Events *)object;
  for (Py_ssize_t i = 0; i < self->count; i++)
    if (!self->events[i]) return 0;
  return 1;
}

/* Ignores an error: reading the results raises it. */
static PyObject *events_call(Events *self, PyObject *args, PyObject *kwargs) {
  if (!PyArg_ParseTuple(args, "") || (kwargs && PyDict_Size(kwargs))) {
    PyErr_SetString(PyExc_TypeError, "waiting for events takes no arguments");
    return NULL;
  }
  Client *client = self->client;
  BEGIN_LIBRARY_CALL
  for (Py_ssize_t i = 0; i < self->count; i++) {
    struct PJRT_Event_Await_Args args;
    memset(&args, 0, sizeof args);
    args.struct_size = SIZE_OF_Event_Await;
    args.event = self->events[i];
    if (args.event) client_forget_error(client, client->await_event(&args));
  }
  END_LIBRARY_CALL
  Py_RETURN_NONE;
}

static int events_traverse(Events *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->client);
  return 0;
}

static void destroy_all(Events *self) {
  Client *client = self->client;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  BEGIN_LIBRARY_CALL
  for (Py_ssize_t i = 0; i < self->count; i++) {
    struct PJRT_Event_Destroy_Args args;
    memset(&args, 0, sizeof args);
    args.struct_size = SIZE_OF_Event_Destroy;
    args.event = self->events[i];
    if (args.event) client_forget_error(client, client->destroy_event(&args));
  }
  END_LIBRARY_CALL
  PyErr_Restore(type, value, traceback);
}

static void events_dealloc(PyObject *object) {
  Events *self = (Events *)object;
  PyObject_GC_UnTrack(object);
  if (self->events && !self->client->abandoned) destroy_all(self);
  PyMem_Free(self->events);
  Py_XDECREF((PyObject *)self->client);
  free_object(object);
}

static PyType_Slot events_slots[] = {
    {Py_tp_doc, "The end of a launch on each of its devices: events() waits for it."},
    {Py_tp_call, events_call},
    {Py_tp_traverse, events_traverse},
    {Py_tp_dealloc, events_dealloc},
    {0, NULL},
};
static PyType_Spec events_spec = {
    "plugrt._core.Events", sizeof(Events), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, events_slots};

int add_events(PyObject *module) {
  Events_Type = type_of(module, &events_spec);
  return Events_Type ? 0 : -1;
}
