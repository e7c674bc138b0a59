/* Wait: waits for buffers of a library, all by one call of Python.

   What a library refuses, and a computation that failed, is Python's to find again and to raise. */
#include <string.h>

#include "core.h"

PyTypeObject *Wait_Type;

typedef struct {
  PyObject_HEAD
  Client *client;
  PJRT_Error *(*ready_event)(struct PJRT_Buffer_ReadyEvent_Args *);
} Wait;

static int wait_init(Wait *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"client", "ready_event", NULL};
  PyObject *client;
  unsigned long long ready_event;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!K", names, Client_Type, &client, &ready_event))
    return -1;
  const Client *given = (Client *)client;
  if (self->client || !given->pointer || !ready_event || !given->await_event ||
      !given->destroy_event || !given->destroy_error) {
    PyErr_SetString(PyExc_TypeError, "a wait is made once, of a client that has events");
    return -1;
  }
  SET_FUNCTION(self->ready_event, ready_event);
  self->client = (Client *)Py_NewRef(client);
  return 0;
}

/* Whether the buffer is there. Without the GIL. */
static int await_buffer(const Wait *self, PJRT_Buffer *buffer) {
  Client *client = self->client;
  struct PJRT_Buffer_ReadyEvent_Args ready;
  memset(&ready, 0, sizeof ready);
  ready.struct_size = SIZE_OF_Buffer_ReadyEvent;
  ready.buffer = buffer;
  if (client_forget_error(client, self->ready_event(&ready)) || !ready.event) return 0;
  struct PJRT_Event_Await_Args waiting;
  memset(&waiting, 0, sizeof waiting);
  waiting.struct_size = SIZE_OF_Event_Await;
  waiting.event = ready.event;
  int failed = client_forget_error(client, client->await_event(&waiting));
  struct PJRT_Event_Destroy_Args ending;
  memset(&ending, 0, sizeof ending);
  ending.struct_size = SIZE_OF_Event_Destroy;
  ending.event = ready.event;
  return !client_forget_error(client, client->destroy_event(&ending)) && !failed;
}

/* The number of buffers in a tuple of buffers and of tuples of these. */
static Py_ssize_t count_buffers(PyObject *given) {
  Py_ssize_t count = 0;
  for (Py_ssize_t i = 0; i < PyTuple_Size(given); i++) {
    PyObject *shards = PyTuple_GetItem(given, i);
    count += PyTuple_CheckExact(shards) ? PyTuple_Size(shards) : 1;
  }
  return count;
}

/* Sets their addresses: whether all are the client's, and usable. */
static int take_addresses(const Wait *self, PyObject *given, PJRT_Buffer **taken) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(given); i++) {
    PyObject *shards = PyTuple_GetItem(given, i);
    int split = PyTuple_CheckExact(shards);
    for (Py_ssize_t part = 0; part < (split ? PyTuple_Size(shards) : 1); part++) {
      PyObject *buffer = split ? PyTuple_GetItem(shards, part) : shards;
      if (!(*taken++ = buffer_to_launch(buffer, self->client))) return 0;
    }
  }
  return 1;
}

/* That they are there: readers need not ask again. */
static void note_awaited(PyObject *given) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(given); i++) {
    PyObject *shards = PyTuple_GetItem(given, i);
    int split = PyTuple_CheckExact(shards);
    for (Py_ssize_t part = 0; part < (split ? PyTuple_Size(shards) : 1); part++)
      ((Buffer *)(split ? PyTuple_GetItem(shards, part) : shards))->awaited = 1;
  }
}

static int await_all(const Wait *self, PyObject *given, Py_ssize_t count, PJRT_Buffer **room) {
  if (!take_addresses(self, given, room)) return 0;
  int there = 1;
  BEGIN_LIBRARY_CALL
  for (Py_ssize_t i = 0; there && i < count; i++) there = await_buffer(self, room[i]);
  END_LIBRARY_CALL
  if (there) note_awaited(given);
  return there;
}

static PyObject *wait_call(Wait *self, PyObject *args, PyObject *kwargs) {
  PyObject *sequence;
  if (!self->client || (kwargs && PyDict_Size(kwargs))) {
    PyErr_SetString(PyExc_TypeError, "a wait that is made takes the buffers alone");
    return NULL;
  }
  if (!PyArg_ParseTuple(args, "O", &sequence)) return NULL;
  if (self->client->refused || self->client->pending) Py_RETURN_FALSE;
  PyObject *given = PySequence_Tuple(sequence); /* holds them while others may change a list */
  if (!given) return NULL;
  Py_ssize_t count = count_buffers(given);
  PJRT_Buffer *on_stack[4 * ON_STACK], **room = on_stack;
  if (count > 4 * ON_STACK) room = PyMem_Malloc(count * sizeof *room);
  PyObject *answer = room ? PyBool_FromLong(await_all(self, given, count, room)) : PyErr_NoMemory();
  if (room != on_stack) PyMem_Free(room);
  Py_DECREF(given);
  return answer;
}

static int wait_traverse(Wait *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->client);
  return 0;
}

static void wait_dealloc(PyObject *object) {
  PyObject_GC_UnTrack(object);
  Py_XDECREF((PyObject *)((Wait *)object)->client);
  free_object(object);
}

static PyType_Slot wait_slots[] = {
    {Py_tp_doc, "Waits for buffers: wait(buffers and tuples of them) -> whether all are there."},
    {Py_tp_init, wait_init},
    {Py_tp_call, wait_call},
    {Py_tp_traverse, wait_traverse},
    {Py_tp_dealloc, wait_dealloc},
    {0, NULL},
};
static PyType_Spec wait_spec = {"plugrt._core.Wait", sizeof(Wait), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, wait_slots};

int add_wait(PyObject *module) {
  Wait_Type = type_of(module, &wait_spec);
  return Wait_Type ? 0 : -1;
}
