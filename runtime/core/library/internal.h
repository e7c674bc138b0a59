/* Declarations for the files of this folder alone; library.h has the ones for other folders. */
#ifndef PLUGRT_LIBRARY_INTERNAL_H
#define PLUGRT_LIBRARY_INTERNAL_H
#include "library/library.h"

/* The arguments of a function of a library, all 0 but for their size. */
#define NEW_ARGS(name, args)          \
  struct PJRT_##name##_Args args;     \
  memset(&args, 0, sizeof args);      \
  args.struct_size = SIZE_OF_##name

/* ---- client.c: the functions of a library that buffers and launches need ---- */
int client_forget_error(Client *self, PJRT_Error *error); /* frees it; whether there was one */

/* ---- buffer.c: the base of plugrt.capi.buffers.buffer.Buffer ---- */
/* A new reference to what destroys the buffer from now on, for a view of its memory; NULL if it has an
   owner in Python, or with an exception. Under the lock of the client's handle. */
PyObject *buffer_share(Buffer *self);
/* Makes it unusable for that reason, where the library says that a launch took it: DONE. NOT_HERE if
   Python has to do it. */
int buffer_donate(Buffer *self, PyObject *reason);

/* ---- hold.c: buffers that are needed while a launch is being made ---- */
/* Ends one that was counted in `holds`, and makes the deletion that came meanwhile: as above. */
int buffer_end_hold(Buffer *buffer);

/* ---- events.c: the end of a launch on each of its devices ---- */

/* ---- references.c: external references to buffers ---- */
typedef struct {
  PyObject_HEAD
  Client *client;
  PyObject *lock; /* under which references are taken and released */
  PJRT_Error *(*increase)(struct PJRT_Buffer_IncreaseExternalReferenceCount_Args *);
  PJRT_Error *(*decrease)(struct PJRT_Buffer_DecreaseExternalReferenceCount_Args *);
} References;
extern PyTypeObject *References_Type;
/* Takes one, and sets a new reference to the owner of the buffer: DONE. NOT_HERE where Python has to;
   FAILED with an exception. */
int references_take(References *self, Buffer *buffer, PyObject **owner);
/* Has `use` look at the memory of a buffer that was waited for, while there is one: as `references_take`.
   Without the GIL, and under the lock: it is called once or, where the state is NOT_HERE, perhaps never. */
int references_use(References *self, Buffer *buffer, void (*use)(void *, PJRT_Buffer *), void *with);
/* Releases it; keeps the exception that is raised, if any, or raises that of a signal meanwhile. */
void references_drop(References *self, PJRT_Buffer *buffer);

/* ---- view.c: memory of buffers that arrays of NumPy are over ---- */
PyObject *owner_for(Client *client, PJRT_Buffer *address);
PJRT_Buffer *owner_address(PyObject *owner);
/* A view of the memory of the owner's buffer. It takes over that reference to the owner, and an
   external one to the buffer, also when it fails. */
PyObject *view_for(References *references, PyObject *owner);
void view_set(PyObject *view, void *data, Py_ssize_t size); /* before anybody reads it */

/* ---- memory.c: whether the process has memory at an address ---- */
/* Whether the first and the last of so many bytes are memory: DONE, FAILED. NOT_HERE if Python has to ask
   the system, which it does of pages that are not known without `asks_system`. Needs no GIL. */
int memory_find(Client *client, uintptr_t begin, Py_ssize_t size, int asks_system);
void memory_note(Client *client, uintptr_t begin, Py_ssize_t size); /* they are */

/* ---- wait.c ---- */
PyObject *client_wait(PyObject *client, PyObject *sequence);

#endif
