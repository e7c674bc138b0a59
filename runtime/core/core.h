/* What the files of the core share: its types, and calls of a library without the GIL.

   All of it is CPython's limited API, so that one build serves Python 3.11 and later. What an
   object of the core cannot do at once it leaves to the Python function that does the same. */
#ifndef PLUGRT_CORE_H
#define PLUGRT_CORE_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>
#include <structmember.h>
#include "sizes.h"

/* Calls with more arguments or results than this take memory from the heap. */
#define ON_STACK 32

/* The arguments of a function of a library, all 0 but for their size. */
#define NEW_ARGS(name, args)          \
  struct PJRT_##name##_Args args;     \
  memset(&args, 0, sizeof args);      \
  args.struct_size = SIZE_OF_##name

/* A function of a library or of NumPy, whose address is a number or a pointer. */
#define SET_FUNCTION(field, address) ((field) = (__typeof__(field))(uintptr_t)(address))

enum { FAILED = -1, NOT_HERE = 0, DONE = 1 }; /* of what Python does where it is NOT_HERE */

enum { KNOWN_PAGES = 1024, PAGE_BITS = 12 };
enum { MAX_RANK = 6 }; /* of what the core looks at more closely; host values of more are Python's */

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

/* ---- spares.c: memory of freed objects of a class ---- */
#ifdef __SANITIZE_ADDRESS__ /* which finds the use of what was freed */
enum { MOST_SPARES = 0 };
#else
enum { MOST_SPARES = 64 };
#endif
typedef struct {
  PyTypeObject *type; /* kept for ever; collected */
  allocfunc alloc;
  freefunc free;
  size_t size; /* of an object, in bytes */
  int count;
  PyObject *kept[MOST_SPARES + 1];
} Spares;
int spares_init(Spares *self, PyTypeObject *type); /* 0, or -1 with an exception */
PyObject *spares_make(Spares *self);               /* as tp_alloc */
void spares_free(Spares *self, PyObject *object);  /* the end of tp_dealloc, of exactly that class */

/* ---- buffer.c: the base of plugrt.capi.buffer.Buffer ---- */
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
  unsigned holds, takers; /* launches under way that need it, and that take it; see holds.c */
  PyObject *lent;   /* what destroys it, once its memory is viewed; see view.c */
} Buffer;
extern PyTypeObject *Buffer_Type, *buffer_class;
PyObject *buffer_holding(Client *client, PJRT_Buffer *address, PyObject *spec);
/* The address of a buffer of that client with which a launch can be made; NULL: Python has to look. */
PJRT_Buffer *buffer_to_launch(PyObject *object, const Client *client);
/* A new reference to what destroys the buffer from now on, for a view of its memory; NULL if it has an
   owner in Python, or with an exception. Under the lock of the client's handle. */
PyObject *buffer_share(Buffer *self);
/* Makes it unusable for that reason, where the library says that a launch took it: DONE. FAILED with
   the library's error; NOT_HERE if Python has to do it. */
int buffer_donate(Buffer *self, PyObject *reason, PJRT_Error **failure);

/* ---- holds.c: buffers that are needed while a launch is being made ---- */
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
int add_holds(void);

/* ---- array.c: the base of plugrt.execution.array.Array ---- */
typedef struct {
  PyObject_HEAD
  PyObject *shards, *signature, *extra; /* NULL is None */
  char is_there; /* whether the contents were waited for */
} Array;
extern PyTypeObject *Array_Type, *array_class;
PyObject *array_holding(PyObject *shards, PyObject *signature); /* takes the reference to shards */
/* Whether an object of that class is referred to weakly, as arrays are that share buffers. */
int array_is_observed(PyObject *array);

/* ---- deletion.c: the base of plugrt.execution.deletion.Deletion ---- */
PyObject *deletion_for(PyObject *taker); /* a donation to it, in the call of the user that runs */

/* ---- dtypes.c: what NumPy's values hold ---- */
int number_of_dtype(PyObject *dtype); /* the same for equal ones; 0 for those that are not known */
/* The number of a value's dtype, with a view of its elements; 0, and no view, for anything else. */
int view_host(PyObject *value, Py_buffer *view);
int view_known(PyObject *value, Py_buffer *view); /* the same, but runs nothing of Python */
int is_host_data(PyObject *value); /* whether it may have one */

/* ---- host_avals.c: host values in the key of a call ---- */
/* The aval, a new reference; NULL where Python has to take the call, perhaps with an exception that
   is not derived from Exception. */
