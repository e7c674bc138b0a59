/* Buffer: the base class of `plugrt.capi.buffers.buffer.Buffer`, with the address and type of a
   PJRT_Buffer. An object of exactly that class owns the PJRT_Buffer and destroys it when it is
   freed. Objects of derived classes have an owner in Python. */
#include <string.h>

#include "library/internal.h"

PyTypeObject *Buffer_Type;
static PyTypeObject *buffer_class;
static Spares spares;
static PyObject *to_pointer, *to_address; /* convert between addresses and cffi's pointers */

PyObject *buffer_holding(Client *client, PJRT_Buffer *address, PyObject *spec) {
  Buffer *made = (Buffer *)spares_make(&spares);
  if (!made) {
    client_destroy_buffer(client, address);
    return NULL;
  }
  made->address = address;
  made->usable = 1;
  made->spec = Py_NewRef(spec);
  made->client = (Client *)Py_NewRef((PyObject *)client);
  return (PyObject *)made;
}

PJRT_Buffer *buffer_to_launch(PyObject *object, const Client *client) {
  Buffer *buffer = (Buffer *)object;
  PyTypeObject *type = Py_TYPE(object);
  if (type != buffer_class && !PyType_IsSubtype(type, Buffer_Type)) return NULL;
  return buffer->client == client && buffer->usable ? buffer->address : NULL;
}

PyObject *buffer_share(Buffer *self) {
  if (Py_TYPE((PyObject *)self) != buffer_class) return NULL;
  if (!self->view_owner) self->view_owner = owner_for(self->client, self->address);
  return Py_XNewRef(self->view_owner);
}

int buffer_donate(Buffer *self, PyObject *reason) {
  Client *client = self->client;
  if (!self->usable) return DONE; /* another thread deleted it */
  if (!client->is_deleted) return NOT_HERE;
  struct PJRT_Buffer_IsDeleted_Args args;
  memset(&args, 0, sizeof args);
  args.struct_size = SIZE_OF_Buffer_IsDeleted;
  args.buffer = self->address;
  PJRT_Error *error;
  BEGIN_LIBRARY_CALL
  error = client->is_deleted(&args);
  END_LIBRARY_CALL
  /* Python asks the library again, and explains the error */
  if (client_forget_error(client, error)) return NOT_HERE;
  if (!args.is_deleted) return NOT_HERE; /* its memory was in use: Python deletes it */
  self->usable = 0;
  PyObject *old = self->reason;
  self->reason = Py_NewRef(reason);
  Py_XDECREF(old);
  return DONE;
}

static PyObject *make_pointer(Buffer *self) {
  if (!self->pointer) {
    PyObject *made =
        PyObject_CallFunction(to_pointer, "K", (unsigned long long)(uintptr_t)self->address);
    if (!made) return NULL;
    if (self->pointer)
      Py_DECREF(made); /* another thread was faster */
    else
      self->pointer = made;
  }
  return Py_NewRef(self->pointer);
}

static PyObject *get_pointer(Buffer *self, void *unused) {
  (void)unused;
  if (!self->usable) Py_RETURN_NONE;
  return make_pointer(self);
}

static PyObject *get_dead(Buffer *self, void *unused) {
  (void)unused;
  return make_pointer(self);
}

static int keep_dead(Buffer *self, PyObject *value, void *unused) {
  (void)self;
  (void)value; /* the value is the pointer, which is stored already */
  (void)unused;
  return 0;
}

static int set_pointer(Buffer *self, PyObject *value, void *unused) {
  (void)unused;
  /* deleted or donated; the pointer keeps its memory until then */
  if (!value || value == Py_None) {
    self->usable = 0;
    return 0;
  }
  PyObject *number = PyObject_CallFunctionObjArgs(to_address, value, NULL);
  if (!number) return -1;
  unsigned long long address = PyLong_AsUnsignedLongLong(number);
  Py_DECREF(number);
  if (PyErr_Occurred()) return -1;
  PyObject *old = self->pointer;
  self->address = (PJRT_Buffer *)(uintptr_t)address;
  self->pointer = Py_NewRef(value);
  self->usable = address != 0;
  self->awaited = 0;
  Py_XDECREF(old);
  return 0;
}

