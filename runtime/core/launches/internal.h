/* Declarations for the files of this folder alone; launches.h has the ones for other folders. */
#ifndef PLUGRT_LAUNCHES_INTERNAL_H
#define PLUGRT_LAUNCHES_INTERNAL_H
#include "launches/launches.h"
#include "library/library.h"

/* donated.c: the donated arguments of a launch by functions. */
typedef struct {
  Py_ssize_t *numbers, count;
  PyObject *is_deleted, *delete; /* functions of one argument */
} Donated;
/* `arity` exceeds all numbers. -1 with an exception; it may be called again then. */
int donated_init(Donated *self, PyObject *donated, Py_ssize_t arity, PyObject *is_deleted,
               PyObject *delete);
/* Whether no donated argument is passed twice. */
int is_donated_once(const Donated *self, PyObject *const *arguments, Py_ssize_t count);
/* Deletes the donated arguments that the launch did not delete: DONE, or FAILED. */
int donated_end(const Donated *self, PyObject *const *arguments, Py_ssize_t count);
int donated_visit(const Donated *self, visitproc visit, void *arg);
void donated_drop(Donated *self);

/* launching.c: the base of all launchers. */
/* The first fields of all launchers; one launcher launches one program. */
typedef struct {
  PyObject_HEAD
  /* Launches with arguments that the caller holds, and sets one new reference for each of the
     `produced` results: DONE. FAILED with an exception. NOT_HERE if Python has to launch, which
     `is_ready` (unless NULL) predicts. If `gives_wait` is set and `wait` is not NULL, it is set to
     an object that waits, when called, until the launch has ended. */
  int (*launch)(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject **results,
                PyObject **wait);
  int (*is_ready)(PyObject *self, Py_ssize_t count);
  /* launches in Python, if the result was NOT_HERE */
  PyObject *(*in_python)(PyObject *self, PyObject *arguments);
  Py_ssize_t produced;
  int gives_wait;
  /* whether a launch waits for other uses of its donated arguments; these may wait for it */
  int waits_for_uses;
  Donated donated;    /* for a launch by functions */
  Py_ssize_t kept;    /* number of objects that follow this head, which the launcher references */
} Launching;
/* Adds a class of launchers. If `is_called` is set, its objects launch in Python when called,
   launcher(arguments) -> list of results. 0, or -1 with an exception. */
int add_launching(PyObject *module, const char *name, const char *doc, size_t size, initproc init,
                  int is_called);
int is_launching(PyObject *object); /* whether it is of one of these classes */
/* Sets the objects that the launcher references: new references; some may be NULL. */
void keep_objects(Launching *self, PyObject *const *objects, Py_ssize_t count);
PyObject *none_as_null(PyObject *object);

/* launcher.c: launches of a library's program. */
typedef struct {
  Launching head;
  Executable *executable;
  PyObject *owner; /* the plugrt.capi.programs.loaded_executable.LoadedExecutable */
  PyObject *mark;  /* marks arguments as donated, if their numbers are not known yet */
} Launcher;

/* launch_results.c: the results and donated arguments of a launch. */
/* Sets the results: DONE, or FAILED. In both cases the library has the donated arguments. `made`
   has the results of each device; all are used or freed. `room` is for the parts of one result. */
int finish_launch(Launcher *self, PyObject *const *arguments, Py_ssize_t count, PJRT_Buffer **made,
                  PyObject **room, PyObject **results);
void drop_results(Launcher *self, PyObject **results);

/* launch_errors.c: errors of launches. */
/* Raises the exception that a method of the owner returns for the address of an error and the
   arguments. */
void raise_launch_error(Launcher *self, PJRT_Error *error, PyObject *const *arguments,
                        Py_ssize_t count);
/* Raises an error for a result that is NULL, and destroys the other results. */
void raise_missing_result(Launcher *self, PJRT_Buffer *const *made, Py_ssize_t count);
void raise_missing_event(Launcher *self);

