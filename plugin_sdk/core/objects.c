/* The core's Python types: a block of the host's memory, and a callable that completes a future. */
#include "core.h"

typedef struct {
  PyObject ob_base;
  void *base;
  Py_ssize_t size;
  int writable;
  Future *done;
} HostMemory;

static PyTypeObject *host_memory_type, *completion_type;

PyObject *make_host_memory(const void *base, Py_ssize_t size, int writable, Future *done) {
  HostMemory *made = PyObject_New(HostMemory, host_memory_type);
  if (made == NULL) {
    future_release(done);
    return NULL;
  }
  made->base = (void *)base;
  made->size = size;
  made->writable = writable;
  made->done = done;
  return (PyObject *)made;
}

static int host_memory_buffer(PyObject *self, Py_buffer *view, int flags) {
  HostMemory *memory = (HostMemory *)self;
  static char nothing[1];
  void *base = memory->base == NULL ? nothing : memory->base;
  return PyBuffer_FillInfo(view, self, base, memory->size, !memory->writable, flags);
}

static void host_memory_dealloc(PyObject *self) {
  Future *done = ((HostMemory *)self)->done;
  PyTypeObject *type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
  if (done == NULL)
    return;
  Py_BEGIN_ALLOW_THREADS /* the host's callback may wait for a lock */
  future_complete(done, 0, NULL, 0);
  future_release(done);
  Py_END_ALLOW_THREADS
}

static PyType_Slot host_memory_slots[] = {
    {Py_bf_getbuffer, host_memory_buffer},
    {Py_tp_dealloc, host_memory_dealloc},
    {Py_tp_doc, "A block of the host's memory, with the buffer protocol."},
    {0, NULL},
};

static PyType_Spec host_memory_spec = {
    .name = "plugrt_sdk.export._core.HostMemory",
    .basicsize = sizeof(HostMemory),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = host_memory_slots,
};

typedef struct {
  PyObject ob_base;
  Future *future;
} Completion;

PyObject *make_completion(Future *future) {
  Completion *made = PyObject_New(Completion, completion_type);
  if (made != NULL)
    made->future = future_share(future);
  return (PyObject *)made;
}

static void complete(Future *future, int code, const char *message, size_t size) {
  Py_BEGIN_ALLOW_THREADS /* the host's callbacks may wait for a lock */
  future_complete(future, code, message, size);
  Py_END_ALLOW_THREADS
}

static PyObject *completion_call(PyObject *self, PyObject *arguments, PyObject *keywords) {
  Future *future = ((Completion *)self)->future;
  PyObject *error = Py_None, *answer;
  int code;
  const char *message;
  Py_ssize_t size;
  if (keywords != NULL && PyDict_Size(keywords)) {
    PyErr_SetString(PyExc_TypeError, "an event's callback takes no keywords");
    return NULL;
  }
  if (!PyArg_ParseTuple(arguments, "|O", &error))
    return NULL;
  if (error == Py_None) {
    complete(future, 0, NULL, 0);
    Py_RETURN_NONE;
  }
  answer = describe("Event", Py_NewRef(error));
  if (answer == NULL)
    Py_RETURN_NONE; /* this object's deallocation completes the future */
  if (PyArg_ParseTuple(answer, "is#O", &code, &message, &size, &error))
    complete(future, code ? code : PJRT_Error_Code_UNKNOWN, message, (size_t)size);
  Py_DECREF(answer);
  if (PyErr_Occurred())
    return NULL;
  Py_RETURN_NONE;
}

static void completion_dealloc(PyObject *self) {
  static const char dropped[] = "the backend dropped the event without completing it";
  Future *future = ((Completion *)self)->future;
  PyTypeObject *type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
  if (!future_is_done(future))
    complete(future, PJRT_Error_Code_INTERNAL, dropped, sizeof dropped - 1);
  future_release(future);
}

static PyType_Slot completion_slots[] = {
    {Py_tp_call, completion_call},
    {Py_tp_dealloc, completion_dealloc},
    {Py_tp_doc, "Completes an event: called with nothing, None or an exception, from any thread."},
    {0, NULL},
};

static PyType_Spec completion_spec = {
    .name = "plugrt_sdk.export._core.Completion",
    .basicsize = sizeof(Completion),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = completion_slots,
};

int add_object_types(PyObject *module) {
  host_memory_type = (PyTypeObject *)PyType_FromSpec(&host_memory_spec);
  completion_type = (PyTypeObject *)PyType_FromSpec(&completion_spec);
  if (host_memory_type == NULL || completion_type == NULL)
    return -1;
  return PyModule_AddType(module, host_memory_type) || PyModule_AddType(module, completion_type);
}
