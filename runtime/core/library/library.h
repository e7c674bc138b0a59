/* A PJRT library: its functions, buffers, puts, reads and executables. */
#ifndef PLUGRT_LIBRARY_H
#define PLUGRT_LIBRARY_H
#include "base/base.h"
#include "sizes.h"

enum { KNOWN_PAGES = 1024 };

/* client.c: the functions of a library that buffers and launches need. */
typedef struct {
  PyObject_HEAD
  PJRT_Error *(*execute)(struct PJRT_LoadedExecutable_Execute_Args *);
  PJRT_Error *(*destroy)(struct PJRT_Buffer_Destroy_Args *);
  PJRT_Error *(*is_deleted)(struct PJRT_Buffer_IsDeleted_Args *);
  PJRT_Error *(*put)(struct PJRT_Client_BufferFromHostBuffer_Args *); /* NULL: Python puts */
  PJRT_Error *(*destroy_event)(struct PJRT_Event_Destroy_Args *);
  PJRT_Error *(*await_event)(struct PJRT_Event_Await_Args *);
  void (*destroy_error)(struct PJRT_Error_Destroy_Args *); /* NULL: Python launches */
  PJRT_Error *(*ready_event)(struct PJRT_Buffer_ReadyEvent_Args *); /* NULL: Python waits */
  PJRT_Error *(*is_ready)(struct PJRT_Event_IsReady_Args *);        /* NULL: Python checks */
  size_t size_of_options; /* size of PJRT_ExecuteOptions in the library's header */
  PyObject *pointer;     /* owner of the PJRT_Client, which outlives all objects of the client */
  PyObject *free_buffer; /* free_buffer(address): destroys a buffer if `destroy` is NULL */
  PyObject *log_failure; /* log_failure(function name, address of the error) */
  char refused;          /* launches and puts go to Python, which refuses them */
  char pending;          /* puts go to Python, which releases sources that have been read */
  /* pages known to be mapped, each at the index that its number gives */
  uintptr_t known_pages[KNOWN_PAGES];
  char closed;           /* puts go to Python, which refuses them; launches continue */
  char abandoned;        /* no more objects are destroyed */
} Client;
extern PyTypeObject *Client_Type;
void client_destroy_buffer(Client *self, PJRT_Buffer *address);
void client_log_failure(Client *self, const char *function, PJRT_Error *error);
/* The number of calls of libraries in progress, counted with the GIL held, and the number of forks.
   A call in which Python code forked is not counted in the child. */
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

/* buffer.c: the base of plugrt.capi.buffers.buffer.Buffer. */
typedef struct {
  PyObject_HEAD
  PJRT_Buffer *address; /* kept after a deletion: another thread may be launching with it */
  PyObject *pointer;    /* the same as a cffi pointer, made on first use */
  PyObject *spec;
  Client *client;
  PyObject *reason; /* why it is not usable, for messages */
  char usable;      /* neither deleted nor donated */
  char doomed;      /* to be deleted when the last hold ends */
  char awaited;     /* its contents are ready, and stay so until it is deleted or donated */
  unsigned holds, takers; /* launches in progress that use it, and that donate it; see hold.c */
  PyObject *view_owner;   /* destroys it once its memory has views; see view.c */
} Buffer;
extern PyTypeObject *Buffer_Type;
PyObject *buffer_holding(Client *client, PJRT_Buffer *address, PyObject *spec);
/* The address of a buffer of that client if a launch may use it; NULL: Python has to check. */
PJRT_Buffer *buffer_to_launch(PyObject *object, const Client *client);

/* hold.c: buffers held while a launch is being made. */
typedef struct {
  PyObject *const *arguments; /* buffers of one client, or on several devices tuples of buffers */
  Py_ssize_t count, parts;
  PyObject *donated; /* numbers of the donated arguments, a tuple; NULL for none */
} HeldLaunch;
int hold_arguments(const HeldLaunch *launch); /* DONE; NOT_HERE if Python has to handle it */
/* Ends the hold, and does the deletions that were requested meanwhile: DONE, or FAILED if these are
   interrupted. */
