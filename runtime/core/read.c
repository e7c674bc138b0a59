/* Reader: the contents of small buffers of one type, copied from memory that the host addresses.

   An external reference keeps the memory as it is meanwhile, as in plugrt.capi.host_read. After any
   failure Python reads again, and finds what there is to say of it. */
#include <string.h>

#include "core.h"

PyTypeObject *Reader_Type;

typedef struct {
  PyObject_HEAD
  Client *client;
  PyObject *acquire, *release; /* of the lock under which references are taken and released */
  PyObject *is_memory;         /* is_memory(address, size) */
  PyObject *make, *shape, *dtype; /* make(shape, dtype, bytes): what is returned */
  Py_ssize_t size;                /* in bytes */
  PJRT_Error *(*increase)(struct PJRT_Buffer_IncreaseExternalReferenceCount_Args *);
  PJRT_Error *(*decrease)(struct PJRT_Buffer_DecreaseExternalReferenceCount_Args *);
  PJRT_Error *(*ready)(struct PJRT_Buffer_ReadyEvent_Args *);
  PJRT_Error *(*await_event)(struct PJRT_Event_Await_Args *);
  PJRT_Error *(*destroy_event)(struct PJRT_Event_Destroy_Args *);
  PJRT_Error *(*where)(struct PJRT_Buffer_UnsafePointer_Args *);
  PJRT_Error *(*measure)(struct PJRT_Buffer_OnDeviceSizeInBytes_Args *);
  void (*destroy_error)(struct PJRT_Error_Destroy_Args *);
} Reader;

/* Whether there was no error; frees it if there was. */
static int went_well(Reader *self, PJRT_Error *error) {
  if (!error) return 1;
  struct PJRT_Error_Destroy_Args args;
  memset(&args, 0, sizeof args);
  args.struct_size = SIZE_OF_Error_Destroy;
  args.error = error;
  self->destroy_error(&args);
  return 0;
}

#define NEW_ARGS(name, args)          \
  struct PJRT_##name##_Args args;     \
  memset(&args, 0, sizeof args);      \
  args.struct_size = SIZE_OF_##name

/* Without the GIL: waits for the buffer, and sets where its contents are and how many bytes. */
static int await_and_find(Reader *self, PJRT_Buffer *buffer, void **data, size_t *size) {
  NEW_ARGS(Buffer_ReadyEvent, ready);
  NEW_ARGS(Event_Await, awaited);
  NEW_ARGS(Event_Destroy, ended);
  NEW_ARGS(Buffer_UnsafePointer, found);
  NEW_ARGS(Buffer_OnDeviceSizeInBytes, measured);
  ready.buffer = found.buffer = measured.buffer = buffer;
  if (!went_well(self, self->ready(&ready)) || !ready.event) return 0;
  awaited.event = ended.event = ready.event;
  int done = went_well(self, self->await_event(&awaited));
  went_well(self, self->destroy_event(&ended));
  if (!done || !went_well(self, self->where(&found)) || !went_well(self, self->measure(&measured)))
    return 0;
  *data = (void *)(uintptr_t)found.buffer_pointer;
  *size = measured.on_device_size_in_bytes;
  return 1;
}

/* Whether that is memory: Python is asked once for each page, as it asks the system. There is none
   in page 0, which is also what stands for no page. */
static int is_memory(Reader *self, const void *data) {
  uintptr_t first = (uintptr_t)data >> 12, last = ((uintptr_t)data + self->size - 1) >> 12;
  uintptr_t *known = self->client->known_pages;
  if (!first) return 0;
  if (known[first % KNOWN_PAGES] == first && known[last % KNOWN_PAGES] == last) return 1;
  PyObject *answer = PyObject_CallFunction(
      self->is_memory, "Kn", (unsigned long long)(uintptr_t)data, self->size);
  int there = answer ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(answer);
  if (there == 1) {
    known[first % KNOWN_PAGES] = first;
    known[last % KNOWN_PAGES] = last;
  }
  return there;
}

/* Calls a method of the lock; 0 with an exception. */
static int call_method(PyObject *method) {
  PyObject *answer = PyObject_CallNoArgs(method);
  Py_XDECREF(answer);
  return answer != NULL;
}

/* Takes a reference to the buffer's memory: DONE. */
static int refer(Reader *self, Buffer *buffer) {
  if (!call_method(self->acquire)) return FAILED;
  int state = NOT_HERE;
  if (buffer->usable) {
    NEW_ARGS(Buffer_IncreaseExternalReferenceCount, args);
    args.buffer = buffer->address;
    BEGIN_LIBRARY_CALL
    if (went_well(self, self->increase(&args))) state = DONE;
    END_LIBRARY_CALL
  }
  if (call_method(self->release)) return state;
  return FAILED;
}

