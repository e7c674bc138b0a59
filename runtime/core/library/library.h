/* What runs on a library: its functions, buffers, puts, reads and executables. */
#ifndef PLUGRT_LIBRARY_H
#define PLUGRT_LIBRARY_H
#include "base/base.h"
#include "sizes.h"

enum { KNOWN_PAGES = 1024 };

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
  size_t size_of_options; /* of PJRT_ExecuteOptions, in the header that the library has */
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
extern PyTypeObject *Buffer_Type;
PyObject *buffer_holding(Client *client, PJRT_Buffer *address, PyObject *spec);
/* The address of a buffer of that client with which a launch can be made; NULL: Python has to look. */
PJRT_Buffer *buffer_to_launch(PyObject *object, const Client *client);

/* ---- hold.c: buffers that are needed while a launch is being made ---- */
typedef struct {
  PyObject *const *arguments; /* buffers of one client, or on several devices tuples of them */
  Py_ssize_t count, parts;
  PyObject *donated; /* the numbers of the arguments that it takes, a tuple; NULL for none */
} HeldLaunch;
int hold_arguments(const HeldLaunch *launch); /* DONE; NOT_HERE where Python has to see to it */
/* Ends it, and makes the deletions that came meanwhile: DONE, or FAILED where these are interrupted. */
int release_arguments(const HeldLaunch *launch);
PyObject *call_holding(PyObject *module, PyObject *args);
PyObject *delete_later(PyObject *module, PyObject *buffer);
int add_hold(void);

/* ---- events.c: the end of a launch on each of its devices ---- */
PyObject *events_for(Client *client, Py_ssize_t count);
PJRT_Event **events_of(PyObject *events); /* as many, NULL before a library sets them */
int events_are_set(PyObject *events);

/* ---- memory.c: whether the process has memory at an address ---- */
PyObject *is_readable(PyObject *module, PyObject *address);

/* ---- capsule.c: the ends of DLPack capsules ---- */
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

/* ---- put.c: host values to buffers ---- */
typedef struct {
  PyObject_HEAD
  Client *client;
  PyObject *spec, *owner; /* of the buffers; what explains errors */
  struct PJRT_Client_BufferFromHostBuffer_Args args; /* all but the data */
  PyObject *keep;                                    /* what the arguments point to */
  int dtype;                  /* its number */
  int number;                 /* whether the values are Python's numbers */
  PyObject *last, *last_made; /* the last number and its buffer */
} Put;
extern PyTypeObject *Put_Type;
/* Sets a new reference to the buffer: DONE. FAILED, or NOT_HERE, as a launch. */
int put_value(Put *self, PyObject *value, PyObject **made);
int put_anew(Put *self, PyObject *value, PyObject **made); /* nobody else has the buffer */

/* ---- for the module ---- */
int add_client(PyObject *module);
int add_buffer(PyObject *module);
int add_put(PyObject *module);
int add_references(PyObject *module);
int add_view(PyObject *module);
int add_freer(PyObject *module);
int add_reader(PyObject *module);
int add_executable(PyObject *module);
int add_events(PyObject *module);
PyObject *guard(PyObject *module, PyObject *args);
PyObject *take_caught(PyObject *module, PyObject *address);
PyObject *set_buffer_class(PyObject *module, PyObject *args);

#endif