/* shards_launcher.c: launches on several devices with functions of a backend. */
typedef struct {
  Launching head;
  PyObject *owner;      /* owner.execute(arguments): the same in Python */
  PyTypeObject *cls;    /* class of shards */
  PyObject *parameters; /* types of the arguments, a tuple */
  PyObject *place;      /* placement of the arguments */
  PyObject *results;    /* type and placement of each result, a tuple of pairs */
  /* (launch, launch with a token, further arguments of `take`): one, or one per device; shards of
     the latter keep the tokens as `_ends` */
  PyObject *launches;
  PyObject *take;       /* take(result of a launch, …, False): arrays of the results */
  PyObject *take_token; /* take_token(launched) */
  /* make_wait(token): an object that waits for the launch; without `take_token`, the token is
     None */
  PyObject *make_wait;
  PyObject *is_deleted; /* is_deleted(array) */
  PyObject *prepare;    /* prepare(), before each launch */
  PyObject *lock;       /* held from the check of the arguments until the launch */
  PyObject *unless;     /* tuple: Python launches while one of these is not empty */
  PyObject *explain;    /* explain(error): the exception to raise */
  PyObject *tidy;       /* tidy(), as `tidy_up` calls it */
  unsigned count;       /* number of launches */
} ShardsLauncher;
int shards_launch(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject **results,
                  PyObject **wait);
int set_shards_names(void);

/* function_launcher.c: launches with functions of a backend. */
/* Raises what explain(error, given) returns for the exception that is set; `given` may be NULL. */
void explain_launch(PyObject *explain, PyObject *given);
/* Calls tidy() at each thousandth launch; does nothing if it is NULL. DONE, or FAILED. */
int tidy_up(PyObject *tidy, unsigned *launches);

/* tree.c: makes pytrees from leaves. */
extern PyTypeObject *Tree_Type;
Py_ssize_t tree_leaves(PyObject *tree);
PyObject *tree_build(PyObject *tree, PyObject *const *leaves);

/* outputs.c: from the results of a launch to the result of the call. */
extern PyTypeObject *Outputs_Type;
Py_ssize_t outputs_count(PyObject *outputs);
/* Whether the Outputs are initialized, for this number of arguments and results. */
int outputs_fit(PyObject *outputs, Py_ssize_t arity, Py_ssize_t produced);
/* Sets the array of each output that is not a result of the launch, NULL for the others: DONE. This
   comes before the launch, so that a donation sees that another array shares the buffers. NOT_HERE
   if Python has to check, FAILED with an exception; the caller then frees the arrays that are
   set. */
int outputs_pass_on(PyObject *outputs, PyObject *const *values, PyObject **arrays);
void outputs_drop(PyObject *outputs, PyObject **arrays);
/* Steals the results and sets their arrays; 0, or -1 with an exception. */
int outputs_wrap(PyObject *outputs, PyObject **results, Py_ssize_t produced, PyObject **arrays);
PyObject *outputs_put_together(PyObject *outputs, PyObject **arrays); /* steals the arrays */

/* donation.c: the donated arguments of a call. */
typedef struct {
  Py_ssize_t count;
  Py_ssize_t *numbers; /* numbers of these arguments */
  PyObject *taker;     /* name of the function, for errors at a later use */
} Donation;
/* Sets the numbers of arguments from a tuple and returns their count; -1 with an exception. */
Py_ssize_t read_numbers(PyObject *given, Py_ssize_t arity, Py_ssize_t **numbers);
int donation_read(Donation *self, PyObject *donated, Py_ssize_t arity, PyObject *taker);
/* Whether the program uses all donated arguments, and none is put: an argument that is not checked
   before the launch may be anything but an array. */
int donation_is_among(const Donation *self, const Py_ssize_t *kept, Py_ssize_t count,
                      PyObject *puts);
/* Removes the buffers from the donated arrays before the launch, and marks the arrays as donated;
   `taken` has room for two per array. DONE. NOT_HERE if Python has to check: another array may
   share the buffers or, if `alone` is set, another launch may use them. FAILED with an
   exception. */
int donation_take(const Donation *self, PyObject *const *values, PyObject *const *held,
                  Py_ssize_t count, int alone, PyObject **taken);