/* Acquires the lock, again where a signal's handler raised, which is added to what was raised. */
static int acquire_surely(Reader *self, Raised *raised) {
  for (int attempts = 100; attempts--;) {
    if (call_method(self->acquire)) return 1;
    if (raised->type) put_back(*raised, (PyObject *)self);
    *raised = set_aside();
  }
  return 0;
}

/* Releases it; keeps the exception that is raised, if any, or raises that of a signal meanwhile. */
static void let_go(Reader *self, PJRT_Buffer *buffer) {
  Raised raised = set_aside();
  int locked = acquire_surely(self, &raised);
  NEW_ARGS(Buffer_DecreaseExternalReferenceCount, args);
  args.buffer = buffer;
  BEGIN_LIBRARY_CALL
  went_well(self, self->decrease(&args));
  END_LIBRARY_CALL
  if (locked) call_method(self->release);
  put_back(raised, (PyObject *)self);
}

static PyObject *copy(Reader *self, PJRT_Buffer *buffer) {
  void *data = NULL;
  size_t size = 0;
  int found;
  BEGIN_LIBRARY_CALL
  found = await_and_find(self, buffer, &data, &size);
  END_LIBRARY_CALL
  if (!found || size < (size_t)self->size) return NULL;
  return is_memory(self, data) == 1 ? PyBytes_FromStringAndSize(data, self->size) : NULL;
}

PyObject *reader_read(PyObject *object, PyObject *held) {
  Reader *self = (Reader *)object;
  Client *client = self->client;
  Buffer *buffer = (Buffer *)held;
  if (client->refused || client->pending || buffer->client != client) return NULL;
  if (refer(self, buffer) != DONE) return NULL;
  PJRT_Buffer *address = buffer->address;
  PyObject *bytes = copy(self, address);
  let_go(self, address);
  if (!bytes || PyErr_Occurred()) {
    Py_XDECREF(bytes);
    return NULL;
  }
  PyObject *made = PyObject_CallFunctionObjArgs(self->make, self->shape, self->dtype, bytes, NULL);
  Py_DECREF(bytes);
  return made;
}

static PyObject *reader_call(Reader *self, PyObject *args, PyObject *kwargs) {
  PyObject *buffer;
  if (!self->client) {
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
  static char *names[] = {"client", "functions", "lock", "is_memory", "make",
                          "shape",  "dtype",     "size", NULL};
  PyObject *client, *functions, *lock, *is_memory, *make, *shape, *dtype;
  Py_ssize_t size;
  unsigned long long f[8];
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!OOOOOn", names, Client_Type, &client,
                                   &PyTuple_Type, &functions, &lock, &is_memory, &make, &shape,
                                   &dtype, &size) ||
      !PyArg_ParseTuple(functions, "KKKKKKKK", &f[0], &f[1], &f[2], &f[3], &f[4], &f[5], &f[6],
                        &f[7]))
    return -1;
  if (self->client || !((Client *)client)->pointer || size <= 0) {
    PyErr_SetString(PyExc_TypeError, "a reader is made once, of a client that is made");
    return -1;
  }
  PyObject *acquire = PyObject_GetAttrString(lock, "acquire");
  PyObject *release = acquire ? PyObject_GetAttrString(lock, "release") : NULL;
  if (!release) {
    Py_XDECREF(acquire);
    return -1;
  }
  *(void **)&self->increase = (void *)(uintptr_t)f[0];
  *(void **)&self->decrease = (void *)(uintptr_t)f[1];
  *(void **)&self->ready = (void *)(uintptr_t)f[2];
  *(void **)&self->await_event = (void *)(uintptr_t)f[3];
  *(void **)&self->destroy_event = (void *)(uintptr_t)f[4];
  *(void **)&self->where = (void *)(uintptr_t)f[5];
  *(void **)&self->measure = (void *)(uintptr_t)f[6];
  *(void **)&self->destroy_error = (void *)(uintptr_t)f[7];
  self->acquire = acquire;
  self->release = release;
  self->size = size;
  self->is_memory = Py_NewRef(is_memory);
  self->make = Py_NewRef(make);
  self->shape = Py_NewRef(shape);
  self->dtype = Py_NewRef(dtype);
  self->client = (Client *)Py_NewRef(client);
  return 0;
}

static int reader_traverse(Reader *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->client);
  Py_VISIT(self->acquire);
  Py_VISIT(self->release);
  Py_VISIT(self->is_memory);
  Py_VISIT(self->make);
  Py_VISIT(self->shape);
  Py_VISIT(self->dtype);
  return 0;
}

static void reader_dealloc(PyObject *object) {
  Reader *self = (Reader *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF((PyObject *)self->client);
  Py_XDECREF(self->acquire);
  Py_XDECREF(self->release);
  Py_XDECREF(self->is_memory);
  Py_XDECREF(self->make);
  Py_XDECREF(self->shape);
  Py_XDECREF(self->dtype);
  free_object(object);
}

static PyType_Slot reader_slots[] = {
    {Py_tp_doc, "Reads small buffers of one type: reader(buffer) -> array, None if Python has to."},
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
