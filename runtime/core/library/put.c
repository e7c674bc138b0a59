/* Put: copies host values of one type to one device of a library. The library copies the data
   during the call, as requested: the source is not kept. Python puts values of another type or
   shape. */
#include <string.h>

#include "library/library.h"
#include "values/values.h"

PyTypeObject *Put_Type;

static int put_init(Put *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"client", "spec", "owner", "args", "keep", "dtype", "number", NULL};
  PyObject *client, *spec, *owner, *keep, *dtype;
  unsigned long long address;
  int number;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OOKOOp", names, Client_Type, &client, &spec,
                                   &owner, &address, &keep, &dtype, &number))
    return -1;
  if (self->client || !((Client *)client)->pointer) {
    PyErr_SetString(PyExc_TypeError, "a put is made once, of a client that is made");
    return -1;
  }
  self->dtype = number_of_dtype(dtype);
  if (!self->dtype) {
    PyErr_Format(PyExc_ValueError, "the core puts no arrays of %R", dtype);
    return -1;
  }
  memcpy(&self->args, (const void *)(uintptr_t)address, sizeof self->args);
  self->number = number;
  self->client = (Client *)Py_NewRef(client);
  self->spec = Py_NewRef(spec);
  self->owner = Py_NewRef(owner);
  self->keep = Py_NewRef(keep);
  return 0;
}

static void destroy_event(Client *client, PJRT_Event *event) {
  struct PJRT_Event_Destroy_Args args;
  memset(&args, 0, sizeof args);
  args.struct_size = SIZE_OF_Event_Destroy;
  args.event = event;
  PJRT_Error *error;
  BEGIN_LIBRARY_CALL
  error = client->destroy_event(&args);
  END_LIBRARY_CALL
  if (error) client_log_failure(client, "Event_Destroy", error);
}

/* Raises the exception that a method of the owner returns for an address. */
static int fail(Put *self, const char *method, const void *address) {
  PyObject *found =
      PyObject_CallMethod(self->owner, method, "K", (unsigned long long)(uintptr_t)address);
  if (found) raise_exception(found);
  return FAILED;
}

/* `strides` is NULL for C-contiguous data. */
static int put_data(Put *self, const void *data, const int64_t *strides, PyObject **made) {
  Client *client = self->client;
  struct PJRT_Client_BufferFromHostBuffer_Args args = self->args;
  args.data = data;
  args.byte_strides = strides;
  args.num_byte_strides = strides ? args.num_dims : 0;
  PJRT_Error *error;
  BEGIN_LIBRARY_CALL
  error = client->put(&args);
  END_LIBRARY_CALL
  if (error) return fail(self, "_put_error", error);
  if (!args.buffer || !args.done_with_host_buffer) return fail(self, "_missing_handle", &args);
  destroy_event(client, args.done_with_host_buffer); /* the source was read during the call */
  *made = buffer_holding(client, args.buffer, self->spec);
  return *made ? DONE : FAILED;
}

static int put_array(Put *self, PyObject *value, PyObject **made) {
  Py_buffer view;
  int64_t strides[MAX_RANK];
  int dtype = view_host(value, &view);
  if (!dtype) return NOT_HERE;
  /* Another thread may have changed the array's shape or dtype since the key of the call was
     made. */
  int same = dtype == self->dtype && (size_t)view.ndim == self->args.num_dims;
  int plain = same && PyBuffer_IsContiguous(&view, 'C');
  if (!plain && view.ndim > MAX_RANK) same = 0;
  for (int i = 0; same && i < view.ndim; i++) {
    same = view.shape[i] == self->args.dims[i];
    if (!plain) strides[i] = view.strides[i];
  }
  int state = same ? put_data(self, view.buf, plain ? NULL : strides, made) : NOT_HERE;
  PyBuffer_Release(&view);
  return state;
}

static int put_number(Put *self, PyObject *value, PyObject **made) {
  Number data;
  if (value == self->last) { /* a literal in the source code is the same object each time */
    *made = Py_NewRef(self->last_made);
    return DONE;
  }
  if (!write_number(self->args.type, value, &data)) return NOT_HERE;
  int state = put_data(self, &data, NULL, made);
  if (state != DONE) return state;
  PyObject *old = self->last, *old_made = self->last_made;
  self->last = Py_NewRef(value);
  self->last_made = Py_NewRef(*made);
  Py_XDECREF(old);
  Py_XDECREF(old_made);
  return DONE;
}

static int can_put(Client *client) {
  return !client->refused && !client->closed && !client->pending && client->put &&
         client->destroy_event;
}

int put_value(Put *self, PyObject *value, PyObject **made) {
  if (!can_put(self->client)) return NOT_HERE;
  return self->number ? put_number(self, value, made) : put_array(self, value, made);
}

int put_anew(Put *self, PyObject *value, PyObject **made) {
  Number data;
  if (!can_put(self->client)) return NOT_HERE;
  if (!self->number) return put_array(self, value, made);
  return write_number(self->args.type, value, &data) ? put_data(self, &data, NULL, made) : NOT_HERE;
}

static PyObject *put_call(Put *self, PyObject *args, PyObject *kwargs) {
  PyObject *value, *made;
  if (!self->client) {
    PyErr_SetString(PyExc_TypeError, "this put was not made by its class");
    return NULL;
  }
  if (kwargs && PyDict_Size(kwargs)) {
    PyErr_SetString(PyExc_TypeError, "a put takes the value alone");
    return NULL;
  }
  if (!PyArg_ParseTuple(args, "O", &value)) return NULL;
  int state = put_value(self, value, &made);
  if (state == NOT_HERE) Py_RETURN_NONE;
  return state == DONE ? made : NULL;
}

static int put_traverse(Put *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->client);
  Py_VISIT(self->spec);
  Py_VISIT(self->owner);
  Py_VISIT(self->keep);
  Py_VISIT(self->last);
  Py_VISIT(self->last_made);
  return 0;
}

static void put_dealloc(PyObject *object) {
  Put *self = (Put *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF((PyObject *)self->client);
  Py_XDECREF(self->spec);
  Py_XDECREF(self->owner);
  Py_XDECREF(self->keep);
  Py_XDECREF(self->last);
  Py_XDECREF(self->last_made);
  free_object(object);
}

static PyType_Slot put_slots[] = {
    {Py_tp_doc, "Puts values of one type: put(value) -> Buffer, None for what Python has to put."},
    {Py_tp_init, put_init},
    {Py_tp_call, put_call},
    {Py_tp_traverse, put_traverse},
    {Py_tp_dealloc, put_dealloc},
    {0, NULL},
};
static PyType_Spec put_spec = {"plugrt._core.Put", sizeof(Put), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, put_slots};

int add_put(PyObject *module) {
  Put_Type = type_of(module, &put_spec);
  return Put_Type ? 0 : -1;
}
