/* Waits for the buffers of arrays, one or a tuple, and checks whether they are ready. After an
   error of the library or a failed computation, Python waits again and raises the exception. */
#include "library/internal.h"

/* The event of a buffer, NULL after a failure. Without the GIL, as the next functions. */
static PJRT_Event *event_of(Client *client, PJRT_Buffer *buffer) {
  NEW_ARGS(Buffer_ReadyEvent, args);
  args.buffer = buffer;
  return client_forget_error(client, client->ready_event(&args)) ? NULL : args.event;
}

static int destroy_event(Client *client, PJRT_Event *event) {
  NEW_ARGS(Event_Destroy, args);
  args.event = event;
  return !client_forget_error(client, client->destroy_event(&args));
}

/* 1 if the buffer is ready, else -1. */
static int await_buffer(Client *client, PJRT_Buffer *buffer) {
  NEW_ARGS(Event_Await, args);
  args.event = event_of(client, buffer);
  if (!args.event) return -1;
  int failed = client_forget_error(client, client->await_event(&args));
  return destroy_event(client, args.event) && !failed ? 1 : -1;
}

/* Whether the buffer is ready or its computation has failed; -1 if the library cannot report it. */
static int ask_buffer(Client *client, PJRT_Buffer *buffer) {
  NEW_ARGS(Event_IsReady, args);
  args.event = event_of(client, buffer);
  if (!args.event) return -1;
  int failed = client_forget_error(client, client->is_ready(&args));
  return destroy_event(client, args.event) && !failed ? args.is_ready : -1;
}

/* Calls `call` for each buffer while it returns 1; returns its last result. */
static int for_each(Client *client, int (*call)(Client *, PJRT_Buffer *), PJRT_Buffer *const *buffers,
                    Py_ssize_t count) {
  int last = 1;
  if (!count) return last;
  BEGIN_LIBRARY_CALL
  for (Py_ssize_t i = 0; last == 1 && i < count; i++) last = call(client, buffers[i]);
  END_LIBRARY_CALL
  return last;
}

static Py_ssize_t count_parts(PyObject *held) {
  return PyTuple_CheckExact(held) ? PyTuple_Size(held) : 1;
}

static PyObject *part_of(PyObject *held, Py_ssize_t part) {
  return PyTuple_CheckExact(held) ? PyTuple_GetItem(held, part) : held;
}

/* Sets the addresses of the buffers that are not known to be ready, from index `count` on. Returns
   whether all belong to the client and are usable. */
static int take_addresses(const Client *client, PyObject *held, PJRT_Buffer **taken, Py_ssize_t *count) {
  for (Py_ssize_t part = 0; part < count_parts(held); part++) {
    PyObject *buffer = part_of(held, part);
    PJRT_Buffer *address = buffer_to_launch(buffer, client);
    if (!address) return 0;
    if (!((Buffer *)buffer)->awaited) taken[(*count)++] = address;
  }
  return 1;
}

/* Records that they are ready: readers need not check again. */
static void note_awaited(PyObject *held) {
  for (Py_ssize_t part = 0; part < count_parts(held); part++)
    ((Buffer *)part_of(held, part))->awaited = 1;
}

/* Whether the client's buffers are waited for here. If puts are pending, Python waits, and releases
   sources that have been read. */
static int can_wait(const Client *client) {
  return client->ready_event && client->await_event && client->destroy_event &&
         client->destroy_error && !client->refused && !client->pending;
}

Client *client_of_held(PyObject *held) {
  PyObject *first = PyTuple_CheckExact(held) && PyTuple_Size(held) ? PyTuple_GetItem(held, 0) : held;
  return PyType_IsSubtype(Py_TYPE(first), Buffer_Type) ? ((Buffer *)first)->client : NULL;
}

int wait_for_held(Client *client, PyObject *held) {
  PJRT_Buffer *room[ON_STACK];
  Py_ssize_t count = 0;
  if (!can_wait(client) || count_parts(held) > ON_STACK) return NOT_HERE;
  if (!take_addresses(client, held, room, &count)) return NOT_HERE;
  if (for_each(client, await_buffer, room, count) != 1) return NOT_HERE;
  note_awaited(held);
  return DONE;
}

int held_is_ready(Client *client, PyObject *held) {
  PJRT_Buffer *room[ON_STACK];
  Py_ssize_t count = 0;
  if (!can_wait(client) || !client->is_ready || count_parts(held) > ON_STACK) return -1;
  if (!take_addresses(client, held, room, &count)) return -1;
  return for_each(client, ask_buffer, room, count);
}

static PyObject *wait_for_all(Client *client, PyObject *given, PJRT_Buffer **room) {
  Py_ssize_t count = 0;
  for (Py_ssize_t i = 0; i < PyTuple_Size(given); i++)
    if (!take_addresses(client, PyTuple_GetItem(given, i), room, &count)) Py_RETURN_FALSE;
  if (for_each(client, await_buffer, room, count) != 1) Py_RETURN_FALSE;
  for (Py_ssize_t i = 0; i < PyTuple_Size(given); i++) note_awaited(PyTuple_GetItem(given, i));
  Py_RETURN_TRUE;
}

PyObject *client_wait(PyObject *object, PyObject *sequence) {
  Client *client = (Client *)object;
  if (!can_wait(client)) Py_RETURN_FALSE;
  /* keeps the items alive if other threads change a list */
  PyObject *given = PySequence_Tuple(sequence);
  if (!given) return NULL;
  Py_ssize_t count = 0;
  for (Py_ssize_t i = 0; i < PyTuple_Size(given); i++) count += count_parts(PyTuple_GetItem(given, i));
  PJRT_Buffer *on_stack[4 * ON_STACK], **room = on_stack;
  if (count > 4 * ON_STACK) room = PyMem_Malloc(count * sizeof *room);
  PyObject *answer = room ? wait_for_all(client, given, room) : PyErr_NoMemory();
  if (room != on_stack) PyMem_Free(room);
  Py_DECREF(given);
  return answer;
}
