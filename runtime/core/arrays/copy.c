/* Copy: copies arrays of one type to another device of the same library. A library copies the bytes
   and loses a layout other than C order: Python copies such an array. */
#include <string.h>

#include "arrays/arrays.h"
#include "library/library.h"

PyTypeObject *Copy_Type;

typedef struct {
  PyObject_HEAD
  Client *client;
  PyObject *spec, *owner; /* spec of the copies; owner explains errors */
  PJRT_Device *device;    /* kept alive by the spec */
  Py_ssize_t rank;
  PJRT_Error *(*copy)(struct PJRT_Buffer_CopyToDevice_Args *);
  PJRT_Error *(*layout)(struct PJRT_Buffer_GetMemoryLayout_Args *);
} Copy;

static int copy_init(Copy *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"client", "spec", "owner", "device", "rank", "copy", "layout", NULL};
  PyObject *client, *spec, *owner;
  unsigned long long device, copy, layout;
  Py_ssize_t rank;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OOKnKK", names, Client_Type, &client, &spec,
                                   &owner, &device, &rank, &copy, &layout))
    return -1;
  if (self->client || !((Client *)client)->pointer || !copy || !layout) {
    PyErr_SetString(PyExc_TypeError, "a copy is made once, of a client that is made");
    return -1;
  }
  SET_FUNCTION(self->copy, copy);
  SET_FUNCTION(self->layout, layout);
  self->device = (PJRT_Device *)(uintptr_t)device;
  self->rank = rank;
  self->client = (Client *)Py_NewRef(client);
  self->spec = Py_NewRef(spec);
  self->owner = Py_NewRef(owner);
  return 0;
}

/* Raises the exception that a method of the owner returns for an address and the buffer; NOT_HERE
   if it returns None. */
static int fail(Copy *self, const char *method, const void *address, Buffer *buffer) {
  PyObject *found = PyObject_CallMethod(self->owner, method, "KO",
                                        (unsigned long long)(uintptr_t)address, buffer);
  if (found == Py_None) {
    Py_DECREF(found);
    return NOT_HERE;
  }
  if (found) raise_exception(found);
  return FAILED;
}

/* Whether a buffer is known to be in C order. Python checks tiled layouts. */
static int is_in_c_order(Copy *self, Buffer *buffer) {
  if (self->rank < 2) return 1;
  struct PJRT_Buffer_GetMemoryLayout_Args args;
  memset(&args, 0, sizeof args);
  args.struct_size = SIZE_OF_Buffer_GetMemoryLayout;
  args.buffer = buffer->address;
  PJRT_Error *error;
  BEGIN_LIBRARY_CALL
  error = self->layout(&args);
  END_LIBRARY_CALL
  if (error) {
    client_log_failure(self->client, "Buffer_GetMemoryLayout", error);
    return 0;
  }
  const PJRT_Buffer_MemoryLayout_Tiled *tiled = &args.layout.tiled;
  if (args.layout.type != PJRT_Buffer_MemoryLayout_Type_Tiled || tiled->num_tiles ||
      tiled->minor_to_major_size != (size_t)self->rank)
    return 0;
  for (Py_ssize_t i = 0; i < self->rank; i++)
    if (tiled->minor_to_major[i] != self->rank - 1 - i) return 0;
  return 1;
}

static int copy_buffer(Copy *self, Buffer *buffer, PyObject **made) {
  if (!is_in_c_order(self, buffer)) return NOT_HERE;
  struct PJRT_Buffer_CopyToDevice_Args args;
  memset(&args, 0, sizeof args);
  args.struct_size = SIZE_OF_Buffer_CopyToDevice;
  args.buffer = buffer->address;
  args.dst_device = self->device;
  PJRT_Error *error;
  BEGIN_LIBRARY_CALL
  error = self->copy(&args);
  END_LIBRARY_CALL
  if (error) return fail(self, "_copy_error", error, buffer);
  if (!args.dst_buffer) return fail(self, "_missing_copy", &args, buffer);
  *made = buffer_holding(self->client, args.dst_buffer, self->spec);
  return *made ? DONE : FAILED;
}

int copy_array(PyObject *object, PyObject *array, PyObject **made) {
  Copy *self = (Copy *)object;
  Client *client = self->client;
  if (Py_TYPE(array) != array_class || client->refused || client->closed) return NOT_HERE;
  PyObject *shards = ((Array *)array)->shards;
  if (!shards || !PyType_IsSubtype(Py_TYPE(shards), Buffer_Type)) return NOT_HERE;
  Buffer *buffer = (Buffer *)shards;
  if (buffer->client != client || !buffer->usable) return NOT_HERE;
  Py_INCREF(shards); /* another thread may delete the array meanwhile */
  int state = copy_buffer(self, buffer, made);
  Py_DECREF(shards);
  return state;
}

int is_copy_made(PyObject *self) { return ((Copy *)self)->client != NULL; }

static int copy_traverse(Copy *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->client);
  Py_VISIT(self->spec);
  Py_VISIT(self->owner);
  return 0;
}

static void copy_dealloc(PyObject *object) {
  Copy *self = (Copy *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF((PyObject *)self->client);
  Py_XDECREF(self->spec);
  Py_XDECREF(self->owner);
  free_object(object);
}

static PyType_Slot copy_slots[] = {
    {Py_tp_doc, "Copies arrays of one type to another device, for runners and device_put."},
    {Py_tp_init, copy_init},
    {Py_tp_traverse, copy_traverse},
    {Py_tp_dealloc, copy_dealloc},
    {0, NULL},
};
static PyType_Spec copy_spec = {"plugrt._core.Copy", sizeof(Copy), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, copy_slots};

int add_copy(PyObject *module) {
  Copy_Type = type_of(module, &copy_spec);
  return Copy_Type ? 0 : -1;
}
