/* What runs on a library: its functions, buffers, reads, executables and launches. */
#ifndef PLUGRT_LIBRARY_H
#define PLUGRT_LIBRARY_H

/* ---- client.c: the functions of a library that buffers and launches need ---- */
typedef struct {
  PyObject_HEAD
  PJRT_Error *(*execute)(struct PJRT_LoadedExecutable_Execute_Args *);
  PJRT_Error *(*destroy)(struct PJRT_Buffer_Destroy_Args *);
  PJRT_Error *(*is_deleted)(struct PJRT_Buffer_IsDeleted_Args *);
  PJRT_Error *(*put)(struct PJRT_Client_BufferFromHostBuffer_Args *); /* NULL: Python puts */
  PJRT_Error *(*destroy_event)(struct PJRT_Event_Destroy_Args *);
  PJRT_Error *(*await_event)(struct PJRT_Event_Await_Args *);
  void (*destroy_error)(struct PJRT_Error_Destroy_Args *); /* NULL: launches are Python's */
  PJRT_Error *(*ready_event)(struct PJRT_Buffer_ReadyEvent_Args *); /* NULL: Python waits */
  PJRT_Error *(*is_ready)(struct PJRT_Event_IsReady_Args *);        /* NULL: Python asks */
  size_t size_of_options; /* of PJRT_ExecuteOptions, in the version that the library has */
  PyObject *pointer;     /* what owns the PJRT_Client: it outlives all that was made of it */
  PyObject *free_buffer; /* free_buffer(address): destroys one where `destroy` is NULL */
  PyObject *log_failure; /* log_failure(name of the function, address of the error) */
  char refused;          /* launches and puts go to Python, which refuses them */
  char pending;          /* puts go to Python, which lets go of sources that are read by now */
  uintptr_t known_pages[KNOWN_PAGES]; /* of memory, each where its number says */
  char closed;           /* puts go to Python, which refuses them; launches go on */
  char abandoned;        /* nothing is destroyed any more */
} Client;
extern PyTypeObject *Client_Type;
void client_destroy_buffer(Client *self, PJRT_Buffer *address);
void client_log_failure(Client *self, const char *function, PJRT_Error *error);
int client_forget_error(Client *self, PJRT_Error *error); /* frees it; whether there was one */

/* The calls of libraries that threads are in, counted with the GIL held; and the forks up to here:
   a call during which a function of Python forked is not the child's. */
extern Py_ssize_t calls_under_way, forks;
#define BEGIN_LIBRARY_CALL                              \
  {                                                     \
    Py_ssize_t forks_before_ = forks;                   \
    calls_under_way++;                                  \
    PyThreadState *thread_state_ = PyEval_SaveThread();
#define END_LIBRARY_CALL                                \
  PyEval_RestoreThread(thread_state_);                  \
  if (forks == forks_before_) calls_under_way--;        \
  }

/* ---- buffer.c: the base of plugrt.capi.buffers.buffer.Buffer ---- */
typedef struct {
  PyObject_HEAD
  PJRT_Buffer *address; /* kept after a deletion: another thread may be launching with it */
  PyObject *pointer;    /* the same as a cffi pointer, made when it is asked for */
  PyObject *spec;
  Client *client;
  PyObject *reason; /* why it is not usable, as messages say it */
  char usable;      /* neither deleted nor donated */
  char doomed;      /* to be deleted when the last hold ends */
  char awaited;     /* its contents are there, and stay so until it is deleted or donated */
  unsigned holds, takers; /* launches under way that need it, and that take it; see hold.c */
  PyObject *view_owner;   /* what destroys it, once its memory is viewed; see view.c */
} Buffer;
extern PyTypeObject *Buffer_Type, *buffer_class;
PyObject *buffer_holding(Client *client, PJRT_Buffer *address, PyObject *spec);
/* The address of a buffer of that client with which a launch can be made; NULL: Python has to look. */
PJRT_Buffer *buffer_to_launch(PyObject *object, const Client *client);
/* A new reference to what destroys the buffer from now on, for a view of its memory; NULL if it has an
   owner in Python, or with an exception. Under the lock of the client's handle. */
PyObject *buffer_share(Buffer *self);
/* Makes it unusable for that reason, where the library says that a launch took it: DONE. NOT_HERE if
   Python has to do it. */
int buffer_donate(Buffer *self, PyObject *reason);