PyObject *host_aval(PyObject *value, PyObject *token);
int is_host_value(PyObject *value); /* whether it may have an aval */
PyObject *known_host_aval(PyObject *value, PyObject *token); /* borrowed; NULL if Python has to look */

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

/* ---- copy.c: arrays to buffers on another device of the same library ---- */
extern PyTypeObject *Copy_Type;
/* Sets a new reference to the copy of an array's buffer: DONE. FAILED, or NOT_HERE, as a launch. */
int copy_array(PyObject *self, PyObject *array, PyObject **made);
int copy_is_made(PyObject *self);

/* ---- quick_put.c: device_put ---- */
PyObject *put_quickly(PyObject *module, PyObject *args);

/* The head of what launches one program: a Launcher or a FunctionLauncher. `launch` takes arguments
   that the caller holds, and sets one new reference for each of the `produced` results: DONE.
   FAILED with an exception; NOT_HERE if Python has to do it, as `is_ready` (unless NULL) foresees. */
typedef struct {
  PyObject_HEAD
  int (*launch)(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject **results);
  /* As `launch`, and sets what waits, when it is called, until the launch has ended; NULL: none. */
  int (*launch_with_wait)(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                          PyObject **results, PyObject **wait);
  int (*is_ready)(PyObject *self, Py_ssize_t count);
  Py_ssize_t produced;
} Launching;
int is_launching(PyObject *object); /* whether it is one of the classes that begin with this */

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
/* What lends the memory of the owner's buffer. It takes over that reference to the owner, and an
   external one to the buffer, also when it fails. */
PyObject *view_for(References *references, PyObject *owner);
void view_set(PyObject *view, void *data, Py_ssize_t size); /* before anybody reads it */

/* ---- host_form.c: arrays of NumPy over memory of others ---- */
typedef struct {
  PyObject *dtype;
  Py_ssize_t *dims; /* and after them the strides, in bytes */
  Py_ssize_t size;  /* in bytes */
  int rank;
} HostForm;
int host_form_init(HostForm *self, PyObject *shape, PyObject *dtype); /* 0, or -1 with an exception */
/* A read-only array over that memory, in row-major order, which `owner` keeps. */
PyObject *host_form_over(const HostForm *self, void *data, PyObject *owner);
void host_form_clear(HostForm *self);
int find_numpy(void); /* 0, or -1 with an exception */

/* ---- memory.c: whether the process has memory at an address ---- */
/* Whether the first and the last of so many bytes are memory: DONE, FAILED. NOT_HERE if Python has to ask
   the system, which it does of pages that are not known without `asks_system`. Needs no GIL. */
int memory_find(Client *client, uintptr_t begin, Py_ssize_t size, int asks_system);
void memory_note(Client *client, uintptr_t begin, Py_ssize_t size); /* they are */
PyObject *is_readable(PyObject *module, PyObject *address);

/* ---- read.c: buffers that the host addresses ---- */
extern PyTypeObject *Reader_Type;
/* The contents of a buffer; NULL where Python has to read, perhaps with an exception. */
PyObject *reader_read(PyObject *reader, PyObject *buffer);

/* ---- wait.c: many buffers waited for at once ---- */
extern PyTypeObject *Wait_Type;

/* ---- collect_held.c: what the arrays of a pytree hold ---- */
/* collect_held(tree): lists of what its arrays hold, and of their signatures; None where Python has to
   look. */
PyObject *collect_held(PyObject *module, PyObject *tree);

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
/* Makes the arguments of a launch that it took unusable: DONE, NOT_HERE if Python has to, or FAILED
   with the library's error. */
int executable_mark_donated(Executable *self, PyObject *const *arguments, Py_ssize_t count,
                            PJRT_Error **error);

