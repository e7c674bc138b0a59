/* Client: the functions of a library that destroy buffers and launch programs. */
#include <string.h>

#include "library/internal.h"

PyTypeObject *Client_Type;
Py_ssize_t calls_under_way, forks;

static void end_note(Client *self, PyObject *answer) {
  if (!answer) deliver((PyObject *)self);
  Py_XDECREF(answer);
}

void client_log_failure(Client *self, const char *function, PJRT_Error *error) {
  end_note(self, PyObject_CallFunction(self->log_failure, "sK", function,
                                       (unsigned long long)(uintptr_t)error));
}

int client_forget_error(Client *self, PJRT_Error *error) {
  if (!error) return 0;
  struct PJRT_Error_Destroy_Args args;
  memset(&args, 0, sizeof args);
  args.struct_size = SIZE_OF_Error_Destroy;
  args.error = error;
  self->destroy_error(&args);
  return 1;
}

void client_destroy_buffer(Client *self, PJRT_Buffer *address) {
  if (self->abandoned) return;
  PyObject *type = NULL, *value, *traceback; /* the current exception; a library may call Python */
  if (PyErr_Occurred()) PyErr_Fetch(&type, &value, &traceback);
  if (self->destroy) {
    struct PJRT_Buffer_Destroy_Args args;
    memset(&args, 0, sizeof args);
    args.struct_size = SIZE_OF_Buffer_Destroy;
    args.buffer = address;
    PJRT_Error *error;
    BEGIN_LIBRARY_CALL
    error = self->destroy(&args);
    END_LIBRARY_CALL
    if (error) client_log_failure(self, "Buffer_Destroy", error);
  } else {
    end_note(self, PyObject_CallFunction(self->free_buffer, "K",
                                         (unsigned long long)(uintptr_t)address));
  }
  if (type) PyErr_Restore(type, value, traceback);
}

static int client_init(Client *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"execute",       "destroy",       "is_deleted",  "put",         "destroy_event",
                          "await_event",   "destroy_error", "ready_event", "is_ready",    "free_buffer",
                          "log_failure",   "pointer",       "size_of_options", NULL};
  unsigned long long execute, destroy, is_deleted, put, destroy_event, await_event, destroy_error,
      ready_event, is_ready;
  PyObject *free_buffer, *log_failure, *pointer;
  Py_ssize_t size_of_options;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KKKKKKKKKOOOn", names, &execute, &destroy, &is_deleted,
                                   &put, &destroy_event, &await_event, &destroy_error, &ready_event,
                                   &is_ready, &free_buffer, &log_failure, &pointer, &size_of_options))
    return -1;
  if (self->pointer) {
    PyErr_SetString(PyExc_TypeError, "a client is made once");
    return -1;
  }
  self->size_of_options = size_of_options;
  SET_FUNCTION(self->execute, execute);
  SET_FUNCTION(self->destroy, destroy);
  SET_FUNCTION(self->is_deleted, is_deleted);
  SET_FUNCTION(self->put, put);
  SET_FUNCTION(self->destroy_event, destroy_event);
  SET_FUNCTION(self->await_event, await_event);
  SET_FUNCTION(self->destroy_error, destroy_error);
  SET_FUNCTION(self->ready_event, ready_event);
  SET_FUNCTION(self->is_ready, is_ready);
  self->free_buffer = Py_NewRef(free_buffer);
  self->log_failure = Py_NewRef(log_failure);
  self->pointer = Py_NewRef(pointer);
  return 0;
}

static int client_traverse(Client *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->free_buffer);
  Py_VISIT(self->log_failure);
  Py_VISIT(self->pointer);
  return 0;
}

/* No tp_clear: buffers in the same garbage need all fields until they are destroyed. The functions
   are passed in, so that they are not in the garbage: they could not be called then. */
static void client_dealloc(PyObject *object) {
  Client *self = (Client *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF(self->free_buffer);
  Py_XDECREF(self->log_failure);
  Py_XDECREF(self->pointer);
  free_object(object);
}

static PyObject *client_refuse(Client *self, PyObject *unused) {
  (void)unused;
  self->refused = 1;
  Py_RETURN_NONE;
}

static PyObject *client_abandon(Client *self, PyObject *unused) {
  (void)unused;
  self->refused = self->abandoned = 1;
  Py_RETURN_NONE;
}

static PyMemberDef client_members[] = {
    {"pending", T_BOOL, offsetof(Client, pending), 0,
     "Whether a library may still read sources of earlier puts."},
    {"size_of_options", T_PYSSIZET, offsetof(Client, size_of_options), 0,
     "Of PJRT_ExecuteOptions, in the header that the library has."},
    {"closed", T_BOOL, offsetof(Client, closed), 0, "Whether nothing is to be put any more."},
    {NULL, 0, 0, 0, NULL},
};
static PyMethodDef client_methods[] = {
    {"refuse", (PyCFunction)client_refuse, METH_NOARGS, "Makes every later launch go to Python."},
    {"abandon", (PyCFunction)client_abandon, METH_NOARGS,
     "Makes every later destructor do nothing as well."},
    {"wait", client_wait, METH_O,
     "wait(buffers and tuples of them): whether all are there; False where Python has to wait."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot client_slots[] = {
    {Py_tp_doc, "The functions of a library by which buffers are made and destroyed, and programs launched."},
    {Py_tp_init, client_init},
    {Py_tp_traverse, client_traverse},
    {Py_tp_dealloc, client_dealloc},
    {Py_tp_methods, client_methods},
    {Py_tp_members, client_members},
    {0, NULL},
};
static PyType_Spec client_spec = {"plugrt._core.Client", sizeof(Client), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, client_slots};

int add_client(PyObject *module) {
  Client_Type = type_of(module, &client_spec);
  return Client_Type ? 0 : -1;
}