/* ---- hold.c: buffers that are needed while a launch is being made ---- */
typedef struct {
  PyObject *const *arguments; /* buffers of one client, or on several devices tuples of them */
  Py_ssize_t count, parts;
  PyObject *donated; /* the numbers of the arguments that it takes, a tuple; NULL for none */
} HeldLaunch;
int hold_arguments(const HeldLaunch *launch); /* DONE; NOT_HERE where Python has to see to it */
/* Ends it, and makes the deletions that came meanwhile: DONE, or FAILED where these are interrupted. */
int release_arguments(const HeldLaunch *launch);
/* Ends one that was counted in `holds`, and makes the deletion that came meanwhile: as above. */
int buffer_end_hold(Buffer *buffer);
PyObject *call_holding(PyObject *module, PyObject *args);
PyObject *delete_later(PyObject *module, PyObject *buffer);
int add_hold(void);

/* ---- events.c: the end of a launch on each of its devices ---- */
extern PyTypeObject *Events_Type;
PyObject *events_for(Client *client, Py_ssize_t count);
PJRT_Event **events_of(PyObject *events); /* as many, NULL before a library sets them */
int events_are_set(PyObject *events);

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
PyObject *is_readable(PyObject *module, PyObject *address);
PyObject *capsule_destructor(PyObject *module, PyObject *unused);
PyObject *tensor_deleter(PyObject *module, PyObject *address);

/* ---- read.c: buffers that the host addresses ---- */
extern PyTypeObject *Reader_Type;
/* The contents of a buffer; NULL where Python has to read, perhaps with an exception. */
PyObject *reader_read(PyObject *reader, PyObject *buffer);

/* ---- wait.c: waits for what arrays hold: a buffer, or a tuple of them ---- */
Client *client_of_held(PyObject *held); /* borrowed; NULL if it is something else */
int wait_for_held(Client *client, PyObject *held); /* DONE; NOT_HERE where Python has to wait */
int held_is_ready(Client *client, PyObject *held); /* -1 where Python has to ask */
PyObject *client_wait(PyObject *client, PyObject *sequence);

/* ---- executable.c: programs on the devices of a library ---- */
typedef struct {
  PyObject_HEAD
  Client *client;
  PJRT_LoadedExecutable *address;
  PyObject *pointer; /* what owns the executable at that address */
  PyObject *specs;   /* the type of each result, a tuple: those on one device after another's */
  Py_ssize_t parts;  /* the number of devices */
  PyObject *ids;     /* the ids of launches, an iterator; NULL: 0 */
  PJRT_Device **devices; /* these, where one part after the other is launched; else NULL */
  enum { TOGETHER, UNTRIED, ONE_BY_ONE } order; /* how the parts are launched */
  PyObject *donated; /* the numbers of the arguments that a launch takes, a tuple, once known */
  PyObject *reason;  /* what is said of those afterwards */
  int arity;         /* the number of arguments, -1 before the first launch, which Python checks */
} Executable;
extern PyTypeObject *Executable_Type;
/* What the launch of a program is given and gives: of each device an array with its arguments, one
   with its results, and an event; `events` is NULL if none are asked for. */
typedef struct {
  PJRT_Buffer ***arguments, ***results;
  PJRT_Event **events;
  size_t count; /* of arguments */
} Execution;
/* Launches on all devices: DONE. FAILED with an exception, or the library's error. */
int executable_run(Executable *self, const Execution *execution, PJRT_Error **error);
/* Makes the arguments of a launch that it took unusable: DONE, or NOT_HERE if Python has to. */
int executable_mark_donated(Executable *self, PyObject *const *arguments, Py_ssize_t count);

/* ---- launcher.c: launches of these ---- */
typedef struct {
  Launching head;
  Executable *executable;
  PyObject *owner; /* the plugrt.capi.programs.loaded_executable.LoadedExecutable */
  PyObject *mark;  /* marks the arguments that a launch donated, as far as they are not known */
} Launcher;
extern PyTypeObject *Launcher_Type;

/* ---- launch_results.c: what a launch that was made gave and took ---- */
/* Sets the results: DONE, or FAILED. The library took what is donated in any case. `made` has those of
   each device, of which none is left, and `room` is for the parts of one result. */
int finish_launch(Launcher *self, PyObject *const *arguments, Py_ssize_t count, PJRT_Buffer **made,
                  PyObject **room, PyObject **results);
void drop_results(Launcher *self, PyObject **results);

/* ---- launch_errors.c: what becomes of a launch that failed ---- */
/* Raises what a method of the owner returns for the address of an error and the arguments. */
void raise_launch_error(Launcher *self, PJRT_Error *error, PyObject *const *arguments,
                        Py_ssize_t count);
/* Raises that one of these results is NULL, and destroys the others. */
void raise_missing_result(Launcher *self, PJRT_Buffer *const *made, Py_ssize_t count);
void raise_missing_event(Launcher *self);

#endif