int release_arguments(const HeldLaunch *launch);
PyObject *call_holding(PyObject *module, PyObject *args);
PyObject *delete_later(PyObject *module, PyObject *buffer);
int add_hold(void);

/* events.c: the completion events of a launch. */
PyObject *events_for(Client *client, Py_ssize_t count);
PJRT_Event **events_of(PyObject *events); /* `count` pointers, NULL until a library sets them */
int events_are_set(PyObject *events);

/* memory.c: whether an address is mapped. */
PyObject *is_readable(PyObject *module, PyObject *address);

/* capsule.c: destructors of DLPack capsules. */
PyObject *capsule_destructor(PyObject *module, PyObject *unused);
PyObject *tensor_deleter(PyObject *module, PyObject *address);

/* read.c: buffers that the host can address. */
extern PyTypeObject *Reader_Type;
/* The contents of a buffer; NULL if Python has to read, perhaps with an exception. */
PyObject *reader_read(PyObject *reader, PyObject *buffer);

/* wait.c: waits for an array's buffer, or tuple of buffers. */
Client *client_of_held(PyObject *held); /* borrowed; NULL if it is anything else */
int wait_for_held(Client *client, PyObject *held); /* DONE; NOT_HERE if Python has to wait */
int held_is_ready(Client *client, PyObject *held); /* -1 if Python has to check */

/* executable.c: programs on the devices of a library. */
typedef struct {
  PyObject_HEAD
  Client *client;
  PJRT_LoadedExecutable *address;
  PyObject *pointer; /* owner of the executable at that address */
  /* types of the results, a tuple: all results of a device, then those of the next device */
  PyObject *specs;
  Py_ssize_t parts;  /* the number of devices */
  PyObject *ids;     /* iterator of launch ids; NULL: 0 */
  PJRT_Device **devices; /* devices, if the parts are launched one after the other; else NULL */
  enum { TOGETHER, UNTRIED, ONE_BY_ONE } order; /* how the parts are launched */
  PyObject *donated; /* numbers of the donated arguments, a tuple, once known */
  PyObject *reason;  /* reason that the deleted arguments show */
  int arity;         /* number of arguments, -1 before the first launch, which Python checks */
} Executable;
extern PyTypeObject *Executable_Type;
/* The inputs and outputs of a launch: for each device an array of its arguments, an array of its
   results, and an event. `events` is NULL if no events are requested. */
typedef struct {
  PJRT_Buffer ***arguments, ***results;
  PJRT_Event **events;
  size_t count; /* number of arguments */
} Execution;
/* Launches on all devices: DONE. FAILED with an exception, or sets the library's error. */
int executable_run(Executable *self, const Execution *execution, PJRT_Error **error);
/* Marks the donated arguments of a launch unusable: DONE, or NOT_HERE if Python has to do it. */
int executable_mark_donated(Executable *self, PyObject *const *arguments, Py_ssize_t count);

/* put.c: host values to buffers. */
typedef struct {
  PyObject_HEAD
  Client *client;
  PyObject *spec, *owner; /* spec of the buffers; owner explains errors */
  struct PJRT_Client_BufferFromHostBuffer_Args args; /* all arguments except the data */
  PyObject *keep;                                    /* keeps memory that the arguments point to */
  int dtype;                  /* number of the dtype */
  int number;                 /* whether the values are Python's numbers */
  PyObject *last, *last_made; /* the last number and its buffer */
} Put;
extern PyTypeObject *Put_Type;
/* Sets a new reference to the buffer: DONE. FAILED or NOT_HERE, as for a launch. */
int put_value(Put *self, PyObject *value, PyObject **made);
/* makes a buffer that nothing else refers to */
int put_anew(Put *self, PyObject *value, PyObject **made);

/* What module.c adds to the Python module. */
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