/* After the launch: frees the buffers, or gives them back if there was no launch. */
void donation_end(const Donation *self, PyObject *const *values, PyObject **taken, int launched);
void donation_drop(Donation *self);

/* scratch_pool.c: reusable memory for an argument of launches. */
enum { MOST_SLOTS = 64 }; /* a backend has fewer launches in progress at once */
typedef struct ScratchPool ScratchPool;
typedef struct Slot {
  PyObject *argument; /* the argument of the launch, NULL before it is made */
  Py_buffer memory;   /* the memory that values are written to */
  char in_use;
  /* results of a launch that had not ended when it returned, a tuple; in_use is set */
  PyObject *results;
  unsigned long launched; /* number of that launch, to find the oldest */
  ScratchPool *pool;
  /* list of the slots with results: the next one, and the pointer to this one */
  struct Slot *next, **link;
} Slot;
struct ScratchPool {
  /* make(): an argument and its memory, or None; NULL if the backend cannot make one */
  PyObject *make;
  PyObject *is_ready; /* is_ready(result of a launch) */
  Py_ssize_t size;    /* size of the memory */
  /* the number of launches whose results may be kept: 0 if the results are large */
  int late;
  Slot *slots[MOST_SLOTS]; /* made on first use */
  int count, most;         /* the number of slots, and its maximum */
  unsigned long launches;  /* number of launches that had not ended when they returned */
  /* lost: launches in a row after which the memory could not be reused yet. waiting: launches that
     the pool refuses before it tries again. pause: the next value of `waiting`. */
  unsigned lost, waiting, pause;
};
enum { NOT_READ, READ, NOT_USED }; /* how a launch used the memory, as far as is known */
void scratch_pool_init(ScratchPool *self, PyObject *make, PyObject *is_ready, Py_ssize_t size, int late);
/* Sets a slot that no launch uses, and marks it as in use: DONE. NOT_HERE, or FAILED. */
int scratch_pool_acquire(ScratchPool *self, Slot **found);
/* Returns a tuple of results of a launch that are not ready yet, NULL if none are to be kept. */
PyObject *scratch_pool_keep(ScratchPool *self, PyObject *const *results, Py_ssize_t count);
/* Called after the launch, or without one; `results` are from `scratch_pool_keep`. */
void scratch_pool_release(ScratchPool *self, PyObject *argument, int use, PyObject *results);
/* Whether all results are ready, and the memory was read; -1 with an exception. */
int has_ready_results(ScratchPool *self, PyObject *const *results, Py_ssize_t count);
void slot_drop(Slot *slot); /* leaves the memory to its user */
int scratch_pool_traverse(ScratchPool *self, visitproc visit, void *arg);
void scratch_pool_drop(ScratchPool *self);
/* Frees the kept results of launches that include this one, before a launch donates it. */
void forget_late_result(PyObject *result);

/* scratch_put.c: host values written to scratch memory, or put. */
extern PyTypeObject *ScratchPut_Type;
int is_scratch_put_made(PyObject *self);
ScratchPool *get_scratch_pool(PyObject *self); /* NULL if all values are put */
/* Sets a new reference to the argument of the launch for a value: DONE. FAILED or NOT_HERE, as for
   a launch. */
int scratch_put_value(PyObject *self, PyObject *value, PyObject **made);

/* device_put.c: puts or copies an argument of a call. */
/* Sets an array of `count` objects, new references, NULL for None: 0, or -1 with an exception. */
int read_device_puts(PyObject *given, Py_ssize_t count, PyObject ***device_puts);
/* Sets a new reference to the argument of the launch for a value: DONE. FAILED or NOT_HERE, as for
   a launch. */
int device_put_value(PyObject *device_put, PyObject *value, PyObject **made);
/* Releases the scratch memory of the arguments, after a launch with that state. Returns the state,
   or FAILED with an exception; the results are freed then. */
int end_device_puts(PyObject *const *device_puts, PyObject *const *held, Py_ssize_t count, int state,
                 PyObject **results, Py_ssize_t produced);

/* runner.c: runs a program with the arguments of a call. */

#endif