static PyObject *get_spec(Buffer *self, void *unused) {
  (void)unused;
  if (self->spec) return Py_NewRef(self->spec);
  PyErr_SetString(PyExc_AttributeError, "_spec");
  return NULL;
}

static int set_spec(Buffer *self, PyObject *value, void *unused) {
  (void)unused;
  if (!value) {
    PyErr_SetString(PyExc_AttributeError, "_spec cannot be deleted");
    return -1;
  }
  PyObject *handle = PyObject_GetAttrString(value, "handle");
  PyObject *client = handle ? PyObject_GetAttrString(handle, "core") : NULL;
  Py_XDECREF(handle);
  if (!client) return -1;
  if (Py_TYPE(client) != Client_Type) {
    PyErr_SetString(PyExc_TypeError, "the core of a client's handle is a plugrt._core.Client");
    Py_DECREF(client);
    return -1;
  }
  PyObject *old = self->spec, *old_client = (PyObject *)self->client;
  self->spec = Py_NewRef(value);
  self->client = (Client *)client;
  Py_XDECREF(old);
  Py_XDECREF(old_client);
  return 0;
}

static int buffer_traverse(Buffer *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->pointer);
  Py_VISIT(self->spec);
  Py_VISIT(self->client);
  return 0;
}

/* No tp_clear: a finalizer in the same garbage has to be able to use the buffer, and each cycle
   through a spec has another member that can be cleared. */
static void buffer_dealloc(PyObject *object) {
  Buffer *self = (Buffer *)object;
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  if (type == buffer_class && self->address && self->client && !self->view_owner)
    client_destroy_buffer(self->client, self->address);
  Py_XDECREF(self->view_owner);
  Py_XDECREF(self->pointer);
  Py_XDECREF(self->spec);
  Py_XDECREF((PyObject *)self->client);
  Py_XDECREF(self->reason);
  if (type == buffer_class) spares_free(&spares, object);
  else free_object(object);
}

static PyGetSetDef buffer_getset[] = {
    {"_pointer", (getter)get_pointer, (setter)set_pointer, "The PJRT_Buffer*; None once deleted.",
     NULL},
    {"_dead", (getter)get_dead, (setter)keep_dead, "The PJRT_Buffer*, also after its deletion.", NULL},
    {"_spec", (getter)get_spec, (setter)set_spec, "Its type, device and memory.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef buffer_members[] = {
    {"_view_owner", T_OBJECT, offsetof(Buffer, view_owner), READONLY,
     "What destroys it, once the core has made a view of its memory."},
    {"_reason", T_OBJECT_EX, offsetof(Buffer, reason), 0, "Why it is not usable, for messages."},
    {"_awaited", T_BOOL, offsetof(Buffer, awaited), 0, "Whether its contents are known to be there."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot buffer_slots[] = {
    {Py_tp_doc, "The base of plugrt.capi.buffers.buffer.Buffer."},
    {Py_tp_traverse, buffer_traverse},
    {Py_tp_dealloc, buffer_dealloc},
    {Py_tp_getset, buffer_getset},
    {Py_tp_members, buffer_members},
    {0, NULL},
};
static PyType_Spec buffer_spec = {
    "plugrt._core.Buffer", sizeof(Buffer), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, buffer_slots};

int add_buffer(PyObject *module) {
  Buffer_Type = type_of(module, &buffer_spec);
  return Buffer_Type ? 0 : -1;
}

PyObject *set_buffer_class(PyObject *module, PyObject *args) {
  (void)module;
  PyTypeObject *cls;
  PyObject *pointer, *address;
  if (!PyArg_ParseTuple(args, "O!OO", &PyType_Type, &cls, &pointer, &address)) return NULL;
  if (!PyType_IsSubtype(cls, Buffer_Type)) {
    PyErr_SetString(PyExc_TypeError, "the class of buffers is derived from plugrt._core.Buffer");
    return NULL;
  }
  if (spares_init(&spares, cls)) return NULL;
  buffer_class = (PyTypeObject *)Py_NewRef((PyObject *)cls); /* kept for ever, as the others are */
  to_pointer = Py_NewRef(pointer);
  to_address = Py_NewRef(address);
  Py_RETURN_NONE;
}
