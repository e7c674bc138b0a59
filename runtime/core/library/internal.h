/* Declarations for the files of this folder alone; library.h has the ones for other folders. */
#ifndef PLUGRT_LIBRARY_INTERNAL_H
#define PLUGRT_LIBRARY_INTERNAL_H
#include "library/library.h"

/* Declares a function's arguments, all 0 except for their size. */
#define NEW_ARGS(name, args)          \
  struct PJRT_##name##_Args args;     \
  memset(&args, 0, sizeof args);      \
  args.struct_size = SIZE_OF_##name

/* client.c: the functions of a library that buffers and launches need. */
/* frees the error; whether there was one */
int client_forget_error(Client *self, PJRT_Error *error);

/* buffer.c: the base of plugrt.capi.buffers.buffer.Buffer. */
/* A new reference to the object that destroys the buffer from now on, for a view of its memory.
   NULL if the buffer has an owner in Python, or with an exception. Called under the lock of the
   client's handle. */
PyObject *buffer_share(Buffer *self);
/* Marks it unusable for that reason, if the library confirms that a launch donated it: DONE.
   NOT_HERE if Python has to do it. */
int buffer_donate(Buffer *self, PyObject *reason);

/* hold.c: buffers held while a launch is being made. */
/* Ends a hold that was counted in `holds`, and does a deletion that was requested meanwhile: as
   above. */
int buffer_end_hold(Buffer *buffer);

/* events.c: the completion events of a launch. */

/* references.c: external references to buffers. */
typedef struct {
  PyObject_HEAD
  Client *client;
  PyObject *lock; /* held while references are taken and released */
  PJRT_Error *(*increase)(struct PJRT_Buffer_IncreaseExternalReferenceCount_Args *);
  PJRT_Error *(*decrease)(struct PJRT_Buffer_DecreaseExternalReferenceCount_Args *);
} References;
extern PyTypeObject *References_Type;
/* Acquires an external reference, and sets a new reference to the owner of the buffer: DONE.
   NOT_HERE if Python has to do it; FAILED with an exception. */
int references_take(References *self, Buffer *buffer, PyObject **owner);
/* Calls `use` with the memory of a ready buffer while an external reference is held: results as for
   `references_take`. `use` runs without the GIL and under the lock, at most once; if the result is
   NOT_HERE it may not have run. */
int references_use(References *self, Buffer *buffer, void (*use)(void *, PJRT_Buffer *), void *with);
/* Releases it. Keeps the current exception, if any, or raises that of a signal meanwhile. */
void references_drop(References *self, PJRT_Buffer *buffer);

/* view.c: memory of buffers under NumPy arrays. */
PyObject *owner_for(Client *client, PJRT_Buffer *address);
PJRT_Buffer *owner_address(PyObject *owner);
/* A view of the memory of the owner's buffer. It steals the reference to the owner and an external
   reference to the buffer, also when it fails. */
PyObject *view_for(References *references, PyObject *owner);
void view_set(PyObject *view, void *data, Py_ssize_t size); /* before anybody reads it */

/* memory.c: whether an address is mapped. */
/* Whether the first and last of these bytes are mapped: DONE, FAILED. NOT_HERE if Python has to ask
   the system, which is needed for unknown pages unless `asks_system` is set. Needs no GIL. */
int memory_find(Client *client, uintptr_t begin, Py_ssize_t size, int asks_system);
void memory_note(Client *client, uintptr_t begin, Py_ssize_t size); /* records that they are */

/* wait.c */
PyObject *client_wait(PyObject *client, PyObject *sequence);

#endif
