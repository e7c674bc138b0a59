/* References: external references to buffers of a client, which keep their memory unchanged. They
   are acquired and released under the lock of the client's handle, as in Python: XLA stores them in
   a vector that it changes without a lock. */
#include "library/internal.h"

PyTypeObject *References_Type;

/* Acquires the lock, again if a signal handler raised; its exception is added to `raised`. */
static int acquire_surely(References *self, Raised *raised) {
  for (int attempts = 100; attempts--;) {
    if (acquire_lock(self->lock) == DONE) return 1;
    if (raised->type) put_back(*raised, (PyObject *)self);
    *raised = set_aside();
  }
  return 0;
}

void references_drop(References *self, PJRT_Buffer *buffer) {
  /* also in a forked process, where the lock may be held for ever */
  if (self->client->abandoned) return;
  Raised raised = set_aside();
  int locked = acquire_surely(self, &raised);
  NEW_ARGS(Buffer_DecreaseExternalReferenceCount, args);
  args.buffer = buffer;
  PJRT_Error *error = NULL;
  if (!self->client->abandoned) { /* may have been set while this thread waited for the lock */
    BEGIN_LIBRARY_CALL
    error = self->decrease(&args);
    END_LIBRARY_CALL
  }
  if (error) client_log_failure(self->client, "Buffer_DecreaseExternalReferenceCount", error);
  if (locked) release_lock(self->lock);
  put_back(raised, (PyObject *)self);
}

int references_take(References *self, Buffer *buffer, PyObject **owner) {
  if (acquire_lock(self->lock) == FAILED) return FAILED;
  int state = NOT_HERE;
  PJRT_Buffer *address = buffer->address;
  *owner = buffer->usable ? buffer_share(buffer) : NULL;
  if (*owner) {
    NEW_ARGS(Buffer_IncreaseExternalReferenceCount, args);
    args.buffer = address;
    BEGIN_LIBRARY_CALL
    if (!client_forget_error(self->client, self->increase(&args))) state = DONE;
    END_LIBRARY_CALL
  } else {
    PyErr_Clear(); /* out of memory: Python tries again */
  }
  if (release_lock(self->lock) == FAILED) {
    if (state == DONE) references_drop(self, address);
    state = FAILED;
  }
  if (state != DONE) Py_CLEAR(*owner);
  return state;
}

/* Whether it was used; without the GIL. Sets the error of a reference that could not be
   released. */
static int use_referred(References *self, PJRT_Buffer *buffer, void (*use)(void *, PJRT_Buffer *),
                        void *with, PJRT_Error **error) {
  NEW_ARGS(Buffer_IncreaseExternalReferenceCount, taken);
  NEW_ARGS(Buffer_DecreaseExternalReferenceCount, released);
  taken.buffer = released.buffer = buffer;
  if (client_forget_error(self->client, self->increase(&taken))) return NOT_HERE;
  use(with, buffer);
  *error = self->decrease(&released);
  return DONE;
}

int references_use(References *self, Buffer *buffer, void (*use)(void *, PJRT_Buffer *), void *with) {
  if (acquire_lock(self->lock) == FAILED) return FAILED;
  int state = NOT_HERE;
  PJRT_Error *error = NULL;
  if (buffer->usable) {
    PJRT_Buffer *address = buffer->address;
    BEGIN_LIBRARY_CALL
    state = use_referred(self, address, use, with, &error);
    END_LIBRARY_CALL
  }
  if (error) client_log_failure(self->client, "Buffer_DecreaseExternalReferenceCount", error);
  return release_lock(self->lock) == DONE ? state : FAILED;
}

static int references_init(References *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"client", "increase", "decrease", "lock", NULL};
  PyObject *client, *lock;
  unsigned long long increase, decrease;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!KKO", names, Client_Type, &client, &increase,
                                   &decrease, &lock))
    return -1;
  if (self->client || !((Client *)client)->destroy_error) {
    PyErr_SetString(PyExc_TypeError, "references are made once, of a client that has all functions");
    return -1;
  }
  SET_FUNCTION(self->increase, increase);
  SET_FUNCTION(self->decrease, decrease);
  self->lock = Py_NewRef(lock);
  self->client = (Client *)Py_NewRef(client);
  return 0;
}

static int references_traverse(References *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->client);
  Py_VISIT(self->lock);
  return 0;
}

/* No tp_clear: views in the same garbage release their references. */
static void references_dealloc(PyObject *object) {
  References *self = (References *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF((PyObject *)self->client);
  Py_XDECREF(self->lock);
  free_object(object);
}

static PyType_Slot references_slots[] = {
    {Py_tp_doc, "Takes and releases external references to buffers, for readers and views."},
    {Py_tp_init, references_init},
    {Py_tp_traverse, references_traverse},
    {Py_tp_dealloc, references_dealloc},
    {0, NULL},
};
static PyType_Spec references_spec = {"plugrt._core.References", sizeof(References), 0,
                                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, references_slots};

int add_references(PyObject *module) {
  References_Type = type_of(module, &references_spec);
  return References_Type ? 0 : -1;
}
