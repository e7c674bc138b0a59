/* Reader: reads buffers of one type that the host can address, as a copy or as a view. An external
   reference keeps the memory unchanged meanwhile, as in plugrt.capi.buffers.host_read. After any
   failure Python reads again and raises the exception with its message. */
#include "library/internal.h"
#include "values/values.h"

PyTypeObject *Reader_Type;

typedef struct {
  PyObject_HEAD
  References *references;
  PyObject *is_memory;            /* is_memory(address, size) */
  HostForm form;                  /* dtype and shape of the result */
  /* whether `memory_find` may ask the system; else Python is asked */
  int asks_system;
  int views;                      /* whether the result is a view of the memory, else a copy */
  PJRT_Error *(*ready)(struct PJRT_Buffer_ReadyEvent_Args *);
  PJRT_Error *(*where)(struct PJRT_Buffer_UnsafePointer_Args *);
  PJRT_Error *(*measure)(struct PJRT_Buffer_OnDeviceSizeInBytes_Args *);
} Reader;

/* Waits for the buffer, without the GIL; returns whether it is ready. It waits before it acquires
   an external reference: XLA would wait for the memory then, under the lock of references.
   Finalizers would wait for that lock, perhaps in the thread that produces the memory. */
static int await_ready(Reader *self, PJRT_Buffer *buffer) {
  Client *client = self->references->client;
  NEW_ARGS(Buffer_ReadyEvent, ready);
  NEW_ARGS(Event_Await, awaited);
  NEW_ARGS(Event_Destroy, ended);
  ready.buffer = buffer;
  if (client_forget_error(client, self->ready(&ready)) || !ready.event) return 0;
  awaited.event = ended.event = ready.event;
  int failed = client_forget_error(client, client->await_event(&awaited));
  client_forget_error(client, client->destroy_event(&ended));
  return !failed;
}

/* Sets the address and the size of the contents, without the GIL; returns whether both are
   known. */
static int locate(Reader *self, PJRT_Buffer *buffer, void **data, size_t *size) {
  Client *client = self->references->client;
  NEW_ARGS(Buffer_UnsafePointer, found);
  NEW_ARGS(Buffer_OnDeviceSizeInBytes, measured);
  found.buffer = measured.buffer = buffer;
  if (client_forget_error(client, self->where(&found)) ||
      client_forget_error(client, self->measure(&measured)))
    return 0;
  *data = (void *)(uintptr_t)found.buffer_pointer;
  *size = measured.on_device_size_in_bytes;
  return 1;
}

/* Asks Python, once per page, whether the address is mapped; -1 with an exception. */
static int ask_python(Reader *self, const void *data) {
  PyObject *answer = PyObject_CallFunction(
      self->is_memory, "Kn", (unsigned long long)(uintptr_t)data, self->form.size);
  int there = answer ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(answer);
  if (there == 1) memory_note(self->references->client, (uintptr_t)data, self->form.size);
  return there;
}

/* As `memory_find`, for the whole buffer, and sets its address. Without the GIL. */
static int find(Reader *self, PJRT_Buffer *buffer, void **data) {
  size_t size = 0;
  if (!locate(self, buffer, data, &size) || size < (size_t)self->form.size) return FAILED;
  return memory_find(self->references->client, (uintptr_t)*data, self->form.size, self->asks_system);
}

typedef struct {
  Reader *reader;
  char *to;
  void *from;
  int found;
} Copying;

static void copy_found(void *with, PJRT_Buffer *buffer) {
  Copying *copying = with;
  copying->found = find(copying->reader, buffer, &copying->from);
  if (copying->found == DONE) memcpy(copying->to, copying->from, copying->reader->form.size);
}

/* Returns the object that owns the contents, and sets their address. One section without the GIL
   and under the lock does all. */
static PyObject *copy(Reader *self, Buffer *buffer, void **contents) {
  PyObject *bytes = PyBytes_FromStringAndSize(NULL, self->form.size);
  if (!bytes) return NULL;
  Copying copying = {self, PyBytes_AsString(bytes), NULL, FAILED};
  References *references = self->references;
  int used = references_use(references, buffer, copy_found, &copying);
  if (used == DONE && copying.found == NOT_HERE && ask_python(self, copying.from) == 1)
    /* its address may have changed by now */
    used = references_use(references, buffer, copy_found, &copying);
  *contents = copying.to;
  if (used != DONE || copying.found != DONE || PyErr_Occurred()) Py_CLEAR(bytes);
  return bytes;
}