/* ---- launcher.c: launches of these ---- */
typedef struct {
  Launching head;
  Executable *executable;
  PyObject *owner; /* the plugrt.capi.loaded_executable.LoadedExecutable */
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
void raise_error(Launcher *self, PJRT_Error *error); /* of another function than a launch */

/* ---- gifts.c: the arguments of a launch by functions that it takes ---- */
typedef struct {
  Py_ssize_t *numbers, count;
  PyObject *is_deleted, *delete; /* of one argument */
} Gifts;
/* `arity` is above all numbers. -1 with an exception; may be called again then. */
int gifts_init(Gifts *self, PyObject *donated, Py_ssize_t arity, PyObject *is_deleted,
               PyObject *delete);
/* Whether none of them is another argument as well. */
int gifts_are_given_once(const Gifts *self, PyObject *const *arguments, Py_ssize_t count);
/* Deletes those that the launch left alone: DONE, or FAILED. */
int gifts_end(const Gifts *self, PyObject *const *arguments, Py_ssize_t count);
int gifts_visit(const Gifts *self, visitproc visit, void *arg);
void gifts_drop(Gifts *self);

/* ---- shards_launcher.c: launches on several devices through functions that a backend gives ---- */
typedef struct {
  Launching head;
  PyObject *owner;      /* owner.execute(arguments): the same in Python */
  PyTypeObject *cls;    /* of shards */
  PyObject *parameters; /* the type of each argument, a tuple */
  PyObject *place;      /* of the arguments */
  PyObject *results;    /* the type and the place of each result, a tuple of pairs */
  PyObject *launches;   /* (launch, launch with a token, what `take` takes): one, or one a device,
                           whose tokens shards keep as `_ends` */
  PyObject *take;       /* take(launched, …, False): the arrays of the results */
  PyObject *take_token; /* take_token(launched) */
  PyObject *make_wait;  /* make_wait(token): what waits for the launch; without one, of None */
  PyObject *is_deleted; /* is_deleted(array) */
  PyObject *prepare;    /* prepare(), before each launch */
  PyObject *lock;       /* held from the look at the arguments until they are launched with */
  PyObject *unless;     /* tuple: while one of these is not empty, Python launches */
  PyObject *explain;    /* explain(error): the exception to raise */
  PyObject *tidy;       /* tidy(), as `tidy_up` calls it */
  Gifts gifts;          /* arrays of each launch; none where there is one on all devices */
  unsigned count;       /* of launches */
} ShardsLauncher;
extern PyTypeObject *ShardsLauncher_Type;
/* As `launch_with_wait`; nothing to wait for is wanted where that is NULL. */
int shards_launch(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject **results,
                  PyObject **wait);
int set_shards_names(void);

/* ---- bounded_launcher.c: launches of which few may be under way at a time ---- */
extern PyTypeObject *BoundedLauncher_Type;

/* ---- lock.c: locks, the core's own and others ---- */
int acquire_lock(PyObject *lock); /* DONE */
int release_lock(PyObject *lock); /* DONE; needs no memory, for want of which it would stay locked */

/* ---- array_host.c: the host copies of arrays ---- */
PyObject *array_host(PyObject *array, PyObject *unused);
PyObject *array_to_numpy(PyObject *array, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* ---- array_buffer.c: the buffers of arrays for Python's protocol ---- */
int array_getbuffer(PyObject *array, Py_buffer *view, int flags);
void set_buffer_method(PyObject *method);

/* ---- function_reader.c: reads through functions that a backend gives ---- */
extern PyTypeObject *FunctionReader_Type;
/* Whether one of the objects in a tuple is not empty; -1 with an exception. */
int any_is_filled(PyObject *gates);
/* The contents of what an array holds, which are waited for unless they are there; NULL where Python has to read, perhaps with an exception. */
PyObject *function_reader_read(PyObject *reader, PyObject *held, int is_there);

/* ---- function_launcher.c: launches through functions that a backend gives ---- */
extern PyTypeObject *FunctionLauncher_Type;
/* Calls tidy() at each thousandth launch; NULL has nothing to do. DONE, or FAILED. */
int tidy_up(PyObject *tidy, unsigned *launches);

/* ---- tree.c: leaves to pytrees ---- */
extern PyTypeObject *Tree_Type;
Py_ssize_t tree_leaves(PyObject *tree);
PyObject *tree_build(PyObject *tree, PyObject *const *leaves);

/* ---- outputs.c: the results of a launch to what the call returns ---- */
extern PyTypeObject *Outputs_Type;
Py_ssize_t outputs_count(PyObject *outputs);
/* Whether they are made, and those of a call with so many arguments, and so many results. */
int outputs_fit(PyObject *outputs, Py_ssize_t arity, Py_ssize_t produced);
/* Sets the array of each output that is no result, NULL for the others: DONE. Before the launch: what
   would take the buffers from now on finds that another array has them. NOT_HERE where Python has to
   look, FAILED with an exception; what is set then is to be dropped. */
int outputs_pass_on(PyObject *outputs, PyObject *const *values, PyObject **arrays);
void outputs_drop(PyObject *outputs, PyObject **arrays);
/* Takes the results and sets the arrays of these; 0, or -1 with an exception. */
int outputs_wrap(PyObject *outputs, PyObject **results, Py_ssize_t produced, PyObject **arrays);
PyObject *outputs_put_together(PyObject *outputs, PyObject **arrays); /* takes the arrays */

/* ---- donation.c: the arguments of a call that its launch takes ---- */
typedef struct {
  Py_ssize_t count;
  Py_ssize_t *numbers; /* which arguments of the call these are */
  PyObject *taker;     /* the name of the function, for those who use them afterwards */
} Donation;
/* Sets numbers of arguments of a call from a tuple and returns how many; -1 with an exception. */
Py_ssize_t read_numbers(PyObject *given, Py_ssize_t arity, Py_ssize_t **numbers);
int donation_read(Donation *self, PyObject *donated, Py_ssize_t arity, PyObject *taker);
/* Whether all are kept, and not put: what is not looked at before the launch need not be an array. */
int donation_is_among(const Donation *self, const Py_ssize_t *kept, Py_ssize_t count,
                      PyObject *puts);
/* Takes from the arrays what they have, before the launch, and says that it is gone; `taken` has room
   for two of each. DONE; NOT_HERE where Python has to look, as another array may have the buffers;
   FAILED with an exception. */
int donation_take(const Donation *self, PyObject *const *values, PyObject **taken);
/* After the launch: drops what was taken, or gives it back where there was no launch. */
void donation_end(const Donation *self, PyObject *const *values, PyObject **taken, int launched);
void donation_drop(Donation *self);

/* ---- placing.c: what puts or copies an argument of a call ---- */
/* Sets an array of `count` of them, new references, NULL for None: 0, or -1 with an exception. */
int placings_read(PyObject *given, Py_ssize_t count, PyObject ***placings);
/* Sets a new reference to what the launch takes of a value: DONE. FAILED, or NOT_HERE, as a launch. */
int place_value(PyObject *placing, PyObject *value, PyObject **made);

/* ---- runner.c: a call's arrays to what it returns ---- */
extern PyTypeObject *Runner_Type;
/* `given` is the same sequence of arguments as an object, for Python; or NULL. */
PyObject *runner_run(PyObject *self, PyObject *given, PyObject *const *values, Py_ssize_t count);

/* ---- reordered.c: a runner, for the same arguments in another order ---- */
extern PyTypeObject *Reordered_Type;
PyObject *reordered_run(PyObject *self, PyObject *const *values, Py_ssize_t count);

/* Calls what runs a call: one of these, or a function of its arguments as a tuple. */
PyObject *run_any(PyObject *runner, PyObject *given, PyObject *const *values, Py_ssize_t count);

/* ---- static_arguments.c ---- */
typedef struct {
  PyObject *nums, *names; /* sets of those arguments; NULL for none */
} Statics;
/* Whether the argument of that name, or without one of that number, is static; -1 with an exception. */
int is_static(const Statics *which, PyObject *name, Py_ssize_t number);
/* Appends (where, key of the value), and takes the reference to `where`; makes the list first. */
int take_static(PyObject **statics, PyObject *where, PyObject *value);
/* Appends, and takes the reference; NULL has an exception set. */
int append_new(PyObject *list, PyObject *item);
void set_static_key(PyObject *function);

/* ---- call_form.c: a call taken apart ---- */
enum { FLAT, ONE_LEVEL, NESTED };
typedef struct {
  PyObject **leaves; /* new references */
  Py_ssize_t count, room;
  PyObject *structure; /* stands for the containers and keywords; None without any */
  PyObject *statics;   /* stands for the static arguments, a tuple */
  int level; /* how deep containers are: FLAT, ONE_LEVEL, NESTED */
  PyObject *on_stack[ON_STACK];
} CallForm;
/* Takes a call apart: DONE, FAILED with an exception, or NOT_HERE. What it took is the caller's to
   drop. */
int call_form_take(CallForm *form, PyObject *args, PyObject *kwargs, const Statics *which);
void call_form_drop(CallForm *form);
int set_form_names(void);

/* ---- thread_state.c: what surrounds the calls of a thread ---- */
PyObject *settings_token(void); /* its settings, a new reference */
/* The same where the thread traces no function, else NULL, perhaps with an exception. */
PyObject *token_outside_traces(void);
int is_guarded(void); /* whether its settings have transfers looked at; -1 with an exception */
/* change_surroundings(object, name, value): sets an attribute on which these depend. */
PyObject *change_surroundings(PyObject *module, PyObject *args);
int set_trace_state(PyObject *state);

/* ---- call_key.c ---- */
typedef struct {
  PyObject *token, *args, *kwargs; /* kwargs may be NULL */
} Call;
/* A new reference, by which a dict has the runner; NULL, perhaps with an exception, for what Python
   has to call. `form` is NULL where the values are all there is of the call. Sets the avals of the
   values, which live as long as the key. */
PyObject *call_key(const Call *call, const CallForm *form, PyObject *const *values,
                   PyObject **avals, Py_ssize_t count);

/* ---- last_call.c: the runner of a function's last call ---- */
typedef struct {
  PyObject *name;  /* of a keyword */
  PyObject *fixed; /* the value, if the argument is static; else NULL */
  PyObject *aval;  /* else that of the value */
} CallPart;
typedef struct LastCall {
  PyObject *token, *runner; /* NULL where none is kept */
  CallPart *parts;          /* the arguments by position, then those by keyword */
  Py_ssize_t positional, named;
  PyObject *runners;               /* the dict that has the runner, to compare with */
  PyObject *candidate;             /* the runner that is kept if it is found again, to compare with */
  struct LastCall *before, *after; /* of all that are kept */
} LastCall;
/* A new reference to the runner of a call that is like the last one, and its values, borrowed from
   the arguments; NULL, without an exception, if it is another. It runs nothing of Python. */
PyObject *last_call_find(const LastCall *self, const Call *call, PyObject **values,
                         Py_ssize_t *count);
/* Keeps the runner of a call without containers, at once after it was found in a dict. */
void last_call_keep(LastCall *self, const Call *call, const Statics *statics,
                    PyObject *const *avals, Py_ssize_t count, PyObject *runners, PyObject *runner);
void last_call_forget(LastCall *self);
int last_call_visit(LastCall *self, visitproc visit, void *arg);

/* ---- calls.c: the base of jitted functions ---- */
extern PyTypeObject *Calls_Type;

/* ---- exceptions.c ---- */
/* The exception that is set, with its traceback, taken; NULL if it is none derived from Exception,
   which stays set. */
PyObject *take_exception(void);
void raise_exception(PyObject *exception); /* takes the reference */
/* Drops what Python refuses in its own words, or does not meet: whether it is left to it. */
int leave_to_python(void);
int is_interrupted(void); /* whether one is set that is not derived from Exception */
/* What is set, if anything, while something is done that may raise as well. */
typedef struct {
  PyObject *type, *value, *traceback;
} Raised;
Raised set_aside(void);
/* Sets it again. What was raised meanwhile is reported, as of that object; an interrupt stays raised
   instead, and has the other as its context. */
void put_back(Raised raised, PyObject *where);
/* The same, but an interrupt is reported as well, where nobody could take it from here. */
void put_back_alone(Raised raised, PyObject *where);

/* ---- module.c ---- */
PyObject *tuple_of(PyObject *const *items, Py_ssize_t count); /* of new references */
PyTypeObject *type_of(PyObject *module, PyType_Spec *spec); /* adds it to the module */
void free_object(PyObject *object); /* ends the tp_dealloc of a collected type */
int add_client(PyObject *module);
int add_buffer(PyObject *module);
int add_array(PyObject *module);
int add_deletion(PyObject *module);
int add_put(PyObject *module);
int add_copy(PyObject *module);
int add_references(PyObject *module);
int add_view(PyObject *module);
int add_reader(PyObject *module);
int add_executable(PyObject *module);
int add_launcher(PyObject *module);
int add_events(PyObject *module);
int add_wait(PyObject *module);
int add_lock(PyObject *module);
int add_bounded_launcher(PyObject *module);
int add_shards_wait(PyObject *module);
int add_shards_launcher(PyObject *module);
int add_function_launcher(PyObject *module);
int add_function_reader(PyObject *module);
int add_tree(PyObject *module);
int add_outputs(PyObject *module);
int add_runner(PyObject *module);
int add_reordered(PyObject *module);
int add_calls(PyObject *module);
PyObject *set_buffer_class(PyObject *module, PyObject *args);
PyObject *set_array_class(PyObject *module, PyObject *cls);
PyObject *set_deletion_class(PyObject *module, PyObject *args);
PyObject *set_call_hooks(PyObject *module, PyObject *args);
PyObject *set_dtypes(PyObject *module, PyObject *args);
PyObject *set_read_hooks(PyObject *module, PyObject *args);
PyObject *set_host_hooks(PyObject *module, PyObject *finding);
PyObject *set_settings_hooks(PyObject *module, PyObject *args);
PyObject *forget_runners(PyObject *module, PyObject *runners);

#endif