static PyObject *view(Reader *self, Buffer *buffer, void **contents) {
  PyObject *owner = NULL;
  if (references_take(self->references, buffer, &owner) != DONE) return NULL;
  PyObject *made = view_for(self->references, owner);
  void *data = NULL;
  int found = FAILED;
  if (made) {
    BEGIN_LIBRARY_CALL
    found = find(self, owner_address(owner), &data);
    END_LIBRARY_CALL
  }
  if (found == NOT_HERE) found = ask_python(self, data);
  if (found == DONE) view_set(made, data, self->form.size);
  else Py_CLEAR(made);
  *contents = data;
  return made;
}

PyObject *reader_read(PyObject *object, PyObject *held) {
  Reader *self = (Reader *)object;
  Client *client = self->references->client;
  Buffer *buffer = (Buffer *)held;
  if (client->refused || client->pending || buffer->client != client || !buffer->usable) return NULL;
  if (buffer->takers) return NULL;
  PJRT_Buffer *address = buffer->address; /* valid as long as the object */
  if (!buffer->awaited) {
    int ready;
    BEGIN_LIBRARY_CALL
    ready = await_ready(self, address);
    END_LIBRARY_CALL
    if (!ready) return NULL;
    buffer->awaited = 1;
  }
  void *contents = NULL;
  buffer->holds++; /* a launch that donated it now would be waited for under the lock */
  PyObject *keeper = self->views ? view(self, buffer, &contents) : copy(self, buffer, &contents);
  if (buffer_end_hold(buffer) == FAILED) Py_CLEAR(keeper);
  if (!keeper) return NULL;
  PyObject *made = host_form_over(&self->form, contents, keeper);
  Py_DECREF(keeper);
  return made;
}

static PyObject *reader_call(Reader *self, PyObject *args, PyObject *kwargs) {
  PyObject *buffer;
  if (!self->references) {
    PyErr_SetString(PyExc_TypeError, "this reader was not made by its class");
    return NULL;
  }
  if (kwargs && PyDict_Size(kwargs)) {
    PyErr_SetString(PyExc_TypeError, "a reader takes the buffer alone");
    return NULL;
  }
  if (!PyArg_ParseTuple(args, "O!", Buffer_Type, &buffer)) return NULL;
  PyObject *made = reader_read((PyObject *)self, buffer);
  return made || PyErr_Occurred() ? made : Py_NewRef(Py_None);
}

static int reader_init(Reader *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"references", "functions", "is_memory",   "shape",
                          "dtype",      "views",     "asks_system", NULL};
  PyObject *references, *functions, *is_memory, *shape, *dtype;
  int views, asks_system = 0;
  unsigned long long f[3];
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!OOOp|p", names, References_Type, &references,
                                   &PyTuple_Type, &functions, &is_memory, &shape, &dtype, &views,
                                   &asks_system) ||
      !PyArg_ParseTuple(functions, "KKK", &f[0], &f[1], &f[2]))
    return -1;
  Client *client = ((References *)references)->client;
  if (self->references || !client || !client->await_event || !client->destroy_event) {
    PyErr_SetString(PyExc_TypeError, "a reader is made once, of references of a client that has events");
    return -1;
  }
  if (host_form_init(&self->form, shape, dtype)) return -1;
  if (self->form.size <= 0) {
    host_form_clear(&self->form);
    PyErr_SetString(PyExc_ValueError, "a reader is of arrays that have elements");
    return -1;
  }
  SET_FUNCTION(self->ready, f[0]);
  SET_FUNCTION(self->where, f[1]);
  SET_FUNCTION(self->measure, f[2]);
  self->views = views;
  self->asks_system = asks_system;
  self->is_memory = Py_NewRef(is_memory);
  self->references = (References *)Py_NewRef(references);
  return 0;
}

static int reader_traverse(Reader *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->references);
  Py_VISIT(self->is_memory);
  Py_VISIT(self->form.dtype);
  return 0;
}

static void reader_dealloc(PyObject *object) {
  Reader *self = (Reader *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF((PyObject *)self->references);
  Py_XDECREF(self->is_memory);
  host_form_clear(&self->form);
  free_object(object);
}

static PyType_Slot reader_slots[] = {
    {Py_tp_doc, "Reads buffers of one type: reader(buffer) -> array, None if Python has to."},
    {Py_tp_init, reader_init},
    {Py_tp_call, reader_call},
    {Py_tp_traverse, reader_traverse},
    {Py_tp_dealloc, reader_dealloc},
    {0, NULL},
};
static PyType_Spec reader_spec = {"plugrt._core.Reader", sizeof(Reader), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, reader_slots};

int add_reader(PyObject *module) {
  Reader_Type = type_of(module, &reader_spec);
  return Reader_Type ? 0 : -1;
}
